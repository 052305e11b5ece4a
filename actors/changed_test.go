package actors_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// noRoom is a log that stores no definition while it has no room.
type noRoom struct {
	eventlog.Definitions
	refusals atomic.Int32 // that are left
}

func (l *noRoom) PutDefinition(ctx context.Context, d []byte) (messages.Digest, error) {
	if l.refusals.Add(-1) >= 0 {
		return "", errors.New("no room")
	}
	return l.Definitions.PutDefinition(ctx, d)
}

// namesTools is a model that answers with the names of its tools, behind the gate if the input is wait.
func namesTools(gate *scripted.Gate) *scripted.Model {
	return scripted.Func(func(r providers.Request) scripted.Step {
		answer := scripted.Say(r.Instructions + ": " + namesOf(r))
		if r.Items[len(r.Items)-1].Content.Text() == "wait" {
			return scripted.Held(gate, answer)
		}
		return answer
	})
}

// forkAtWork makes zoe a fork of ada with changes, whose turn runs when its node crashes.
func forkAtWork(t *testing.T, s *actorstest.Stage, cfg actors.Config, gate *scripted.Gate, set messages.ForkChanges) {
	t.Helper()
	node := s.Start(cfg)
	node.Must(ada, say("u1", "one"))
	s.Until(ada, "turn.completed")
	node.Must(ada, messages.Fork{ID: "f1", Fork: zoe.Full(), Set: set})
	s.Until(ada, "fork.settled")
	node.Must(zoe, say("u2", "wait"))
	<-gate.Reached()
	node.Crash()
	gate.Release()
}

// outputs returns what an agent's turns have answered once there are n.
func outputs(s *actorstest.Stage, a messages.AgentID, n int) (list []string) {
	for _, done := range actorstest.Of[messages.TurnCompleted](s.Until(a, "turn.completed", n)) {
		list = append(list, done.Output)
	}
	return list
}

// A fork whose definition cannot be stored when it is loaded in the middle of a turn is loaded again
// until it can. One that has its definition keeps it.
func TestForkWhoseDefinitionIsStoredLater(t *testing.T) { // A81
	gate := scripted.NewGate()
	source := newSource(namedTool("look"))
	cfg := with(config(namesTools(gate)), func(d *actors.Definition) { d.Sources = []tool.Source{source} })
	s := actorstest.New(t, nil)
	long := "Be long."
	forkAtWork(t, s, cfg, gate, messages.ForkChanges{Instructions: &long})

	store := &noRoom{Definitions: s.Store().Definitions}
	cfg.Store.Definitions = store
	node := s.Start(cfg)
	watch(t, node)
	store.refusals.Store(2)
	node.Activate(zoe) // it fails, and no command comes
	if got := outputs(s, zoe, 1); !slices.Equal(got, []string{"Be long.: look"}) {
		t.Errorf("got answers %q", got)
	}
	renewed(node, func() { source.set(namedTool("see")) })
	store.refusals.Store(1)
	node.Must(zoe, say("u3", "two"))
	outputs(s, zoe, 2)
	node.Must(zoe, say("u4", "three"))
	if got := outputs(s, zoe, 3); !slices.Equal(got[1:], []string{"Be long.: look", "Be long.: see"}) {
		t.Errorf("got answers %q, want one with the tools before and one with the new ones", got[1:])
	}
}

// A fork with chosen tools has those of them that their sources have, as an agent does: it continues
// without the others.
func TestForkWhoseToolsAreGone(t *testing.T) { // A81
	gate := scripted.NewGate()
	source := newSource(namedTool("look"), namedTool("see"))
	cfg := with(config(namesTools(gate), namedTool("own")), func(d *actors.Definition) { d.Sources = []tool.Source{source} })
	s := actorstest.New(t, nil)
	forkAtWork(t, s, cfg, gate, messages.ForkChanges{Tools: []string{"look"}})

	source.set()
	node := s.Start(cfg)
	watch(t, node)
	node.Activate(zoe)
	outputs(s, zoe, 1)
	renewed(node, func() { source.set(namedTool("look"), namedTool("see")) })
	node.Must(zoe, say("u3", "two"))
	if got := outputs(s, zoe, 2); !slices.Equal(got, []string{"Be brief.: ", "Be brief.: look"}) {
		t.Errorf("got answers %q, want none of the tools and then look", got)
	}
}

// A fork with a model that a node does not have waits for one that has it. It can be stopped.
func TestForkWhoseModelIsGone(t *testing.T) { // A81
	gate := scripted.NewGate()
	cfg := config(namesTools(gate))
	cfg.Providers["other"] = namesTools(gate)
	s := actorstest.New(t, nil)
	forkAtWork(t, s, cfg, gate, messages.ForkChanges{Model: "other/n"})

	node := s.Start(config(namesTools(gate)))
	for _, policy := range []messages.Policy{messages.PolicyQueue, messages.PolicyInterrupt} {
		in := say("u-"+string(policy), "two")
		in.Policy = policy
		answer := node.Do(zoe, in)
		if wantCode(t, answer, messages.Unavailable); answer.Err != nil && !strings.Contains(answer.Err.Message, "waits for a node that does") {
			t.Errorf("%s: got %v", policy, answer.Err)
		}
	}
	node.Must(zoe, messages.Abort{ID: "a1"})
	s.Until(zoe, "turn.aborted")
	s.Start(cfg).Must(zoe, say("u3", "two"))
	outputs(s, zoe, 1)
}
