// Fan-out gives a hundred agents a task each and waits for all answers. Started again with the same ids and the same
// folder, it repeats no task that has ended.
//
//	go run ./cmd/examples/fan-out
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"sync"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

const tasks = 100

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "reprise")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	node, err := cluster.Start(ctx, cluster.Config{Data: dir, Providers: providers.Set{"demo": demo.New()},
		Agents: []actors.Definition{{Kind: "worker", Model: "demo/demo", Tools: []tool.Tool{toolbox.Calculator()}}}})
	if err != nil {
		return err
	}
	defer node.Close()

	var all sync.WaitGroup
	answers, errs := make([]string, tasks), make([]error, tasks)
	for i := range tasks {
		all.Go(func() {
			agent, in := fmt.Sprintf("worker/task-%d", i), messages.Input{ID: fmt.Sprintf("task-%d", i),
				Content: messages.TextContent(fmt.Sprintf("What is %d times %d?", i, i))}
			for ev, err := range node.Client().AskInput(ctx, agent, in) {
				if err != nil { // of this agent alone: the others continue
					errs[i] = err
				}
				if ev.Terminal() {
					answers[i] = ev.Output
				}
			}
		})
	}
	all.Wait()
	failed := 0
	for _, err := range errs {
		if err != nil {
			failed++
		}
	}
	fmt.Println(tasks-failed, "answers,", failed, "failed; the last:", answers[tasks-1])
	fmt.Println("agents in the store:", count(node.Agents()))
	return nil
}

func count(byPhase map[string]int) (n int) {
	for _, k := range byPhase {
		n += k
	}
	return n
}
