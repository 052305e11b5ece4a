package turntest

import (
	"fmt"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/projections"
)

func effectText(s *turn.State, e turn.Effect) string {
	switch e.Do {
	case turn.CallModel:
		return fmt.Sprintf("call the model (%s)", e.Call)
	case turn.Wait:
		return fmt.Sprintf("wait until %s (%s)", clock(e.Until), e.Timer)
	case turn.RunTool:
		return fmt.Sprintf("run the tool of %s, attempt %d", e.Call, e.Attempt)
	case turn.Summarize:
		text := fmt.Sprintf("ask for a summary (%s)", e.Call)
		if !e.Until.IsZero() {
			text += ", not before " + clock(e.Until)
		}
		return text
	case turn.Begin:
		return "begin the next turn"
	case turn.AskHooks:
		return fmt.Sprintf("ask the hooks (%s)", e.Point)
	case turn.Send:
		return sendText(s.Outbox.Message(e.ID))
	}
	return fmt.Sprintf("ask the tool what became of %s", e.Call)
}

func sendText(m *projections.OutboxMessage) string {
	switch m.Kind {
	case projections.TaskMessage:
		return fmt.Sprintf("send the task of %s", m.Call)
	case projections.CancelChild:
		return fmt.Sprintf("cancel the task of %s %s", m.Turn, m.Call)
	case projections.BeginFork:
		return fmt.Sprintf("have fork %s begin", m.To)
	case projections.ForwardDecision:
		return fmt.Sprintf("forward a decision to %s", m.Call)
	}
	return fmt.Sprintf("report to the parent of %s, as of %d", m.Input, m.N)
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.00") }
