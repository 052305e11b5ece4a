package turntest

import (
	"fmt"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
)

func effectText(e turn.Effect) string {
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
	case turn.GiveTask:
		return fmt.Sprintf("give the task of %s", e.Call)
	case turn.PassDecision:
		return fmt.Sprintf("pass a decision down to %s", e.Call)
	case turn.TakeTask:
		return fmt.Sprintf("take the task of %s %s back", e.Turn, e.Call)
	case turn.TellParent:
		return fmt.Sprintf("tell the parent of %s, as of %d", e.ID, e.N)
	}
	return fmt.Sprintf("ask the tool what became of %s", e.Call)
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.00") }
