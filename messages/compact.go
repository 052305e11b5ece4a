package messages

import "time"

// How a history is compacted.
const (
	CompactSummary = "summary" // a model writes a summary of it
	CompactWindow  = "window"  // a line notes that items were left out
)

// Compact replaces the older part of what the model sees. The log keeps everything.
type Compact struct {
	ID string `json:"id"`
	// Keep is how many of the newest items stay, at least: inputs, answers, calls and results count
	// one each. 0: as many as the agent's definition sets, which is 20 by default.
	Keep int `json:"keep,omitempty"`
	// How is `summary` or `window`. Empty: that of the agent's definition, or `summary`.
	How    string `json:"how,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// CommandType returns "compact".
func (Compact) CommandType() string { return "compact" }

func (c Compact) check() error {
	switch {
	case c.Keep < 0:
		return Refuse(BadInput, "keep is %d: it must not be negative", c.Keep)
	case c.How != "" && c.How != CompactSummary && c.How != CompactWindow:
		return Refuse(BadInput, "how %q: write summary or window", c.How)
	}
	return nil
}

// CompactionRequested records that a model is about to be called for a summary of the history.
type CompactionRequested struct {
	// Turn is the turn that waits for it. Empty: none does.
	Turn TurnID `json:"turn,omitempty"`
	// Call is the id of the model call.
	Call    CallID `json:"call"`
	Attempt int    `json:"attempt"`
	// Upto is the newest event whose items the summary replaces.
	Upto EventNumber `json:"upto"`
	// Digest is the hash of the request.
	Digest string `json:"digest"`
	Model  string `json:"model"`
	// Keep is how many items are to stay.
	Keep int `json:"keep"`
	// NotBefore is when the attempt may begin. Nil: at once.
	NotBefore *time.Time `json:"not_before,omitempty"`
	// Tokens are the estimate of what the call uses.
	Tokens int `json:"tokens,omitempty"`
	// Cost is the estimate of what the call costs.
	Cost   Cost   `json:"cost_nanos,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Definition is the hash of the definition whose instructions and settings the call has.
	// Empty: a version that did not record it has written the event.
	Definition string `json:"definition,omitempty"`
}

// EventType returns "compaction.requested".
func (CompactionRequested) EventType() string { return "compaction.requested" }

// CompactionFailed records a failed attempt at a summary. It leaves the history unchanged.
type CompactionFailed struct {
	// Turn is the turn that waited for it. Empty: none did.
	Turn    TurnID `json:"turn,omitempty"`
	Call    CallID `json:"call"`
	Attempt int    `json:"attempt"`
	// Kind is that of a failed model call, or why the answer was cut off: `length`,
	// `content_filter` or `refusal`.
	Kind    ModelFailure `json:"kind"`
	Message string       `json:"message,omitempty"`
	Usage   Usage        `json:"usage,omitzero"`
	Cost    Cost         `json:"cost_nanos,omitempty"`
	// Unknown reports whether its usage is unknown. The estimate, Tokens and Cost, then
	// counts as used.
	Unknown bool `json:"unknown,omitempty"`
	// Tokens are the tokens that were estimated for the call, if its usage is unknown.
	Tokens int `json:"tokens,omitempty"`
}

// EventType returns "compaction.failed".
func (CompactionFailed) EventType() string { return "compaction.failed" }

// HistoryCompacted replaces the oldest part of the history, up to event Upto, by one message. The
// events themselves remain in the log.
type HistoryCompacted struct {
	// Turn is the turn that waited for it. Empty: none did.
	Turn TurnID `json:"turn,omitempty"`
	// Upto is the newest event whose items are replaced.
	Upto EventNumber `json:"upto"`
	// Dropped is how many items are replaced.
	Dropped int `json:"dropped"`
	// Kept is how many items remain behind the message.
	Kept int `json:"kept"`
	// How is `summary` or `window`.
	How string `json:"how"`
	// Text is the message that the model reads instead.
	Text string `json:"text"`
	// Call is the model call that wrote the summary. Empty: none did.
	Call CallID `json:"call,omitempty"`
	// Model is the model that wrote it, as the provider names it.
	Model string `json:"model,omitempty"`
	Usage Usage  `json:"usage,omitzero"`
	Cost  Cost   `json:"cost_nanos,omitempty"`
	// Unknown reports whether its usage is unknown. The estimate, Tokens and Cost, then
	// counts as used.
	Unknown bool `json:"unknown,omitempty"`
	// Tokens are the tokens that were estimated for the call, if its usage is unknown.
	Tokens int `json:"tokens,omitempty"`
	// Reason is the reason of the command, or that the history was too long, or that no
	// summary could be made.
	Reason string `json:"reason,omitempty"`
}

// EventType returns "history.compacted".
func (HistoryCompacted) EventType() string { return "history.compacted" }
