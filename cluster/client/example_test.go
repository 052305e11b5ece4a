package client_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

// node is the one that the examples talk to: assistants that can calculate, and support, which may
// pay back up to 5000 cents by itself.
var node = sync.OnceValue(func() *cluster.Node {
	type refund struct {
		Order int `json:"order"`
		Cents int `json:"cents"`
	}
	pay := tool.New("refund", "Pay an order back", tool.Rerun, func(_ context.Context, r refund) (string, error) {
		return fmt.Sprintf("Paid %d cents back for order %d.", r.Cents, r.Order), nil
	}).ApproveIf(func(r refund) bool { return r.Cents > 5000 })
	date := actors.Hook{Name: "date", BeforeModel: func(_ context.Context, _ actors.HookInfo, r providers.Request) (actors.Verdict, error) {
		r.Instructions += " It is 2 January 2026."
		return actors.Verdict{Do: actors.Rewrite, Request: &r, Reason: "the model has no clock"}, nil
	}}
	dir, err := os.MkdirTemp("", "reprise")
	if err != nil {
		log.Fatal(err)
	}
	folder = dir
	n, err := cluster.Start(context.Background(), cluster.Config{
		Data: dir, Listen: "127.0.0.1:0", Sync: "relaxed", Logger: slog.New(slog.DiscardHandler),
		Providers: providers.Set{"demo": demo.New()},
		Agents: []actors.Definition{
			{Kind: "assistant", Model: "demo/demo", Tools: []tool.Tool{toolbox.Calculator()}},
			{Kind: "support", Model: "demo/demo", Tools: []tool.Tool{pay}},
			{Kind: "dated", Model: "demo/demo", Instructions: "Be brief.", Hooks: []actors.Hook{date}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	return n
})

// folder is what the node keeps its data in; empty: no example has started it.
var folder string

func TestMain(m *testing.M) {
	code := m.Run()
	if folder != "" {
		_ = node().Close()
		_ = os.RemoveAll(folder)
	}
	os.Exit(code)
}

// connect returns a client of the node.
func connect() *client.Client {
	c, err := client.Connect(context.Background(), client.Options{URL: node().URL()})
	if err != nil {
		log.Fatal(err)
	}
	return c
}

// ask asks an agent and waits for the end of the turn.
func ask(c *client.Client, agent, text string) {
	for _, err := range c.Ask(context.Background(), agent, text) {
		if err != nil {
			log.Fatal(err)
		}
	}
}

func ExampleConnect() {
	c, err := client.Connect(context.Background(), client.Options{URL: node().URL(), Person: "ann"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	id, err := c.Send(context.Background(), "assistant/connect", messages.Input{ID: "mail-1", Content: messages.TextContent("Hello")})
	fmt.Println(id, err)
	// Output: mail-1 <nil>
}

// The pieces of an answer come as the model gives them, and facts between them.
func ExampleClient_Ask() {
	c := connect()
	defer c.Close()
	answer := ""
	for ev, err := range c.Ask(context.Background(), "assistant/ask", "What is 17 times 3?") {
		if err != nil {
			log.Fatal(err)
		}
		switch {
		case ev.Type == "delta":
			answer += ev.Text
		case ev.Terminal():
			fmt.Println(ev.Type, ev.Output == answer, ev.Output)
		}
	}
	// Output: turn.completed true 17 times 3 is 51.
}

// An input with an id of the caller's has its effect once, however often it is asked again.
func ExampleClient_AskInput() {
	c := connect()
	defer c.Close()
	mail := messages.Input{ID: "mail-1", Content: messages.TextContent("What is 17 times 3?")}
	for range 2 {
		for ev, err := range c.AskInput(context.Background(), "assistant/mail", mail) {
			if err != nil {
				log.Fatal(err)
			}
			if ev.Terminal() {
				fmt.Println(ev.Turn, ev.Output)
			}
		}
	}
	mail.Content = messages.TextContent("Something else")
	for _, err := range c.AskInput(context.Background(), "assistant/mail", mail) {
		fmt.Println(messages.AsError(err).Code)
	}
	// Output:
	// t4 17 times 3 is 51.
	// t4 17 times 3 is 51.
	// conflict
}

// An input that is sent is stored when Send returns; what becomes of it is read from the log.
func ExampleClient_Send() {
	c := connect()
	defer c.Close()
	ctx := context.Background()
	if _, err := c.Send(ctx, "assistant/send", messages.Input{Content: messages.TextContent("What is 17 times 3?")}); err != nil {
		log.Fatal(err)
	}
	for ev, err := range c.Events(ctx, "assistant/send", client.Only(messages.Query{Follow: true})) {
		if err != nil {
			log.Fatal(err)
		}
		if messages.Is(ev.Type, messages.EndsTurn) {
			fmt.Println(ev.N, ev.Type)
			break
		}
	}
	// Output: 12 turn.completed
}

// A person decides what an agent may not do by itself.
func ExampleClient_Do() {
	c := connect()
	defer c.Close()
	ctx := context.Background()
	for ev, err := range c.Ask(ctx, "support/t1", "Refund 9900 cents for order 7") {
		if err != nil {
			log.Fatal(err)
		}
		if ev.Terminal() {
			fmt.Println(ev.Output)
		}
		if ev.Type != "turn.paused" {
			continue
		}
		for wait, err := range c.Approvals(ctx, "support/t1") {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(wait.Tool, wait.Arguments)
			if _, err := c.As("ann").Do(ctx, "support/t1", messages.Decision{Approve: true}.Command(wait)); err != nil {
				log.Fatal(err)
			}
		}
	}
	// Output:
	// refund {"order":7,"cents":9900}
	// refund says: Paid 9900 cents back for order 7.
}

// What a paused turn waits for, whether its turn.paused has just come or is one of the past.
func ExampleClient_Show() {
	ctx := context.Background()
	c := node().Client()
	for ev, err := range c.Ask(ctx, "support/shown", "Refund 9900 cents for order 7") {
		if err != nil {
			log.Fatal(err)
		}
		if ev.Type != "turn.paused" {
			continue
		}
		status, err := c.Show(ctx, "support/shown")
		if err != nil {
			log.Fatal(err)
		}
		if status.Phase == messages.PhasePaused && status.Turn == ev.Turn {
			for _, w := range status.Waiting {
				fmt.Println(w.Kind, w.Tool, w.Arguments)
			}
			break // the turn waits, also while no one reads
		}
	}
	// Output: approval refund {"order":7,"cents":9900}
}

func ExampleClient_Turns() {
	c := connect()
	defer c.Close()
	ask(c, "assistant/turns", "What is 17 times 3?")
	ask(c, "assistant/turns", "What is 5 times 3?")
	for turn, err := range c.Turns(context.Background(), "assistant/turns", client.Only(messages.Query{Tail: 1})) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(turn.ID, turn.Phase, turn.Question, turn.Answer)
	}
	// Output: t14 completed What is 5 times 3? 5 times 3 is 15.
}

func ExampleClient_Turn() {
	c := connect()
	defer c.Close()
	ask(c, "assistant/turn", "What is 17 times 3?")
	turn, err := c.Turn(context.Background(), "assistant/turn", "t4")
	if err != nil {
		log.Fatal(err)
	}
	for _, step := range turn.Done {
		fmt.Println("step", step.Step, "asks", step.Models[0].Model)
		for _, call := range step.Tools {
			fmt.Println(call.Tool, call.Arguments, call.Outcome, call.Output)
		}
	}
	fmt.Println(turn.Output)
	// Output:
	// step 1 asks demo/demo
	// calculator {"expression":"17 * 3"} completed 51
	// step 2 asks demo/demo
	// 17 times 3 is 51.
}

// What a model sees of an agent, now and as of an event.
func ExampleClient_History() {
	c := connect()
	defer c.Close()
	ask(c, "assistant/history", "What is 17 times 3?")
	for _, at := range []messages.EventNumber{5, 0} {
		var items []string
		for item, err := range c.History(context.Background(), "assistant/history", client.At(at)) {
			if err != nil {
				log.Fatal(err)
			}
			items = append(items, fmt.Sprint(item.N, " ", item.Type))
		}
		fmt.Println(strings.Join(items, ", "))
	}
	// Output:
	// 4 message
	// 4 message, 6 function_call, 9 function_call_output, 11 message
}

// What a model was sent, as a hook has changed it: the call that wrote event 7, or any other.
func ExampleClient_Request() {
	c := connect()
	defer c.Close()
	ask(c, "dated/request", "Hello!")
	r, err := c.Request(context.Background(), "dated/request", 7)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Model, "at event", r.N, r.Instructions)
	fmt.Println(r.Hooks[0].Hook, "has changed", r.Changed, "because", r.Hooks[0].Reason)
	for _, item := range r.Items {
		fmt.Println(item.Role, item.Content.Text())
	}
	fmt.Println("equal to what was sent:", r.Matches)
	// Output:
	// demo/demo at event 6 Be brief. It is 2 January 2026.
	// date has changed [instructions] because the model has no clock
	// user Hello!
	// equal to what was sent: true
}

func ExampleClient_Effects() {
	c := connect()
	defer c.Close()
	ask(c, "support/t2", "Refund 100 cents for order 8")
	for call, err := range c.Effects(context.Background(), "support/t2", client.Only(messages.Query{Tool: "refund", Where: map[string]string{"order": "8"}})) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(call.Outcome, call.Arguments, call.Output)
	}
	// Output: completed {"order":8,"cents":100} Paid 100 cents back for order 8.
}

func ExampleClient_Usage() {
	c := connect()
	defer c.Close()
	ask(c, "assistant/usage", "What is 17 times 3?")
	for line, err := range c.Usage(context.Background(), "assistant/usage") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(line.Type, line.Calls, line.Usage.Output)
	}
	// Output:
	// call 1 4
	// call 1 5
	// turn 2 9
	// model 2 9
	// total 2 9
}

func ExampleClient_State() {
	c := connect()
	defer c.Close()
	ctx := context.Background()
	if _, err := c.Do(ctx, "assistant/state", messages.SetState{Patch: []byte(`{"lang":"de"}`)}); err != nil {
		log.Fatal(err)
	}
	state, err := c.State(ctx, "assistant/state")
	fmt.Println(string(state), err)
	status, err := c.Show(ctx, "assistant/state")
	fmt.Println(status.Phase, len(status.Queue), err)
	// Output:
	// {"lang":"de"} <nil>
	// idle 0 <nil>
}
