package actors_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// shelfOf is a source that a test fills.
type shelfOf struct {
	mu      sync.Mutex
	now     []tool.Tool
	changed chan struct{}
	asked   int
}

func newShelf(now ...tool.Tool) *shelfOf { return &shelfOf{now: now, changed: make(chan struct{})} }

func (s *shelfOf) Tools() ([]tool.Tool, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.now, s.changed
}

// taken waits until the node has a definition with the tools that are set: it looks at them twice to
// prepare one, and again once it has that.
func (s *shelfOf) taken(now ...tool.Tool) {
	s.set(now...)
	for enough := s.seen() + 4; s.seen() < enough; <-time.After(time.Millisecond) {
		s.set(now...)
	}
}

func (s *shelfOf) seen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *shelfOf) set(now ...tool.Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.now, s.changed = now, make(chan struct{})
}

func says(name string) *tool.Typed[none] {
	return toolOf(name, tool.ReadOnly, func(context.Context) (string, error) { return name + " ran", nil })
}

// watch has the node follow its sources until the test ends.
func watch(t *testing.T, n *actorstest.Node) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { n.Runtime().Watch(ctx); close(ended) }()
	t.Cleanup(func() { stop(); <-ended })
}

// renewed waits until the kind test has another definition than before.
func renewed(n *actorstest.Node, change func()) {
	before := n.Runtime().Digests()["test"]
	for change(); n.Runtime().Digests()["test"] == before; {
		<-time.After(time.Millisecond)
	}
}

func namesOf(r providers.Request) string {
	var names []string
	for _, spec := range r.Tools {
		names = append(names, spec.Name)
	}
	return strings.Join(names, " ")
}

// A turn keeps the tools that it began with; the next one has those that there are then, also
// where it begins in the frame that ends the first.
func TestSourceChanges(t *testing.T) {
	gate := scripted.NewGate()
	model := scripted.New(
		scripted.Held(gate, scripted.Ask(call("c1", "old"))), scripted.Say("one"),
		scripted.Ask(call("c2", "new"), call("c3", "old")), scripted.Say("two"), scripted.Say("three"))
	source := newShelf(says("old"))
	cfg := with(config(model, says("own")), func(d *actors.Definition) { d.Sources = []tool.Source{source} })
	s := actorstest.New(t, nil)
	node := s.Start(cfg)
	watch(t, node)

	node.Must(ada, say("u1", "go"))
	node.Must(ada, say("u2", "go on"))
	<-gate.Reached()
	renewed(node, func() { source.set(says("new")) })
	gate.Release()
	all := s.Until(ada, "turn.completed", 2)
	for i, want := range []string{"own old", "own old", "own new", "own new"} {
		if got := namesOf(model.Requests()[i]); got != want {
			t.Errorf("request %d has the tools %q, want %q", i, got, want)
		}
	}
	wantItems(t, model.Requests()[1], "user go", "call c1", "result c1 old ran")
	if done := actorstest.Of[messages.ToolCompleted](all); len(done) != 2 || done[1].Output != "new ran" {
		t.Errorf("the calls gave %+v", done)
	}
	if failed := actorstest.Of[messages.ToolFailed](all); len(failed) != 1 || failed[0].Kind != "unknown_tool" {
		t.Errorf("a tool that is gone gave %+v", failed)
	}
	configured := actorstest.Of[messages.AgentConfigured](all)
	if len(configured) != 2 || configured[0].Definition == configured[1].Definition {
		t.Errorf("the agent was configured by %+v", configured)
	}
	if started := actorstest.Of[messages.TurnStarted](all); started[1].Definition != configured[1].Definition {
		t.Error("the second turn begins with the tools of the first")
	}

	renewed(node, func() { source.set() })
	node.Must(ada, say("u3", "and now"))
	s.Until(ada, "turn.completed", 3)
	if got := namesOf(model.Requests()[4]); got != "own" {
		t.Errorf("with an empty source the tools are %q", got)
	}
}

// A name that several tools have belongs to none of them, and an agent with such sources starts.
func TestSourceNames(t *testing.T) {
	var log bytes.Buffer
	cfg := with(config(scripted.New(scripted.Say("one")), says("own")), func(d *actors.Definition) {
		d.Sources = []tool.Source{newShelf(says("own"), says("twice"), says("once")), newShelf(says("twice"), says("none"), actors.AsTool("test", "asks itself"))}
	})
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	model := cfg.Providers["scripted"].(*scripted.Model)
	s := actorstest.New(t, nil)
	s.Start(cfg).Must(ada, say("u1", "go"))
	s.Until(ada, "turn.completed")
	if got := namesOf(model.Requests()[0]); got != "own once" {
		t.Errorf("the tools are %q", got)
	}
	if n := strings.Count(log.String(), "a tool is left out"); n != 5 {
		t.Errorf("%d tools were left out with a word:\n%s", n, log.String())
	}
}

// stubborn is a log that refuses some definitions.
type stubborn struct {
	eventlog.Log
	mu   sync.Mutex
	left int
}

func (l *stubborn) PutDefinition(ctx context.Context, d []byte) (messages.Digest, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left--; l.left == 0 {
		return "", errors.New("no room")
	}
	return l.Log.PutDefinition(ctx, d)
}

// A definition that could not be stored is stored later, though the source stays as it is, and does
// not keep the node from starting.
func TestSourceIsStoredLater(t *testing.T) {
	for refused := range 2 {
		source := newShelf(says("old"))
		cfg := with(config(scripted.New()), func(d *actors.Definition) { d.Sources = []tool.Source{source} })
		s := actorstest.New(t, nil)
		cfg.Log = &stubborn{Log: s.Log(), left: 1 + refused}
		node := s.Start(cfg)
		source.set(says("new"))
		renewed(node, func() { watch(t, node) })
	}
}

// A source may have another tool behind the same spec.
func TestSourceSameSpec(t *testing.T) {
	list := func(output string) tool.Tool {
		return toolOf("list", tool.ReadOnly, func(context.Context) (string, error) { return output, nil })
	}
	source := newShelf(list("nothing"))
	model := scripted.New(scripted.Ask(call("c1", "list")), scripted.Say("one"))
	s := actorstest.New(t, nil)
	node := s.Start(with(config(model), func(d *actors.Definition) { d.Sources = []tool.Source{source} }))
	watch(t, node)
	source.taken(list("two items"))
	node.Must(ada, say("u1", "go"))
	done := actorstest.Of[messages.ToolCompleted](s.Until(ada, "turn.completed"))
	if len(done) != 1 || done[0].Output != "two items" {
		t.Errorf("the calls gave %+v", done)
	}
}

// Sources cannot make a definition too large to be stored.
func TestSourcesAreLarge(t *testing.T) {
	var log bytes.Buffer
	var all []tool.Tool
	for n := range 10 {
		all = append(all, tool.New(fmt.Sprint("t", n), strings.Repeat("<", 20<<10), tool.ReadOnly, func(context.Context, none) (string, error) { return "", nil }))
	}
	model := scripted.New(scripted.Say("one"))
	cfg := with(config(model, says("own")), func(d *actors.Definition) { d.Sources = []tool.Source{newShelf(all...)} })
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := actorstest.New(t, nil)
	s.Start(cfg).Must(ada, say("u1", "go"))
	s.Until(ada, "turn.completed")
	if got := namesOf(model.Requests()[0]); got != "own t0 t1 t2 t3" || !strings.Contains(log.String(), "too large together") {
		t.Errorf("the tools are %q, the log is\n%s", got, log.String())
	}
}

// Progress reaches followers, an outcome that was lost is reported as that.
func TestCallOfUnknownOutcome(t *testing.T) {
	pay := toolOf("pay", tool.Pause, func(ctx context.Context) (string, error) {
		tool.Progress(ctx, "half of it")
		return "", &tool.UnknownError{Err: errors.New("the bank hung up")}
	})
	model, ear := scripted.New(scripted.Ask(call("c1", "pay")), scripted.Say("done")), newEar()
	s := actorstest.New(t, nil)
	cfg := config(model, pay)
	cfg.Observer = ear
	s.Start(cfg).Must(ada, say("u1", "go"))
	failed := actorstest.Of[messages.ToolFailed](s.Until(ada, "turn.completed"))
	if len(failed) != 1 || failed[0].Kind != "unknown" || failed[0].Message != "the bank hung up: it is not known whether the call had its effect" {
		t.Errorf("the call failed as %+v", failed)
	}
	ear.mu.Lock()
	defer ear.mu.Unlock()
	for _, d := range ear.deltas {
		if d.Kind == "progress" && d.Call == "c1" && d.Text == "half of it" {
			return
		}
	}
	t.Errorf("the progress is not among %+v", ear.deltas)
}
