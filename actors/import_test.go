package actors_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/prefix"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// importOf stores frames as what an agent is to begin with, and returns the command to begin with them.
func importOf(t *testing.T, s *actorstest.Stage, as messages.AgentID, frames []*messages.Frame) messages.Import {
	t.Helper()
	var blob bytes.Buffer
	w := prefix.NewWriter(as, &blob)
	for _, f := range frames {
		if err := w.Frame(f); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := s.Store().PutBlob(t.Context(), as, bytes.NewReader(blob.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	p := w.Prefix()
	return messages.Import{ID: "i-" + as.Key, Source: "far/test/ada", Frames: stored, Last: p.Last, Digest: p.Digest, File: "f"}
}

// An imported agent continues behind the events of another installation and calls its tools. So it does
// when it is activated again, with snapshots and without.
func TestImport(t *testing.T) { // A83
	for _, every := range []int{1, -1} {
		far := actorstest.New(t, nil)
		f := new(tooled)
		cfg := f.config()
		cfg.SnapshotEvery = every
		node := far.Start(cfg)
		node.Must(ada, say("u1", `{"n":1}`))
		far.Until(ada, "turn.completed")
		history := wholeLog(t, far.Store(), ada)
		node.Stop()

		s := actorstest.New(t, nil)
		node = s.Start(cfg)
		c := importOf(t, s, zoe, far.Frames(ada))
		answer := node.Must(zoe, c)
		if want := c.Last + 1; answer.N != want || s.Frames(zoe)[0].First != want {
			t.Errorf("its own log begins with event %d, want %d", answer.N, want)
		}
		if got := wholeLog(t, s.Store(), zoe); got != history {
			t.Errorf("got the history %s, want %s", got, history)
		}
		if again := node.Do(zoe, c); !again.Duplicate || again.Err != nil || len(s.Frames(zoe)) != 1 {
			t.Errorf("imported again: got %+v", again)
		}
		node.Must(zoe, say("u1", `{"n":2}`)) // whose id another agent had
		s.Until(zoe, "turn.completed")
		node.Stop()
		node = s.Start(cfg)
		node.Must(zoe, say("u2", `{"n":3}`))
		s.Until(zoe, "turn.completed", 2)
		want := history + `, {"n":2}, , , got paid 2, call 2, {"n":3}, , , got paid 3, call 3`
		if got := wholeLog(t, s.Store(), zoe); got != want || !strings.HasPrefix(f.calls[2], zoe.Full()) {
			t.Errorf("got the history %s with keys %q, want %s", got, f.calls, want)
		}
		node.Must(zoe, messages.Clear{ID: "c1"})
		if got := wholeLog(t, s.Store(), zoe); got != "" {
			t.Errorf("a cleared agent has the history %s", got)
		}
		node.Stop()
	}
}

// What ran and waited where the agent was exported is not done again, and a person decides about it.
func TestImportInsideATurn(t *testing.T) { // A83
	f := &tooled{gate: scripted.NewGate()}
	far := actorstest.New(t, nil)
	node := far.Start(f.config())
	node.Must(ada, say("u1", `{"n":1}`))
	far.Until(ada, "tool.started")
	node.Must(ada, say("u2", `{"n":2}`))
	frames := far.Frames(ada)
	node.Crash()
	f.gate.Release()

	s := actorstest.New(t, nil)
	node = s.Start(f.config())
	node.Must(zoe, importOf(t, s, zoe, frames))
	paused := actorstest.Of[messages.TurnPaused](s.Until(zoe, "turn.paused"))
	dropped := actorstest.Of[messages.InputDropped](s.Events(zoe))
	if paused[0].Reason != projections.PausedImport || len(dropped) != 1 || dropped[0].Input != "u2" {
		t.Errorf("got pause %+v and dropped inputs %+v", paused[0], dropped)
	}
	calls := len(f.calls)
	node.Must(zoe, messages.Resume{ID: "r1"})
	s.Until(zoe, "turn.paused", 2)
	if len(f.calls) != calls {
		t.Errorf("the call that ran elsewhere was made again: %q", f.calls)
	}
	node.Must(zoe, messages.Decide{ID: "d1", Call: "c1", Outcome: messages.OutcomeCompleted, Result: "paid there"})
	done := actorstest.Of[messages.TurnCompleted](s.Until(zoe, "turn.completed"))
	if done[0].Output != "got paid there" {
		t.Errorf("got %q", done[0].Output)
	}
	if slices.Contains(s.Types(zoe), "input.accepted") {
		t.Errorf("an input that waited elsewhere has begun here: %v", s.Types(zoe))
	}
}

// With dry no tool is called until tools are used.
func TestImportDry(t *testing.T) { // A83
	f := new(tooled)
	far := actorstest.New(t, nil)
	node := far.Start(f.config())
	node.Must(ada, say("u1", `{"n":1}`))
	far.Until(ada, "turn.completed")
	node.Stop()

	s := actorstest.New(t, nil)
	node = s.Start(f.config())
	for i := range 2 { // an agent here has the address of the exported one, and results
		node.Must(ada, say(fmt.Sprint("u", i), `{"n":1}`))
		s.Until(ada, "turn.completed", i+1)
	}
	c := importOf(t, s, zoe, far.Frames(ada))
	c.Dry, c.Source = true, ada.Full()
	node.Must(zoe, c)
	node.Must(zoe, say("u2", `{"n":1}`))
	s.Until(zoe, "turn.paused")
	if unknown := actorstest.Of[messages.ToolUnknown](s.Events(zoe)); !strings.Contains(unknown[0].Reason, "an imported agent has no recorded results") {
		t.Errorf("got %+v", unknown[0])
	}
	if len(f.calls) != 3 {
		t.Errorf("a dry agent has called a tool: %q", f.calls)
	}
	node.Must(zoe, messages.UseTools{ID: "t1"})
	node.Must(zoe, messages.Decide{ID: "d1", Call: "c1", Outcome: messages.OutcomeRetry})
	s.Until(zoe, "turn.completed")
	if len(f.calls) != 4 || !strings.HasPrefix(f.calls[3], zoe.Full()) {
		t.Errorf("got the calls %q", f.calls)
	}
}

// An import that cannot be is refused, and nothing is recorded.
func TestImportRefused(t *testing.T) { // A83
	s := actorstest.New(t, nil)
	node := s.Start(new(tooled).config())
	node.Must(ada, say("u1", `{"n":1}`))
	s.Until(ada, "turn.completed")
	frames := s.Frames(ada)
	good := importOf(t, s, zoe, frames)
	ended := append(slices.Clone(frames), &messages.Frame{ID: "end", First: good.Last + 1, Events: []messages.Event{messages.AgentDeleted{}}})
	late := []*messages.Frame{{ID: "late", First: 7, Events: []messages.Event{messages.AgentForked{Parent: ada.Full(), At: 6}}}}
	for name, c := range map[string]struct {
		change func(*messages.Import)
		code   messages.Code
		want   string
	}{
		"missing":    {func(c *messages.Import) { c.Frames.SHA256 = messages.DigestOf([]byte("none")) }, messages.Damaged, "cannot be imported"},
		"shorter":    {func(c *messages.Import) { c.Last++ }, messages.Damaged, "does not end"},
		"another":    {func(c *messages.Import) { c.Digest = "other" }, messages.Damaged, "does not end"},
		"another's":  {func(c *messages.Import) { c.Frames = importOf(t, s, zoe, nil).Frames }, messages.Damaged, "does not end"},
		"deleted":    {func(c *messages.Import) { *c = importOf(t, s, zoe, ended) }, messages.Conflict, "was deleted when it was exported"},
		"late":       {func(c *messages.Import) { *c = importOf(t, s, zoe, late) }, messages.Damaged, "begins with event 7"},
		"no model":   {func(c *messages.Import) { c.Set.Model = "none/m" }, messages.BadInput, "no provider is named"},
		"one's name": {func(c *messages.Import) { c.Frames = importOf(t, s, actorstest.Agent("test", "yan"), frames).Frames }, messages.Damaged, ""},
	} {
		bad := good
		c.change(&bad)
		bad.ID = name
		answer := node.Do(zoe, bad)
		if wantCode(t, answer, c.code); answer.Err != nil && !strings.Contains(answer.Err.Message, c.want) {
			t.Errorf("%s: got %v, want %q", name, answer.Err, c.want)
		}
	}
	if head, err := s.Store().Head(t.Context(), zoe); err != nil || head != (eventlog.Position{}) {
		t.Errorf("a refused import has left %+v, %v", head, err)
	}
	exists := importOf(t, s, ada, frames)
	wantCode(t, node.Do(ada, exists), messages.Conflict)
	node.Must(zoe, good) // what was refused before does no harm
}
