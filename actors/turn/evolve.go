package turn

import (
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Apply folds a frame that was read from the log. It never looks at a
// definition.
func (s *State) Apply(f *messages.Frame) {
	if s.Last == 0 { // a tombstone may come first: what was before it is gone
		s.Last = f.First - 1
	}
	for _, ev := range f.Events {
		s.evolve(ev)
	}
	s.Record(f)
}

// Activate folds the takeover of the agent by a new owner and gives the events
// to append before anything else is done under that owner.
func (s *State) Activate(ev messages.AgentActivated) []messages.Event {
	s.evolve(ev)
	return []messages.Event{ev}
}

// evolve folds the next event.
func (s *State) evolve(ev messages.Event) {
	s.Last++
	s.History.Apply(s.Last, ev)
	s.Timers.Apply(s.Last, ev)
	if messages.OfAgent(ev) {
		return
	}
	if s.Life.Apply(s.Last, ev); s.Life.Deleted != nil && s.Life.Deleted.N == s.Last {
		*s = State{Last: s.Last, Life: s.Life}
		return
	}
	s.Decisions.Apply(s.Last, ev)
	s.evolveTasks(ev)
	if len(s.Tasks) > 0 {
		defer s.noteWaits()
	}
	s.Inputs.Apply(s.Last, ev)
	switch ev := ev.(type) {
	case messages.StatePatched:
		s.Data.Apply(s.Last, ev)
	case messages.AgentCleared:
		s.Data.Apply(s.Last, ev)
		s.Ended, s.done = nil, nil
	case messages.InputAccepted:
		s.steered(ev.Disposition)
	case messages.BudgetRaised:
		s.raised(ev)
	case messages.CompactionRequested, messages.CompactionFailed, messages.HistoryCompacted:
		s.evolveSummary(ev)
	case messages.TurnStarted:
		s.started(ev)
	case messages.TurnCompleted:
		s.ended(Ended{ID: ev.Turn})
	case messages.TurnFailed:
		s.ended(Ended{ID: ev.Turn, Failed: true, Reason: ev.Why(), Refused: ev.Withheld != 0})
	case messages.TurnAborted:
		s.ended(Ended{ID: ev.Turn, Reason: ev.Reason})
	default:
		if s.Turn != nil {
			s.evolveTurn(ev)
		}
	}
}

// inlineSize is what the texts of c take in a frame.
func inlineSize(c messages.Content) int {
	size := 0
	for i := range c {
		size += len(c[i].Text)
	}
	return size
}

// steered notes that an input has steered the turn: no hook was asked about it.
func (s *State) steered(how messages.Disposition) {
	if t := s.Turn; t != nil && how == messages.Steered {
		t.hooked = nil
	}
}

func (s *State) raised(ev messages.BudgetRaised) {
	t := s.Turn
	if ev.Scope == "agent" {
		s.Raised = s.Raised.Raise(ev.Limits)
	} else if t != nil {
		t.Limits = t.Limits.Raise(ev.Limits)
	}
	if t != nil && raises(ev.Limits, t.exhausted) {
		t.exhausted = ""
	}
}

// raises says that l sets the limit of that name.
func raises(l messages.Limits, name string) bool {
	return name == "max_steps" && l.MaxSteps != 0 || name == "max_tokens" && l.MaxTokens != 0 ||
		name == "max_cost" && l.MaxCost != 0 || name == "max_duration" && l.MaxDuration != 0
}

func (s *State) started(ev messages.TurnStarted) {
	t := &Turn{
		ID: ev.Turn, Inputs: ev.Inputs, Limits: ev.Limits, Steps: ev.Steps,
		toolChoice: ev.ToolChoice, fresh: ev.Inputs, callers: s.callersOf(ev.Inputs),
	}
	t.Limits.MaxSteps = ev.MaxSteps
	if e := s.Ended; ev.Continues != "" && e != nil && e.ID == ev.Continues {
		t.Used, t.toolUsed, t.callIDs = e.Used, e.toolUsed, slices.Clip(e.callIDs)
		t.callers, t.children = e.callers, e.children
	} else {
		s.done = nil
	}
	s.Turn = t
}

func (s *State) ended(e Ended) {
	if t := s.Turn; t != nil {
		e.Steps, e.Limits, e.Used = t.Steps, t.Limits, t.Used
		e.repeat, e.toolChoice, e.toolUsed, e.callIDs = t.Model != nil, t.toolChoice, t.toolUsed, t.callIDs
		e.callers, e.children = t.callers, t.children
	}
	if !e.Failed {
		s.done = nil
	}
	s.Ended, s.Turn, s.lost = &e, nil, nil
}

func (s *State) evolveTurn(ev messages.Event) {
	t := s.Turn
	switch ev := ev.(type) {
	case messages.TurnPaused:
		t.Paused = ev.Reason
	case messages.TurnResumed:
		t.resumed(ev)
	case messages.ModelRequested:
		s.modelRequested(ev)
	case messages.ModelFailed:
		s.spend(ev.Usage, ev.Cost)
		t.modelFailed(ev)
	case messages.ModelRestarted:
		if t.Model != nil {
			t.Model.Restarts++
			t.Model.Due = true
		}
	case messages.ModelSwitched:
		t.switched = ev.To
		if t.Model != nil {
			t.Model.Failures, t.Model.Shortened, t.Model.Due = 0, false, true
		}
	case messages.ModelCompleted:
		s.spend(ev.Usage, ev.Cost)
		t.Model, t.final = nil, answer(ev)
		t.toolUsed = t.toolUsed || asksForTool(ev)
	case messages.BudgetReserved:
		t.reserved = &Used{Tokens: ev.Tokens, Cost: ev.Cost}
	case messages.BudgetSettled:
		s.settled(ev)
	case messages.BudgetExhausted:
		t.exhausted, t.reached = ev.Limit, ev.Message
	case messages.TimerFired:
		s.timerOver(ev.Timer, ev.Ran)
	case messages.TimerCancelled:
		s.timerOver(ev.Timer, ev.Ran)
	case messages.HookDecided:
		t.hookDecided(ev)
	default:
		s.evolveCall(ev)
	}
}

func (t *Turn) resumed(ev messages.TurnResumed) {
	switch t.Paused {
	case pausedHook:
		t.held = ""
	case pausedApproval, pausedUnknown, pausedChild:
	default:
		t.exhausted = ""
	}
	t.Paused = ""
	if ev.MaxSteps != 0 {
		t.Limits.MaxSteps = ev.MaxSteps
	}
}

func (s *State) modelRequested(ev messages.ModelRequested) {
	t := s.Turn
	m := &ModelCall{ID: ev.Call, Model: ev.Model, Attempt: ev.Attempt, ToolChoice: ev.ToolChoice, reserved: t.reserved}
	if t.Model != nil && ev.Step == t.Steps {
		m.Failures, m.Restarts = t.Model.Failures, t.Model.Restarts
		m.Refused, m.Shortened = t.Model.Refused, t.Model.Shortened
	} else {
		s.Used.Steps++
	}
	t.Model, t.Steps, t.Calls, t.called = m, ev.Step, nil, true
	t.fresh, t.reserved = nil, nil
	for _, id := range ev.Inputs {
		if !slices.Contains(t.Inputs, id) {
			t.Inputs = append(slices.Clip(t.Inputs), id)
		}
	}
	t.final, t.again, t.hooked, t.compacted = nil, false, nil, false
}

// modelFailed counts an attempt that failed. A stream from elsewhere may tell
// of one that was never requested.
func (t *Turn) modelFailed(ev messages.ModelFailed) {
	m := t.Model
	if m == nil {
		return
	}
	m.Failures++
	if m.Refused.Kind == "" && refusals[ev.Kind] {
		m.Refused = Refusal{ev.Kind, ev.Message, ev.Status}
	}
	m.Due = ev.RetryAt == nil
	if ev.RetryAt != nil {
		m.RetryAt = *ev.RetryAt
	}
}

// spend counts what a model call has used.
func (s *State) spend(u messages.Usage, cost messages.Cost) {
	s.Turn.Usage = s.Turn.Usage.Add(u)
	s.count(Used{Tokens: u.Tokens(), Cost: cost})
}

// settled folds the end of a reservation.
func (s *State) settled(ev messages.BudgetSettled) {
	if ev.Unknown {
		s.count(Used{Tokens: ev.Tokens, Cost: ev.Cost})
	}
	if m := s.Turn.Model; m != nil && m.ID == ev.Call {
		m.reserved = nil
	}
}

func (s *State) count(u Used) {
	s.Turn.Used, s.Used = s.Turn.Used.add(u), s.Used.add(u)
}

// asksForTool reports whether an answer has calls that can run.
func asksForTool(ev messages.ModelCompleted) bool {
	return !messages.CutOff(ev.Finish) && slices.ContainsFunc(ev.Items, func(item messages.Item) bool { return item.Type == messages.ItemCall })
}

// answer is the text of an answer that asks for nothing more; nil if it does.
func answer(ev messages.ModelCompleted) *Output {
	var text []string
	for _, item := range ev.Items {
		switch item.Type {
		case messages.ItemCall:
			return nil
		case messages.ItemMessage, messages.ItemRefusal:
			text = append(text, item.Content.Text())
		}
	}
	if ev.Blob != nil {
		return &Output{Blob: ev.Blob, Finish: unusual(ev.Finish)}
	}
	return &Output{Text: strings.Join(text, "\n"), Finish: unusual(ev.Finish)}
}

// timerOver folds the end of a timer: of a retry the next attempt is due, of the clock what
// it ran counts.
func (s *State) timerOver(id string, ran int64) {
	if m := s.Turn.Model; m != nil && id == projections.TimerID(projections.ForRetry, m.ID) {
		m.RetryAt, m.Due = time.Time{}, true
	}
	if id == projections.DurationTimer {
		s.count(Used{Ran: ran})
	}
}

// hookDecided folds what a hook wants of the turn; what it wants of a call is
// told by the events behind it, but for new arguments.
func (t *Turn) hookDecided(ev messages.HookDecided) {
	end := ev.Point == string(TurnEnd)
	t.heard(ev)
	switch HookAction(ev.Decision) {
	case HookPause:
		t.hold(ev)
	case HookFinish:
		if !end {
			t.finish = &ev.Answer
		} else if ev.Answer != "" {
			t.final, t.finish = &Output{Text: ev.Answer}, nil
		}
	case HookSkip:
		if ev.Point == pointTurnStart || ev.Point == string(BeforeModel) {
			t.finish = &ev.Answer
		}
	case HookRewrite:
		if c := t.call(ev.Call); c != nil && ev.Arguments != "" {
			c.Arguments, c.Rewritten = ev.Arguments, true
		} else if end {
			t.final, t.finish = &Output{Text: ev.Answer}, nil
		}
	case HookContinue:
		if end && ev.Note != "" {
			t.final, t.finish, t.again = nil, nil, true
			t.Calls = nil // a tool that ends the turn has had its say
		}
	}
}

// hold keeps the turn where it is until a person resumes it. The pause of a
// call before it runs is a wish for its approval, and holds nothing else.
func (t *Turn) hold(ev messages.HookDecided) {
	if ev.Call != "" && ev.Point != pointAfterTool {
		return
	}
	t.held = "hook " + ev.Hook + " asked for a person"
	if ev.Reason != "" {
		t.held += ": " + ev.Reason
	}
}

// heard notes the hooks that are not asked again where they have had their say,
// until the next model call or steered input: a turn that one of them has paused
// comes back to the same place.
func (t *Turn) heard(ev messages.HookDecided) {
	switch HookAction(ev.Decision) {
	case HookPause, HookContinue:
		switch ev.Point {
		case pointTurnStart, string(BeforeModel), string(TurnEnd):
			t.hooked = append(t.hooked, ev.Point+"/"+ev.Hook)
		}
	}
}

// Points of hook.decided that the fold tells apart.
const (
	pointTurnStart = "turn_start"
	pointAfterTool = "after_tool"
)

func (s *State) evolveCall(ev messages.Event) {
	t := s.Turn
	switch ev := ev.(type) {
	case messages.ToolRequested:
		t.Calls = append(t.Calls, ToolCall{ID: ev.Call, Tool: ev.Tool, Arguments: ev.Arguments})
		t.callIDs = append(t.callIDs, ev.Call)
	case messages.ApprovalRequested:
		s.settle(ev.Call, Gated)
	case messages.ApprovalGranted:
		s.decided(ev.Call, projections.Granted)
	case messages.ApprovalDenied:
		s.decided(ev.Call, projections.Denied)
	case messages.ToolStarted:
		s.toolStarted(ev)
	case messages.ToolUnknown:
		s.settle(ev.Call, Unknown)
	case messages.ToolCompleted:
		if c := s.settle(ev.Call, Settled); c != nil {
			c.Completed, c.Output, c.Blob = true, ev.Output, ev.Blob
		}
	case messages.ToolFailed:
		s.settle(ev.Call, Settled)
		if ev.Kind == "error" || ev.Kind == "bad_arguments" { // it says itself that it did nothing
			s.done = slices.DeleteFunc(s.done, func(c doneCall) bool { return c.id == ev.Call })
		}
	case messages.ToolSkipped:
		s.settle(ev.Call, Settled)
	case messages.ToolDenied:
		s.settle(ev.Call, Settled)
	default:
		s.evolveChild(ev)
	}
}

func (s *State) toolStarted(ev messages.ToolStarted) {
	c := s.Turn.call(ev.Call)
	if c == nil {
		return
	}
	c.Status, c.OnUnknown, c.Key, c.Attempt = Executing, ev.OnUnknown, ev.Key, ev.Attempt
	delete(s.lost, ev.Call)
	if repeatHurts(ev.OnUnknown) && ev.Attempt == 1 {
		s.done = append(s.done, doneCall{ev.Call, ev.Tool, c.Arguments})
	}
}

func (s *State) settle(id messages.CallID, status Status) *ToolCall {
	c := s.Turn.call(id)
	if c != nil {
		c.Status = status
	}
	delete(s.lost, id)
	return c
}

// decided notes the decision about a call; a granted one may start.
func (s *State) decided(id messages.CallID, decision string) {
	if c := s.Turn.call(id); c != nil {
		if c.Decision = decision; decision == projections.Granted {
			c.Status = Requested
		}
	}
}

// call is the call of the newest step with this id; nil if there is none.
func (t *Turn) call(id messages.CallID) *ToolCall {
	if id == "" {
		return nil
	}
	for i := range t.Calls {
		if t.Calls[i].ID == id {
			return &t.Calls[i]
		}
	}
	return nil
}

// waiting are the calls that only a person can settle, or a call below them.
func (t *Turn) waiting() []messages.CallID {
	var ids []messages.CallID
	for _, c := range t.Calls {
		if c.Status == Unknown || c.Status == Gated || c.waitsBelow() {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// count is how many calls have the status.
func (t *Turn) count(status Status) int {
	n := 0
	for _, c := range t.Calls {
		if c.Status == status {
			n++
		}
	}
	return n
}
