package messages

import "time"

// How a history is compacted.
const (
	CompactSummary = "summary" // a model says in its place what was said
	CompactWindow  = "window"  // a line says that something was left out
)

// Compact takes the older part of what the model sees out of it. The log keeps
// everything.
type Compact struct {
	ID string `json:"id"`
	// Keep is how many of the newest items stay, at least; 0: as many as the
	// agent's definition says.
	Keep int `json:"keep,omitempty"`
	// How is summary or window; empty: as the agent's definition says.
	How    string `json:"how,omitempty"`
	Reason string `json:"reason,omitempty"`
}

func (c Compact) check() error {
	switch {
	case c.Keep < 0:
		return Refuse(BadInput, "keep is %d: it must be positive", c.Keep)
	case c.How != "" && c.How != CompactSummary && c.How != CompactWindow:
		return Refuse(BadInput, "how %q: write summary or window", c.How)
	}
	return nil
}

// CompactionRequested says that a model is about to be asked for a summary of the
// history up to event Upto. Digest is that of what it is given.
type CompactionRequested struct {
	// Turn is the one that waits for it. Empty: none does.
	Turn    TurnID      `json:"turn,omitempty"`
	Call    CallID      `json:"call"`
	Attempt int         `json:"attempt"`
	Upto    EventNumber `json:"upto"`
	Digest  string      `json:"digest"`
	Model   string      `json:"model"`
	// Keep is how many items are to stay.
	Keep int `json:"keep"`
	// NotBefore is when the attempt may begin. Nil: at once.
	NotBefore *time.Time `json:"not_before,omitempty"`
	// Tokens and Cost are what it is expected to use.
	Tokens int    `json:"tokens,omitempty"`
	Cost   Cost   `json:"cost_nanos,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// CompactionFailed says that nothing came of an attempt at a summary. The history
// is as it was.
type CompactionFailed struct {
	Turn    TurnID `json:"turn,omitempty"`
	Call    CallID `json:"call"`
	Attempt int    `json:"attempt"`
	// Kind is a word to branch on: changed for a history that is not what the
	// summary was made of, interrupted, restarted, that of a failed model call, or why an
	// answer did not end by itself: length, content_filter, refusal.
	Kind    string `json:"kind"`
	Message string `json:"message,omitempty"`
	Usage   Usage  `json:"usage,omitzero"`
	Cost    Cost   `json:"cost_nanos,omitempty"`
	// Unknown says that nobody heard what it used: what it was expected to use,
	// Tokens and Cost, counts.
	Unknown bool `json:"unknown,omitempty"`
	Tokens  int  `json:"tokens,omitempty"`
}

// HistoryCompacted says that one message stands for what a model saw of the
// agent's events up to Upto. Those events remain.
type HistoryCompacted struct {
	Turn TurnID      `json:"turn,omitempty"` // that went on with it
	Upto EventNumber `json:"upto"`
	// Dropped is how many items it stands for, Kept how many are left beside it.
	Dropped int `json:"dropped"`
	Kept    int `json:"kept"`
	// How is summary or window.
	How string `json:"how"`
	// Text is what the model reads in their place.
	Text string `json:"text"`
	// Call, Model, Usage and Cost are those of the summary.
	Call  CallID `json:"call,omitempty"`
	Model string `json:"model,omitempty"`
	Usage Usage  `json:"usage,omitzero"`
	Cost  Cost   `json:"cost_nanos,omitempty"`
	// Unknown says that the server did not tell what it used: what it was expected
	// to use, Tokens and Cost, counts.
	Unknown bool `json:"unknown,omitempty"`
	Tokens  int  `json:"tokens,omitempty"`
	// Reason is why: what the command says, or that the history was too long, or
	// that no summary could be made.
	Reason string `json:"reason,omitempty"`
}
