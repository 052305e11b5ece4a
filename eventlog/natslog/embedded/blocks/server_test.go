package blocks_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/blocks"
)

// lives are streams in all the states that a server brings them into.
var lives = map[string]func(w *world){
	"plain":   func(w *world) { w.stream(jetstream.StreamConfig{Name: "plain"}); w.fill("plain", 200) },
	"nothing": func(w *world) { w.stream(jetstream.StreamConfig{Name: "nothing"}) },
	"single":  func(w *world) { w.stream(jetstream.StreamConfig{Name: "single"}); w.fill("single", 1) },
	"latest": func(w *world) {
		w.stream(jetstream.StreamConfig{Name: "latest", MaxMsgsPerSubject: 1})
		w.fill("latest", 300)
	},
	"few": func(w *world) { w.stream(jetstream.StreamConfig{Name: "few", MaxMsgs: 50}); w.fill("few", 200) },
	"KV_bucket": func(w *world) {
		kv, err := w.js.CreateKeyValue(w.ctx(), jetstream.KeyValueConfig{Bucket: "bucket"})
		w.ok(err)
		for n := range 30 {
			key := fmt.Sprint("key", n%13)
			_, err := kv.Put(w.ctx(), key, make([]byte, n))
			w.ok(err)
			if n%7 == 0 {
				w.ok(kv.Delete(w.ctx(), key))
			}
			if n%11 == 0 {
				w.ok(kv.Purge(w.ctx(), key))
			}
		}
	},
	"deleted": func(w *world) {
		s := w.stream(jetstream.StreamConfig{Name: "deleted"})
		w.fill("deleted", 200)
		for seq := uint64(2); seq <= 200; seq += 1 + uint64(w.rand.IntN(9)) {
			w.ok(s.DeleteMsg(w.ctx(), seq))
		}
		w.ok(s.DeleteMsg(w.ctx(), 1))
		w.fill("deleted", 20)
	},
	"erased": func(w *world) {
		s := w.stream(jetstream.StreamConfig{Name: "erased"})
		w.fill("erased", 200)
		for seq := uint64(1); seq <= 200; seq += 1 + uint64(w.rand.IntN(9)) {
			w.ok(s.SecureDeleteMsg(w.ctx(), seq))
		}
		w.ok(s.SecureDeleteMsg(w.ctx(), 200))
	},
	"range": func(w *world) {
		s := w.stream(jetstream.StreamConfig{Name: "range"})
		w.fill("range", 300)
		for seq := uint64(60); seq <= 200; seq++ { // whole blocks among them
			w.ok(s.DeleteMsg(w.ctx(), seq))
		}
	},
	"purged": func(w *world) {
		s := w.stream(jetstream.StreamConfig{Name: "purged"})
		w.fill("purged", 300)
		w.ok(s.Purge(w.ctx(), jetstream.WithPurgeSubject("purged.1*.>"), jetstream.WithPurgeKeep(3)))
		w.ok(s.Purge(w.ctx(), jetstream.WithPurgeSubject("purged.2.>")))
		w.ok(s.Purge(w.ctx(), jetstream.WithPurgeSubject("purged.3.>"), jetstream.WithPurgeSequence(200)))
		w.ok(s.Purge(w.ctx(), jetstream.WithPurgeSequence(70)))
		w.fill("purged", 20)
	},
	"emptied": func(w *world) {
		s := w.stream(jetstream.StreamConfig{Name: "emptied"})
		w.fill("emptied", 100)
		w.ok(s.Purge(w.ctx()))
	},
	"refilled": func(w *world) {
		s := w.stream(jetstream.StreamConfig{Name: "refilled", FirstSeq: 1 << 40})
		w.fill("refilled", 100)
		w.ok(s.Purge(w.ctx()))
		w.fill("refilled", 100)
		w.ok(s.DeleteMsg(w.ctx(), 1<<40+199)) // the last one
	},
}

// TestServer holds that Verify finds no damage in what a server writes, and reports the
// messages that the next server returns, after a kill and after a stop.
func TestServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir())
	for _, name := range slices.Sorted(maps.Keys(lives)) {
		lives[name](w)
	}
	killed := w.kill()
	agree(t, killed, true)
	w.stop()
	agree(t, w.dir, false)

	again := newWorld(t, w.dir)
	for name := range lives {
		if name != "KV_bucket" {
			again.fill(name, 30)
		}
	}
	agree(t, again.kill(), true)
}

// agree compares Verify with a server that is started on a folder after it. rebuild is
// whether the server is to read the blocks.
func agree(t *testing.T, dir string, rebuild bool) {
	t.Helper()
	before := make(map[string]found)
	for name := range lives {
		f := verify(t, dir, name, blocks.Options{})
		intact(t, name, f)
		written := name == "emptied" || name == "KV_bucket" // a purge of all writes index.db, or nothing came after it
		if f.Rebuild != rebuild && !written {
			t.Errorf("%s: rebuild is %v, want %v", name, f.Rebuild, rebuild)
		}
		if quick := verify(t, dir, name, blocks.Options{Blocks: blocks.Rebuilt}); !f.Rebuild && (quick.Blocks > 0 || len(quick.records) > 0 || quick.Last != f.Last) {
			t.Errorf("%s: %+v, want no block read and sequence %d", name, quick.Report, f.Last)
		}
		before[name] = f
	}
	copied := t.TempDir()
	copyTree(t, dir, copied)
	next := newWorld(t, copied)
	for name, f := range before {
		served, last := next.served(name)
		if f.Last != last {
			t.Errorf("%s: last sequence %d, the server says %d", name, f.Last, last)
		}
		same(t, name, f.limited(name), served)
	}
}

func intact(t *testing.T, name string, f found) {
	t.Helper()
	for _, d := range f.Damage {
		t.Errorf("%s: %v", name, d)
	}
	if f.Torn != nil || len(f.Unverified) > 0 {
		t.Errorf("%s: torn %+v, unverified %+v; want neither", name, f.Torn, f.Unverified)
	}
	for _, g := range f.Gaps {
		lastOfBlock := name == "range" && g.First == g.Last && g.After+1 < g.Before // its deletion leaves no tombstone
		if name != "KV_bucket" && name != "latest" && name != "few" && !lastOfBlock {
			t.Errorf("%s: gap %+v; all that is missing has a tombstone or was erased", name, g)
		}
	}
}

// limited returns the live messages that the limits of their stream let through: the
// server enforces them again when it has read the blocks.
func (f found) limited(name string) map[uint64]message {
	out := f.alive()
	seqs := slices.Sorted(maps.Keys(out))
	newest := make(map[string]uint64)
	for i, seq := range seqs {
		if name == "few" && i < len(seqs)-50 {
			delete(out, seq)
		}
		if name == "latest" || name == "KV_bucket" {
			delete(out, newest[out[seq].subject])
			newest[out[seq].subject] = seq
		}
	}
	return out
}

func same(t *testing.T, what string, got, want map[uint64]message) {
	t.Helper()
	for seq, m := range want {
		if got[seq] != m {
			t.Errorf("%s: message %d is %.60q, want %.60q", what, seq, got[seq], m)
		}
	}
	for seq, m := range got {
		if _, ok := want[seq]; !ok {
			t.Errorf("%s: message %d is %.60q, want none", what, seq, m)
		}
	}
}

func TestStreams(t *testing.T) {
	dir := t.TempDir()
	if s, err := blocks.Streams(dir); err != nil || len(s) > 0 {
		t.Errorf("an empty folder: %v, %v", s, err)
	}
	for _, name := range []string{"A/streams/one", "A/streams/.gone", "A/streams/deleted", "B/streams/one"} {
		folder := filepath.Join(dir, "jetstream", filepath.FromSlash(name))
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if filepath.Base(name) == "deleted" {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, "meta.inf"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := blocks.Streams(dir)
	if err != nil || len(s) != 2 || s[0].Account != "A" || s[1].Account != "B" || s[0].Name != "one" {
		t.Errorf("got %v, %v", s, err)
	}
}
