package blocks_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/blocks"
)

// harm is a way to damage the bench. It returns the highest sequence that is known.
type harm struct {
	name string
	do   func(b *bench)
}

func harms(b *bench) []harm {
	out := []harm{
		{"an older block cut", func(b *bench) { b.cut(b.files[1], 5000) }},
		{"an older block empty", func(b *bench) { b.cut(b.files[1], 0) }},
		{"the first block empty", func(b *bench) { b.cut(b.files[0], 0) }},
		{"the newest block cut", func(b *bench) { b.cut(b.newest, 3000) }},
		{"the newest block empty", func(b *bench) { b.cut(b.newest, 0) }},
		{"zeros in every block", func(b *bench) {
			for _, path := range b.files {
				b.zero(path, 2000)
			}
		}},
		{"zeros at the start", func(b *bench) { b.zero(b.files[0], 0) }},
		{"the newest block all zeros", func(b *bench) { b.write(b.newest, make([]byte, len(b.bytes[b.newest]))) }},
		{"an older block all zeros", func(b *bench) { b.write(b.files[2], make([]byte, len(b.bytes[b.files[2]]))) }},
		{"the newest block missing", func(b *bench) { b.remove(b.newest) }},
		{"an older block missing", func(b *bench) { b.remove(b.files[1]) }},
		{"every block missing", func(b *bench) {
			for _, path := range b.files {
				b.remove(path)
			}
		}},
	}
	for range rounds(4, 60) {
		r := b.whole.records[b.rand.IntN(len(b.whole.records))]
		all := parts(r)
		p := all[b.rand.IntN(len(all))]
		out = append(out, harm{fmt.Sprintf("the %s of message %d", p.name, r.Seq), func(b *bench) { b.zap(r, p) }})
	}
	return out
}

func (b *bench) cut(path string, at int) { b.write(path, b.bytes[path][:at]) }

func (b *bench) zero(path string, at int) {
	data := bytes.Clone(b.bytes[path])
	clear(data[at:min(at+4096, len(data))])
	b.write(path, data)
}

func (b *bench) remove(path string) {
	b.t.Helper()
	if err := os.Remove(path); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) zap(r blocks.Record, p part) {
	data := bytes.Clone(b.bytes[b.path(r.Block)])
	if p.size == 0 {
		p.at, p.size = r.Offset, 4
	}
	data[p.at] ^= 0x10
	b.write(b.path(r.Block), data)
}

// TestQuarantine holds that a server that starts after Quarantine returns every good
// message, no bad one, and continues from the same sequence.
func TestQuarantine(t *testing.T) {
	b := newBench(t)
	for _, h := range harms(b) {
		t.Run(h.name, func(t *testing.T) {
			c := b.moved(t)
			h.do(c)
			c.quarantine()
		})
	}
}

func (b *bench) quarantine() {
	b.t.Helper()
	o := blocks.Options{Mark: b.last, Check: check}
	before := verify(b.t, b.dir, "log", o)
	aside := filepath.Join(b.t.TempDir(), "aside")
	if err := blocks.Quarantine(stream(b.t, b.dir, "log"), before.Damage, aside); err != nil {
		b.t.Fatal(err)
	}
	b.kept(before.Damage, aside)
	after := verify(b.t, b.dir, "log", o)
	if len(after.Damage) > 0 || after.Torn != nil || after.Last != b.last {
		b.t.Errorf("after Quarantine: %+v", after.Report)
	}
	same(b.t, "after Quarantine", after.messages, before.messages)
	w := newWorld(b.t, b.dir)
	served, last := w.served("log")
	same(b.t, "served", served, before.messages)
	if last != b.last {
		b.t.Errorf("the server's last sequence is %d, want %d", last, b.last)
	}
	w.fill("log", 1)
	if served, _ = w.served("log"); len(served) != len(before.messages)+1 || served[b.last+1].subject == "" {
		b.t.Errorf("the next message is not number %d", b.last+1)
	}
}

// kept holds that the damaged blocks were copied.
func (b *bench) kept(damage []blocks.Damage, aside string) {
	b.t.Helper()
	for _, d := range damage {
		got, err := os.ReadFile(filepath.Join(aside, filepath.Base(d.File)))
		if errors.Is(err, fs.ErrNotExist) && d.Offset+d.Length == 0 {
			continue // the file was missing
		}
		if err != nil || int64(len(got)) < d.Offset+d.Length {
			b.t.Errorf("%s is not kept in %s: %v", d.File, aside, err)
		}
	}
}

// TestQuarantineRefuses holds that it writes nothing where it cannot mend.
func TestQuarantineRefuses(t *testing.T) {
	b := newBench(t)
	s := stream(t, b.dir, "log")
	b.zero(b.files[1], 100)
	damage := verify(t, b.dir, "log", blocks.Options{}).Damage
	outside, stale, meta := damage[0], damage[0], damage[0]
	outside.File = filepath.Join(t.TempDir(), "1.blk")
	stale.Length = 1 << 30
	meta.Block = 0
	partly := damage[0]
	partly.Length--
	for what, d := range map[string]blocks.Damage{"another folder": outside, "another length": stale, "no block": meta, "less than all": partly} {
		before, err := os.ReadFile(b.files[1])
		if err != nil {
			t.Fatal(err)
		}
		if err := blocks.Quarantine(s, []blocks.Damage{d}, t.TempDir()); err == nil {
			t.Errorf("%s: mended %+v", what, d)
		}
		if after, err := os.ReadFile(b.files[1]); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: the block was written to: %v", what, err)
		}
	}
	aside := t.TempDir()
	b.write(filepath.Join(aside, "2.blk"), []byte("evidence"))
	if err := blocks.Quarantine(s, damage, aside); err == nil {
		t.Error("a file that was set aside before is overwritten")
	}
}

// TestWithoutQuarantine shows what the package is for: the server itself cuts the block,
// and all that was behind the bad record is gone. If this fails, the server has learnt
// better: see docs/decisions/0017-blocks.md.
func TestWithoutQuarantine(t *testing.T) {
	b := newBench(t)
	r := b.whole.records[2]
	b.zap(r, parts(r)[0])
	f := verify(t, b.dir, "log", blocks.Options{Check: check})
	w := newWorld(t, b.dir)
	served, _ := w.served("log")
	if len(f.messages) != len(b.whole.messages)-1 || len(served) >= len(f.messages) {
		t.Errorf("Verify gives %d messages of %d, the server %d", len(f.messages), len(b.whole.messages), len(served))
	}
}

// TestMissing holds that a missing block is damage if it was the newest, else a gap.
func TestMissing(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	w.stream(jetstream.StreamConfig{Name: "log"})
	w.fill("log", 100)
	w.stop()
	stopped := t.TempDir()
	copyTree(t, dir, stopped)
	again := newWorld(t, dir)
	again.fill("log", 50)
	killed := again.kill()
	for _, c := range []struct {
		name, dir string
		block     string
		damage    int
		listed    bool
	}{
		{"an older block after a stop", stopped, "2.blk", 0, true},
		{"the first block after a stop", stopped, "1.blk", 0, true},
		{"the newest block after a stop", stopped, "", 2, false},
		{"an older block after a kill", killed, "2.blk", 0, true},
	} {
		folder := filepath.Join(stream(t, c.dir, "log").Dir, "msgs")
		if c.block == "" {
			c.block = newestIn(t, folder)
		}
		path := filepath.Join(folder, c.block)
		data, err := os.ReadFile(path)
		w.ok(err)
		w.ok(os.Remove(path))
		f := verify(t, c.dir, "log", blocks.Options{})
		if len(f.Damage) != c.damage || !f.Rebuild || c.listed != (len(f.Gaps) == 1 && f.Gaps[0].Listed > 0) {
			t.Errorf("%s: %+v", c.name, f.Report)
		}
		w.ok(os.WriteFile(path, data, 0o600))
	}
}

func newestIn(t *testing.T, folder string) string {
	t.Helper()
	for n := 99; n > 0; n-- {
		name := fmt.Sprintf("%d.blk", n)
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			return name
		}
	}
	t.Fatal("no block in " + folder)
	return ""
}
