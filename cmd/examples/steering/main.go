// Steering changes the course of a running turn: an input with the policy steer is read before the next model call,
// and interrupt ends a turn. Policies are queue (the default), steer, interrupt and reject.
//
//	go run ./cmd/examples/steering
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
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
	found := make(chan struct{})
	search := tool.New("search", "Search the archive", tool.ReadOnly, func(ctx context.Context, _ struct{}) (string, error) {
		if tool.CallOf(ctx).Agent.Key == "one" {
			<-found
			return "100 reports", nil
		}
		<-ctx.Done() // the turn is interrupted
		return "", ctx.Err()
	})
	// This model searches first, and then repeats what it has read last.
	model := scripted.Func(func(r providers.Request) scripted.Step {
		last := r.Items[len(r.Items)-1].Content.Text()
		if last == "Find the reports" {
			return scripted.Ask(scripted.Call{Name: "search", Arguments: "{}"})
		}
		return scripted.Say("I have read: " + last)
	})
	node, err := cluster.Start(ctx, cluster.Config{Data: dir, Providers: providers.Set{"scripted": model},
		Agents: []actors.Definition{{Kind: "clerk", Model: "scripted/m", Tools: []tool.Tool{search}}}})
	if err != nil {
		return err
	}
	defer node.Close()
	if err := steer(ctx, node.Client(), found); err != nil {
		return err
	}
	return interrupt(ctx, node.Client())
}

var find = messages.Input{Content: messages.TextContent("Find the reports")}

func steer(ctx context.Context, c *client.Client, found chan<- struct{}) error {
	only := messages.Input{Policy: messages.PolicySteer, Content: messages.TextContent("Only those of this week")}
	for ev, err := range c.AskFacts(ctx, "clerk/one", find) {
		if err != nil {
			return err
		}
		if ev.Type != "tool.started" {
			continue
		}
		for ev, err := range c.AskFacts(ctx, "clerk/one", only) { // the rest of the same turn
			switch {
			case err != nil:
				return err
			case ev.Type == "input.accepted":
				close(found)
			case ev.Terminal():
				fmt.Println(ev.Type, ev.Output)
			}
		}
	}
	return nil
}

func interrupt(ctx context.Context, c *client.Client) error {
	for ev, err := range c.AskFacts(ctx, "clerk/two", find) {
		if ev.Type == "tool.started" {
			if _, err := c.Do(ctx, "clerk/two", messages.Interrupt{Reason: "not needed any more"}); err != nil {
				return err
			}
		}
		if err != nil { // follows the event turn.aborted
			fmt.Println(err)
		}
	}
	return nil
}
