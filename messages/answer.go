package messages

// Answer is what became of a command. As JSON it is what its reply subject is
// told.
type Answer struct {
	// N is the event that tells of it: for an input its input.accepted.
	N    EventNumber `json:"n"`
	Turn TurnID      `json:"turn,omitempty"`
	// Disposition is what became of an input.
	Disposition Disposition `json:"disposition,omitempty"`
	// Timer is the one that an input for later has set.
	Timer string `json:"timer,omitempty"`
	// PassedTo is the agent below, by its full address, that a decision was passed
	// down to. Whether it has its effect there child.settled tells.
	PassedTo string `json:"passed_to,omitempty"`
	// Noop says why an applied command changed nothing. Empty: it did.
	Noop string `json:"noop,omitempty"`
	// Duplicate says that the id was applied before and this is its first answer.
	Duplicate bool `json:"duplicate,omitempty"`
	// Err is the refusal; nil if the command was applied.
	Err *Error `json:"error,omitempty"`
}
