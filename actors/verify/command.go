package verify

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// commandOf returns the command that is the frame's cause, as far as its events record it; nil and
// what is taken from the record if they do not.
func (s *stream) commandOf(f *messages.Frame) (messages.Command, string) {
	if _, noop := f.Events[0].(messages.CommandNoop); noop {
		return nil, noops
	}
	of, ok := rebuilt[f.Cause.Type]
	if !ok {
		return nil, "commands that are unknown to this version"
	}
	for _, ev := range f.Events {
		if c := of(s, f, ev); c != nil {
			return messages.WithID(c, f.Cause.ID), ""
		}
	}
	return nil, "commands of type " + f.Cause.Type + " that their events do not record whole"
}

// rebuilt return a command by one of the events that it has given; nil if that does not record it.
// Its id is set later.
var rebuilt = map[string]func(*stream, *messages.Frame, messages.Event) messages.Command{
	messages.Input{}.CommandType():          inputOf,
	messages.Task{}.CommandType():           taskOf,
	messages.CancelChild{}.CommandType():    cancelChildOf,
	messages.SetState{}.CommandType():       setStateOf,
	messages.Interrupt{}.CommandType():      interruptOf,
	messages.Abort{}.CommandType():          abortOf,
	messages.Clear{}.CommandType():          clearOf,
	messages.Cancel{}.CommandType():         cancelOf,
	messages.Compact{}.CommandType():        compactOf,
	messages.Resume{}.CommandType():         resumeOf,
	messages.Approve{}.CommandType():        approveOf,
	messages.Deny{}.CommandType():           denyOf,
	messages.Forget{}.CommandType():         forgetOf,
	messages.Decide{}.CommandType():         decideOf,
	messages.Report{}.CommandType():         reportOf,
	messages.DecisionEffect{}.CommandType(): decisionEffectOf,
	messages.Delete{}.CommandType():         deleteOf,
	messages.Fork{}.CommandType():           forkOf,
	messages.BeginFork{}.CommandType():      beginForkOf,
	messages.ForkEffect{}.CommandType():     forkEffectOf,
	messages.Import{}.CommandType():         importOf,
	messages.UseTools{}.CommandType():       useToolsOf,
	messages.Detach{}.CommandType():         detachOf,
}

func inputOf(_ *stream, f *messages.Frame, ev messages.Event) messages.Command {
	switch ev := ev.(type) {
	case messages.InputAccepted:
		if ev.Input == f.Cause.ID {
			return messages.Input{Policy: ev.Policy, Content: ev.Content, Metadata: ev.Metadata, Deadline: ev.Deadline, Reply: ev.Reply, Options: ev.Options}
		}
	case messages.TimerSet:
		if ev.Input != nil && ev.Input.ID == f.Cause.ID {
			in := *ev.Input
			in.Schedule = messages.Schedule{Cron: ev.Cron, Zone: ev.Zone}
			if ev.Timer != in.ID {
				in.Name = ev.Timer
			}
			if ev.Cron == "" {
				in.At = &ev.At
			}
			return in
		}
	}
	return nil
}

func taskOf(_ *stream, _ *messages.Frame, ev messages.Event) messages.Command {
	if ev, ok := ev.(messages.InputAccepted); ok && ev.Parent != nil {
		return messages.Task{Content: ev.Content, Parent: *ev.Parent}
	}
	return nil
}

func cancelChildOf(s *stream, _ *messages.Frame, ev messages.Event) messages.Command {
	switch ev := ev.(type) {
	case messages.InputRecalled:
		return messages.CancelChild{Input: ev.Input, Parent: ev.Parent, Reason: ev.Reason}
	case messages.InputCancelled:
		return messages.CancelChild{Input: ev.Input, Reason: ev.Reason}
	case messages.TurnAborted:
		for _, id := range ev.Inputs {
			if s.state.Outbox.Task(id) != nil {
				return messages.CancelChild{Input: id, Reason: ev.Reason}
			}
		}
	}
	return nil
}

func setStateOf(_ *stream, _ *messages.Frame, ev messages.Event) messages.Command {
	if ev, ok := ev.(messages.StatePatched); ok {
		return messages.SetState{Patch: ev.Patch, Reason: ev.Reason}
	}
	return nil
}

func interruptOf(_ *stream, _ *messages.Frame, ev messages.Event) messages.Command {
	if ev, ok := ev.(messages.TurnAborted); ok {
		return messages.Interrupt{Turn: ev.Turn, Reason: ev.Reason}
	}
	return nil
}

func abortOf(_ *stream, _ *messages.Frame, ev messages.Event) messages.Command {
	if ev, ok := ev.(messages.TurnAborted); ok {
		return messages.Abort{Turn: ev.Turn, Reason: ev.Reason}
	}
	return nil
}

func clearOf(_ *stream, _ *messages.Frame, ev messages.Event) messages.Command {
	if ev, ok := ev.(messages.AgentCleared); ok {
		return messages.Clear{Reason: ev.Reason}
	}
	return nil
}

// cancelOf returns a cancel of everything if it has ended several things. Each of their events has
// the reason shortened; the frame's cause has the whole.
func cancelOf(_ *stream, f *messages.Frame, ev messages.Event) messages.Command {
	several := len(f.Events) > 1
	switch ev := ev.(type) {
	case messages.InputCancelled:
		return cancelling(messages.Cancel{Input: ev.Input, Reason: reason(f, ev.Reason)}, several)
	case messages.TimerCancelled:
		return cancelling(messages.Cancel{Timer: ev.Timer, Reason: reason(f, ev.Reason)}, several)
	}
	return nil
}

func cancelling(c messages.Cancel, several bool) messages.Cancel {
	if several {
		return messages.Cancel{All: true, Reason: c.Reason}
	}
	return c
}

// reason returns the reason of the frame's command; an event records at least its beginning.
func reason(f *messages.Frame, recorded string) string {
	if f.Cause.Reason != "" {
		return f.Cause.Reason
	}
	return recorded
}

// unaffordable begins the reason of a window that took the place of a summary.
const unaffordable = "a limit does not allow a summary"

func compactOf(s *stream, _ *messages.Frame, ev messages.Event) messages.Command {
	switch ev := ev.(type) {
	case messages.CompactionRequested:
		return messages.Compact{How: messages.CompactSummary, Keep: ev.Keep, Reason: ev.Reason}
	case messages.HistoryCompacted:
		if rest, ok := strings.CutPrefix(ev.Reason, unaffordable); ok {
			return messages.Compact{How: messages.CompactSummary, Keep: s.keep(ev.Upto), Reason: strings.TrimPrefix(rest, "; ")}
		}
		return messages.Compact{How: ev.How, Keep: s.keep(ev.Upto), Reason: ev.Reason}
	}
	return nil
}

// keep returns how many items a compact must keep that cuts the history there: as many as the definition
// or the default has it keep, if they do. 0: no number does.
func (s *stream) keep(upto messages.EventNumber) int {
	def := s.current.Turn
	cuts := func(keep int) bool { return s.state.History.Cut(keep, def.ShowAtMost).Upto == upto }
	if keep := cmp.Or(max(def.Compact.Keep, 0), turn.DefaultKeep); cuts(keep) {
		return keep
	}
	for keep := s.state.History.Len(); keep > 0; keep-- {
		if cuts(keep) {
			return keep
		}
	}
	return 0
}

// resumeOf returns a resume with the limits of all events of the frame.
func resumeOf(s *stream, f *messages.Frame, ev messages.Event) messages.Command {
	switch ev.(type) {
	case messages.BudgetRaised, messages.TurnResumed, messages.TurnStarted:
	default:
		return nil
	}
	var c messages.Resume
	for _, ev := range f.Events {
		switch ev := ev.(type) {
		case messages.BudgetRaised:
			if c.Reason = ev.Reason; ev.Scope == messages.ScopeAgent {
				c.AgentLimits = overrides(ev.Limits)
			} else {
				c.LimitOverrides = overrides(ev.Limits)
			}
		case messages.TurnResumed:
			c.MaxSteps, c.Reason = ev.MaxSteps, ev.Reason
		case messages.TurnStarted:
			if ev.Continues != "" {
				c.LimitOverrides, c.Reason = overrides(ev.Limits), ev.Reason
				c.MaxSteps = ev.MaxSteps
				c.LimitOverrides = s.raised(c.LimitOverrides)
			}
		}
	}
	return c
}

// overrides returns limits as a person writes them.
func overrides(l messages.Limits) messages.LimitOverrides {
	return messages.LimitOverrides{
		MaxSteps: l.MaxSteps, MaxTokens: l.MaxTokens, MaxCost: float64(l.MaxCost) / 1e9,
		MaxDuration: messages.Span(time.Duration(l.MaxDuration) * time.Millisecond),
	}
}

// raised returns the limits that the newest turn does not have.
func (s *stream) raised(l messages.LimitOverrides) messages.LimitOverrides {
	if s.state.Ended == nil {
		return l
	}
	had := overrides(s.state.Ended.Limits)
	if l.MaxSteps == had.MaxSteps {
		l.MaxSteps = 0
	}
	if l.MaxTokens == had.MaxTokens {
		l.MaxTokens = 0
	}
	if l.MaxCost == had.MaxCost {
		l.MaxCost = 0
	}
	if l.MaxDuration == had.MaxDuration {
		l.MaxDuration = 0
	}
	return l
}

func approveOf(_ *stream, _ *messages.Frame, ev messages.Event) messages.Command {
	switch ev := ev.(type) {
	case messages.ApprovalGranted:
		return messages.Approve{Call: ev.Call, Turn: ev.Turn, Remember: ev.Remember, Reason: ev.Reason}
	case messages.ChildDecided:
		return messages.Approve{Call: ev.Waits, Turn: ev.Of, ArgsHash: ev.ArgsHash, Remember: ev.Remember, Reason: ev.Reason}
	}
	return nil
}

func denyOf(_ *stream, _ *messages.Frame, ev messages.Event) messages.Command {
	switch ev := ev.(type) {
	case messages.ApprovalDenied:
		return messages.Deny{Call: ev.Call, Turn: ev.Turn, Text: &ev.Text, Remember: ev.Remember, Reason: ev.Reason}
	case messages.ChildDecided:
		return messages.Deny{Call: ev.Waits, Turn: ev.Of, ArgsHash: ev.ArgsHash, Text: ev.Text, Remember: ev.Remember, Reason: ev.Reason}
	}
	return nil
}

func forgetOf(_ *stream, _ *messages.Frame, ev messages.Event) messages.Command {
	if ev, ok := ev.(messages.ApprovalForgotten); ok {
		return messages.Forget{Tool: ev.Tool, Reason: ev.Reason}
	}
	return nil
}

func decideOf(_ *stream, f *messages.Frame, ev messages.Event) messages.Command {
	c := messages.Decide{Reason: f.Cause.Reason}
	if i := slices.IndexFunc(f.Events, func(ev messages.Event) bool { _, ok := ev.(messages.TurnResumed); return ok }); i >= 0 {
		c.Reason = f.Events[i].(messages.TurnResumed).Reason
	}
	switch ev := ev.(type) {
	case messages.ToolCompleted:
		c.Call, c.Turn, c.Outcome, c.Result = ev.Call, ev.Turn, messages.OutcomeCompleted, ev.Output
	case messages.ToolFailed:
		c.Call, c.Turn, c.Outcome, c.Result = ev.Call, ev.Turn, messages.OutcomeFailed, ev.Message
	case messages.ToolStarted:
		c.Call, c.Turn, c.Outcome = ev.Call, ev.Turn, messages.OutcomeRetry
	case messages.ChildDecided:
		c.Call, c.Turn, c.Outcome, c.Result, c.Reason = ev.Waits, ev.Of, ev.Outcome, ev.Result, ev.Reason
	default:
		return nil
	}
	return c
}

func reportOf(_ *stream, f *messages.Frame, ev messages.Event) messages.Command {
	switch ev := ev.(type) {
	case messages.ChildStopped:
		return messages.Report{Turn: ev.Turn, Call: ev.Call, Child: ev.Child, N: ev.N, What: ev.How, Used: ev.Used}
	case messages.ChildWaiting:
		return messages.Report{Turn: ev.Turn, Call: ev.Call, Child: ev.Child, N: ev.N, What: messages.ReportWaiting, Waiting: ev.Waiting, More: ev.More, Busy: ev.Busy}
	case messages.ChildResumed:
		return messages.Report{Turn: ev.Turn, Call: ev.Call, Child: ev.Child, N: ev.N, What: messages.ReportGoing}
	case messages.ChildCompleted:
		c := messages.Report{Turn: ev.Turn, Call: ev.Call, Child: ev.Child, N: ev.N, What: messages.ReportCompleted, Used: ev.Used}
		for _, ev := range f.Events {
			if done, ok := ev.(messages.ToolCompleted); ok && done.Call == c.Call {
				c.Output, c.Blob = done.Output, done.Blob
			}
		}
		return c
	case messages.ChildFailed:
		c := messages.Report{Turn: ev.Turn, Call: ev.Call, Child: ev.Child, N: ev.N, What: messages.ReportFailed, Reason: ev.Reason, Message: ev.Message, Used: ev.Used}
		if ev.N == 0 {
			c.What = messages.ReportRefused
		}
		return c
	}
	return nil
}

func decisionEffectOf(_ *stream, _ *messages.Frame, ev messages.Event) messages.Command {
	if ev, ok := ev.(messages.ChildSettled); ok {
		return messages.DecisionEffect{Decision: ev.ID, N: ev.N, Refused: ev.Refused, Message: ev.Message}
	}
	return nil
}

// deleteOf returns the delete of a tombstone, or of the frame before it, which ends what runs and
// waits.
func deleteOf(_ *stream, f *messages.Frame, _ messages.Event) messages.Command {
	c := messages.Delete{Reason: f.Cause.Reason}
	for _, ev := range f.Events {
		switch ev := ev.(type) {
		case messages.AgentDeleted:
			c.Reason = ev.Reason
		case messages.InputDropped:
			c.Reason = reason(f, ev.Reason)
		case messages.TimerCancelled:
			if ev.Turn == "" {
				c.Reason = reason(f, ev.Reason)
			}
		}
	}
	return c
}
