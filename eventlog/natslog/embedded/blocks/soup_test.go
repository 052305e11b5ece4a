package blocks_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/blocks"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
)

// TestSoup lets chance write, delete, erase, purge, stop and kill, and holds after each
// kill and stop that there is no damage, and that the server returns what Verify reported.
func TestSoup(t *testing.T) {
	embeddedtest.Long(t, "many starts of a server")
	t.Parallel()
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { soup(t, seed) })
	}
}

func soup(t *testing.T, seed uint64) {
	t.Helper()
	chance := rand.New(rand.NewPCG(seed, 5))
	dir := t.TempDir()
	for life := range 4 {
		// With every message forced to disk nothing is compacted while the folder is copied.
		w := startWorld(t, embeddedtest.PlainConfig{Dir: dir, SyncAlways: life%2 == 0})
		w.rand = chance
		if life == 0 {
			w.stream(jetstream.StreamConfig{Name: "log"})
		}
		s, err := w.js.Stream(w.ctx(), "log")
		w.ok(err)
		for range 60 {
			w.act(s)
		}
		if life%2 == 0 {
			dir = w.kill()
		}
		w.stop()
		f := verify(t, dir, "log", blocks.Options{})
		if len(f.Damage) > 0 || f.Torn != nil {
			t.Fatalf("seed %d, life %d: %+v", seed, life, f.Report)
		}
		copied := t.TempDir()
		copyTree(t, dir, copied)
		next := newWorld(t, copied)
		served, last := next.served("log")
		if same(t, fmt.Sprintf("seed %d, life %d", seed, life), served, f.alive()); last != f.Last {
			t.Errorf("seed %d, life %d: last sequence %d, the server says %d", seed, life, f.Last, last)
		}
		next.stop()
		mendSoup(t, chance, dir, f.Last)
	}
}

// mendSoup flips bits in a copy of a folder, and holds that a server returns what Verify
// reported when the damage was set aside.
func mendSoup(t *testing.T, chance *rand.Rand, dir string, last uint64) {
	t.Helper()
	copied := t.TempDir()
	copyTree(t, dir, copied)
	files, err := filepath.Glob(filepath.Join(stream(t, copied, "log").Dir, "msgs", "*.blk"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		harmed := files[chance.IntN(len(files))]
		data, err := os.ReadFile(harmed)
		if err != nil || len(data) == 0 {
			continue
		}
		data[chance.IntN(len(data))] ^= 1 << chance.IntN(8)
		if err := os.WriteFile(harmed, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := verify(t, copied, "log", blocks.Options{Mark: last, Check: check})
	if err := blocks.Quarantine(stream(t, copied, "log"), f.Damage, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	f = verify(t, copied, "log", blocks.Options{Mark: last, Check: check})
	w := newWorld(t, copied)
	served, seq := w.served("log")
	if same(t, "mended", served, f.alive()); seq != last || len(f.Damage) > 0 {
		t.Errorf("mended: last sequence %d, want %d; %v", seq, last, f.Damage)
	}
	w.stop()
}

// act does one thing to a stream.
func (w *world) act(s jetstream.Stream) {
	w.t.Helper()
	info, err := s.Info(w.ctx())
	w.ok(err)
	state := info.State
	seq := state.FirstSeq + w.rand.Uint64N(max(state.LastSeq-min(state.FirstSeq, state.LastSeq), 1))
	subject := fmt.Sprintf("log.%d.>", w.rand.IntN(40))
	switch w.rand.IntN(10) {
	case 0, 1:
		_ = s.DeleteMsg(w.ctx(), seq) // it may be gone
	case 2:
		_ = s.SecureDeleteMsg(w.ctx(), seq)
	case 3:
		for n := range w.rand.Uint64N(60) {
			_ = s.DeleteMsg(w.ctx(), seq+n)
		}
	case 4:
		w.ok(s.Purge(w.ctx(), jetstream.WithPurgeSubject(subject)))
	case 5:
		w.purge(s, subject, seq)
	default:
		w.fill("log", 1+w.rand.IntN(40))
	}
}

// purge is one of the rarer purges.
func (w *world) purge(s jetstream.Stream, subject string, seq uint64) {
	w.t.Helper()
	opts := map[string][]jetstream.StreamPurgeOpt{
		"keep": {jetstream.WithPurgeSubject("log.1*.>"), jetstream.WithPurgeKeep(2)},
		"some": {jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(seq)},
		"head": {jetstream.WithPurgeSequence(min(seq, 100))},
		"all":  nil,
	}
	names := slices.Sorted(maps.Keys(opts))
	name := names[w.rand.IntN(len(names))]
	if name == "all" && w.rand.IntN(4) > 0 {
		return
	}
	w.ok(s.Purge(w.ctx(), opts[name]...))
}
