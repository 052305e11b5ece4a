package projections

import "github.com/reprise-dev/reprise/messages"

// AnswerOf returns the answer to a command whose events are f.
func AnswerOf(f *messages.Frame) messages.Answer {
	a := messages.Answer{N: f.First}
	for i, ev := range f.Events { // an input that interrupts comes after the end of a turn
		if in, ok := ev.(messages.InputAccepted); ok {
			a.N, a.Turn, a.Disposition = f.First+messages.EventNumber(i), in.Turn, in.Disposition
			return a
		}
	}
	for i, ev := range f.Events {
		switch ev := ev.(type) {
		case messages.TimerSet:
			if ev.Input != nil {
				a.N, a.Timer = f.First+messages.EventNumber(i), ev.Timer
			}
		case messages.CommandNoop:
			a.Noop = ev.Reason
		case messages.TurnAborted:
			a.Turn = ev.Turn
			return a
		case messages.ChildDecided:
			a.ForwardedTo = ev.Agent
		case messages.ApprovalGranted, messages.ApprovalDenied, messages.TurnStarted, messages.TurnResumed:
			a.Turn = messages.TurnOf(ev)
		}
	}
	return a
}

// AcceptedInput returns the input that ev accepts. Empty: it accepts none.
func AcceptedInput(ev messages.Event) string {
	accepted, _ := ev.(messages.InputAccepted)
	return accepted.Input
}

// ReplyOf returns the reply subject that an event of an input or of its timer names, and
// the id of the input. Empty: the event names none.
func ReplyOf(ev messages.Event) (subject, input string) {
	switch ev := ev.(type) {
	case messages.InputAccepted:
		return ev.Reply, ev.Input
	case messages.TimerSet:
		if ev.Input != nil {
			return ev.Input.Reply, ev.Input.ID
		}
	}
	timer := timerOver(ev)
	return timer.reply, timer.input
}

// NotDue returns the scheduled input that ev ends: it is cancelled, or refused when it is due. It was
// never accepted, and no input that was, under the same id, is meant. Empty: none.
func NotDue(ev messages.Event) string { return timerOver(ev).input }

// WhyEnded returns why ev, the terminal event of an input, has no answer for its sender.
// Nil: it has one.
func WhyEnded(ev messages.Event) *messages.Error {
	because := func(reason string) string {
		if reason == "" {
			return ""
		}
		return ": " + reason
	}
	switch ev := ev.(type) {
	case messages.TurnFailed:
		return messages.Refuse(ev.Code(), "turn %s failed (%s): %s", ev.Turn, ev.Why(), ev.Message)
	case messages.TurnAborted:
		return messages.Refuse(messages.Conflict, "turn %s was aborted (%s)%s", ev.Turn, ev.By, because(ev.Reason))
	case messages.InputCancelled:
		return messages.Refuse(messages.Conflict, "input %q was cancelled before a model had seen it%s", ev.Input, because(ev.Reason))
	case messages.TimerCancelled:
		return messages.Refuse(messages.Conflict, "input %q was cancelled (%s) before it was due%s", ev.Input, ev.By, because(ev.Reason))
	case messages.TimerFired:
		return messages.Refuse(messages.Conflict, "input %q was refused when it was due%s", ev.Input, because(ev.Refused))
	case messages.InputDropped:
		return messages.Refuse(messages.Conflict, "input %q was dropped (%s) before a model had seen it%s", ev.Input, ev.By, because(ev.Reason))
	}
	return nil
}
