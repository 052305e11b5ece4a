package projections

import (
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// A turn that continues a failed one is a part of its exchange.
func TestExchanges(t *testing.T) {
	var x Exchanges
	foldAll(&x,
		input("u1", "one"), started("t2", "u1"),
		messages.ToolRequested{Turn: "t2", Call: "a", Tool: "pay", Arguments: `{"n":1}`},
		messages.ToolStarted{Turn: "t2", Call: "a", Tool: "pay", Attempt: 1},
		messages.ToolCompleted{Turn: "t2", Call: "a", Output: "paid"},
		messages.TurnFailed{Turn: "t2", Reason: "model", Message: "no answer", Steps: 1},
		messages.TurnStarted{Turn: "t7", Continues: "t2", Steps: 1},
		messages.TurnCompleted{Turn: "t7", Output: "Done.", Steps: 2},
		input("u2", "two"), started("t9", "u2"),
	)
	list := x.Exchanges()
	if len(list) != 2 {
		t.Fatalf("got %+v", list)
	}
	first, second := list[0], list[1]
	if first.Turn != "t2" || first.Status != Completed || first.Reason != "" || first.Answer != "Done." || first.Steps != 2 || len(first.Inputs) != 1 || len(first.Calls) != 1 || first.Calls[0].Output != "paid" {
		t.Errorf("got %+v", first)
	}
	if second.Status != Running || second.Inputs[0].ID != "u2" || second.Calls != nil {
		t.Errorf("got %+v", second)
	}
}
