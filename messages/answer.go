package messages

// Answer is the outcome of a command.
type Answer struct {
	// N is the event that records the outcome: for an input its input.accepted.
	N    EventNumber `json:"n"`
	Turn TurnID      `json:"turn,omitempty"`
	// Disposition is what became of an input.
	Disposition Disposition `json:"disposition,omitempty"`
	// Timer is the timer that a scheduled input has set.
	Timer string `json:"timer,omitempty"`
	// ForwardedTo is the full address of the descendant that a decision was forwarded to.
	// A later child.settled reports whether it had its effect there.
	ForwardedTo string `json:"forwarded_to,omitempty"`
	// Noop is why an applied command changed nothing. Empty: it changed something.
	Noop string `json:"noop,omitempty"`
	// Duplicate reports whether the id was applied before. This is then its first answer.
	Duplicate bool `json:"duplicate,omitempty"`
	// Err is the refusal. Nil: the command was applied.
	Err *Error `json:"error,omitempty"`
}
