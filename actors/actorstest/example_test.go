package actorstest_test

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

// The node is killed while a tool runs, and the next one runs it again under the same key.
func Example() {
	t := new(exampleT) // in a test: its *testing.T
	defer t.end()
	running := make(chan struct{})
	refund := tool.New("refund", "Pay an order back", tool.Rerun, func(ctx context.Context, _ struct{}) (string, error) {
		if tool.CallOf(ctx).Attempt == 1 {
			close(running)
			<-ctx.Done() // until the node is killed
		}
		return "paid", ctx.Err()
	})
	model := scripted.New(scripted.Ask(scripted.Call{ID: "c1", Name: "refund", Arguments: "{}"}), scripted.Say("Done."))
	config := actors.Config{
		Providers:   providers.Set{"scripted": model},
		Definitions: []actors.Definition{{Kind: "support", Model: "scripted/m", Tools: []tool.Tool{refund}}},
	}
	ann := actorstest.Agent("support", "ann")

	stage := actorstest.New(t, nil)
	first := stage.Start(config)
	first.Must(ann, actorstest.Say("u1", "Pay order 7 back"))
	<-running
	first.Crash()

	second := stage.Start(config)
	second.Activate(ann)
	events := stage.Until(ann, "turn.completed")
	for _, started := range actorstest.Of[messages.ToolStarted](events) {
		fmt.Println("attempt", started.Attempt, started.Key)
	}
	// Output:
	// attempt 1 default/support/ann/t4/c1
	// attempt 2 default/support/ann/t4/c1
}

// Given what an agent has in its log, when a command is sent, then these events follow.
func ExampleStage_Given() {
	t := new(exampleT) // in a test: its *testing.T
	defer t.end()
	ann := actorstest.Agent("support", "ann")
	stage := actorstest.New(t, nil)
	stage.Given(ann, messages.AgentCreated{Agent: ann.Full()}, messages.StatePatched{Patch: []byte(`{"vip":true}`)})

	node := stage.Start(greeting("Be kind."))
	node.Must(ann, actorstest.Say("u1", "Hi"))
	stage.Until(ann, "turn.completed")

	for _, eventType := range stage.Types(ann)[2:] {
		fmt.Println(eventType)
	}
	// Output:
	// agent.activated
	// agent.configured
	// input.accepted
	// turn.started
	// model.requested
	// model.completed
	// turn.completed
}
