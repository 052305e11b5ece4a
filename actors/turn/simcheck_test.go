package turn_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// decide lets the machine decide, writes the frame, and checks.
func (s *sim) decide(cmd any) {
	if del, ok := cmd.(messages.Delete); ok {
		s.deletes(del)
		return
	}
	c, isCommand := cmd.(messages.Command)
	first, cause := s.live.Last+1, messages.Cause{Type: "effect"}
	events, err := s.feed(cmd)
	if isCommand {
		cause = messages.Cause{Type: c.CommandType(), ID: messages.IDOf(c), Endpoint: "client"}
		s.redelivered(c, events, err)
	} else if err != nil {
		s.fail("an outcome was refused\n%+v: %v", cmd, err)
	}
	s.write(first, cause, events)
}

// feed lets the machine decide.
func (s *sim) feed(cmd any) ([]messages.Event, error) {
	s.steps++
	first := s.live.Last + 1
	if o, ok := cmd.(turn.HooksAsked); ok && !s.blind && s.asks(o.Point) && s.holds(o) {
		s.check.hooksAsked(o.Point)
	}
	events, err := s.live.Decide(s.env, cmd)
	if s.verbose {
		s.note("%s %T %+v", s.env.Now.Format("15:04:05.000"), cmd, cmd)
		if err != nil {
			s.note("    refused: %v", err)
		}
	}
	if err != nil && len(events) > 0 {
		s.fail("a refusal has events\n%v", err)
	}
	s.check.segment(cmd, first, events)
	return events, err
}

// asks reports whether the hooks at a point are awaited.
func (s *sim) asks(at turn.Point) bool {
	return slices.ContainsFunc(s.live.Effects(), func(e turn.Effect) bool { return e.Do == turn.AskHooks && e.Point == at })
}

// holds reports whether the request that hooks have written is still about inputs that steer the turn.
func (s *sim) holds(o turn.HooksAsked) bool {
	steered := s.live.Inputs.SteeredIDs()
	return o.Request == "" || !slices.ContainsFunc(o.Seen, func(id string) bool { return !slices.Contains(steered, id) })
}

// redelivered checks that an id has its effect once, and the first answer.
func (s *sim) redelivered(c messages.Command, events []messages.Event, err error) {
	if s.blind {
		return
	}
	n, known := s.processed[messages.IDOf(c)]
	again, isAgain := err.(*turn.ProcessedError)
	switch {
	case known && (!isAgain || again.N != n):
		s.fail("an id has another effect or answer the second time\n%s was processed at event %d: %v", messages.IDOf(c), n, err)
	case !known && isAgain:
		s.fail("an id counts as processed that never was\n%s", messages.IDOf(c))
	case err == nil && len(events) == 0:
		s.fail("a command was applied and left no fact\n%+v", c)
	}
}

// write appends a frame that the live state has folded.
func (s *sim) write(first messages.EventNumber, cause messages.Cause, events []messages.Event) {
	if len(events) > 0 {
		f := &messages.Frame{ID: messages.FrameID(fmt.Sprint("f", first)), First: first, Time: s.env.Now, Cause: cause, Events: events}
		s.live.Record(f)
		s.append(f)
		s.process(f)
		return
	}
	s.check.effects()
	s.unchanged()
}

// process notes which id the frame has processed, and the event that is its answer.
func (s *sim) process(f *messages.Frame) {
	if f.Cause.Endpoint == "" || f.Cause.ID == "" {
		return
	}
	s.processed[f.Cause.ID] = f.First
	for i, ev := range f.Events {
		_, ok := ev.(messages.InputAccepted)
		if set, is := ev.(messages.TimerSet); ok || is && set.Turn == "" {
			s.processed[f.Cause.ID] = f.First + messages.EventNumber(i)
		}
	}
}

func (s *sim) append(f *messages.Frame) {
	s.purged(f)
	s.log = append(s.log, f)
	s.fold.Apply(f)
	if len(s.log)%s.images == 0 {
		s.imaged()
	}
	s.check.effects()
	s.unchanged()
	for _, e := range s.live.Effects() {
		if !slices.Contains(s.seen, e) {
			s.seen = append(s.seen, e)
		}
	}
}

// unchanged checks that the live state is that of the log.
func (s *sim) unchanged() {
	if where := s.same.states(s.live, s.fold, false); where != "" {
		s.fail("the state that lived and the one that was folded differ\nin %s", where)
	}
}

// crash drops the state, perhaps with a frame that never reached the log, and
// continues from the log.
func (s *sim) crash() {
	s.note("    crash")
	if effects := s.live.Effects(); len(effects) > 0 && s.chance(3) {
		_, _ = s.live.Decide(s.env, s.comesInTime(effects[s.r.IntN(len(effects))]))
	}
	s.fromScratch()
	s.live = s.fold
	s.fromScratch()
	s.check.crashed()
	s.reading = true
	if s.r.IntN(2) == 0 && s.live.Last > 0 {
		first := s.live.Last + 1
		events := s.live.Activate(messages.AgentActivated{Epoch: 2})
		s.check.segment(nil, first, events)
		s.append(&messages.Frame{First: first, Cause: messages.Cause{Type: "takeover"}, Events: events})
	}
	s.activate()
}

// activate continues with the state of the log.
func (s *sim) activate() {
	s.reading = false
	lost := s.check.summary.asked
	s.decide(turn.Recover{})
	if lost != nil && s.check.summary.asked == lost && !s.blind {
		s.fail("a summary was lost with its process, and no event records it")
	}
}

// fromScratch replays the whole log.
func (s *sim) fromScratch() {
	was := s.fold
	s.fold = &turn.State{}
	for _, f := range s.log[s.kept:] {
		s.fold.Apply(f)
	}
	if where := s.same.states(was, s.fold, true); where != "" {
		s.fail("a replayed state differs\nin %s", where)
	}
	if a, b := views(was), views(s.fold); a != b {
		s.fail("replayed histories differ\n%s\n%s", a, b)
	}
}

// fromBytes replays the whole log as it is stored.
func (s *sim) fromBytes() {
	stored := &turn.State{}
	for _, f := range s.log[s.kept:] {
		raw, err := messages.EncodeFrame(s.env.Agent, f)
		if err != nil {
			s.fail("a frame cannot be stored\n%v", err)
		}
		read, err := messages.DecodeFrame(s.env.Agent, raw)
		if err != nil {
			s.fail("a stored frame cannot be read\n%v", err)
		}
		stored.Apply(read)
	}
	if where := s.same.states(s.fold, stored, true); where != "" {
		s.fail("a state read from stored frames differs\nin %s", where)
	}
}

// drain lets everything come to its end.
func (s *sim) drain() {
	for n := 0; s.live.Turn != nil || s.live.Open(); n++ {
		s.tame = n > 150
		if n > 600 {
			s.fail("the agent does not come to rest")
		}
		if e, ok := s.anyWork(); len(s.awaitedKids()) > 0 && (!ok || s.chance(2)) {
			s.childReports()
		} else if ok {
			s.outcome(e, s.comesInTime(e))
		} else {
			s.person()
		}
	}
	s.check.drained()
}

// anyWork is an effect that the turn waits for, rather than a timer that only
// ends it.
func (s *sim) anyWork() (turn.Effect, bool) {
	effects := s.live.Effects()
	n := s.r.IntN(len(effects) + 1)
	for i := range effects {
		if e := effects[(i+n)%len(effects)]; s.tame && e.Do == turn.Wait && e.Turn == "" {
			continue // it would never end
		} else if !idle(e) || s.live.Phase() == "paused" && s.chance(4) || s.chance(20) {
			return e, true
		}
	}
	return turn.Effect{}, false
}

// idle reports whether an effect is a wait for an end.
func idle(e turn.Effect) bool { return e.Do == turn.Wait && !strings.HasPrefix(e.Timer, "retry:") }

// person moves a turn that waits for a person.
func (s *sim) person() {
	t, id := s.live.Turn, fmt.Sprint("drain", len(s.log), "-", s.steps)
	before := len(s.log)
	switch t.Paused() {
	case "":
		s.fail("a running turn waits for nothing")
	case "approval", "tool_unknown":
		s.decide(s.decision(id))
	default:
		s.decide(messages.Resume{
			ID: id, LimitOverrides: messages.LimitOverrides{MaxSteps: t.Steps + 3, MaxTokens: t.Used.Tokens + 5000, MaxCost: float64(t.Used.Cost)/1e9 + 1, MaxDuration: more(t.Used.Duration)},
			AgentLimits: messages.LimitOverrides{MaxSteps: s.live.Used.Steps + 3, MaxTokens: s.live.Used.Tokens + 5000, MaxCost: float64(s.live.Used.Cost)/1e9 + 1, MaxDuration: more(s.live.Used.Duration)},
		})
	}
	if len(s.log) == before {
		s.fail("a person cannot move a paused turn")
	}
}

// more is a limit an hour higher.
func more(ran int64) messages.Span {
	return messages.Span(time.Duration(ran)*time.Millisecond + time.Hour)
}

// decision decides about a call that waits.
func (s *sim) decision(id string) messages.Command {
	for _, c := range s.live.Turn.Calls {
		switch {
		case c.Outcome == projections.CallWaiting && s.chance(2):
			return messages.Approve{ID: id, Call: c.ID, ArgsHash: messages.HashArguments(c.Arguments), Remember: s.chance(4)}
		case c.Outcome == projections.CallWaiting:
			return messages.Deny{ID: id, Call: c.ID, Remember: s.chance(4)}
		case c.Outcome == projections.CallUnknown:
			return messages.Decide{ID: id, Call: c.ID, Outcome: messages.Outcome(s.one("completed", "failed"))}
		}
	}
	s.fail("a turn is paused for calls and none waits")
	return nil
}

// views is the history in full.
func views(s *turn.State) string {
	var b strings.Builder
	for _, item := range s.History.View() {
		fmt.Fprint(&b, "\n", item.N, item.Turn, item.Status, item.Type, item.Content, item.CallID, item.Name, item.Output)
	}
	return b.String()
}
