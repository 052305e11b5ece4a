package encrypted_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
)

// Any log is encrypted by what wraps it. The keys of agents are in a bucket, wrapped by a key of
// the operator's, without which they do not open.
func ExampleNew() {
	ctx := context.Background()
	ann, err := messages.ParseAgentID("support/ann")
	if err != nil {
		log.Fatal(err)
	}
	bucket := new(encrypted.Memory) // a node has a KV bucket of its server
	keys, err := encrypted.Open(ctx, bucket, encrypted.Key{1})
	if err != nil {
		log.Fatal(err)
	}
	stored := memlog.New()
	events := encrypted.New(stored.Store(), stored, keys)
	blob, err := events.PutBlob(ctx, ann, strings.NewReader("her address"))
	if err != nil {
		log.Fatal(err)
	}
	r, err := events.Blob(ctx, ann, blob)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	fmt.Println(string(text), err)
	for b, err := range stored.ListBlobs(ctx, ann) {
		fmt.Println(b.SHA256 == blob.SHA256, err) // not even the hash of the text is stored
	}

	_, err = encrypted.Open(ctx, bucket, encrypted.Key{2})
	fmt.Println(err != nil)
	// Output:
	// her address <nil>
	// false <nil>
	// true
}
