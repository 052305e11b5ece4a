package prefix_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/eventlog/prefix"
	"github.com/reprise-dev/reprise/messages"
)

var ctx = context.Background()

// TestLog runs the suite of every log: one without forks is as it was.
func TestLog(t *testing.T) {
	logtest.Run(t, func(t *testing.T) logtest.Opened {
		inner := memlog.New()
		return logtest.Opened{
			Store: prefix.New(inner.Store()), Feed: inner,
			Inject: func(_ *testing.T, e eventlog.Entry, foreign bool) { inner.Inject(e, foreign) },
		}
	})
}

// world is a store and the same one with prefixes.
type world struct {
	t             *testing.T
	inner, joined eventlog.Store
}

func newWorld(t *testing.T) *world {
	inner := memlog.NewStore()
	return &world{t, inner, prefix.New(inner)}
}

// grow appends frames of the given sizes to an agent's log, and returns its tail.
func (w *world) grow(a messages.AgentID, tail eventlog.Position, sizes ...int) eventlog.Position {
	w.t.Helper()
	for _, size := range sizes {
		events := make([]messages.Event, size)
		for i := range events {
			events[i] = messages.StatePatched{Reason: fmt.Sprintf("%s %d", a.Key, int(tail.Last)+1+i)}
		}
		tail = w.append(a, tail, events...)
	}
	return tail
}

func (w *world) append(a messages.AgentID, tail eventlog.Position, events ...messages.Event) eventlog.Position {
	w.t.Helper()
	tail, err := w.joined.Append(ctx, logtest.Entry(w.t, a, tail, events...))
	if err != nil {
		w.t.Fatal(err)
	}
	return tail
}

// fork begins a fork of a parent at an event.
func (w *world) fork(fork, parent messages.AgentID, at messages.EventNumber) eventlog.Position {
	w.t.Helper()
	rec, err := eventlog.First(w.joined.Read(ctx, parent, eventlog.From(at)))
	if err != nil || rec.Frame == nil {
		w.t.Fatalf("event %d of %s: %v", at, parent, err)
	}
	return w.append(fork, eventlog.Position{Last: at}, messages.AgentForked{Agent: fork.Full(), Parent: parent.Full(), At: at, Digest: rec.Digest})
}

// read returns the reasons of the events of a range, with that of a fork's first as "fork".
func (w *world) read(a messages.AgentID, r eventlog.Range) (texts []string, all []eventlog.Recorded, err error) {
	for rec, err := range w.joined.Read(ctx, a, r) {
		if err != nil {
			return texts, all, err
		}
		if len(all) > 0 && rec.Frame.First != all[len(all)-1].Frame.Last()+1 {
			w.t.Errorf("%s: event %d comes behind event %d", a, rec.Frame.First, all[len(all)-1].Frame.Last())
		}
		all = append(all, rec)
		for _, ev := range rec.Frame.Events {
			text := "fork"
			switch ev := ev.(type) {
			case messages.StatePatched:
				text = ev.Reason
			case messages.AgentDeleted:
				text = "gone"
			}
			texts = append(texts, text)
		}
	}
	return texts, all, nil
}

func (w *world) want(a messages.AgentID, r eventlog.Range, want string) []eventlog.Recorded {
	w.t.Helper()
	texts, all, err := w.read(a, r)
	if got := strings.Join(texts, ", "); err != nil || got != want {
		w.t.Errorf("%s from event %d: got %s, %v; want %s", a, r.Event(), got, err, want)
	}
	return all
}

var a, b, c = logtest.Agent("a"), logtest.Agent("b"), logtest.Agent("c")

// A fork has its parent's events up to the one at which it was forked, also inside of a frame, then
// its own; neither has what the other did later. A81
func TestForkReadsItsPrefix(t *testing.T) {
	w := newWorld(t)
	parent := w.grow(a, eventlog.Position{}, 2, 3)
	tail := w.fork(b, a, 4)
	w.grow(a, parent, 1)
	w.grow(b, tail, 2)
	w.want(a, eventlog.Range{}, "a 1, a 2, a 3, a 4, a 5, a 6")
	all := w.want(b, eventlog.Range{}, "a 1, a 2, a 3, a 4, fork, b 6, b 7")
	w.want(b, eventlog.From(4), "a 3, a 4, fork, b 6, b 7")
	w.want(b, eventlog.From(5), "fork, b 6, b 7")
	w.want(b, eventlog.From(6), "b 6, b 7")
	for _, rec := range all {
		if own := rec.Frame.First > 4; rec.Agent != b || (rec.Seq != 0) != own || (rec.Frame.Epoch != 0) != own {
			t.Errorf("frame %d: agent %s, sequence %d, epoch %d", rec.Frame.First, rec.Agent, rec.Seq, rec.Frame.Epoch)
		}
	}
	// The log is read on from any frame of it.
	w.want(b, eventlog.Behind(all[0].Position()), "a 3, a 4, fork, b 6, b 7")
	w.want(b, eventlog.Behind(all[1].Position()), "fork, b 6, b 7")
	w.want(b, eventlog.Behind(all[2].Position()), "b 6, b 7")
	stored, err := w.inner.Head(ctx, b)
	if err != nil || stored.Last != 7 {
		t.Errorf("the fork ends with event %d, %v", stored.Last, err)
	}
	for rec, err := range w.inner.Read(ctx, b, eventlog.Range{}) {
		if err != nil || rec.Frame.First < 5 {
			t.Errorf("a frame of the prefix is stored for the fork: %+v, %v", rec, err)
		}
	}
}

// A fork of a fork has the events of both.
func TestForkOfAFork(t *testing.T) {
	w := newWorld(t)
	w.grow(a, eventlog.Position{}, 2, 2)
	w.grow(b, w.fork(b, a, 3), 2)
	w.grow(c, w.fork(c, b, 5), 1)
	all := w.want(c, eventlog.Range{}, "a 1, a 2, a 3, fork, b 5, fork, c 7")
	w.want(c, eventlog.Behind(all[1].Position()), "fork, b 5, fork, c 7")
	w.want(c, eventlog.From(3), "a 3, fork, b 5, fork, c 7")
	last, id := w.fork(logtest.Agent("d0"), c, 7), logtest.Agent("d0")
	for i := range messages.MaxPrefixes {
		next := logtest.Agent(fmt.Sprint("d", i+1))
		rec, err := eventlog.First(w.inner.Read(ctx, id, eventlog.From(last.Last)))
		if err != nil {
			t.Fatal(err)
		}
		last = w.append(next, eventlog.Position{Last: last.Last}, messages.AgentForked{Parent: id.Full(), At: last.Last, Digest: rec.Digest})
		id = next
	}
	if _, _, err := w.read(id, eventlog.Range{}); !errors.Is(err, prefix.ErrDeep) {
		t.Errorf("more forks of forks than may be: got %v", err)
	}
}

// What became of a parent shows as damage of its forks, and never as a shorter log.
func TestPrefixGone(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*world)
		want   string
	}{
		"deleted": {func(w *world) {
			head, _ := w.inner.Head(ctx, a)
			tail := w.append(a, head, messages.AgentDeleted{})
			if err := w.inner.Purge(ctx, a, tail.Seq); err != nil {
				w.t.Fatal(err)
			}
		}, "event 1 of it is not stored any more"},
		"another log": {func(w *world) {
			w.append(c, eventlog.Position{Last: 1}, messages.AgentForked{Parent: a.Full(), At: 1, Digest: "other"})
		}, "another one than was forked"},
		"shorter": {func(w *world) {
			w.append(c, eventlog.Position{Last: 9}, messages.AgentForked{Parent: a.Full(), At: 9})
		}, "it ends with event 4"},
		"none": {func(w *world) {
			w.append(c, eventlog.Position{Last: 9}, messages.AgentForked{Parent: logtest.Agent("none").Full(), At: 9})
		}, "it ends with event 0"},
	} {
		w := newWorld(t)
		w.grow(a, eventlog.Position{}, 2, 2)
		w.fork(b, a, 4)
		id := c
		if tc.change(w); name == "deleted" {
			id = b
		}
		var damage *eventlog.DamageError
		if _, _, err := w.read(id, eventlog.Range{}); !errors.As(err, &damage) || damage.Agent != id || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

// An agent has neither events nor payloads of another tenant, whatever its first event names.
func TestPrefixOfAnotherTenant(t *testing.T) {
	w := newWorld(t)
	parent, fork := messages.AgentID{Tenant: "other", Kind: a.Kind, Key: "p"}, messages.AgentID{Tenant: a.Tenant, Kind: a.Kind, Key: "f"}
	stored, err := w.joined.PutBlob(ctx, parent, strings.NewReader("secret"))
	if err != nil {
		t.Fatal(err)
	}
	w.fork(fork, parent, w.grow(parent, eventlog.Position{}, 2).Last)
	var damage *eventlog.DamageError
	if texts, _, err := w.read(fork, eventlog.Range{}); !errors.As(err, &damage) || len(texts) != 0 || !strings.Contains(err.Error(), "of another tenant") {
		t.Errorf("got %q, %v", texts, err)
	}
	if _, err := w.joined.Blob(ctx, fork, stored); messages.AsError(err).Code != messages.NotFound {
		t.Errorf("a payload: got %v", err)
	}
}

// A prefix begins with the tombstone of an earlier life of its agent, as that agent's own log does.
func TestPrefixOfALaterLife(t *testing.T) {
	w := newWorld(t)
	tail := w.append(a, w.grow(a, eventlog.Position{}, 2, 1), messages.AgentDeleted{})
	if err := w.inner.Purge(ctx, a, tail.Seq); err != nil {
		t.Fatal(err)
	}
	w.grow(a, tail, 2, 2)
	w.grow(b, w.fork(b, a, 7), 1)
	w.grow(c, w.fork(c, b, 9), 1)
	w.want(b, eventlog.Range{}, "gone, a 5, a 6, a 7, fork, b 9")
	w.want(b, eventlog.From(2), "gone, a 5, a 6, a 7, fork, b 9")
	w.want(b, eventlog.From(7), "a 7, fork, b 9")
	w.want(c, eventlog.Range{}, "gone, a 5, a 6, a 7, fork, b 9, fork, c 11")
}

// A position within a prefix is elsewhere once the fork was deleted.
func TestPositionOfAPrefixElsewhere(t *testing.T) {
	w := newWorld(t)
	w.grow(a, eventlog.Position{}, 2, 2)
	tail := w.fork(b, a, 3)
	all := w.want(b, eventlog.Range{}, "a 1, a 2, a 3, fork")
	tail = w.append(b, tail, messages.AgentDeleted{})
	if err := w.inner.Purge(ctx, b, tail.Seq); err != nil {
		t.Fatal(err)
	}
	w.want(b, eventlog.Range{}, "gone")
	for name, id := range map[string]messages.AgentID{"deleted": b, "no agent": c} {
		if _, _, err := w.read(id, eventlog.Behind(all[0].Position())); !errors.Is(err, eventlog.ErrElsewhere) {
			t.Errorf("%s: got %v, want ErrElsewhere", name, err)
		}
	}
}

// The oldest of as many agents as may be read as one has the payloads of its events, too.
func TestBlobOfTheFirstPrefix(t *testing.T) {
	w := newWorld(t)
	stored, err := w.joined.PutBlob(ctx, a, strings.NewReader("large"))
	if err != nil {
		t.Fatal(err)
	}
	last, parent := w.grow(a, eventlog.Position{}, 1).Last, a
	for i := range messages.MaxPrefixes {
		fork := logtest.Agent(fmt.Sprint("fork", i))
		last, parent = w.fork(fork, parent, last).Last, fork
	}
	r, err := w.joined.Blob(ctx, parent, stored)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	if _, all, err := w.read(parent, eventlog.Range{}); err != nil || len(all) != messages.MaxPrefixes+1 {
		t.Errorf("got %d frames, %v", len(all), err)
	}
}

// Payloads of the prefix are read from the parent, under its key.
func TestBlobOfAPrefix(t *testing.T) {
	keys, err := encrypted.Open(ctx, &encrypted.Memory{}, encrypted.Key{1})
	if err != nil {
		t.Fatal(err)
	}
	inner := memlog.New()
	w := &world{t: t, inner: encrypted.New(inner.Store(), inner, keys).Store()}
	w.joined = prefix.New(w.inner)
	stored, err := w.joined.PutBlob(ctx, a, strings.NewReader("large"))
	if err != nil {
		t.Fatal(err)
	}
	w.grow(a, eventlog.Position{}, 2)
	w.grow(c, w.fork(c, b, w.fork(b, a, 2).Last), 1)
	for _, id := range []messages.AgentID{a, b, c} {
		r, err := w.joined.Blob(ctx, id, stored)
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if text, err := io.ReadAll(r); err != nil || string(text) != "large" {
			t.Errorf("%s: got %q, %v", id, text, err)
		}
	}
	for _, id := range []messages.AgentID{b, logtest.Agent("none")} {
		if _, err := w.joined.Blob(ctx, id, messages.Blob{SHA256: messages.DigestOf([]byte("other")), Size: 5}); messages.AsError(err).Code != messages.NotFound {
			t.Errorf("a blob that none has, of %s: got %v", id, err)
		}
	}
}

// closed is a log that cannot be read now.
type closed struct{ eventlog.Log }

func (closed) Read(context.Context, messages.AgentID, eventlog.Range) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) { yield(eventlog.Recorded{}, eventlog.ErrUnavailable) }
}

// A payload of the prefix is not called missing while it cannot be found out whose prefix that is.
func TestBlobWhileTheLogIsAway(t *testing.T) {
	w := newWorld(t)
	stored, err := w.joined.PutBlob(ctx, a, strings.NewReader("large"))
	if err != nil {
		t.Fatal(err)
	}
	w.fork(b, a, w.grow(a, eventlog.Position{}, 2).Last)
	inner := w.inner
	inner.Log = closed{inner.Log}
	if _, err := prefix.New(inner).Blob(ctx, b, stored); !errors.Is(err, eventlog.ErrUnavailable) {
		t.Errorf("got %v, want that it cannot be read now", err)
	}
}
