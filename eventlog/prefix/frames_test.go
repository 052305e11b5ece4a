package prefix_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/eventlog/prefix"
	"github.com/reprise-dev/reprise/messages"
)

// written returns frames of the given sizes as agent's prefix, numbered from first on.
func written(t *testing.T, agent messages.AgentID, first messages.EventNumber, sizes ...int) ([]byte, messages.Prefix) {
	t.Helper()
	var blob bytes.Buffer
	w := prefix.NewWriter(agent, &blob)
	for i, size := range sizes {
		f := &messages.Frame{ID: messages.FrameID(fmt.Sprint("f", i)), Epoch: 9, First: first}
		for range size {
			f.Events = append(f.Events, messages.StatePatched{Reason: fmt.Sprintf("old %d", first)})
			first++
		}
		if err := w.Frame(f); err != nil {
			t.Fatal(err)
		}
	}
	return blob.Bytes(), w.Prefix()
}

// begin stores bytes as the prefix of an agent, and begins its log behind that.
func (w *world) begin(a messages.AgentID, blob []byte, p messages.Prefix) eventlog.Position {
	w.t.Helper()
	stored, err := w.joined.PutBlob(ctx, a, bytes.NewReader(blob))
	if err != nil {
		w.t.Fatal(err)
	}
	return w.append(a, eventlog.Position{Last: p.Last}, messages.AgentImported{Agent: a.Full(), Frames: &stored, Last: p.Last, Digest: p.Digest})
}

// An agent with a prefix of its own has it in front of what it did, and so have its forks.
func TestOwnPrefix(t *testing.T) { // A83
	keys, err := encrypted.Open(ctx, &encrypted.Memory{}, encrypted.Key{1})
	if err != nil {
		t.Fatal(err)
	}
	inner := memlog.New()
	for name, store := range map[string]eventlog.Store{"clear": memlog.NewStore(), "encrypted": encrypted.New(inner.Store(), inner, keys).Store()} {
		t.Run(name, func(t *testing.T) {
			w := &world{t, store, prefix.New(store)}
			blob, p := written(t, a, 1, 2, 3, 1)
			w.grow(a, w.begin(a, blob, p), 2)
			all := w.want(a, eventlog.Range{}, "old 1, old 2, old 3, old 4, old 5, old 6, fork, a 8, a 9")
			w.want(a, eventlog.From(4), "old 3, old 4, old 5, old 6, fork, a 8, a 9")
			w.want(a, eventlog.From(6), "old 6, fork, a 8, a 9")
			w.want(a, eventlog.From(7), "fork, a 8, a 9")
			w.want(a, eventlog.Behind(all[0].Position()), "old 3, old 4, old 5, old 6, fork, a 8, a 9")
			w.want(a, eventlog.Behind(all[3].Position()), "a 8, a 9")
			for _, rec := range all[:3] {
				if rec.Agent != a || rec.Seq != 0 || rec.Frame.Epoch != 0 {
					t.Errorf("frame %d: agent %s, sequence %d, epoch %d", rec.Frame.First, rec.Agent, rec.Seq, rec.Frame.Epoch)
				}
			}
			w.grow(b, w.fork(b, a, 5), 1)
			w.want(b, eventlog.Range{}, "old 1, old 2, old 3, old 4, old 5, fork, b 7")
			w.grow(c, w.fork(c, a, 8), 1)
			w.want(c, eventlog.From(6), "old 6, fork, a 8, fork, c 10")
			if _, err := w.joined.Blob(ctx, a, messages.Blob{SHA256: messages.DigestOf([]byte("none")), Size: 4}); messages.AsError(err).Code != messages.NotFound {
				t.Errorf("a blob that is not stored: got %v", err)
			}
		})
	}
}

// A prefix of an agent that was created again begins with the tombstone before. Another one that begins
// with a later event is damage: a fork of the agent could not read it.
func TestOwnPrefixLater(t *testing.T) {
	w := newWorld(t)
	var blob bytes.Buffer
	to := prefix.NewWriter(a, &blob)
	for i, ev := range []messages.Event{messages.AgentDeleted{}, messages.StatePatched{Reason: "old 9"}, messages.StatePatched{Reason: "old 10"}} {
		if err := to.Frame(&messages.Frame{ID: messages.FrameID(fmt.Sprint("f", i)), First: messages.EventNumber(8 + i), Events: []messages.Event{ev}}); err != nil {
			t.Fatal(err)
		}
	}
	w.fork(b, a, w.begin(a, blob.Bytes(), to.Prefix()).Last)
	w.want(a, eventlog.Range{}, "gone, old 9, old 10, fork")
	w.want(a, eventlog.From(10), "old 10, fork")
	w.want(b, eventlog.Range{}, "gone, old 9, old 10, fork, fork")
	w = newWorld(t)
	late, p := written(t, a, 8, 2, 1)
	w.begin(a, late, p)
	if _, _, err := w.read(a, eventlog.Range{}); err == nil || !strings.Contains(err.Error(), "begins with event 8") {
		t.Errorf("got %v", err)
	}
}

// A prefix that is not what was written is damage, and is yielded no further than it was verified.
func TestOwnPrefixDamaged(t *testing.T) {
	blob, p := written(t, a, 1, 2, 3, 1)
	other, _ := written(t, b, 1, 2, 3, 1)
	short, _ := written(t, a, 1, 2, 3)
	longer, _ := written(t, a, 1, 2, 3, 1, 1)
	gap, _ := written(t, a, 4, 2, 1)
	large := bytes.Clone(blob)
	large[8] = 0xff
	spoilt := bytes.Clone(blob)
	spoilt[len(spoilt)/2] ^= 1
	for name, c := range map[string]struct {
		blob []byte
		want string
	}{
		"empty":          {nil, "it does not end with the frame of event 6"},
		"another's":      {other, "another agent's"},
		"short":          {short, "it does not end with the frame of event 6"},
		"long":           {longer, "it does not end with the frame of event 6"},
		"cut in a frame": {blob[:len(blob)-3], "it is cut off"},
		"cut in a head":  {blob[:5], "it is cut off"},
		"large":          {large, "the limit is"},
		"spoilt":         {spoilt, "checksum"},
		"out of order":   {append(bytes.Clone(short), gap...), "events are missing"},
	} {
		w := newWorld(t)
		w.begin(a, c.blob, p)
		for _, from := range []messages.EventNumber{0, 6} {
			var damage *eventlog.DamageError
			texts, _, err := w.read(a, eventlog.From(from))
			if from == 6 && (name == "spoilt" || name == "another's" || name == "out of order") { // what is passed over is not decoded
				continue
			}
			if !errors.As(err, &damage) || damage.Agent != a || !strings.Contains(err.Error(), c.want) || strings.Contains(strings.Join(texts, " "), "fork") {
				t.Errorf("%s from %d: got %q, error %v, want %q", name, from, texts, err, c.want)
			}
		}
	}
	w := newWorld(t)
	w.append(a, eventlog.Position{Last: p.Last}, messages.AgentImported{Frames: &messages.Blob{SHA256: messages.DigestOf(blob), Size: int64(len(blob))}, Last: p.Last, Digest: p.Digest})
	var damage *eventlog.DamageError
	if _, _, err := w.read(a, eventlog.Range{}); !errors.As(err, &damage) || !strings.Contains(err.Error(), "its events up to 6 are in blob") {
		t.Errorf("a blob that is not stored: got %v", err)
	}
}

// A frame that does not follow is not written, and a read that is cancelled is no damage.
func TestOwnPrefixRefused(t *testing.T) {
	w := prefix.NewWriter(a, &bytes.Buffer{})
	f := &messages.Frame{ID: "f1", First: 3, Events: []messages.Event{messages.AgentCleared{}}}
	if err := w.Frame(f); err != nil {
		t.Fatal(err)
	}
	if err := w.Frame(f); err == nil || !strings.Contains(err.Error(), "begins with event 3 behind event 3") {
		t.Errorf("got %v", err)
	}
	for _, why := range []error{eventlog.ErrUnavailable, errors.New("a status of the server")} {
		for _, begins := range []bool{false, true} {
			for _, err := range prefix.Frames(ctx, away{why: why, begins: begins}, a, messages.Prefix{}, 0) {
				if damage := new(eventlog.DamageError); errors.As(err, &damage) || !errors.Is(err, why) {
					t.Errorf("got %v, want %v alone", err, why)
				}
			}
		}
	}
}

// away is a store that cannot be reached; if begins is set, from when a blob has been opened.
type away struct {
	eventlog.Blobs
	why    error
	begins bool
}

func (s away) Blob(context.Context, messages.AgentID, messages.Blob) (io.ReadCloser, error) {
	if s.begins {
		return io.NopCloser(iotest.ErrReader(s.why)), nil
	}
	return nil, s.why
}
