package blocks_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minio/highwayhash"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/blocks"
)

const (
	erased    = 1 << 63
	tombstone = 1 << 62
	header    = "NATS/1.0\r\nColor: blue\r\n\r\n"
)

// record writes a record of block n of the stream made, as the package comment says.
func record(n int, seq uint64, subject, header, body string) []byte {
	key := sha256.Sum256(fmt.Appendf(nil, "made-%d", n))
	h, _ := highwayhash.New64(key[:])
	le := binary.LittleEndian
	length := uint32(30 + len(subject) + len(body))
	if header != "" {
		length = (length + 4 + uint32(len(header))) | 1<<31
	}
	b := le.AppendUint32(nil, length)
	b = le.AppendUint64(b, seq)
	b = le.AppendUint64(b, 1_700_000_000_000_000_000)
	_, _ = h.Write(b[4:])
	b = append(le.AppendUint16(b, uint16(len(subject))), subject...)
	if header != "" {
		b = le.AppendUint32(b, uint32(len(header)))
	}
	b = append(append(b, header...), body...)
	_, _ = h.Write([]byte(subject + header + body))
	return h.Sum(b)
}

// run is some records of block n.
func run(n int, first, last uint64) (out []byte) {
	for seq := first; seq <= last; seq++ {
		out = append(out, record(n, seq, "made.a", header, fmt.Sprint("body ", seq))...)
	}
	return out
}

// made writes a stream of blocks, numbered from 1.
func made(t testing.TB, files ...[]byte) (blocks.Stream, string) {
	t.Helper()
	s := blocks.Stream{Account: "A", Name: "made"}
	s.Dir = filepath.Join(t.TempDir(), "jetstream", s.Account, "streams", s.Name)
	folder := filepath.Join(s.Dir, "msgs")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	meta := []byte(`{"name":"made","retention":"limits","max_msgs":-1}`)
	put(t, filepath.Join(s.Dir, "meta.inf"), meta)
	put(t, filepath.Join(s.Dir, "meta.sum"), metaSum(s.Name, meta))
	for i, data := range files {
		put(t, filepath.Join(folder, fmt.Sprintf("%d.blk", i+1)), data)
	}
	return s, folder
}

// metaSum returns the content of meta.sum.
func metaSum(stream string, meta []byte) []byte {
	key := sha256.Sum256([]byte(stream))
	return fmt.Appendf(nil, "%016x", reversed(highwayhash.Sum64(meta, key[:])))
}

func reversed(n uint64) uint64 {
	return binary.BigEndian.Uint64(binary.LittleEndian.AppendUint64(nil, n))
}

func put(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRules shows each rule on a small stream.
func TestRules(t *testing.T) {
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	half, junk := record(1, 6, "made.a", header, "half")[:40], bytes.Repeat([]byte("junk"), 50)
	bad := record(1, 6, "made.a", header, "bad")
	bad[60] ^= 1
	headless := record(1, 6, "made.a", strings.TrimSuffix(header, "\r\n"), "header does not end")
	inner := join(junk[:50], run(1, 7, 8))
	outer := record(1, 6, "made.a", header, string(inner))
	outer[40] ^= 1
	for _, c := range []struct {
		name   string
		blocks [][]byte
		mark   uint64
		want   string
	}{
		{"nothing", nil, 0, "0 messages to 0"},
		{"good", [][]byte{run(1, 1, 5), run(2, 6, 9)}, 9, "9 messages to 9"},
		{"an empty newest block", [][]byte{run(1, 1, 5), nil}, 5, "5 messages to 5"},
		{"an empty newest block below the mark", [][]byte{run(1, 1, 5), nil}, 6, "5 messages to 5, 2.blk+0:0 6"},
		{"an empty older block", [][]byte{run(1, 1, 5), nil, run(3, 8, 9)}, 0, "7 messages to 9, 2.blk+0:0 6-7"},
		{"an empty older block, nothing missing", [][]byte{run(1, 1, 5), nil, run(3, 6, 9)}, 0, "9 messages to 9"},
		{"an empty older block, its messages erased", [][]byte{run(1, 1, 5), nil, join(run(3, 8, 9), record(3, 6|tombstone, "", "", ""), record(3, 7|tombstone, "", "", ""))}, 0, "7 messages to 9"},
		{"an empty older block, one of two erased", [][]byte{run(1, 1, 5), nil, join(run(3, 8, 9), record(3, 6|tombstone, "", "", ""))}, 0, "7 messages to 9, 2.blk+0:0 6-7"},
		{"an empty older block, no message after it, one erased", [][]byte{run(1, 1, 5), nil, record(3, 6|tombstone, "", "", "")}, 0, "5 messages to 6, 2.blk+0:0 6"},
		{"an empty older block before one that is not read, one erased", [][]byte{run(1, 1, 5), nil, []byte("cmp\x01 and so on"), record(4, 6|tombstone, "", "", "")}, 0, "5 messages to 6, 2.blk+0:0 6, unverified 3.blk"},
		{"no message, an empty older block, one erased", [][]byte{nil, record(2, 1|tombstone, "", "", "")}, 0, "0 messages to 1, 1.blk+0:0 1"},
		{"no block below the mark", nil, 7, "0 messages to 0, 1.blk+0:0 1-7"},
		{"a torn end", [][]byte{join(run(1, 1, 5), half)}, 5, "5 messages to 5, torn 1.blk+355:40"},
		{"a torn end of zeros", [][]byte{join(run(1, 1, 5), make([]byte, 100))}, 5, "5 messages to 5, torn 1.blk+355:100"},
		{"a torn end below the mark", [][]byte{join(run(1, 1, 5), half)}, 6, "5 messages to 5, 1.blk+355:40 6"},
		{"a bad record at the end", [][]byte{join(run(1, 1, 5), bad)}, 5, "5 messages to 5, torn 1.blk+355:68"},
		{"a bad end of an older block", [][]byte{join(run(1, 1, 5), half), run(2, 8, 9)}, 0, "7 messages to 9, 1.blk+355:40 6-7"},
		{"a record between", [][]byte{join(run(1, 1, 5), bad, run(1, 7, 9))}, 0, "8 messages to 9, 1.blk+355:68 6"},
		{"junk between", [][]byte{join(run(1, 1, 5), junk, run(1, 9, 9))}, 0, "6 messages to 9, 1.blk+355:200 6-8"},
		{"junk before all", [][]byte{join(junk, run(1, 9, 9))}, 0, "1 messages to 9, 1.blk+0:200 0-8"},
		{"a header that does not end", [][]byte{join(run(1, 1, 5), headless)}, 0, "5 messages to 6, 1.blk+355:82 6"},
		{"a gap", [][]byte{run(1, 1, 5), run(2, 8, 9)}, 0, "7 messages to 9, gap 6 to 7"},
		{"a gap with a tombstone", [][]byte{run(1, 1, 5), join(run(2, 8, 9), record(2, 6|tombstone, "", "", ""))}, 0, "7 messages to 9, gap 7"},
		{"an erased record", [][]byte{join(run(1, 1, 5), record(1, 6|erased, "", "", "noise"), run(1, 7, 7))}, 0, "6 messages to 7"},
		{"an old erased record", [][]byte{join(run(1, 1, 5), record(1, erased, "", "", "noise"), run(1, 6, 7))}, 0, "7 messages to 7"},
		{"a bad tombstone", [][]byte{join(run(1, 1, 5), flipped(record(1, 2|tombstone, "", "", ""), 25), run(1, 6, 7))}, 0, "7 messages to 7, 1.blk+355:30 0"},
		{"a sequence that does not rise", [][]byte{run(1, 1, 5), join(run(2, 3, 3), run(2, 6, 7))}, 0, "7 messages to 7, 2.blk+0:71 0"},
		{"records in the body of a bad record", [][]byte{join(run(1, 1, 5), outer, run(1, 7, 9))}, 0, "8 messages to 9, 1.blk+355:257 6"},
		{"records in the body of a bad record at the end", [][]byte{join(run(1, 1, 5), outer)}, 0, "5 messages to 5, torn 1.blk+355:257"},
		{"a compressed block", [][]byte{run(1, 1, 5), []byte("cmp\x01 and so on"), run(3, 9, 9)}, 0, "6 messages to 9, unverified 2.blk"},
		{"a compressed newest block", [][]byte{run(1, 1, 5), []byte("cmp\x01 and so on")}, 9, "5 messages to 5, unverified 2.blk"},
	} {
		s, _ := made(t, c.blocks...)
		r, err := blocks.Verify(t.Context(), s, blocks.Options{Mark: c.mark})
		if got := summary(r); err != nil || got != c.want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", c.name, got, err, c.want)
		}
	}
}

func flipped(b []byte, at int) []byte { b[at] ^= 1; return b }

func summary(r blocks.Report) string {
	out := []string{fmt.Sprintf("%d messages to %d", r.Messages, r.Last)}
	for _, d := range r.Damage {
		span := blocks.Span{First: d.First, Last: d.Last}
		out = append(out, fmt.Sprintf("%s+%d:%d %s", filepath.Base(d.File), d.Offset, d.Length, strings.Replace(span.String(), " to ", "-", 1)))
	}
	if r.Torn != nil {
		out = append(out, fmt.Sprintf("torn %s+%d:%d", filepath.Base(r.Torn.File), r.Torn.Offset, r.Torn.Length))
	}
	for _, g := range r.Gaps {
		out = append(out, "gap "+g.String())
	}
	for _, u := range r.Unverified {
		out = append(out, "unverified "+filepath.Base(u.File))
	}
	return strings.Join(out, ", ")
}

// TestFolders holds which files are read, as the server does at start.
func TestFolders(t *testing.T) {
	read := func(s blocks.Stream) string {
		t.Helper()
		r, err := blocks.Verify(t.Context(), s, blocks.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return summary(r)
	}
	s, folder := made(t, run(1, 1, 5))
	for _, name := range []string{"2.blk.tmp", "1.new", "02.blk", "x.blk", "-2.blk", "4294967296.blk"} {
		put(t, filepath.Join(folder, name), []byte("not a block"))
	}
	if got := read(s); got != "5 messages to 5" {
		t.Errorf("with files of other names: %s", got)
	}
	purged := filepath.Join(s.Dir, "__new_msgs__")
	if err := errors.Join(os.Mkdir(purged, 0o700), os.Mkdir(filepath.Join(s.Dir, "__msgs__"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if got := read(s); got != "5 messages to 5" {
		t.Errorf("with a purge that did not happen: %s", got)
	}
	put(t, filepath.Join(purged, "2.blk"), record(2, 5|tombstone, "", "", ""))
	if got := read(s); got != "0 messages to 5" {
		t.Errorf("with a purge that the server completes: %s", got)
	}
	put(t, filepath.Join(purged, "2.key"), []byte("key"))
	if got := read(s); !strings.HasSuffix(got, "unverified __new_msgs__") {
		t.Errorf("with a key: %s", got)
	}
	put(t, filepath.Join(s.Dir, "meta.sum"), []byte("0"))
	if got := read(s); !strings.Contains(got, "meta.inf+0:0 0") {
		t.Errorf("with a meta.inf of another sum: %s", got)
	}
}

// TestCallbacks checks what Verify reports on the way, and that an error ends it.
func TestCallbacks(t *testing.T) {
	s, _ := made(t, run(1, 1, 5), run(2, 6, 9))
	var done, total int64
	var seqs []uint64
	stop := errors.New("enough")
	o := blocks.Options{Progress: func(d, n int64) { done, total = d, n }}
	if r, err := blocks.Verify(t.Context(), s, o); err != nil || done != total || r.Bytes != total || r.Blocks != 2 {
		t.Errorf("%d of %d, %+v, %v", done, total, r, err)
	}
	o.Record = func(r blocks.Record) error {
		if seqs = append(seqs, r.Seq); len(seqs) == 7 {
			return stop
		}
		return nil
	}
	if _, err := blocks.Verify(t.Context(), s, o); !errors.Is(err, stop) || len(seqs) != 7 {
		t.Errorf("%v after %d", err, seqs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := blocks.Verify(ctx, s, blocks.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestCompression holds that what a server compressed is not called damage.
func TestCompression(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.stream(jetstream.StreamConfig{Name: "small", Compression: jetstream.S2Compression})
	w.fill("small", 100)
	w.stop()
	f := verify(t, w.dir, "small", blocks.Options{Mark: 100})
	if len(f.Damage) > 0 || f.Torn != nil || len(f.Unverified) == 0 || len(f.Gaps) > 0 {
		t.Errorf("%+v", f.Report)
	}
}

// sealed appends the checksum of index.db.
func sealed(data []byte) []byte {
	key := sha256.Sum256([]byte("made"))
	h, _ := highwayhash.New64(key[:])
	_, _ = h.Write(data)
	return h.Sum(data)
}
