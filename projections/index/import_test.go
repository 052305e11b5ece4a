package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// imports appends the first frame of an imported agent, behind frames that are not in the log.
func (w *logWriter) imports(a messages.AgentID, past iter.Seq2[*messages.Frame, error], last messages.EventNumber) *Message {
	f := &messages.Frame{First: last + 1, Events: []messages.Event{messages.AgentImported{Agent: a.Full(), Last: last}}, Time: logStart}
	w.append(a, f.Events...)
	w.frames[a] = []*messages.Frame{f}
	shard := w.shards[int(a.Partition())%len(w.shards)]
	m := &shard[len(shard)-1]
	m.Frame = func() (*messages.Frame, error) { return f, nil }
	m.Before = func(*messages.Frame) iter.Seq2[*messages.Frame, error] { return past }
	return m
}

// pastOf is what an imported agent did before: two frames, the first one numbered from 1.
func pastOf() []*messages.Frame {
	started := messages.ToolStarted{Turn: "t1", Call: "call_7", Tool: "refund", Arguments: `{"order":7}`, Attempt: 1, Key: "far/call_7"}
	return []*messages.Frame{
		{First: 1, Time: logStart, Events: []messages.Event{
			messages.InputAccepted{Input: "input-7", Content: messages.TextContent("xyzzy from afar")},
			messages.ModelRequested{Turn: "t1", Step: 1, Attempt: 1, Call: "m1", Model: "demo/a"},
			messages.ModelCompleted{Turn: "t1", Step: 1, Call: "m1", Usage: messages.Usage{Input: 10}},
			messages.ToolRequested{Turn: "t1", Call: "call_7", Tool: "refund", Arguments: `{"order":7}`},
		}},
		{First: 5, Time: logStart, Events: []messages.Event{started, messages.ToolCompleted{Turn: "t1", Call: "call_7", Output: "xyzzy paid"}}},
	}
}

// framesAnd yields frames and then an error, unless it is nil.
func framesAnd(frames []*messages.Frame, err error) iter.Seq2[*messages.Frame, error] {
	return func(yield func(*messages.Frame, error) bool) {
		for _, f := range frames {
			if !yield(f, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// calls returns the effects of a tenant.
func calls(t *testing.T, s *Store, tenant string) []string {
	t.Helper()
	return lines(t, 0, func(string, int) func(func(Row, error) bool) { return s.Effects(t.Context(), Query{Tenant: tenant}) })
}

// jsonLines returns calls as they are listed.
func jsonLines(t *testing.T, list []projections.Effect) (lines []string) {
	t.Helper()
	for _, e := range list {
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(b))
	}
	return lines
}

// What an imported agent said and did before is found and listed as its own, and a later call repeats
// it. What it used then was not used here. Its deletion leaves nothing of that.
func TestImportedAgents(t *testing.T) { // A83, A108
	w, a, path := newLogWriter(3), agentID(0), file(t)
	s := open(t, path)
	w.imports(a, framesAnd(pastOf(), nil), 6)
	w.append(a, messages.ToolRequested{Turn: "t2", Call: "call_8", Tool: "refund", Arguments: `{"order":7}`})
	w.apply(t, s, 1)
	if got, want := events(t, s, "default", "xyzzy"), []messages.EventNumber{6, 1}; !slices.Equal(got, want) {
		t.Errorf("a word: got events %v, want %v", got, want)
	}
	for _, id := range []string{"input-7", "call_7", "far/call_7"} {
		if got := found(t, s.Find(t.Context(), FindQuery{Tenant: "default", Search: search(t, id)})); len(got) != 1 || got[0].Agent != a {
			t.Errorf("%s: got %+v, want it of %s", id, got, a)
		}
	}
	var e projections.Effects
	for _, f := range append(pastOf(), w.frames[a]...) {
		projections.Fold(f, 0, &e)
	}
	want := e.List(a)
	projections.MarkRepeats(want)
	if len(want) != 2 || !want[0].Imported || want[1].Imported || want[1].Repeats != 4 {
		t.Errorf("got %+v, want an imported call and one that repeats it", want)
	}
	if got, want := calls(t, s, "default"), jsonLines(t, want); !slices.Equal(got, want) {
		t.Errorf("got %s, want %s as of the events", got, want)
	}
	for row, err := range s.Usage(t.Context(), UsageQuery{Tenant: "default", By: "model"}) {
		if err != nil || row.Line.(projections.UsageSum).Calls != 0 {
			t.Errorf("usage: got %+v, error %v, want no calls", row.Line, err)
		}
	}
	w.append(a, messages.AgentDeleted{})
	w.apply(t, s, 1)
	if name := fileContaining(t, path, "xyzzy"); name != "" || calls(t, s, "default") != nil {
		t.Errorf("file with what was deleted: got %q, want none", name)
	}
}

// Words of an imported agent that is encrypted are in no file.
func TestImportedAndEncrypted(t *testing.T) { // A108
	w, a, path := newLogWriter(3), agentID(0), file(t)
	s := open(t, path)
	w.imports(a, framesAnd(pastOf(), nil), 6)
	w.frames[a][0].KeyID = "k1"
	w.apply(t, s, 1)
	if name := fileContaining(t, path, "from afar"); name != "" || len(calls(t, s, "default")) != 1 || len(events(t, s, "default", "call_7")) != 1 {
		t.Errorf("file with encrypted words: got %q, want none, and the call", name)
	}
}

// An import that cannot be read now is added again; of one that can never be read, or is damaged behind
// some frames, the index has what follows, and counts it.
func TestImportsThatCannotBeRead(t *testing.T) { // A30, A87
	w, a, s := newLogWriter(3), agentID(0), open(t, file(t))
	m := w.imports(a, framesAnd(pastOf()[:1], fmt.Errorf("%w: no response", ErrLater)), 6)
	shard, b := int(a.Partition())%len(w.shards), s.Batch()
	if err := b.Add(t.Context(), shard, *m); !errors.Is(err, ErrLater) {
		t.Fatalf("got error %v, want %v", err, ErrLater)
	}
	if err := b.Commit(t.Context()); err != nil || calls(t, s, "default") != nil {
		t.Errorf("got error %v and %s, want no call", err, calls(t, s, "default"))
	}
	m.Before = func(*messages.Frame) iter.Seq2[*messages.Frame, error] {
		return framesAnd(pastOf()[:1], os.ErrNotExist)
	}
	w.append(a, messages.ToolRequested{Turn: "t2", Call: "call_8", Tool: "refund"})
	w.apply(t, s, 9)
	if got := calls(t, s, "default"); len(got) != 1 || s.Unreadable("default", nil) != 1 || events(t, s, "default", "xyzzy") != nil {
		t.Errorf("got %s, %d unreadable, want the call after the import", got, s.Unreadable("default", nil))
	}
}

// An imported agent numbers its events as it likes.
func TestEventsWithHighNumbers(t *testing.T) {
	w, s := newLogWriter(3), open(t, file(t))
	w.say(agentID(0), "first")
	w.apply(t, s, 1)
	w.imports(agentID(2), framesAnd(nil, nil), 1<<33)
	w.say(agentID(2), "xyzzy")
	w.apply(t, s, 1)
	if got := events(t, s, "default", "xyzzy"); !slices.Equal(got, []messages.EventNumber{1<<33 + 2}) {
		t.Errorf("got events %v, want %d", got, 1<<33+2)
	}
}
