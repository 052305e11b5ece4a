package projections

import (
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// PendingModel is a model call without an answer.
type PendingModel struct {
	ID messages.CallID
	// Model is the one that was asked, as provider/model.
	Model   string
	Attempt int
	// ToolChoice is what it is made to do. Empty: it chooses.
	ToolChoice string
	// Failures and Restarts count the attempts that failed and those that were
	// lost with their process.
	Failures, Restarts int
	// Refused is the first failure that was about what the request holds, whichever model of
	// the list it was. The zero value: none was.
	Refused Refusal
	// Shortened reports that the history was compacted because the request was too long.
	Shortened bool
	Phase     ModelPhase
}

// ModelPhase is where a model call is between two attempts.
type ModelPhase int

// The phases.
const (
	ModelUnderWay ModelPhase = iota // its answer is awaited
	ModelWaits                      // for the time of the next attempt
	ModelDue                        // the next attempt can begin
)

// Refusal is a failure, as in model.failed.
type Refusal struct {
	Kind    messages.ModelFailure
	Message string
	Status  int
}

// UnderWay reports whether an answer is awaited.
func (m *PendingModel) UnderWay() bool { return m.Phase == ModelUnderWay }

// refusals are the failures that are about what a request holds. The same request would be refused
// again.
var refusals = map[messages.ModelFailure]bool{
	messages.ModelFailureBadRequest: true, messages.ModelFailureContextLength: true,
	messages.ModelFailureContentFilter: true, messages.ModelFailureUnsupported: true,
}

func (m *PendingModel) apply(ev messages.Event) {
	switch ev := ev.(type) {
	case messages.ModelFailed:
		m.failed(ev)
	case messages.ModelRestarted:
		m.Restarts++
		m.Phase = ModelDue
	case messages.ModelSwitched:
		m.Failures, m.Shortened, m.Phase = 0, false, ModelDue
	case messages.HistoryCompacted:
		m.shortened()
	default:
		if timer := timerOver(ev); timer.id != "" && timer.id == TimerID(ForRetry, m.ID) {
			m.Phase = ModelDue
		}
	}
}

func (m *PendingModel) failed(ev messages.ModelFailed) {
	m.Failures++
	if m.Refused.Kind == "" && refusals[ev.Kind] {
		m.Refused = Refusal{ev.Kind, ev.Message, ev.Status}
	}
	if m.Phase = ModelDue; ev.RetryAt != nil {
		m.Phase = ModelWaits
	}
}

// shortened folds a compaction before the next attempt: the request is another one. What a
// model before refused for another reason is still in it.
func (m *PendingModel) shortened() {
	if m.Refused.Kind == "" {
		return
	}
	if m.Refused.Kind == messages.ModelFailureContextLength {
		m.Refused = Refusal{}
	}
	m.Failures, m.Shortened = 0, true
}

// UnusualFinish returns finish unless that is how answers ordinarily end.
func UnusualFinish(finish string) string {
	if finish == messages.FinishStop || finish == messages.FinishCalls {
		return ""
	}
	return finish
}

// asksForTool reports whether an answer has calls that can run.
func asksForTool(ev messages.ModelCompleted) bool {
	return !messages.CutOff(ev.Finish) && slices.ContainsFunc(ev.Items, func(item messages.Item) bool { return item.Type == messages.ItemCall })
}
