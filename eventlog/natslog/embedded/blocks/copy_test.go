package blocks_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/blocks"
)

// emptyWorld returns a folder in which a server has made the stream that Copy fills.
func emptyWorld(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	w := newWorld(t, dir)
	w.stream(jetstream.StreamConfig{Name: "log"})
	w.fill("log", 3)
	w.stop()
	w.nc = nil
	return dir
}

// TestCopy holds that a server on a copy returns every good message, no bad one, and
// continues from the sequence that the stream had reached.
func TestCopy(t *testing.T) {
	b, empty := newBench(t), emptyWorld(t)
	all := func(blocks.Record) bool { return true }
	for _, h := range harms(b) {
		t.Run(h.name, func(t *testing.T) {
			c := b.moved(t)
			h.do(c)
			c.copied(empty, all)
		})
	}
	for name, keep := range map[string]func(blocks.Record) bool{
		"nothing kept":    func(blocks.Record) bool { return false },
		"every third":     func(r blocks.Record) bool { return r.Seq%3 == 0 },
		"the middle left": func(r blocks.Record) bool { return r.Seq < 20 || r.Seq > 140 },
		"the ends left":   func(r blocks.Record) bool { return r.Seq > 20 && r.Seq < 140 },
	} {
		t.Run(name, func(t *testing.T) { b.moved(t).copied(empty, keep) })
	}
}

// moved returns the bench in a folder of its own.
func (b *bench) moved(t *testing.T) *bench {
	t.Helper()
	c := *b
	c.t, c.dir = t, t.TempDir()
	copyTree(t, b.dir, c.dir)
	c.files, c.bytes = nil, make(map[string][]byte)
	for _, path := range b.files {
		moved := filepath.Join(filepath.Dir(c.path(1)), filepath.Base(path))
		c.files, c.bytes[moved], c.newest = append(c.files, moved), b.bytes[path], moved
	}
	return &c
}

func (b *bench) copied(empty string, keep func(blocks.Record) bool) {
	b.t.Helper()
	o := blocks.Options{Mark: b.last, Check: check}
	before := verify(b.t, b.dir, "log", o)
	want := before.messages
	for seq := range want {
		if !keep(blocks.Record{Seq: seq}) {
			delete(want, seq)
		}
	}
	to := b.t.TempDir()
	copyTree(b.t, empty, to)
	n, err := blocks.Copy(b.t.Context(), stream(b.t, b.dir, "log"), stream(b.t, to, "log"), o, keep)
	if err != nil || n != uint64(len(want)) {
		b.t.Errorf("copied %d messages, %v; want %d", n, err, len(want))
	}
	after := verify(b.t, to, "log", o)
	if len(after.Damage) > 0 || after.Torn != nil || after.Last != b.last {
		b.t.Errorf("the copy: %+v", after.Report)
	}
	same(b.t, "copied", after.messages, want)
	w := newWorld(b.t, to)
	served, last := w.served("log")
	same(b.t, "served", served, want)
	if last != b.last {
		b.t.Errorf("the server's last sequence is %d, want %d", last, b.last)
	}
	w.fill("log", 1)
	if served, _ = w.served("log"); len(served) != len(want)+1 || served[b.last+1].subject == "" {
		b.t.Errorf("the next message is not number %d", b.last+1)
	}
}

// TestCopySettings holds that settings are copied if they can be trusted, for a server that
// stands alone, and that nothing is written to the original.
func TestCopySettings(t *testing.T) {
	b, empty := newBench(t), emptyWorld(t)
	s := stream(t, b.dir, "log")
	meta := filepath.Join(s.Dir, "meta.inf")
	sound, err := os.ReadFile(meta)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		meta []byte
		want string
	}{
		{"three copies", reset(t, sound, map[string]any{"num_replicas": 3, "description": "of theirs"}), "of theirs"},
		{"one copy", reset(t, sound, map[string]any{"description": "of theirs"}), "of theirs"},
		{"a damaged one", bytes.Replace(sound, []byte("limits"), []byte("limitz"), 1), ""},
		{"none", nil, ""},
	} {
		c2 := b.moved(t)
		from := stream(t, c2.dir, "log")
		switch path := filepath.Join(from.Dir, "meta.inf"); {
		case c.meta == nil:
			c2.remove(path)
		case c.want == "":
			c2.write(path, c.meta)
		default:
			c2.write(path, c.meta)
			c2.write(filepath.Join(from.Dir, "meta.sum"), metaSum("log", c.meta))
		}
		to := t.TempDir()
		copyTree(t, empty, to)
		if _, err := blocks.Copy(t.Context(), from, stream(t, to, "log"), blocks.Options{}, func(blocks.Record) bool { return true }); err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, to)
		got, err := w.js.Stream(w.ctx(), "log")
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		info := got.CachedInfo()
		if info.Config.Description != c.want || info.Config.Replicas != 1 || info.State.Msgs != 150 {
			t.Errorf("%s: %+v, %d messages", c.name, info.Config, info.State.Msgs)
		}
	}
	if after, err := os.ReadFile(meta); err != nil || !bytes.Equal(after, sound) {
		t.Errorf("the original was written to: %v", err)
	}
}

// reset returns settings with some of them changed.
func reset(t *testing.T, meta []byte, change map[string]any) []byte {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(meta, &fields); err != nil {
		t.Fatal(err)
	}
	maps.Copy(fields, change)
	out, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
