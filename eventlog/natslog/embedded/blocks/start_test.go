package blocks_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/blocks"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
)

// TestRebuild holds that Verify knows when the server will read the blocks: the server
// says so in its log, unless there is no index.db.
func TestRebuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir())
	s := w.stream(jetstream.StreamConfig{Name: "log"})
	w.fill("log", 100)
	w.ok(s.DeleteMsg(w.ctx(), 50))
	w.stop()
	stale, err := os.ReadFile(filepath.Join(stream(t, w.dir, "log").Dir, "msgs", "index.db"))
	w.ok(err)
	again := newWorld(t, w.dir)
	again.fill("log", 20)
	again.stop()
	for _, c := range []struct {
		name    string
		do      func(folder, newest string) error
		rebuild bool
	}{
		{"nothing", func(string, string) error { return nil }, false},
		{"a flip in an older block", func(folder, _ string) error { return flip(filepath.Join(folder, "1.blk")) }, false},
		{"a flip in index.db", func(folder, _ string) error { return flip(filepath.Join(folder, "index.db")) }, true},
		{"a short index.db", func(folder, _ string) error { return os.Truncate(filepath.Join(folder, "index.db"), 20) }, true},
		{"an older index.db", func(folder, _ string) error { return os.WriteFile(filepath.Join(folder, "index.db"), stale, 0o600) }, true},
		{"a shorter newest block", func(folder, newest string) error { return os.Truncate(filepath.Join(folder, newest), 70) }, true},
		{"one more block", func(folder, _ string) error { return os.WriteFile(filepath.Join(folder, "99.blk"), nil, 0o600) }, true},
		{"no older block", func(folder, _ string) error { return os.Remove(filepath.Join(folder, "2.blk")) }, true},
		{"no newest block", func(folder, newest string) error { return os.Remove(filepath.Join(folder, newest)) }, true},
	} {
		dir := t.TempDir()
		copyTree(t, w.dir, dir)
		folder := filepath.Join(stream(t, dir, "log").Dir, "msgs")
		w.ok(c.do(folder, newestIn(t, folder)))
		f := verify(t, dir, "log", blocks.Options{Blocks: blocks.Rebuilt})
		if f.Rebuild != c.rebuild || c.rebuild != (f.Blocks > 0) {
			t.Errorf("%s: rebuild is %v and %d blocks are read, want %v", c.name, f.Rebuild, f.Blocks, c.rebuild)
		}
		words := new(embeddedtest.Words)
		startWorld(t, embeddedtest.PlainConfig{Dir: dir, Log: words})
		if said := strings.Contains(words.String(), "Recovering stream state from index errored"); said != c.rebuild {
			t.Errorf("%s: the server rebuilds: %v, want %v: %s", c.name, said, c.rebuild, words)
		}
	}
}

func flip(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	data[len(data)/2] ^= 1
	return os.WriteFile(path, data, 0o600)
}

// TestTorn holds that a server that opens a stream with a torn end returns all that Verify
// reported, and continues behind it.
func TestTorn(t *testing.T) {
	b := newBench(t)
	last := b.whole.records[len(b.whole.records)-1]
	for _, n := range []int64{1, 21, 29, 50} {
		b.cut(b.newest, int(last.Offset+n))
		f := verify(t, b.dir, "log", blocks.Options{Mark: b.last - 1, Check: check})
		if f.Torn == nil || f.Torn.Offset != last.Offset || f.Torn.Length != n || len(f.Damage) > 0 {
			t.Errorf("cut %d bytes into the last record: %+v", n, f.Report)
		}
		dir := t.TempDir()
		copyTree(t, b.dir, dir)
		w := newWorld(t, dir)
		served, seq := w.served("log")
		same(t, "served", served, f.messages)
		if seq != b.last-1 {
			t.Errorf("cut %d bytes into the last record: the server's last sequence is %d", n, seq)
		}
	}
}

// TestCompacted holds that blocks that the server rewrote without what was deleted are
// good, and hold what the next server returns. A server that syncs each second compacts
// then, too.
func TestCompacted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := startWorld(t, embeddedtest.PlainConfig{Dir: dir})
	s := w.stream(jetstream.StreamConfig{Name: "log"})
	w.fill("log", 200)
	path := filepath.Join(stream(t, dir, "log").Dir, "msgs", "2.blk")
	whole, err := os.Stat(path)
	w.ok(err)
	for seq := uint64(10); seq < 90; seq++ {
		if seq%9 != 0 {
			w.ok(s.DeleteMsg(w.ctx(), seq))
		}
	}
	w.ok(s.Purge(w.ctx(), jetstream.WithPurgeSubject("log.1*.>")))
	smaller(t, path, whole.Size())
	w.stop()
	w.ok(os.Remove(filepath.Join(filepath.Dir(path), "index.db")))
	f := verify(t, dir, "log", blocks.Options{Mark: 200})
	if len(f.Damage) > 0 || f.Torn != nil || !f.Rebuild {
		t.Errorf("%+v", f.Report)
	}
	served, last := newWorld(t, dir).served("log")
	if same(t, "served", served, f.alive()); last != f.Last {
		t.Errorf("last sequence %d, the server says %d", f.Last, last)
	}
}

// smaller waits until a file is smaller than it was, or gone.
func smaller(t *testing.T, path string, than int64) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(time.Minute); ; {
		info, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() < than {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s is not compacted within a minute", path)
		}
	}
}
