// Three-nodes starts three nodes on one NATS server and stops one of them while its agents are in the middle of a
// tool call. The other two take the agents over and end their turns.
//
//	go run ./cmd/examples/three-nodes
package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
	"github.com/reprise-dev/reprise/providers/tool"
)

const agents = 24

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "reprise")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	begun, open := make(chan string, 3*agents), make(chan struct{})
	report := tool.New("report", "Write a report", tool.Rerun, func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case begun <- tool.Key(ctx):
		default: // it has run again before
		}
		select {
		case <-open:
		case <-ctx.Done(): // the agent moves to another node
		}
		return "done", ctx.Err()
	})
	var nodes []*cluster.Node
	for _, name := range []string{"a", "b", "c"} {
		cfg := cluster.Config{Name: name, Providers: providers.Set{"demo": demo.New()}, Logger: slog.New(slog.DiscardHandler),
			Agents: []actors.Definition{{Kind: "worker", Model: "demo/demo", Tools: []tool.Tool{report}}}}
		if len(nodes) == 0 {
			cfg.Data, cfg.Listen = dir, "127.0.0.1:0" // the server is embedded in the first node
		} else {
			cfg.NATS = nodes[0].URL()
		}
		node, err := cluster.Start(ctx, cfg)
		if err != nil {
			return err
		}
		defer node.Close()
		nodes = append(nodes, node)
	}
	for nodes[1].Partitions() < 16 || nodes[2].Partitions() < 16 { // until each has its share of the 64 partitions
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}

	var work sync.WaitGroup
	for i := range agents {
		work.Go(func() {
			for ev, err := range nodes[0].Client().Ask(ctx, fmt.Sprintf("worker/w%d", i), "report") { // any node will do
				if err != nil {
					log.Println(ev.Type, err)
				}
			}
		})
	}
	for range agents {
		select {
		case <-begun:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	fmt.Println("every agent is in the middle of a call; node b stops")
	err = nodes[1].Close()
	close(open)
	work.Wait()
	fmt.Println("every turn has ended; calls ran again on another node:", len(begun) > 0)
	return err
}
