package turn

import (
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// The outcomes are what the shell feeds back: what came of an effect, or that
// the process came back. Each names its call; one that is no longer awaited
// changes nothing.
type (
	// ModelAnswered is a model's whole answer.
	ModelAnswered struct {
		Call   messages.CallID
		Items  []messages.Item
		Finish string
		Model  string
		Usage  messages.Usage
	}
	// ModelErred is a failed attempt.
	ModelErred struct {
		Call      messages.CallID
		Kind      string
		Message   string
		Status    int
		Temporary bool
		// RetryAfter is what the server asked for.
		RetryAfter time.Duration
		// Shown says that a part of the answer was streamed to somebody.
		Shown bool
		Usage messages.Usage
	}
	// RetryDue says that a Wait is over.
	RetryDue struct{ Call messages.CallID }
	// ToolReturned is a tool's result.
	ToolReturned struct {
		Call    messages.CallID
		Attempt int
		Output  string
	}
	// ToolErred is a tool's failure, with the text that the model reads.
	ToolErred struct {
		Call    messages.CallID
		Attempt int
		Kind    string
		Message string
	}
	// ToolReconciled is what a tool of class check knows of a lost call.
	ToolReconciled struct {
		Call messages.CallID
		// Done: Output is the result. NotDone: it may run. Neither: unknown.
		Done, NotDone bool
		Output        string
	}
	// Recover says that whatever ran is gone with its process.
	Recover struct{}
)
