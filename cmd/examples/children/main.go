// Children has one agent ask two others. Each call creates a child agent with a log of its own; the child's answer
// is the result of the call.
//
//	go run ./cmd/examples/children
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
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
	// A script stands for the model of the editor: it asks both children at once, then answers.
	editor := scripted.New(
		scripted.Ask(
			scripted.Call{Name: "accountant", Arguments: `{"input":"What is 17 times 3?"}`},
			scripted.Call{Name: "writer", Arguments: `{"input":"A greeting, please"}`}),
		scripted.Say("Both have answered."))
	node, err := cluster.Start(ctx, cluster.Config{Data: dir,
		Providers: providers.Set{"demo": demo.New(), "editor": editor, "writer": scripted.New(scripted.Say("Dear reader,"))},
		Agents: []actors.Definition{
			{Kind: "editor", Model: "editor/m", Tools: []tool.Tool{
				actors.AsTool("accountant", "Ask for a calculation"),
				actors.AsTool("writer", "Ask for a text")}},
			{Kind: "accountant", Model: "demo/demo", Tools: []tool.Tool{toolbox.Calculator()}},
			{Kind: "writer", Model: "writer/m"},
		}})
	if err != nil {
		return err
	}
	defer node.Close()
	c := node.Client()
	for ev, err := range c.Ask(ctx, "editor/one", "Write a greeting") {
		if err != nil {
			return err
		}
		if ev.Terminal() {
			fmt.Println(ev.Output)
		}
	}
	for child, err := range c.Children(ctx, "editor/one") {
		if err != nil {
			return err
		}
		for turn, err := range c.Turns(ctx, child.Agent.String()) {
			if err != nil {
				return err
			}
			fmt.Printf("%s %s: %s\n", child.Tool, child.Status, turn.Answer)
		}
	}
	return nil
}
