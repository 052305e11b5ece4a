package projections

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// foldAll folds events that are a second apart, the third and each after it by a person.
func foldAll(v Timed, events ...messages.Event) {
	for i, ev := range events {
		var by *messages.Person
		if i >= 2 {
			by = &messages.Person{Name: "ann"}
		}
		v.At(second(i), by)
		v.Apply(messages.EventNumber(i+1), ev)
	}
}

func TestTurnDetails(t *testing.T) { // A33, A52
	tokens := messages.Usage{Input: 20, Output: 1}
	text := messages.Text(messages.RoleAssistant, "let me look")
	d := TurnDetails{ID: "t2"}
	foldAll(&d,
		input("u1", "one"), started("t2", "u1"),
		messages.ModelRequested{Turn: "t2", Step: 1, Attempt: 1, Call: "m3", Model: "demo"},
		messages.ModelFailed{Turn: "t2", Step: 1, Call: "m3", Kind: "overloaded", Message: "later", Usage: tokens},
		messages.ModelRequested{Turn: "t2", Step: 1, Attempt: 2, Call: "m3", Model: "demo"},
		messages.ModelCompleted{Turn: "t2", Step: 1, Call: "m3", Items: []messages.Item{text, {Type: messages.ItemCall, CallID: "c1"}}, Usage: tokens, Cost: 7},
		messages.ToolRequested{Turn: "t2", Step: 1, Call: "c1", Tool: "refund", Arguments: "{}"},
		messages.ApprovalRequested{Turn: "t2", Call: "c1", Tool: "refund", Arguments: "{}", ArgsHash: "h"},
		messages.TurnPaused{Turn: "t2", Reason: "approval", Calls: []messages.CallID{"c1"}, Message: "approve or deny"},
		input("u2", "two"), input("u3", "of another turn"),
		messages.ApprovalGranted{Turn: "t2", Call: "c1", Tool: "refund", By: messages.ByDecision},
		messages.TurnResumed{Turn: "t2"},
		messages.ToolStarted{Turn: "t2", Call: "c1", Tool: "refund", Key: "k", Attempt: 1},
		messages.ToolCompleted{Turn: "t2", Call: "c1", Output: "paid"},
		messages.ModelRequested{Turn: "t2", Step: 2, Attempt: 1, Call: "m16", Model: "demo", Inputs: []string{"u2"}},
	)
	ann := &messages.Person{Name: "ann"}
	want := TurnDetail{
		Agent: messages.AgentID{Tenant: "x", Kind: "y", Key: "z"},
		Turn:  Turn{ID: "t2", Inputs: []string{"u1", "u2"}, Phase: Running, Started: 2, StartedAt: second(1), Steps: 2, Usage: tokens.Add(tokens), Cost: 7},
		Asked: []TurnInput{{ID: "u1", N: 1, At: second(0), Content: messages.TextContent("one")}, {ID: "u2", N: 10, At: second(9), Person: ann, Content: messages.TextContent("two")}},
		Done: []TurnStep{
			{Step: 1, Models: []Attempt{
				{ModelCall: ModelCall{N: 4, Turn: "t2", Step: 1, Call: "m3", Model: "demo", Failed: "overloaded", Usage: tokens}, StartedAt: second(2), EndedAt: second(3), Message: "later"},
				{ModelCall: ModelCall{N: 6, Turn: "t2", Step: 1, Call: "m3", Model: "demo", Usage: tokens, Cost: 7}, StartedAt: second(4), EndedAt: second(5)},
			}, Items: []messages.Item{text}, Tools: []Effect{{
				Agent: messages.AgentID{Tenant: "x", Kind: "y", Key: "z"}, N: 7, At: second(6),
				ToolCall: ToolCall{Turn: "t2", Step: 1, ID: "c1", Tool: "refund", Key: "k", Arguments: "{}", Attempt: 1, Outcome: CallCompleted, Person: ann, Output: "paid", OutputBytes: 4,
					Approval: Granted, ApprovedBy: messages.ByDecision, Started: 14, StartedAt: second(13), Ended: 15, EndedAt: second(14)},
			}}},
			{Step: 2, Models: []Attempt{{ModelCall: ModelCall{Turn: "t2", Step: 2, Call: "m16", Model: "demo"}, StartedAt: second(15)}}},
		},
		Pauses: []TurnPause{{N: 9, At: second(8), Reason: "approval", Message: "approve or deny", Calls: []messages.CallID{"c1"}, Until: second(12), Person: ann}},
	}
	if got, found := d.Of(want.Agent); !found || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	none := TurnDetails{ID: "t3"}
	foldAll(&none, input("u1", "one"), started("t2", "u1"))
	if got, found := none.Of(want.Agent); found {
		t.Errorf("a turn that is not there: got %+v, want none", got)
	}
}

func TestTurnTexts(t *testing.T) { // A52
	var texts TurnTexts
	foldAll(&texts,
		input("u1", "one"), started("t2", "u1"), input("u2", "and two"), input("u3", "three"),
		messages.ModelRequested{Turn: "t2", Step: 1, Call: "m5", Inputs: []string{"u2"}},
		messages.TurnCompleted{Turn: "t2", Inputs: []string{"u1", "u2"}, Output: "both"},
		input("u1", "one, in another life of its id"), started("t8", "u3"),
		messages.TurnCompleted{Turn: "t8", Inputs: []string{"u3"}, Blob: &messages.Blob{SHA256: "feed", Size: 9}},
	)
	var got [][2]string
	for _, l := range texts.Lines() {
		got = append(got, [2]string{l.Question, l.Answer})
	}
	want := [][2]string{{"one\nand two", "both"}, {"three", "[9 bytes, kept as blob feed]"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is shown of a turn is what the lists of all turns, calls and tool calls have of it.
func TestTurnDetailsAgree(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var turns TurnTexts
		var effects Effects
		details := map[messages.TurnID]*TurnDetails{"t1": {ID: "t1"}, "t2": {ID: "t2"}, "t3": {ID: "t3"}}
		for i := range 60 {
			ev := story{r.IntN}.event()
			for _, v := range []Timed{&turns, &effects, details["t1"], details["t2"], details["t3"]} {
				v.At(second(i), nil)
				v.Apply(messages.EventNumber(i+1), ev)
			}
		}
		for _, line := range turns.Lines() {
			if line.ID == "" {
				continue
			}
			got, _ := details[line.ID].Of(messages.AgentID{})
			if !reflect.DeepEqual(got.Turn, line.Turn) {
				t.Fatalf("seed %d: got %+v, want %+v", seed, got.Turn, line.Turn)
			}
			tools := 0
			for _, c := range effects.List(messages.AgentID{}) {
				if c.Turn == line.ID {
					tools++
				}
			}
			for _, s := range got.Done {
				tools -= len(s.Tools)
			}
			if tools != 0 {
				t.Fatalf("seed %d: turn %s lacks %d tool calls", seed, line.ID, tools)
			}
			if _, err := json.Marshal(got); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
}
