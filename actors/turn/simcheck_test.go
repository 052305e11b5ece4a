package turn_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// decide lets the machine decide, writes the frame, and checks.
func (s *sim) decide(cmd any) {
	s.steps++
	before := s.print
	first := s.live.Last + 1
	events, err := s.live.Decide(s.env, cmd)
	if err != nil || len(events) == 0 {
		if after := fingerprint(s.live); after != before && !isRecover(cmd) {
			s.fail("%+v gave no events (%v) but changed the state:\n%s\n%s", cmd, err, before, after)
		}
		s.check.effects()
		return
	}
	cause := messages.Cause{Type: "effect"}
	if c, ok := cmd.(messages.Command); ok {
		cause = messages.Cause{Type: c.CommandType(), ID: c.CommandID(), Door: "client"}
	}
	f := &messages.Frame{ID: messages.FrameID(fmt.Sprint("f", first)), First: first, Time: s.env.Now, Cause: cause, Events: events}
	s.live.Spend(f)
	s.append(f)
}

func isRecover(cmd any) bool {
	_, ok := cmd.(turn.Recover)
	return ok
}

// append writes a frame that the live state has folded.
func (s *sim) append(f *messages.Frame) {
	s.log = append(s.log, f)
	s.fold.Apply(f)
	for i, ev := range f.Events {
		s.check.event(f.First+messages.EventNumber(i), ev)
	}
	s.check.effects()
	s.print = fingerprint(s.live)
	if folded := fingerprint(s.fold); s.print != folded && !s.asksTools() {
		s.fail("lived and folded states differ:\n%s\n%s", s.print, folded)
	}
}

// asksTools says that the live state holds what is volatile.
func (s *sim) asksTools() bool {
	return slices.ContainsFunc(s.live.Effects(), func(e turn.Effect) bool { return e.Do == turn.Reconcile })
}

// crash drops the state and goes on from the log.
func (s *sim) crash() {
	s.fromScratch()
	s.live = s.fold
	s.fromScratch()
	s.print = fingerprint(s.live)
	if s.r.IntN(2) == 0 {
		f := &messages.Frame{First: s.live.Last + 1, Cause: messages.Cause{Type: "takeover"}}
		if f.Events = s.live.Activate(messages.AgentActivated{Epoch: 2}); f.First > 1 {
			s.append(f)
		} else {
			s.live = &turn.State{} // nothing to take over
		}
	}
	s.decide(turn.Recover{})
	s.print = fingerprint(s.live)
}

// fromScratch replays the whole log.
func (s *sim) fromScratch() {
	was := fingerprint(s.fold) + views(s.fold)
	s.fold = &turn.State{}
	for _, f := range s.log {
		s.fold.Apply(f)
	}
	if is := fingerprint(s.fold) + views(s.fold); is != was {
		s.fail("replayed state differs:\n%s\n%s", was, is)
	}
}

// drain lets everything come to its end.
func (s *sim) drain() {
	for n := 0; s.live.Turn != nil; n++ {
		if n > 1000 {
			s.fail("the agent does not come to rest: %s", fingerprint(s.live))
		}
		if effects := s.live.Effects(); len(effects) > 0 {
			s.outcome(s.dice(effects[0]))
			continue
		}
		for _, c := range s.live.Turn.Calls {
			if c.Status == turn.Unknown {
				s.decide(messages.Decide{ID: fmt.Sprint("drain", s.steps), Call: c.ID, Outcome: messages.OutcomeFailed})
				break
			}
		}
	}
	s.check.drained()
}

// fingerprint is everything that a state shows, its history in brief.
func fingerprint(s *turn.State) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s %s %v %v %d %s", s.Last, s.Definition, s.Phase(), s.Open(), s.Due(), s.History.Len(), s.History.Digest())
	for _, q := range s.Queue {
		fmt.Fprint(&b, " queue ", q.ID, q.N, q.Options)
	}
	b.Write(s.Data.JSON())
	if t := s.Turn; t != nil {
		fmt.Fprint(&b, " turn ", t.ID, t.Inputs, t.Steps, t.Limits, t.Usage, t.Paused, t.Calls, s.Effects())
		if t.Model != nil {
			fmt.Fprint(&b, " model ", *t.Model)
		}
	}
	if s.Ended != nil {
		fmt.Fprint(&b, " ended ", *s.Ended)
	}
	return b.String()
}

// views is the history in full.
func views(s *turn.State) string {
	var b strings.Builder
	for _, item := range s.History.View() {
		fmt.Fprint(&b, "\n", item.N, item.Turn, item.Status, item.Type, item.Content, item.CallID, item.Name, item.Output)
	}
	return b.String()
}
