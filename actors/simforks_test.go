package actors_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/prefix"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// mostForks is how many forks a run has at most.
const mostForks = 3

// simulated is how many agents a run begins with; those behind them are forks.
const simulated = 2

// target returns the agent that an act is for.
func (w *world) target(a act) messages.AgentID {
	if forks := w.agents[simulated:]; a.fork > 0 && len(forks) > 0 {
		return forks[a.fork%len(forks)]
	}
	return w.agents[a.agent]
}

// fork returns a command that forks the act's agent at any of its events, and adds the fork to the
// agents of the run. It reports false if there are enough of them.
func (w *world) fork(a act) (messages.Command, bool) {
	if len(w.agents) >= simulated+mostForks {
		return nil, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	parent := w.fold(w.target(a))
	fork := actorstest.Agent("test", a.id())
	c := messages.Fork{ID: a.id(), Fork: fork.Full()}
	if a.n%3 > 0 && parent.state.Last > 0 {
		c.At = 1 + messages.EventNumber(a.n)%parent.state.Last
	}
	if a.n%4 == 0 {
		other := "Be long."
		c.Set = messages.ForkChanges{Instructions: &other, Tools: []string{"add", "pay", "mail", "ship"}}
	}
	w.agents = append(w.agents, fork)
	w.views[fork] = w.newView(fork)
	return c, true
}

func (w *world) newView(a messages.AgentID) *view {
	v := newView(a)
	v.texts, v.store, v.most = true, w.texts, w.cfg.Definitions[0].ShowAtMost
	return v
}

// inherit makes a view of a fork that of its parent at the event at which the fork was made. Nothing
// that the parent did later is ever a part of it.
func (w *world) inherit(v *view, first *messages.Frame) {
	p, forked := messages.PrefixOf(first)
	if !forked {
		return
	}
	for _, f := range w.whole(p.Agent, p.Last) {
		for i, ev := range f.Events {
			v.event(f.First+messages.EventNumber(i), f.Time, ev)
			if ev.EventType() == (messages.AgentDeleted{}).EventType() {
				v.tombstone = f.Last()
				v.later, v.inputs = make(map[string]messages.TimerSet), make(map[string]int)
			}
		}
		v.state.Apply(f)
	}
	if v.state.Turn == nil {
		v.baseline = v.past()
	}
	clear(v.keys) // the fork's calls have keys of its own
	clear(v.started)
	v.wrong = nil // the parent's view reports it
}

// begun checks the first frame of a fork: what its parent was doing, and owed, is left to the parent.
func (v *view) begun(f *messages.Frame) {
	if _, forked := messages.PrefixOf(f); !forked {
		return
	}
	waiting := slices.Concat(v.state.Inputs.QueuedIDs(), v.state.Inputs.SteeredIDs())
	if does := v.state.Effects(); len(does) > 0 || len(waiting) > 0 {
		v.fail(f.First, "the fork begins with inputs %q and work %+v of its parent", waiting, does)
	}
}

// settled checks what became of a fork: it has begun, or its event is one of several of a step, or of
// an earlier life.
func (v *view) settled(n messages.EventNumber, ev messages.ForkSettled) {
	lives := slices.ContainsFunc(v.state.Forks.List, func(f projections.Fork) bool { return f.Agent.Full() == ev.Fork && f.At >= v.created })
	if ev.Refused != "" && ev.Refused != messages.Conflict && lives {
		v.fail(n, "fork %s was refused with %s: %s", ev.Fork, ev.Refused, ev.Message)
	}
}

// past is what a clear must not take from a fork: the history and the state that it began with.
func (v *view) past() string {
	return string(v.state.History.Digest()) + string(v.state.Data.JSON())
}

// cleared checks what the clear of a fork has left, if it was not made inside of a turn.
func (v *view) cleared(f *messages.Frame) {
	switch f.Events[len(f.Events)-1].(type) {
	case messages.AgentDeleted:
		v.baseline = ""
	case messages.AgentCleared:
		if v.baseline != "" && v.past() != v.baseline {
			v.fail(f.Last(), "a clear has left another history or state than that with which the fork began")
		}
	}
}

// whole returns the frames of an agent up to an event, with those of its prefix, as they were appended.
func (w *world) whole(a messages.AgentID, last messages.EventNumber) (frames []*messages.Frame) {
	own := w.stage.Frames(a)
	if len(own) == 0 {
		return nil
	}
	if p, forked := messages.PrefixOf(own[0]); forked {
		frames = w.whole(p.Agent, min(p.Last, last))
	}
	for _, f := range own {
		if f.First > last {
			break
		}
		frames = append(frames, eventlog.Recorded{Frame: f}.Upto(last).Frame)
	}
	return frames
}

// frames returns all frames of an agent, as they were appended and are decoded.
func (w *world) frames(a messages.AgentID) (frames []*messages.Frame, err error) {
	for _, f := range w.whole(a, messages.EventNumber(1<<62)) {
		b, err := messages.EncodeFrame(a, f)
		if err == nil {
			f, err = messages.DecodeFrame(a, b)
		}
		if err != nil {
			return nil, err
		}
		frames = append(frames, f)
	}
	return frames, nil
}

// replayed checks a result that a dry fork has: another agent's call had it, or a person gave it.
func (v *view) replayed(n messages.EventNumber, ev messages.ToolCompleted) {
	out := strings.TrimRight(v.whole(n, ev).(messages.ToolCompleted).Output, " ")
	did := slices.ContainsFunc([]string{"did default/test/ada/", "did default/test/bob/", "did default/test/fork"}, func(s string) bool { return strings.HasPrefix(out, s) })
	if out != "so it was" && (!did || strings.HasPrefix(out, fmt.Sprintf("did %s/", v.agent.Full()))) {
		v.fail(n, "got result %q of a call in a dry fork, want that of another agent", out)
	}
}

// detachAll detaches every fork that exists, deletes the two agents that the run began with, and checks
// that each fork has the same events as before.
func (w *world) detachAll() {
	for _, a := range w.agents[simulated:] {
		if w.stateOf(a).Forks.Origin != nil {
			w.insist(a, messages.Detach{ID: "detach-all"})
		}
	}
	for _, a := range w.agents[:simulated] {
		if s := w.stateOf(a); s.Last > 0 && s.Life.Deleted == nil {
			w.insist(a, messages.Delete{ID: "delete-all"})
		}
	}
	w.drain()
	for _, a := range w.agents[simulated:] {
		if w.stateOf(a).Forks.Origin != nil {
			w.compareWithRead(a)
		}
	}
}

// stateOf returns the state of an agent as of its newest frame.
func (w *world) stateOf(a messages.AgentID) turn.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fold(a).state
}

// compareWithRead checks that what is read of an agent is what was appended of it and its parents.
func (w *world) compareWithRead(a messages.AgentID) {
	want := w.whole(a, messages.EventNumber(1<<62))
	for i, f := range slices.Backward(want) {
		if eventlog.Ends(f) { // what its parent was before is removed
			want = want[i:]
			break
		}
	}
	for rec, err := range prefix.New(w.stage.Store()).Read(w.t.Context(), a, eventlog.Range{}) {
		if err != nil || len(want) == 0 {
			w.lockAndFail("%s cannot be read as it was, %d frames are left: %v", a, len(want), err)
			return
		}
		got, _ := json.Marshal(rec.Frame.Events)
		if was, _ := json.Marshal(want[0].Events); rec.Frame.First != want[0].First || string(got) != string(was) {
			w.lockAndFail("%s: got event %d %s, want event %d %s", a, rec.Frame.First, got, want[0].First, was)
		}
		want = want[1:]
	}
	if len(want) > 0 {
		w.lockAndFail("%s ends before event %d", a, want[0].First)
	}
}
