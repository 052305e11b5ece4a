// Crash-and-resume kills itself in the middle of a tool call and starts again. The second process continues the same
// turn, and the tool runs again with the same idempotency key.
//
//	go run ./cmd/examples/crash-and-resume
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
	"github.com/reprise-dev/reprise/providers/tool"
)

func main() {
	if len(os.Args) == 2 {
		if err := work(context.Background(), os.Args[1]); err != nil {
			log.Fatal(err)
		}
		return
	}
	dir, err := os.MkdirTemp("", "reprise")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for range 2 {
		cmd := exec.Command(os.Args[0], dir) // the same program, on the same folder
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Println("process:", err)
		}
	}
}

func work(ctx context.Context, dir string) error {
	type order struct {
		Number int `json:"number"`
	}
	pay := tool.New("pay", "Pay an order", tool.Rerun, func(ctx context.Context, o order) (string, error) {
		call := tool.CallOf(ctx)
		fmt.Printf("pay order %d, attempt %d, key %s\n", o.Number, call.Attempt, call.Key)
		if self, err := os.FindProcess(os.Getpid()); err == nil && call.Attempt == 1 {
			return "", self.Kill() // as kill -9 does: nothing is written any more
		}
		return "paid", nil
	})
	node, err := cluster.Start(ctx, cluster.Config{Data: dir, Providers: providers.Set{"demo": demo.New()},
		Agents: []actors.Definition{{Kind: "shop", Model: "demo/demo", Tools: []tool.Tool{pay}}}})
	if err != nil {
		return err
	}
	defer node.Close()
	// The id is that of the order: asked again under it, the input has one effect.
	in := messages.Input{ID: "order-7", Content: messages.TextContent("Pay order number=7")}
	for ev, err := range node.Client().AskInput(ctx, "shop/ann", in) {
		if err != nil {
			return err
		}
		if ev.Terminal() {
			fmt.Println(ev.Type, ev.Turn, ev.Output)
		}
	}
	return nil
}
