package index

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// forks appends the log of a fork of an agent with the events of pastOf: what a turn at the fork has
// left, a turn of its own, the copy of its prefix, and another turn. It returns the message with the copy.
func (w *logWriter) forks(a messages.AgentID) *Message {
	w.frames[a] = []*messages.Frame{{First: 6, Events: []messages.Event{nil}}} // not its own
	own := func(events ...messages.Event) {
		w.append(a, events...)
		w.frames[a][len(w.frames[a])-1].Epoch = 1
	}
	turn := func(turn messages.TurnID, call messages.CallID) {
		own(messages.InputAccepted{Input: string(turn), Content: messages.TextContent("xyzzy at home")},
			messages.ModelRequested{Turn: turn, Step: 1, Attempt: 1, Call: "m" + call, Model: "demo/a"},
			messages.ModelCompleted{Turn: turn, Step: 1, Call: "m" + call, Usage: messages.Usage{Input: 10}},
			messages.ToolRequested{Turn: turn, Call: call, Tool: "refund", Arguments: `{"order":7}`},
			messages.ToolCompleted{Turn: turn, Call: call})
	}
	own(messages.AgentForked{Agent: a.Full(), Parent: agentID(2).Full(), At: 6}, messages.ToolUnknown{Turn: "t1", Call: "call_7", Reason: "it ran in the parent"})
	own(messages.ToolCompleted{Turn: "t1", Call: "call_7", Output: "decided"})
	w.frames[a] = w.frames[a][1:]
	turn("t2", "call_8")
	own(messages.ForkDetached{Last: 6})
	shard := &w.shards[int(a.Partition())%len(w.shards)]
	at, frames := len(*shard)-1, slices.Clone(w.frames[a])
	turn("t3", "call_9")
	m := &(*shard)[at]
	m.Before = func(f *messages.Frame) iter.Seq2[*messages.Frame, error] {
		past := []*messages.Frame{pastOf()[0], {First: 5, Time: logStart, Events: pastOf()[1].Events[:1]}, {First: 6, Time: logStart, Events: []messages.Event{messages.InputAccepted{Input: "input-8", Content: messages.TextContent("xyzzy again")}}}}
		return framesAnd(append(past, frames[:slices.Index(frames, f)]...), nil)
	}
	return m
}

// A fork that has copied the events of its parent has them listed and found as its parent's, whether the
// rows of its own were written before or not. What the parent used is not counted. A deletion leaves nothing.
func TestDetachedForks(t *testing.T) { // A81
	for _, size := range []int{1, 3, 100} {
		w, a, path := newLogWriter(3), agentID(0), file(t)
		s := open(t, path)
		w.forks(a)
		w.apply(t, s, size)
		var e projections.Effects
		past := w.shards[int(a.Partition())%len(w.shards)]
		for f, err := range past[len(past)-2].Before(w.frames[a][len(w.frames[a])-2]) {
			if err != nil {
				t.Fatal(err)
			}
			projections.Fold(f, 0, &e)
		}
		for _, f := range w.frames[a][len(w.frames[a])-2:] {
			projections.Fold(f, 0, &e)
		}
		want := e.List(a)
		projections.MarkRepeats(want)
		if len(want) != 3 || !want[0].BeforeFork || want[0].N != 4 || want[0].Output != "decided" || want[1].BeforeFork || want[1].Repeats != 4 {
			t.Fatalf("got %+v", want)
		}
		h, err := s.Indexed(t.Context(), a)
		if err != nil || len(h.Effects) != len(want) || h.Used.Calls != 2 || h.Used.Usage.Input != 20 {
			t.Errorf("got %s, %+v, error %v, want %d calls, and 2 of a model", h.Effects, h.Used, err, len(want))
		}
		if got, want := calls(t, s, "default"), jsonLines(t, want); !slices.Equal(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
		var words []string
		for _, f := range found(t, s.Find(t.Context(), FindQuery{Tenant: "default", Search: search(t, "xyzzy")})) {
			words = append(words, fmt.Sprint(f.N, " ", f.BeforeFork))
		}
		if want := []string{"16 false", "10 false", "6 true", "1 true"}; !slices.Equal(words, want) {
			t.Errorf("got %v, want %v", words, want)
		}
		for _, id := range []string{"call_7", "far/call_7", "input-7"} {
			if got := found(t, s.Find(t.Context(), FindQuery{Tenant: "default", Search: search(t, id)})); len(got) != 1 || !got[0].BeforeFork {
				t.Errorf("%s: got %+v, want it of the parent", id, got)
			}
		}
		w.append(a, messages.AgentDeleted{})
		w.apply(t, s, size)
		if name := fileContaining(t, path, "xyzzy"); name != "" || calls(t, s, "default") != nil {
			t.Errorf("file with what was deleted: got %q, want none", name)
		}
	}
}

// Words that an encrypted fork has copied are in no file.
func TestDetachedAndEncrypted(t *testing.T) { // A81
	w, a, path := newLogWriter(3), agentID(0), file(t)
	s := open(t, path)
	w.forks(a)
	for _, f := range w.frames[a] {
		f.KeyID = "k1"
	}
	w.apply(t, s, 1)
	if name := fileContaining(t, path, "xyzzy"); name != "" || len(calls(t, s, "default")) != 3 {
		t.Errorf("file with encrypted words: got %q, want none, and the calls", name)
	}
}

// Of a copy that cannot be read now the index waits. One that can never be read leaves what the index had
// of the fork.
func TestCopiesThatCannotBeRead(t *testing.T) { // A30, A87
	w, a, s := newLogWriter(3), agentID(0), open(t, file(t))
	m := w.forks(a)
	m.Before = func(*messages.Frame) iter.Seq2[*messages.Frame, error] {
		return framesAnd(pastOf()[:1], fmt.Errorf("%w: no response", ErrLater))
	}
	shard, b := int(a.Partition())%len(w.shards), s.Batch()
	var err error
	for _, m := range w.shards[shard] {
		if err = b.Add(t.Context(), shard, m); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrLater) {
		t.Fatalf("got error %v, want %v", err, ErrLater)
	}
	if err := b.Commit(t.Context()); err != nil || len(calls(t, s, "default")) != 2 {
		t.Errorf("got error %v and %s, want the calls of the fork's own", err, calls(t, s, "default"))
	}
	m.Before = func(*messages.Frame) iter.Seq2[*messages.Frame, error] {
		return framesAnd(pastOf()[:1], os.ErrNotExist)
	}
	w.apply(t, s, 9)
	if got := calls(t, s, "default"); len(got) != 3 || s.Unreadable("default", nil) != 1 {
		t.Errorf("got %s, %d unreadable, want those of the fork's own", got, s.Unreadable("default", nil))
	}
}
