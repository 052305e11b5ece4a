package memory_test

import (
	"context"
	"fmt"
	"log"

	"github.com/reprise-dev/reprise/providers/memory"
)

// A provider or tool of your own adds what it reads to the claim of its call, as it reads: what does not fit waits.
func ExampleNew() {
	bound := memory.New(1 << 30) // the runtime's part; a node has Config.PayloadMemory
	ctx, release := bound.With(context.Background())
	if err := memory.Of(ctx).Add(ctx, 10<<20); err != nil {
		log.Fatal(err)
	}
	fmt.Println(bound.Held() >= 10<<20, bound.Waiting())
	release()
	fmt.Println(bound.Held())
	// Output:
	// true 0
	// 0
}
