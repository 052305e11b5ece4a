// Hooks runs code of yours at points of a turn: one adds the date to each request, one denies refunds outside of office
// hours, one measures each call of a tool. What a hook changes is in the log, with its reason.
//
//	go run ./cmd/examples/hooks
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
	"github.com/reprise-dev/reprise/providers/tool"
)

var date = actors.Hook{Name: "date",
	BeforeModel: func(_ context.Context, _ actors.HookInfo, r providers.Request) (actors.Verdict, error) {
		r.Instructions += " It is Sunday, 4 January 2026."
		return actors.Verdict{Do: actors.Rewrite, Request: &r, Reason: "the model has no clock"}, nil
	}}

var officeHours = actors.Hook{Name: "office hours",
	BeforeTool: func(_ context.Context, _ actors.HookInfo, c actors.HookedCall) (actors.Verdict, error) {
		if c.Tool == "refund" { // on a Sunday
			return actors.Verdict{Do: actors.Skip, Text: "come back on Monday", Reason: "the office is closed"}, nil
		}
		return actors.Verdict{}, nil
	}}

var timing = actors.Hook{Name: "timing",
	AroundTool: func(ctx context.Context, in actors.HookInfo, c actors.HookedCall, next func(context.Context) (string, error)) (string, error) {
		begun := time.Now()
		result, err := next(ctx)
		fmt.Println("timing:", c.Tool, "of", in.Agent, "took less than a second:", time.Since(begun) < time.Second)
		return result, err
	}}

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
	say := func(text string) func(context.Context, struct{}) (string, error) {
		return func(context.Context, struct{}) (string, error) { return text, nil }
	}
	node, err := cluster.Start(ctx, cluster.Config{Data: dir, Providers: providers.Set{"demo": demo.New()},
		Agents: []actors.Definition{{Kind: "support", Model: "demo/demo", Instructions: "Be brief.",
			Tools: []tool.Tool{tool.New("refund", "Pay an order back", tool.Rerun, say("paid")),
				tool.New("lookup", "Find an order", tool.ReadOnly, say("on its way"))},
			Hooks: []actors.Hook{date, officeHours, timing}}}})
	if err != nil {
		return err
	}
	defer node.Close()
	c := node.Client()
	for _, question := range []string{"lookup", "refund"} {
		for ev, err := range c.Ask(ctx, "support/ann", question) {
			if err != nil {
				return err
			}
			if ev.Terminal() {
				fmt.Println(ev.Output)
			}
		}
	}
	request, err := c.Request(ctx, "support/ann", 0) // 0: the newest
	fmt.Println(request.Instructions)
	return err
}
