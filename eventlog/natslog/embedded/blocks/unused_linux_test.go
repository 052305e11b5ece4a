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

// TestNeverUsed holds that a stream whose only message was refused by a full disk is not damaged,
// and that one which has lost what it stored is, though neither holds a message.
func TestNeverUsed(t *testing.T) {
	for _, c := range []struct {
		name    string
		stream  jetstream.StreamConfig
		do      func(w *lossy)
		mark    uint64
		damaged bool
	}{
		{name: "a refused message", do: func(w *lossy) { w.refuse() }},
		{name: "a refused message, a start and a kill", do: func(w *lossy) {
			w.refuse()
			w.restart()
			w.die()
		}},
		{name: "a refused message, a start and a kill, and a mark", do: func(w *lossy) {
			w.refuse()
			w.restart()
			w.die()
		}, mark: 1, damaged: true},
		{name: "a refused message, a start, messages and a kill", do: func(w *lossy) {
			w.refuse()
			w.restart()
			w.fill("made", 3)
			w.die()
		}},
		{name: "a refused message, then messages, a block of them cut off before one with a tombstone", do: func(w *lossy) {
			w.refuse()
			w.stop()
			w.ok(os.Remove(w.block("1.blk")))
			put(w.t, w.block("2.blk"), append(record(2, 1|tombstone, "", "", ""), run(2, 2, 5)...))
			put(w.t, w.block("3.blk"), nil)
			put(w.t, w.block("4.blk"), record(4, 6|tombstone, "", "", ""))
			w.killed = true
		}, damaged: true},
		{name: "two of many messages removed, a kill, the block of all cut off", do: func(w *lossy) {
			w.tiny("made", w.room())
			w.ok(w.log().DeleteMsg(w.ctx(), 2)) // begins the next block
			w.ok(w.log().DeleteMsg(w.ctx(), 1))
			w.die()
			w.ok(os.Truncate(w.block("1.blk"), 0))
		}, damaged: true},
		{name: "a refused message, and a mark", do: func(w *lossy) { w.refuse() }, mark: 1, damaged: true},
		{name: "a refused message, and no block", do: func(w *lossy) {
			w.refuse()
			w.stop()
			w.ok(os.Remove(w.block("1.blk")))
		}, damaged: true},
		{name: "a message, its block cut off", do: func(w *lossy) {
			w.fill("made", 1)
			w.stop()
			w.ok(os.Truncate(w.block("1.blk"), 0))
		}, damaged: true},
		{name: "a block cut off under the server, then a refused message", do: func(w *lossy) {
			w.fill("made", 3)
			w.restart() // it has none of them in memory
			w.ok(os.Truncate(w.block("1.blk"), 0))
			if _, err := w.log().GetMsg(w.ctx(), 1); !errors.Is(err, jetstream.ErrMsgNotFound) {
				t.Errorf("message 1: got %v, want %v", err, jetstream.ErrMsgNotFound)
			}
			w.ok(os.Remove(w.block("1.blk")))
			w.ok(os.Symlink("/dev/full", w.block("1.blk"))) // the server has closed it
			w.refused()
			w.stop()
			w.ok(os.Remove(w.block("1.blk")))
			w.ok(os.WriteFile(w.block("1.blk"), nil, 0o600))
		}, damaged: true},
		{name: "all messages removed", do: func(w *lossy) { w.empty() }},
		{name: "all messages removed, the block cut off", do: func(w *lossy) {
			w.empty()
			w.ok(os.Truncate(w.block("2.blk"), 0))
		}, damaged: true},
		{name: "all messages removed, the block missing", do: func(w *lossy) {
			w.empty()
			w.ok(os.Remove(w.block("2.blk")))
		}, damaged: true},
		{name: "all messages of a work queue removed, the block missing", stream: jetstream.StreamConfig{Retention: jetstream.WorkQueuePolicy}, do: func(w *lossy) {
			w.empty()
			w.ok(os.Remove(w.block("2.blk")))
		}, damaged: true},
		{name: "all messages removed, the block renamed and cut off", do: func(w *lossy) {
			w.empty()
			w.ok(os.Rename(w.block("2.blk"), w.block("1.blk")))
			w.ok(os.Truncate(w.block("1.blk"), 0))
		}, damaged: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := &lossy{words: new(embeddedtest.Words)}
			w.world = startWorld(t, embeddedtest.PlainConfig{Dir: t.TempDir(), SyncAlways: true, Log: w.words})
			c.stream.Name = "made"
			w.world.stream(c.stream)
			c.do(w)
			w.stop()
			if f := verify(t, w.dir, "made", blocks.Options{Mark: c.mark, Killed: w.killed}); len(f.Damage) > 0 != c.damaged {
				t.Errorf("damage: got %v, want any: %v", f.Damage, c.damaged)
			}
		})
	}
}

// lossy is a world whose stream log loses messages.
type lossy struct {
	*world
	words  *embeddedtest.Words
	killed bool
}

func (w *lossy) block(name string) string { return w.file("made", name) }

func (w *lossy) file(of, name string) string {
	return filepath.Join(stream(w.t, w.dir, of).Dir, "msgs", name)
}

func (w *lossy) exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (w *lossy) log() jetstream.Stream {
	w.t.Helper()
	s, err := w.js.Stream(w.ctx(), "made")
	w.ok(err)
	return s
}

func (w *lossy) restart() {
	w.stop()
	w.world = startWorld(w.t, embeddedtest.PlainConfig{Dir: w.dir, SyncAlways: true, Log: w.words})
}

// die ends the server without a stop, and leaves a copy of its folder.
func (w *lossy) die() {
	dir := w.kill()
	w.stop()
	w.dir, w.killed = dir, true
}

// room returns how many messages of no content a block has room for.
func (w *lossy) room() int {
	w.t.Helper()
	w.world.stream(jetstream.StreamConfig{Name: "try"})
	n := -1
	for ; !w.exists(w.file("try", "2.blk")); n++ {
		w.tiny("try", 1)
	}
	return n
}

// tiny stores n messages of no content.
func (w *lossy) tiny(of string, n int) {
	w.t.Helper()
	for range n {
		_, err := w.js.Publish(w.ctx(), of+".a", nil)
		w.ok(err)
	}
}

// empty stores messages, removes all, and stops the server.
func (w *lossy) empty() {
	w.t.Helper()
	w.fill("made", 3)
	for seq := range uint64(3) {
		w.ok(w.log().DeleteMsg(w.ctx(), seq+1))
	}
	w.stop()
}

// refuse publishes a message that the server refuses, because its disk is full.
func (w *lossy) refuse() {
	w.t.Helper()
	embeddedtest.FullDisk(w.t, w.block("1.blk"))
	w.refused()
}

// refused publishes a message, and waits until the server has refused it.
func (w *lossy) refused() {
	w.t.Helper()
	w.ok(w.nc.PublishMsg(w.message("made")))
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(time.Minute); !strings.Contains(w.words.String(), "Critical write error"); {
		select {
		case <-tick.C:
		case <-late:
			w.t.Fatalf("the message is not refused within a minute: %s", w.words)
		}
	}
}
