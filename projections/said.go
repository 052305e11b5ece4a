package projections

import (
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// MaxSaid is the most bytes of a text that a Said holds.
const MaxSaid = 16 << 10

// FoundKind is what an event is in which a search has found something.
type FoundKind string

// The kinds. Those up to FoundResult are where words were found, the others whose id was.
const (
	FoundInput   FoundKind = "input"    // what was said to the agent
	FoundOutput  FoundKind = "output"   // what its model answered, or a hook in its place
	FoundCall    FoundKind = "call"     // the tool and the arguments of a call
	FoundResult  FoundKind = "result"   // what the model reads of a call
	FoundInputID FoundKind = "input id" // of an input
	FoundCallID  FoundKind = "call id"  // of a call of a tool
	FoundKey     FoundKind = "key"      // the idempotency key of a call
)

// Found is an event in which a search has found something: a line of `reprise find -o json`.
type Found struct {
	Agent messages.AgentID     `json:"agent"`
	N     messages.EventNumber `json:"n"`
	At    time.Time            `json:"at,omitzero"`
	// BeforeFork reports whether it is an event from before the agent was forked, which the agent has copied
	// from its parent.
	BeforeFork bool `json:"before_fork,omitempty"`
	// Turn is empty for an input that had no turn yet.
	Turn messages.TurnID `json:"turn,omitempty"`
	// What is what was found.
	What FoundKind `json:"what"`
	// ID is the id or key that was found. Empty: words were.
	ID string `json:"id,omitempty"`
	// Snippet is the text around the words that were found, or the beginning of what the id
	// belongs to. Empty: an input or
	// text of an encrypted agent, or one kept as a blob. A call shows its tool and arguments.
	Snippet string `json:"snippet,omitempty"`
}

// Said is what an event adds to the words of an agent. The zero value: nothing.
type Said struct {
	What FoundKind
	// Input is the id of an input.
	Input string
	// Text is its beginning, at most MaxSaid bytes. What is kept as a blob is left out.
	Text string
}

// SaidBy returns what was said by an event: an input, the text of a model or of a hook in its
// place, the summary that stands for a history, the arguments of a call, or its result.
func SaidBy(ev messages.Event) Said {
	s := Said{}
	switch ev := ev.(type) {
	case messages.InputAccepted:
		s = Said{FoundInput, ev.Input, ev.Content.Text()}
	case messages.ModelCompleted:
		s = Said{What: FoundOutput, Text: itemTexts(ev.Items)}
	case messages.HistoryCompacted:
		s = Said{What: FoundOutput, Text: ev.Text}
	case messages.ToolRequested:
		s = Said{What: FoundCall, Text: ev.Tool + " " + ev.Arguments}
	case messages.HookDecided:
		if s = (Said{What: FoundOutput, Text: ev.Answer}); ev.Arguments != "" {
			s = Said{What: FoundCall, Text: ev.Arguments}
		}
	default:
		if r := resultOf(ev); r.outcome != "" {
			s = Said{What: FoundResult, Text: r.text}
		}
	}
	if s.Text = beginning(s.Text, MaxSaid); s.Text == "" && s.Input == "" {
		return Said{}
	}
	return s
}

// itemTexts returns the texts of items that are no calls, such as answers and reasoning.
func itemTexts(items []messages.Item) string {
	var list []string
	for i := range items {
		if text := items[i].Content.Text(); text != "" {
			list = append(list, text)
		}
	}
	return strings.Join(list, "\n")
}
