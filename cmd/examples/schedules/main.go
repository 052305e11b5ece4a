// Schedules sends an agent inputs for later: one after a delay, one every working day at nine. They are kept in the
// log, so that they come also after a restart.
//
//	go run ./cmd/examples/schedules
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
)

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
		Agents: []actors.Definition{{Kind: "assistant", Model: "demo/demo"}}})
	if err != nil {
		return err
	}
	defer node.Close()
	c := node.Client()
	for _, s := range []messages.Schedule{
		{Name: "morning", Cron: "0 9 * * 1-5", Zone: "Europe/Berlin"},
		{Name: "soon", In: messages.Span(300 * time.Millisecond)},
	} {
		in := messages.Input{Content: messages.TextContent("It is " + s.Name), Schedule: s}
		if _, err := c.Send(ctx, "assistant/ann", in); err != nil {
			return err
		}
	}
	for ev, err := range c.Events(ctx, "assistant/ann", client.Only(messages.Query{Follow: true})) {
		if err != nil {
			return err
		}
		if ev.Type == "timer.set" || ev.Type == "timer.fired" {
			fmt.Println(ev.Type)
		}
		if messages.Is(ev.Type, messages.EndsTurn) {
			break
		}
	}
	for t, err := range c.Timers(ctx, "assistant/ann") {
		if err != nil {
			return err
		}
		fmt.Println("waits:", t.Timer, t.Cron, t.Zone)
	}
	_, err = c.Do(ctx, "assistant/ann", messages.Cancel{Timer: "morning"})
	return err
}
