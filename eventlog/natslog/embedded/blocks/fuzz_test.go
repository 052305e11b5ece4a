package blocks_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/blocks"
)

// FuzzBlock holds that no bytes in a block make Verify fail or report a message twice, and
// that Quarantine leaves the messages that Verify reported, and no damage.
func FuzzBlock(f *testing.F) {
	good := run(2, 6, 9)
	f.Add([]byte{}, uint64(0))
	f.Add(good, uint64(9))
	f.Add(good[:len(good)-5], uint64(9))
	f.Add(append(good[:100:100], good[101:]...), uint64(0))
	f.Add(append(make([]byte, 64), good...), uint64(20))
	f.Add(record(2, 6, "made.a", "NATS/1.0\r\n", "no end"), uint64(6))
	f.Add(append(record(2, 3|tombstone, "", "", ""), record(2, 7|erased, "", "", "noise")...), uint64(1<<63))
	f.Add([]byte("cmp\x01compressed"), uint64(9))
	f.Fuzz(func(t *testing.T, data []byte, mark uint64) {
		s, _ := made(t, run(1, 1, 5), data)
		o := blocks.Options{Mark: mark % (1 << 62)}
		before, report := messages(t, s, o)
		if len(report.Unverified) > 0 {
			return
		}
		if err := blocks.Quarantine(s, report.Damage, t.TempDir()); err != nil {
			t.Fatal(err)
		}
		after, mended := messages(t, s, o)
		if !maps.Equal(before, after) || len(mended.Damage) > 0 {
			t.Errorf("%d messages, %v; then %d, %v", len(before), report.Damage, len(after), mended.Damage)
		}
	})
}

func messages(t *testing.T, s blocks.Stream, o blocks.Options) (map[uint64]string, blocks.Report) {
	t.Helper()
	out := make(map[uint64]string)
	o.Record = func(r blocks.Record) error {
		if _, twice := out[r.Seq]; r.Kind == blocks.Message && twice {
			t.Errorf("message %d is given twice", r.Seq)
		} else if r.Kind == blocks.Message {
			out[r.Seq] = r.Subject + string(r.Header) + string(r.Body)
		}
		return nil
	}
	report, err := blocks.Verify(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return out, report
}

// FuzzIndex holds that no bytes in index.db make Verify fail: those under a good
// checksum too.
func FuzzIndex(f *testing.F) {
	f.Add([]byte{11, 4, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, data []byte) {
		s, folder := made(t, run(1, 1, 5))
		put(t, filepath.Join(folder, "index.db"), sealed(data))
		if _, err := blocks.Verify(t.Context(), s, blocks.Options{}); err != nil {
			t.Error(err)
		}
	})
}

// BenchmarkVerify reads 64 MiB of messages of a KiB each.
func BenchmarkVerify(b *testing.B) {
	var files [][]byte
	body := string(make([]byte, 1000))
	for n := 1; n <= 8; n++ {
		var data []byte
		for seq := uint64(n) * 10_000; len(data) < 8<<20; seq++ {
			data = append(data, record(n, seq, "made.a", header, body)...)
		}
		files = append(files, data)
	}
	s, _ := made(b, files...)
	b.SetBytes(8 * int64(len(files[0])))
	b.ReportAllocs()
	for b.Loop() {
		if r, err := blocks.Verify(b.Context(), s, blocks.Options{}); err != nil || len(r.Damage) > 0 {
			b.Fatal(r.Damage, err)
		}
	}
}

// BenchmarkResync searches 8 MiB of bytes of which each four look like a length.
func BenchmarkResync(b *testing.B) {
	data := make([]byte, 8<<20)
	for i := range data {
		data[i] = [...]byte{0, 0, 16, 0}[i%4]
	}
	s, _ := made(b, run(1, 1, 5), data, run(3, 9, 9))
	if _, err := os.Stat(s.Dir); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if r, err := blocks.Verify(b.Context(), s, blocks.Options{}); err != nil || len(r.Damage) != 1 {
			b.Fatal(r.Damage, err)
		}
	}
}
