package blocks_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/blocks"
)

// bench is a stream without deletions, as a kill left it, in a folder to do harm to.
type bench struct {
	t      *testing.T
	dir    string
	whole  found
	files  []string
	bytes  map[string][]byte
	last   uint64
	newest string
	rand   *rand.Rand
}

func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	w := newWorld(t, t.TempDir())
	w.stream(jetstream.StreamConfig{Name: "log"})
	w.fill("log", 150)
	b := &bench{t: t, dir: w.kill(), bytes: make(map[string][]byte), last: 150, rand: rand.New(rand.NewPCG(3, 4))}
	b.whole = verify(t, b.dir, "log", blocks.Options{Mark: 150, Check: check})
	if len(b.whole.Damage) > 0 || b.whole.Blocks < 4 {
		t.Fatalf("%+v", b.whole.Report)
	}
	for n := range b.whole.Blocks {
		path := b.path(uint32(n + 1))
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b.files, b.bytes[path], b.newest = append(b.files, path), data, path
	}
	return b
}

func (b *bench) path(block uint32) string {
	return filepath.Join(stream(b.t, b.dir, "log").Dir, "msgs", fmt.Sprintf("%d.blk", block))
}

func (b *bench) write(path string, data []byte) {
	b.t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) heal() {
	b.t.Helper()
	for path, data := range b.bytes {
		b.write(path, data)
	}
}

// part is a field of a record: where it is, and how long.
type part struct {
	name string
	at   int64
	size int
}

func parts(r blocks.Record) []part {
	n, at := len(r.Subject), r.Offset+22
	out := []part{{"length", r.Offset, 4}, {"sequence", r.Offset + 4, 8}, {"time", r.Offset + 12, 8}, {"subject length", r.Offset + 20, 2}, {"subject", at, n}}
	if at += int64(n); r.Header != nil {
		out = append(out, part{"header length", at, 4}, part{"header", at + 4, len(r.Header)})
		at += int64(4 + len(r.Header))
	}
	return append(out, part{"body", at, len(r.Body)}, part{"checksum", at + int64(len(r.Body)), 8})
}

// look verifies the harmed folder and holds what must be true of every harm: it is
// reported, nothing false is given, and all that is not given is named.
func (b *bench) look(what string, mark uint64) found {
	b.t.Helper()
	f := verify(b.t, b.dir, "log", blocks.Options{Mark: mark, Check: check})
	if len(f.Damage)+len(f.Gaps) == 0 && f.Torn == nil {
		b.t.Errorf("%s: nothing is reported", what)
	}
	if f.Torn != nil && (f.Torn.File != b.newest || f.Last < mark) {
		b.t.Errorf("%s: torn %+v, after sequence %d and with mark %d", what, f.Torn, f.Last, mark)
	}
	if mark > 0 && f.Torn != nil {
		b.t.Errorf("%s: torn %+v although all was stored", what, f.Torn)
	}
	for seq, want := range b.whole.messages {
		got, ok := f.messages[seq]
		if ok && got != want {
			b.t.Errorf("%s: message %d is %.60q, want %.60q", what, seq, got, want)
		}
		if !ok && !f.names(seq) {
			b.t.Errorf("%s: message %d is neither given nor named: %+v", what, seq, f.Report)
		}
	}
	for seq := range f.messages {
		if _, ok := b.whole.messages[seq]; !ok {
			b.t.Errorf("%s: message %d was never stored", what, seq)
		}
	}
	return f
}

// names reports whether the report accounts for a sequence that cannot be read.
func (f found) names(seq uint64) bool {
	for _, d := range f.Damage {
		if d.First <= seq && seq <= d.Last {
			return true
		}
	}
	for _, g := range f.Gaps {
		if g.First <= seq && seq <= g.Last {
			return true
		}
	}
	return f.Torn != nil && seq > f.Last
}

// marks are the two things that may be known: all, and nothing.
func (b *bench) marks() []uint64 { return []uint64{b.last, 0} }

func rounds(short, long int) int {
	if testing.Short() {
		return short
	}
	return long
}

// TestFlips flips one bit at a time, in every part of records of every block.
func TestFlips(t *testing.T) {
	b := newBench(t)
	for range rounds(25, 800) {
		r := b.whole.records[b.rand.IntN(len(b.whole.records))]
		for _, p := range parts(r) {
			if p.size == 0 {
				continue
			}
			b.flip(r, p)
		}
	}
}

func (b *bench) flip(r blocks.Record, p part) {
	b.t.Helper()
	path, at, bit := b.path(r.Block), p.at+int64(b.rand.IntN(p.size)), b.rand.IntN(8)
	what := fmt.Sprintf("bit %d of byte %d of the %s of message %d", bit, at-p.at, p.name, r.Seq)
	data := b.bytes[path]
	data[at] ^= 1 << bit
	b.write(path, data)
	for _, mark := range b.marks() {
		f := b.look(what, mark)
		if missing := len(b.whole.messages) - len(f.messages); missing != 1 {
			b.t.Errorf("%s: %d messages cannot be read, want only that", what, missing)
		}
		if len(f.Damage) == 1 && (f.Damage[0].First != r.Seq || f.Damage[0].Last != r.Seq || f.Damage[0].Offset != r.Offset) {
			b.t.Errorf("%s: %v, want it at offset %d", what, f.Damage[0], r.Offset)
		}
		if len(f.Damage) > 1 {
			b.t.Errorf("%s: %v, want one place", what, f.Damage)
		}
	}
	data[at] ^= 1 << bit
	b.write(path, data)
}

// TestCuts cuts blocks at any place.
func TestCuts(t *testing.T) {
	b := newBench(t)
	for i := range rounds(40, 1500) {
		path := b.files[i%len(b.files)]
		at := b.rand.IntN(len(b.bytes[path]))
		if i < 2*len(b.files) {
			at = b.boundary(uint32(i%len(b.files)+1), i < len(b.files))
		}
		b.write(path, b.bytes[path][:at])
		what := fmt.Sprintf("%s cut at %d", filepath.Base(path), at)
		b.look(what, b.last)
		if path != b.newest { // a newest block that ends with a record does not show that more was cut
			b.lookCut(what)
		} else if f := verify(t, b.dir, "log", blocks.Options{}); len(f.Damage) > 0 {
			t.Errorf("%s: %v, want it to be torn", what, f.Damage)
		}
		b.write(path, b.bytes[path])
	}
}

// boundary returns where a block begins, or where its third record does.
func (b *bench) boundary(block uint32, begin bool) int {
	n := 0
	for _, r := range b.whole.records {
		if r.Block == block {
			if n++; begin || n == 3 {
				return int(r.Offset)
			}
		}
	}
	b.t.Fatalf("block %d has no third record", block)
	return 0
}

// lookCut holds that an older block that was cut is damage or, if the cut is between two
// records, a gap in which nothing but the cut is.
func (b *bench) lookCut(what string) {
	b.t.Helper()
	f := verify(b.t, b.dir, "log", blocks.Options{Check: check})
	if f.Torn != nil || len(f.Damage)+len(f.Gaps) == 0 {
		b.t.Errorf("%s: %+v, want damage or a gap", what, f.Report)
	}
}

// TestZeros overwrites 4 KiB with zeros.
func TestZeros(t *testing.T) {
	b := newBench(t)
	for i := range rounds(25, 1000) {
		path := b.files[i%len(b.files)]
		data := append([]byte(nil), b.bytes[path]...)
		at := b.rand.IntN(len(data))
		clear(data[at:min(at+4096, len(data))])
		b.write(path, data)
		for _, mark := range b.marks() {
			b.look(fmt.Sprintf("%s with zeros from %d", filepath.Base(path), at), mark)
		}
		b.write(path, b.bytes[path])
	}
}

// TestManyPlaces flips bits in several records at once: each is named, all others are
// given.
func TestManyPlaces(t *testing.T) {
	b := newBench(t)
	for range rounds(30, 300) {
		hit := make(map[uint64]bool)
		for range 2 + b.rand.IntN(8) {
			r := b.whole.records[b.rand.IntN(len(b.whole.records)-1)]
			if hit[r.Seq] || hit[r.Seq-1] || hit[r.Seq+1] {
				continue
			}
			hit[r.Seq] = true
			all := parts(r)
			p := all[b.rand.IntN(len(all))]
			path := b.path(r.Block)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			data[p.at] ^= 1 << b.rand.IntN(8)
			b.write(path, data)
		}
		f := b.look(fmt.Sprint("messages ", hit), b.last)
		if len(f.messages) != len(b.whole.messages)-len(hit) || len(f.Damage) != len(hit) {
			t.Errorf("messages %v: %d messages and %v", hit, len(f.messages), f.Damage)
		}
		b.heal()
	}
}

// TestSubjectLength shows what cannot be seen: without a header, the border between
// subject and body lies outside the checksum, and only the caller's check can detect it.
func TestSubjectLength(t *testing.T) {
	b := newBench(t)
	var blind int
	for i, r := range b.whole.records {
		if i%rounds(4, 1) != 0 {
			continue
		}
		path, at := b.path(r.Block), r.Offset+20
		data := b.bytes[path]
		n := binary.LittleEndian.Uint16(data[at:])
		data[at] ^= 1
		b.write(path, data)
		if f := verify(t, b.dir, "log", blocks.Options{Mark: b.last}); len(f.Damage) == 0 {
			if blind++; r.Header != nil {
				t.Errorf("the subject's length %d of message %d is wrong and that is not seen", n, r.Seq)
			}
		}
		b.look(fmt.Sprint("subject length of message ", r.Seq), b.last)
		data[at] ^= 1
		b.write(path, data)
	}
	if blind == 0 {
		t.Error("every wrong length is seen: say so in the documentation")
	}
	if got := verify(t, b.dir, "log", blocks.Options{Check: check}); !maps.Equal(got.messages, b.whole.messages) {
		t.Error("the folder was not restored")
	}
}
