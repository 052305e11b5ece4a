package actors_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/actors/verify"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/prefix"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// joined returns the frames of an agent, those of its prefix first.
func joined(t *testing.T, store eventlog.Store, a messages.AgentID) (frames []*messages.Frame) {
	t.Helper()
	for rec, err := range prefix.New(store).Read(t.Context(), a, eventlog.Range{}) {
		if err != nil {
			t.Fatalf("%s: %v", a, err)
		}
		frames = append(frames, rec.Frame)
	}
	return frames
}

// forking is a configuration with two kinds, whose agents pay when they are asked to.
func forking(instructions string) actors.Config {
	model := scripted.Func(func(r providers.Request) scripted.Step {
		if last := r.Items[len(r.Items)-1]; last.Content.Text() == "pay" {
			return scripted.Ask(scripted.Call{ID: "c1", Name: "pay", Arguments: "{}"}, scripted.Call{ID: "c2", Name: "pay", Arguments: "{}"})
		}
		return scripted.Say("done")
	})
	pay := toolOf("pay", tool.Pause, func(context.Context) (string, error) { return "paid", nil })
	look := toolOf("look", tool.ReadOnly, nil)
	cfg := config(model, pay, look)
	cfg.Providers["other"] = model
	cfg.Definitions[0].Instructions = instructions
	cfg.Definitions = append(cfg.Definitions, actors.Definition{Kind: "strict", Model: "scripted/s", Instructions: "Be strict.", MaxSteps: 7, Tools: []tool.Tool{look, pay}})
	return cfg
}

// A fork is decided again as it was at whichever event it was made, also where it has a part of a
// frame of its parent.
func TestVerifyForksAtEveryEvent(t *testing.T) { // A81, A82
	s := actorstest.New(t, nil)
	node := s.Start(forking("Be brief."))
	node.Must(ada, say("u1", "pay"))
	s.Until(ada, "turn.completed")
	node.Must(ada, messages.SetState{ID: "s1", Patch: []byte(`{"a":1}`)})
	later := say("u2", "later")
	later.At = &s.Frames(ada)[0].Time // fires at once: a frame with the end of a timer and a turn
	node.Must(ada, later)
	s.Until(ada, "turn.completed", 2)
	forks, cut := 0, 0
	for n := range len(s.Events(ada)) {
		a := actorstest.Agent("test", fmt.Sprint("fork", n+1))
		if answer := node.Do(a, messages.BeginFork{ID: "b1", Parent: ada.Full(), At: messages.EventNumber(n + 1)}); answer.Err != nil {
			if !strings.Contains(answer.Err.Message, "in one step") {
				t.Errorf("event %d: %v", n+1, answer.Err)
			}
			continue
		}
		if s.Events(a)[0].(messages.AgentForked).Turn != "" {
			node.Must(a, messages.Abort{ID: "a1"})
		}
		node.Must(a, say("u3", "pay"))
		s.Await(a, func(all []messages.Event) bool { // its calls have the parent's results, or none
			return count(all, "tool.unknown")+count(all, "turn.completed") > 0
		})
		frames := joined(t, s.Store(), a)
		if r := verified(t, s, a, forking("Be brief."), frames); r.Result != verify.Equal || r.Events != frames[len(frames)-1].Last() {
			t.Errorf("forked at %d: %s", n+1, r.Text())
		}
		forks++
		for _, f := range s.Frames(ada) {
			if at := messages.EventNumber(n + 1); f.First <= at && at < f.Last() {
				cut++
			}
		}
	}
	if forks < 8 || cut < 4 {
		t.Errorf("got %d forks, %d with a part of a frame", forks, cut)
	}
}

// A fork with changes is decided again with the definition of its kind and these, its prefix with
// that of its parent.
func TestVerifyForksWithChanges(t *testing.T) { // A81, A82
	s := actorstest.New(t, nil)
	node := s.Start(forking("Be brief."))
	node.Must(ada, say("u1", "hi"))
	s.Until(ada, "turn.completed")
	long, sid := "Be long.", actorstest.Agent("strict", "sid")
	node.Must(ada, messages.Fork{ID: "f1", Fork: zoe.Full(), Set: messages.ForkChanges{Model: "other/m", Instructions: &long, Tools: []string{"pay"}}})
	s.Until(ada, "fork.settled")
	node.Must(zoe, say("u2", "hello"))
	s.Until(zoe, "turn.completed")
	node.Must(zoe, messages.UseTools{ID: "t1"})
	node.Must(zoe, messages.Fork{ID: "f2", Fork: sid.Full(), Set: messages.ForkChanges{Tools: []string{"look"}}})
	s.Until(zoe, "fork.settled")
	node.Must(sid, say("u3", "hello"))
	s.Until(sid, "turn.completed")

	for _, a := range []messages.AgentID{ada, zoe, sid} {
		frames := joined(t, s.Store(), a)
		if r := verified(t, s, a, forking("Be brief."), frames); r.Result != verify.Equal || r.Events != frames[len(frames)-1].Last() || len(r.Changes) > 0 {
			t.Errorf("%s: %s", a, r.Text())
		}
	}
	if r := verified(t, s, sid, forking("Be short."), joined(t, s.Store(), sid)); r.Result != verify.Differs || r.Difference.Type != "model.requested" || !strings.Contains(r.Text(), "instructions: Be brief., now Be short.") {
		t.Errorf("the parent's instructions have changed: %s", r.Text())
	}
	// The parent of that part has no definition here, and so no event of it can be decided.
	cfg := forking("Be brief.")
	cfg.Definitions = cfg.Definitions[1:]
	if r := verified(t, s, sid, cfg, joined(t, s.Store(), sid)); r.Result != verify.Unreadable || !strings.Contains(r.Why, "test") {
		t.Errorf("without the kind of the parent: %s", r.Text())
	}
	cfg = forking("Be brief.")
	cfg.Definitions[0].Tools = cfg.Definitions[0].Tools[1:]
	if r := verified(t, s, zoe, cfg, joined(t, s.Store(), zoe)[len(s.Frames(ada)):]); r.Result != verify.Unreadable {
		t.Errorf("without the parent's events: %s", r.Text())
	}
}
