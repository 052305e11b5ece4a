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

// fakeSource is a source whose tools a test sets.
type fakeSource struct {
	mu      sync.Mutex
	now     []tool.Tool
	changed chan struct{}
	reads   int
}

func newSource(now ...tool.Tool) *fakeSource {
	return &fakeSource{now: now, changed: make(chan struct{})}
}

func (s *fakeSource) Tools() ([]tool.Tool, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return s.now, s.changed
}

// setAndWait sets the tools and waits until the node has a definition with them. The node
// reads the source twice to prepare a definition, and again afterwards.
func (s *fakeSource) setAndWait(now ...tool.Tool) {
	s.set(now...)
	for want := s.readCount() + 4; s.readCount() < want; <-time.After(time.Millisecond) {
		s.set(now...)
	}
}

func (s *fakeSource) readCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

func (s *fakeSource) set(now ...tool.Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.now, s.changed = now, make(chan struct{})
}

// namedTool returns a tool whose output is its name and "ran".
func namedTool(name string) *tool.Typed[none] {
	return toolOf(name, tool.ReadOnly, func(context.Context) (string, error) { return name + " ran", nil })
}

// watch makes the node follow its sources until the test ends.
func watch(t *testing.T, n *actorstest.Node) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { n.Runtime().Watch(ctx); close(ended) }()
	t.Cleanup(func() { stop(); <-ended })
}

// renewed applies a change and waits until the kind test has another definition.
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

// A turn keeps the tools that it began with. The next turn has the tools that the source has
// then, also if it begins in the frame that ends the first.
func TestSourceChanges(t *testing.T) {
	gate := scripted.NewGate()
	model := scripted.New(
		scripted.Held(gate, scripted.Ask(call("c1", "old"))), scripted.Say("one"),
		scripted.Ask(call("c2", "new"), call("c3", "old")), scripted.Say("two"), scripted.Say("three"))
	source := newSource(namedTool("old"))
	cfg := with(config(model, namedTool("own")), func(d *actors.Definition) { d.Sources = []tool.Source{source} })
	s := actorstest.New(t, nil)
	node := s.Start(cfg)
	watch(t, node)

	node.Must(ada, say("u1", "go"))
	node.Must(ada, say("u2", "go on"))
	<-gate.Reached()
	renewed(node, func() { source.set(namedTool("new")) })
	gate.Release()
	all := s.Until(ada, "turn.completed", 2)
	for i, want := range []string{"own old", "own old", "own new", "own new"} {
		if got := namesOf(model.Requests()[i]); got != want {
			t.Errorf("request %d: got tools %q, want %q", i, got, want)
		}
	}
	wantItems(t, model.Requests()[1], "user go", "call c1", "result c1 old ran")
	if done := actorstest.Of[messages.ToolCompleted](all); len(done) != 2 || done[1].Output != "new ran" {
		t.Errorf("got %+v, want the output of old and of new", done)
	}
	if failed := actorstest.Of[messages.ToolFailed](all); len(failed) != 1 || failed[0].Kind != "unknown_tool" {
		t.Errorf("a call of a removed tool: got %+v, want one unknown_tool", failed)
	}
	configured := actorstest.Of[messages.AgentConfigured](all)
	if len(configured) != 2 || configured[0].Definition == configured[1].Definition {
		t.Errorf("got %+v, want two different definitions", configured)
	}
	if started := actorstest.Of[messages.TurnStarted](all); started[1].Definition != configured[1].Definition {
		t.Error("the second turn has the definition of the first")
	}

	renewed(node, func() { source.set() })
	node.Must(ada, say("u3", "and now"))
	s.Until(ada, "turn.completed", 3)
	if got := namesOf(model.Requests()[4]); got != "own" {
		t.Errorf("with an empty source: got tools %q, want own", got)
	}
}

// A tool of a source is left out if another tool has its name. The agent starts all the same.
func TestSourceNames(t *testing.T) {
	var log bytes.Buffer
	cfg := with(config(scripted.New(scripted.Say("one")), namedTool("own")), func(d *actors.Definition) {
		d.Sources = []tool.Source{newSource(namedTool("own"), namedTool("twice"), namedTool("once")), newSource(namedTool("twice"), namedTool("none"), actors.AsTool("test", "asks itself"))}
	})
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	model := cfg.Providers["scripted"].(*scripted.Model)
	s := actorstest.New(t, nil)
	s.Start(cfg).Must(ada, say("u1", "go"))
	s.Until(ada, "turn.completed")
	if got := namesOf(model.Requests()[0]); got != "own once" {
		t.Errorf("got tools %q, want own and once", got)
	}
	if n := strings.Count(log.String(), "a tool is left out"); n != 5 {
		t.Errorf("got %d log lines of tools left out, want 5:\n%s", n, log.String())
	}
}

// rejectsOne is a log that rejects one definition.
type rejectsOne struct {
	eventlog.Definitions
	mu    sync.Mutex
	until int
}

func (l *rejectsOne) PutDefinition(ctx context.Context, d []byte) (messages.Digest, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until--; l.until == 0 {
		return "", errors.New("no room")
	}
	return l.Definitions.PutDefinition(ctx, d)
}

// A definition that could not be stored is stored later, though the source does not change
// again. The node starts without it.
func TestSourceIsStoredLater(t *testing.T) {
	for refused := range 2 {
		source := newSource(namedTool("old"))
		cfg := with(config(scripted.New()), func(d *actors.Definition) { d.Sources = []tool.Source{source} })
		s := actorstest.New(t, nil)
		cfg.Store.Definitions = &rejectsOne{Definitions: s.Store().Definitions, until: 1 + refused}
		node := s.Start(cfg)
		source.set(namedTool("new"))
		renewed(node, func() { watch(t, node) })
	}
}

// A source may replace a tool by another with the same spec.
func TestSourceSameSpec(t *testing.T) {
	list := func(output string) tool.Tool {
		return toolOf("list", tool.ReadOnly, func(context.Context) (string, error) { return output, nil })
	}
	source := newSource(list("nothing"))
	model := scripted.New(scripted.Ask(call("c1", "list")), scripted.Say("one"))
	s := actorstest.New(t, nil)
	node := s.Start(with(config(model), func(d *actors.Definition) { d.Sources = []tool.Source{source} }))
	watch(t, node)
	source.setAndWait(list("two items"))
	node.Must(ada, say("u1", "go"))
	done := actorstest.Of[messages.ToolCompleted](s.Until(ada, "turn.completed"))
	if len(done) != 1 || done[0].Output != "two items" {
		t.Errorf("got %+v, want the output of the new tool", done)
	}
}

// The tools of sources are left out as far as the definition would become too large to store.
func TestSourcesAreLarge(t *testing.T) {
	var log bytes.Buffer
	var all []tool.Tool
	for n := range 10 {
		all = append(all, tool.New(fmt.Sprint("t", n), strings.Repeat("<", 20<<10), tool.ReadOnly, func(context.Context, none) (string, error) { return "", nil }))
	}
	model := scripted.New(scripted.Say("one"))
	cfg := with(config(model, namedTool("own")), func(d *actors.Definition) { d.Sources = []tool.Source{newSource(all...)} })
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := actorstest.New(t, nil)
	s.Start(cfg).Must(ada, say("u1", "go"))
	s.Until(ada, "turn.completed")
	if got := namesOf(model.Requests()[0]); got != "own t0 t1 t2 t3" || !strings.Contains(log.String(), "too large together") {
		t.Errorf("got tools %q, want own t0 t1 t2 t3 and a log line of the others:\n%s", got, log.String())
	}
}

// The progress of a tool reaches the observer. A lost outcome is recorded as unknown.
func TestCallOfUnknownOutcome(t *testing.T) {
	pay := toolOf("pay", tool.Pause, func(ctx context.Context) (string, error) {
		tool.Progress(ctx, "half of it")
		return "", &tool.UnknownError{Err: errors.New("the bank hung up")}
	})
	model, observer := scripted.New(scripted.Ask(call("c1", "pay")), scripted.Say("done")), newObserver()
	s := actorstest.New(t, nil)
	cfg := config(model, pay)
	cfg.Observer = observer
	s.Start(cfg).Must(ada, say("u1", "go"))
	failed := actorstest.Of[messages.ToolFailed](s.Until(ada, "turn.completed"))
	if len(failed) != 1 || failed[0].Kind != "unknown" || failed[0].Message != "the bank hung up: it is not known whether the call had its effect" {
		t.Errorf("got %+v, want one failure of kind unknown", failed)
	}
	observer.mu.Lock()
	defer observer.mu.Unlock()
	for _, d := range observer.deltas {
		if d.Kind == "progress" && d.Call == "c1" && d.Text == "half of it" {
			return
		}
	}
	t.Errorf("got deltas %+v, want the progress of c1 among them", observer.deltas)
}
