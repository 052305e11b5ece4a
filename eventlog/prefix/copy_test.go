package prefix_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/eventlog/prefix"
	"github.com/reprise-dev/reprise/messages"
)

// detach copies what a fork has of its parent up to an event, with the payloads that are named named.
func (w *world) detach(fork messages.AgentID, tail eventlog.Position, at messages.EventNumber, named map[messages.Digest]messages.Blob) eventlog.Position {
	w.t.Helper()
	var copied bytes.Buffer
	to := prefix.NewWriter(fork, &copied)
	for rec, err := range w.joined.Read(ctx, fork, eventlog.Range{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		if rec.Frame.First > at {
			break
		}
		f := *rec.Frame
		f.Events = nil
		for _, ev := range rec.Frame.Events {
			ev, err := messages.ReplaceBlobs(ev, func(b messages.Blob, _ messages.BlobForm) (messages.Blob, error) { return named[b.SHA256], nil })
			if err != nil {
				w.t.Fatal(err)
			}
			f.Events = append(f.Events, ev)
		}
		if err := to.Frame(&f); err != nil {
			w.t.Fatal(err)
		}
	}
	frames, err := w.joined.PutBlob(ctx, fork, bytes.NewReader(copied.Bytes()))
	if err != nil {
		w.t.Fatal(err)
	}
	return w.append(fork, tail, messages.ForkDetached{Frames: &frames, Last: at, Digest: to.Prefix().Digest})
}

// delete ends an agent as its owner does, and begins another life of it.
func (w *world) delete(id messages.AgentID) {
	w.t.Helper()
	head, err := w.inner.Head(ctx, id)
	if err != nil {
		w.t.Fatal(err)
	}
	tail := w.append(id, head, messages.AgentDeleted{})
	if err := errors.Join(w.inner.Purge(ctx, id, tail.Seq), w.inner.RemoveBlobs(ctx, id, eventlog.All)); err != nil {
		w.t.Fatal(err)
	}
	w.grow(id, tail, 3, 3)
}

// A fork that was detached has the events of its parent once that was deleted and created again, and
// so have its forks.
func TestCopy(t *testing.T) { // A81
	w := newWorld(t)
	w.grow(a, eventlog.Position{}, 2, 3)
	tail := w.detach(b, w.grow(b, w.fork(b, a, 4), 2), 4, nil)
	w.grow(c, w.fork(c, b, 6), 1)
	w.grow(b, tail, 1)
	for range 2 { // before and after
		all := w.want(b, eventlog.Range{}, "a 1, a 2, a 3, a 4, fork, b 6, b 7, fork, b 9")
		w.want(b, eventlog.From(4), "a 3, a 4, fork, b 6, b 7, fork, b 9")
		w.want(b, eventlog.Behind(all[2].Position()), "b 6, b 7, fork, b 9")
		w.want(c, eventlog.Range{}, "a 1, a 2, a 3, a 4, fork, b 6, fork, c 8")
		w.want(c, eventlog.From(4), "a 3, a 4, fork, b 6, fork, c 8")
		if a4 := all[1]; a4.Seq != 0 || a4.Frame.Epoch != 0 || a4.Agent != b {
			t.Errorf("got %+v", a4)
		}
		w.delete(a)
	}
	d := messages.AgentID{Tenant: a.Tenant, Kind: a.Kind, Key: "d"}
	w.grow(d, w.fork(d, b, 3), 1)
	w.want(d, eventlog.Range{}, "a 1, a 2, a 3, fork, d 5")
}

// A chain of forks that is too long to be read is read through a copy that one of them has.
func TestCopyInALongChain(t *testing.T) {
	w := newWorld(t)
	last, id := w.grow(a, eventlog.Position{}, 1), a
	for i := range messages.MaxPrefixes + 8 {
		fork := logtest.Agent(fmt.Sprint("d", i))
		at := last.Last
		if last = w.fork(fork, id, at); i == messages.MaxPrefixes-2 {
			last = w.detach(fork, last, at, nil)
		}
		id = fork
	}
	if texts, _, err := w.read(id, eventlog.Range{}); err != nil || len(texts) != messages.MaxPrefixes+10 || texts[0] != "a 1" {
		t.Errorf("got %v, %v", texts, err)
	}
}

// A copy that cannot be found, or that has another agent's key, is damage of the fork.
func TestCopyGone(t *testing.T) {
	w := newWorld(t)
	w.grow(a, eventlog.Position{}, 2)
	w.detach(b, w.fork(b, a, 2), 2, nil)
	w.delete(a)
	if err := w.inner.RemoveBlobs(ctx, b, eventlog.All); err != nil {
		t.Fatal(err)
	}
	var damage *eventlog.DamageError
	if _, _, err := w.read(b, eventlog.Range{}); !errors.As(err, &damage) || damage.Agent != b || !strings.Contains(err.Error(), "its events up to 2 are in blob") {
		t.Errorf("got %v", err)
	}
}

// A payload of the prefix is found under the name that it had with the parent, although the copy is
// encrypted with another key and so has another name.
func TestBlobOfACopy(t *testing.T) {
	keys, err := encrypted.Open(ctx, &encrypted.Memory{}, encrypted.Key{1})
	if err != nil {
		t.Fatal(err)
	}
	inner := memlog.New()
	w := &world{t: t, inner: encrypted.New(inner.Store(), inner, keys).Store()}
	w.joined = prefix.New(w.inner)
	put := func(id messages.AgentID) messages.Blob {
		b, err := w.joined.PutBlob(ctx, id, strings.NewReader("large"))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	was := put(a)
	tail := w.append(a, eventlog.Position{}, messages.ToolCompleted{Call: "c1", Blob: &was})
	tail = w.fork(b, a, tail.Last)
	is := put(b)
	w.detach(b, tail, 1, map[messages.Digest]messages.Blob{was.SHA256: is})
	w.fork(c, b, 2)
	w.delete(a)
	if was.Stored == is.Stored {
		t.Fatal("the two have the same name")
	}
	for _, id := range []messages.AgentID{b, c} {
		for _, named := range []messages.Blob{was, is} {
			r, err := w.joined.Blob(ctx, id, named)
			if err != nil {
				t.Errorf("%s: %v", id, err)
				continue
			}
			if text, err := io.ReadAll(r); err != nil || string(text) != "large" {
				t.Errorf("%s: got %q, %v", id, text, err)
			}
		}
	}
	for _, missing := range []messages.Blob{{SHA256: "other", Stored: "other", Size: 5}, {SHA256: was.SHA256[1:] + "0", Size: 5}} {
		if _, err := w.joined.Blob(ctx, b, missing); messages.AsError(err).Code != messages.NotFound {
			t.Errorf("%+v: got %v", missing, err)
		}
	}
}
