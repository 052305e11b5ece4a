package actors_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// exampleT stands for the *testing.T of a test.
type exampleT struct {
	testing.TB
	ends []func()
}

func (t *exampleT) Helper()                   {}
func (t *exampleT) Cleanup(f func())          { t.ends = append(t.ends, f) }
func (t *exampleT) Fatal(args ...any)         { log.Fatal(args...) }
func (t *exampleT) Fatalf(f string, a ...any) { log.Fatalf(f, a...) }
func (t *exampleT) Errorf(f string, a ...any) { log.Fatalf(f, a...) }

func (t *exampleT) end() {
	for _, f := range t.ends {
		f()
	}
}

// A hook keeps a tool from running outside of office hours.
func ExampleHook() {
	t := new(exampleT)
	defer t.end()
	closed := actors.Hook{Name: "office hours", BeforeTool: func(_ context.Context, _ actors.HookInfo, c actors.HookedCall) (actors.Verdict, error) {
		if c.Tool == "refund" {
			return actors.Verdict{Do: actors.Skip, Text: "come back tomorrow", Reason: "no one is in"}, nil
		}
		return actors.Verdict{}, nil
	}}
	refund := tool.New("refund", "Pay an order back", tool.Rerun, func(context.Context, struct{}) (string, error) { return "paid", nil })
	model := scripted.New(scripted.Ask(scripted.Call{ID: "c1", Name: "refund", Arguments: "{}"}), scripted.Say("Tomorrow, then."))

	stage := actorstest.New(t, nil)
	node := stage.Start(actors.Config{
		Providers:   providers.Set{"scripted": model},
		Definitions: []actors.Definition{{Kind: "support", Model: "scripted/m", Tools: []tool.Tool{refund}, Hooks: []actors.Hook{closed}}},
	})
	ann := actorstest.Agent("support", "ann")
	node.Must(ann, actorstest.Say("u1", "Pay order 7 back"))
	events := stage.Until(ann, "turn.completed")
	fmt.Println(actorstest.Of[messages.HookDecided](events)[0].Reason)
	fmt.Println(actorstest.Of[messages.ToolSkipped](events)[0].Reason)
	fmt.Println(actorstest.Of[messages.TurnCompleted](events)[0].Output)
	// Output:
	// no one is in
	// come back tomorrow
	// Tomorrow, then.
}

// An agent asks another one as if it were a tool.
func ExampleAsTool() {
	t := new(exampleT)
	defer t.end()
	boss := scripted.New(scripted.Ask(scripted.Call{ID: "c1", Name: "helper", Arguments: `{"input":"What is 17 times 3?"}`}), scripted.Say("The helper says 51."))
	helper := scripted.New(scripted.Say("51"))

	stage := actorstest.New(t, nil)
	node := stage.Start(actors.Config{
		Providers: providers.Set{"boss": boss, "helper": helper},
		Definitions: []actors.Definition{
			{Kind: "boss", Model: "boss/m", Tools: []tool.Tool{actors.AsTool("helper", "Ask the helper")}},
			{Kind: "helper", Model: "helper/m"},
		},
	})
	one := actorstest.Agent("boss", "one")
	node.Must(one, actorstest.Say("u1", "What is 17 times 3?"))
	events := stage.Until(one, "turn.completed")
	fmt.Println(actorstest.Of[messages.ToolCompleted](events)[0].Output)
	fmt.Println(actorstest.Of[messages.TurnCompleted](events)[0].Output)
	// Output:
	// 51
	// The helper says 51.
}
