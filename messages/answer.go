package messages

// Answer is the outcome of a command. It is published as JSON to the reply subject.
type Answer struct {
	// N is the event that records the outcome: for an input its input.accepted.
	N    EventNumber `json:"n"`
	Turn TurnID      `json:"turn,omitempty"`
	// Disposition is what became of an input.
	Disposition Disposition `json:"disposition,omitempty"`
	// Timer is the timer that a scheduled input has set.
	Timer string `json:"timer,omitempty"`
	// PassedTo is the full address of the descendant that a decision was forwarded to.
	// A later child.settled reports whether it had its effect there.
	PassedTo string `json:"passed_to,omitempty"`
	// Noop is why an applied command changed nothing. Empty: it changed something.
	Noop string `json:"noop,omitempty"`
	// Duplicate reports whether the id was applied before. This is then its first answer.
	Duplicate bool `json:"duplicate,omitempty"`
	// Err is the refusal. Nil: the command was applied.
	Err *Error `json:"error,omitempty"`
}

// AnswerOf returns the answer to a command whose events are f.
func AnswerOf(f *Frame) Answer {
	a := Answer{N: f.First}
	for i, ev := range f.Events { // an input that interrupts comes after the end of a turn
		if in, ok := ev.(InputAccepted); ok {
			a.N, a.Turn, a.Disposition = f.First+EventNumber(i), in.Turn, in.Disposition
			return a
		}
	}
	for i, ev := range f.Events {
		switch ev := ev.(type) {
		case TimerSet:
			if ev.Input != nil {
				a.N, a.Timer = f.First+EventNumber(i), ev.Timer
			}
		case CommandNoop:
			a.Noop = ev.Reason
		case TurnAborted:
			a.Turn = ev.Turn
			return a
		case ChildDecided:
			a.PassedTo = ev.Agent
		case ApprovalGranted, ApprovalDenied, TurnStarted, TurnResumed:
			a.Turn = TurnOf(ev)
		}
	}
	return a
}

// ReplyOf returns the reply subject that an event of an input or of its timer names, and
// the id of the input. Empty: the event names none.
func ReplyOf(ev Event) (subject, input string) {
	switch ev := ev.(type) {
	case InputAccepted:
		return ev.Reply, ev.Input
	case TimerSet:
		if ev.Input != nil {
			return ev.Input.Reply, ev.Input.ID
		}
	case TimerFired:
		return ev.Reply, ev.Input
	case TimerCancelled:
		return ev.Reply, ev.Input
	}
	return "", ""
}

// NotDue returns the scheduled input that ev ends: it is cancelled, or refused when it is due. It was
// never accepted, and no input that was, under the same id, is meant. Empty: none.
func NotDue(ev Event) string {
	switch ev := ev.(type) {
	case TimerCancelled:
		return ev.Input
	case TimerFired:
		if ev.Refused != "" {
			return ev.Input
		}
	}
	return ""
}

// WhyEnded returns why ev, the terminal event of an input, has no answer for its sender.
// Nil: it has one.
func WhyEnded(ev Event) *Error {
	because := func(reason string) string {
		if reason == "" {
			return ""
		}
		return ": " + reason
	}
	switch ev := ev.(type) {
	case TurnFailed:
		return Refuse(codeOf(ev), "turn %s failed (%s): %s", ev.Turn, ev.Why(), ev.Message)
	case TurnAborted:
		return Refuse(Conflict, "turn %s was aborted (%s)%s", ev.Turn, ev.By, because(ev.Reason))
	case InputCancelled:
		return Refuse(Conflict, "input %q was cancelled before a model had seen it%s", ev.Input, because(ev.Reason))
	case TimerCancelled:
		return Refuse(Conflict, "input %q was cancelled (%s) before it was due%s", ev.Input, ev.By, because(ev.Reason))
	case TimerFired:
		return Refuse(Conflict, "input %q was refused when it was due%s", ev.Input, because(ev.Refused))
	case InputDropped:
		return Refuse(Conflict, "input %q was dropped (%s) before a model had seen it%s", ev.Input, ev.By, because(ev.Reason))
	}
	return nil
}
