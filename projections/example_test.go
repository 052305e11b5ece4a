package projections_test

import (
	"fmt"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// frames are the log of an agent that has answered once.
var frames = []*messages.Frame{
	{First: 1, Time: time.Unix(1767225600, 0), Events: []messages.Event{
		messages.AgentCreated{Agent: "default/support/ann"},
		messages.InputAccepted{Input: "u1", Turn: "t3", Disposition: messages.Started, Content: messages.TextContent("Order 7 came broken")},
		messages.TurnStarted{Turn: "t3", Inputs: []string{"u1"}},
		messages.ModelRequested{Turn: "t3", Step: 1, Call: "m4", Model: "demo/demo", Inputs: []string{"u1"}},
	}},
	{First: 5, Time: time.Unix(1767225601, 0), Events: []messages.Event{
		messages.ModelCompleted{Turn: "t3", Step: 1, Call: "m4", Items: []messages.Item{messages.Text(messages.RoleAssistant, "I am sorry.")}, Usage: messages.Usage{Input: 9, Output: 4}},
		messages.TurnCompleted{Turn: "t3", Inputs: []string{"u1"}, Output: "I am sorry.", Steps: 1},
	}},
}

// Several views are folded in one pass over the log, here as of event 4 and of the newest.
func ExampleFold() {
	for _, at := range []messages.EventNumber{4, 0} {
		var history projections.History
		var turns projections.TurnTexts
		for _, f := range frames {
			if !projections.Fold(f, at, &history, &turns) {
				break
			}
		}
		turn := turns.Lines()[0]
		fmt.Printf("%d items, %s: %q, %q\n", history.Len(), turn.Phase, turn.Question, turn.Answer)
	}
	// Output:
	// 1 items, running: "Order 7 came broken", ""
	// 2 items, completed: "Order 7 came broken", "I am sorry."
}

// words counts how often an agent has apologised.
type words struct{ sorry int }

// Apply folds event number n.
func (w *words) Apply(_ messages.EventNumber, ev messages.Event) {
	if done, ok := ev.(messages.TurnCompleted); ok && done.Output == "I am sorry." {
		w.sorry++
	}
}

// A view of your own is any type with the method Apply.
func ExampleView() {
	var w words
	for _, f := range frames {
		projections.Fold(f, 0, &w)
	}
	fmt.Println(w.sorry)
	// Output: 1
}
