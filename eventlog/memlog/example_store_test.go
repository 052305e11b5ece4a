package memlog_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
)

// All that a node stores, in memory: for tests.
func ExampleNewStore() {
	ctx := context.Background()
	ann := messages.AgentID{Tenant: "default", Kind: "support", Key: "ann"}
	store := memlog.NewStore()
	blob, err := store.PutBlob(ctx, ann, strings.NewReader("a large text"))
	if err != nil {
		log.Fatal(err)
	}
	r, err := store.Blob(ctx, ann, blob)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	fmt.Println(string(text), err)
	// Output: a large text <nil>
}
