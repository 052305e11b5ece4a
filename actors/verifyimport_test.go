package actors_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/actors/verify"
	"github.com/reprise-dev/reprise/messages"
)

// exported returns frames as an export has them: that of an imported agent names no blob.
func exported(frames []*messages.Frame) []*messages.Frame {
	list := slices.Clone(frames)
	for i, f := range list {
		if ev, ok := f.Events[0].(messages.AgentImported); ok {
			without := *f
			ev.Frames, without.Events = nil, slices.Clone(f.Events)
			without.Events[0], list[i] = ev, &without
		}
	}
	return list
}

// instead returns frames with the events that change returns in place of theirs.
func instead(frames []*messages.Frame, change func(messages.Event) messages.Event) []*messages.Frame {
	list := slices.Clone(frames)
	for i, f := range list {
		other := *f
		other.Events = slices.Clone(f.Events)
		for j, ev := range other.Events {
			other.Events[j] = change(ev)
		}
		list[i] = &other
	}
	return list
}

// equalAgain checks that an agent is equal, as it is stored and as it is exported.
func equalAgain(t *testing.T, s *actorstest.Stage, a messages.AgentID, cfg actors.Config) []*messages.Frame {
	t.Helper()
	frames := joined(t, s.Store(), a)
	for _, list := range [][]*messages.Frame{frames, exported(frames)} {
		if r := verified(t, s, a, cfg, list); r.Result != verify.Equal || r.Events != frames[len(frames)-1].Last() || len(r.Changes) > 0 {
			t.Errorf("%s: %s", a, r.Text())
		}
	}
	return frames
}

// Imported agents are decided again, each part of their events as the agent that has appended it: with
// another name, of another kind, with changes, and of forks and imported agents at the address that
// their first events name.
func TestVerifyImports(t *testing.T) { // A82, A83
	far := actorstest.New(t, nil)
	node := far.Start(forking("Be brief."))
	node.Must(ada, say("u1", "pay"))
	far.Until(ada, "turn.completed")
	node.Must(ada, messages.SetState{ID: "s1", Patch: []byte(`{"a":1}`)})
	later := say("u2", "later")
	later.At = &far.Frames(ada)[0].Time // fires at once: a frame with the end of a timer and a turn
	node.Must(ada, later)
	events := far.Until(ada, "turn.completed", 2)
	cut := messages.EventNumber(slices.IndexFunc(events, func(ev messages.Event) bool { return ev.EventType() == "timer.fired" }) + 1)
	long := "Be long."
	node.Must(ada, messages.Fork{ID: "f1", Fork: zoe.Full(), At: cut, Set: messages.ForkChanges{Instructions: &long}})
	far.Until(ada, "fork.settled")
	node.Must(zoe, say("u3", "hello"))
	far.Until(zoe, "turn.completed")
	fork := joined(t, far.Store(), zoe)
	whole := far.Frames(ada)
	node.Stop()

	s := actorstest.New(t, nil)
	cfg := forking("Be brief.")
	node = s.Start(cfg)
	begin := func(a messages.AgentID, frames []*messages.Frame, set messages.ForkChanges) []*messages.Frame {
		t.Helper()
		c := importOf(t, s, a, frames)
		c.ID, c.Set = "i-"+a.String(), set
		node.Must(a, c)
		node.Must(a, say("u9", "hello"))
		s.Until(a, "turn.completed")
		return equalAgain(t, s, a, cfg)
	}
	sid := actorstest.Agent("strict", "sid")
	strict := begin(sid, whole, messages.ForkChanges{Model: "other/m"})
	first := begin(ada, fork, messages.ForkChanges{Tools: []string{"pay"}}) // at the address of its first events
	again := begin(actorstest.Agent("test", "bob"), exported(first), messages.ForkChanges{})
	begin(actorstest.Agent("strict", "eve"), exported(again), messages.ForkChanges{})

	alone := forking("Be brief.") // the kind of the exported agent is not defined here
	alone.Definitions = alone.Definitions[1:]
	if r := verified(t, s, sid, alone, strict); r.Result != verify.Equal || len(r.Unchecked) != 1 || r.Unchecked[0].Count != len(whole) {
		t.Errorf("without the kind: %s", r.Text())
	}
	bad := instead(strict, func(ev messages.Event) messages.Event {
		if done, ok := ev.(messages.TurnCompleted); ok {
			done.Output += "!"
			return done
		}
		return ev
	})
	if r := verified(t, s, sid, alone, bad); r.Result != verify.Differs || r.Difference.N <= whole[len(whole)-1].Last() {
		t.Errorf("without the kind, and changed: %s", r.Text())
	}

	if r := verified(t, s, ada, forking("Be short."), first); r.Result != verify.Differs || r.Difference.Type != "model.requested" {
		t.Errorf("other instructions: %s", r.Text())
	}
	for name, change := range map[string]func(messages.AgentImported) messages.AgentImported{
		"another agent":  func(ev messages.AgentImported) messages.AgentImported { ev.Agent = zoe.Full(); return ev },
		"another number": func(ev messages.AgentImported) messages.AgentImported { ev.Last++; return ev },
		"other changes":  func(ev messages.AgentImported) messages.AgentImported { ev.Set.Model = "other/m"; return ev },
	} {
		n := messages.EventNumber(0)
		bad := instead(first, func(ev messages.Event) messages.Event {
			if imported, ok := ev.(messages.AgentImported); ok {
				n = imported.Last + 1
				return change(imported)
			}
			return ev
		})
		if r := verified(t, s, ada, cfg, bad); r.Result != verify.Differs || r.Difference.N < n {
			t.Errorf("%s: %s", name, r.Text())
		}
	}
}

// An imported fork of a whole agent may have the address of that one. Its changes may be those of a kind
// that is not defined here.
func TestVerifyImportsOfForks(t *testing.T) { // A82, A83
	far := actorstest.New(t, nil)
	node := far.Start(forking("Be brief."))
	node.Must(ada, say("u1", "hi"))
	far.Until(ada, "turn.completed")
	node.Must(ada, messages.Fork{ID: "f1", Fork: zoe.Full(), Set: messages.ForkChanges{Tools: []string{"look"}}})
	far.Until(ada, "fork.settled")
	node.Must(zoe, say("u2", "hello"))
	far.Until(zoe, "turn.completed")
	fork := joined(t, far.Store(), zoe)
	node.Stop()

	alone := forking("Be brief.")
	alone.Definitions = alone.Definitions[1:]
	alone.Definitions[0].Tools = alone.Definitions[0].Tools[1:]
	for _, c := range []struct {
		as  messages.AgentID
		cfg actors.Config
	}{{ada, forking("Be brief.")}, {actorstest.Agent("strict", "sid"), alone}} {
		s := actorstest.New(t, nil)
		node := s.Start(c.cfg)
		begin := importOf(t, s, c.as, fork)
		begin.Set.Tools = []string{"pay"}
		node.Must(c.as, begin)
		equalAgain(t, s, c.as, c.cfg)
		node.Stop()
	}
}

// What an agent leaves where it was exported, inside of a turn, is decided again.
func TestVerifyImportInsideATurn(t *testing.T) { // A82, A83
	cfg := forking("Be brief.")
	cfg.Definitions[0].TurnLimits.MaxDuration = time.Hour.Milliseconds()
	far := actorstest.New(t, nil)
	node := far.Start(cfg)
	for i, at := range []time.Duration{time.Hour, 2 * time.Hour} {
		in := say([]string{"w1", "w2"}[i], "later")
		due := time.Now().Add(at)
		in.At = &due
		node.Must(ada, in)
	}
	node.Must(ada, say("u1", "pay"))
	far.Until(ada, "turn.completed")
	frames := far.Frames(ada)
	node.Stop()

	for i, f := range frames { // up to each frame
		newest := *f
		newest.Time = f.Time.Add(time.Minute) // for which the timers have run
		s := actorstest.New(t, nil)
		node := s.Start(cfg)
		node.Must(zoe, importOf(t, s, zoe, append(frames[:i:i], &newest)))
		if s.Events(zoe)[0].(messages.AgentImported).Turn != "" {
			node.Must(zoe, messages.Resume{ID: "r1"})
		}
		node.Must(zoe, messages.Cancel{ID: "x1", All: true})
		equalAgain(t, s, zoe, cfg)
		node.Stop()
		if t.Failed() {
			t.Fatalf("imported up to event %d", f.Last())
		}
	}
}

// Hashes of texts that were redacted before they were imported are taken from the record, and no others.
func TestVerifyRedactedImport(t *testing.T) { // A82, A83
	far := actorstest.New(t, nil)
	node := far.Start(forking("Be brief."))
	node.Must(ada, say("u1", "I am Ann"))
	far.Until(ada, "turn.completed")
	frames := instead(far.Frames(ada), func(ev messages.Event) messages.Event {
		if in, ok := ev.(messages.InputAccepted); ok {
			in.Content = messages.TextContent("I am [redacted]")
			return in
		}
		return ev
	})
	node.Stop()

	for _, redacted := range [][]string{{"names"}, nil} {
		for _, a := range []messages.AgentID{ada, zoe} {
			s := actorstest.New(t, nil)
			cfg := forking("Be brief.")
			node := s.Start(cfg)
			c := importOf(t, s, a, frames)
			c.Redacted = redacted
			node.Must(a, c)
			node.Must(a, say("u2", "hello"))
			s.Until(a, "turn.completed")
			r := verified(t, s, a, cfg, joined(t, s.Store(), a))
			switch {
			case redacted == nil && (r.Result != verify.Differs || r.Difference.Type != "model.requested"):
				t.Errorf("%s was changed and not redacted: %s", a, r.Text())
			case redacted != nil && (r.Result != verify.Equal || !strings.Contains(r.Text(), "hashes of texts that were redacted (1)")):
				t.Errorf("%s was redacted: %s", a, r.Text())
			}
			node.Stop()
		}
	}
}
