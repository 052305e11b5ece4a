package embeddedtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Crash copies the data folder of a server, which may run, to another one. The copy
// stands for what a killed process leaves: what was acknowledged is in it, the index
// of a stream that was recovered or stopped in order may be stale.
func Crash(t testing.TB, data string) (copied string) {
	t.Helper()
	copied = filepath.Join(t.TempDir(), "data")
	for range 100 { // a file may go while it is copied
		if err := os.CopyFS(copied, os.DirFS(data)); err == nil {
			_ = os.Remove(filepath.Join(copied, "LOCK"))
			return copied
		}
		if err := os.RemoveAll(copied); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("%s cannot be copied", data)
	return ""
}

// Blocks returns the message blocks of a stream in a data folder, oldest first.
func Blocks(t testing.TB, data, stream string) []string {
	t.Helper()
	blocks, err := filepath.Glob(filepath.Join(data, "jetstream", "$G", "streams", stream, "msgs", "*.blk"))
	if err != nil || len(blocks) == 0 {
		t.Fatalf("stream %s in %s has no blocks: %v", stream, data, err)
	}
	number := func(path string) (n int) {
		_, _ = fmt.Sscanf(filepath.Base(path), "%d.blk", &n)
		return n
	}
	slices.SortFunc(blocks, func(a, b string) int { return number(a) - number(b) })
	return blocks
}

// Flip changes one bit of the last text in a stream's blocks. No server may run on
// the folder.
func Flip(t testing.TB, data, stream, text string) {
	t.Helper()
	Spoil(t, data, stream, text, func(block []byte, at int) []byte {
		block[at] ^= 1
		return block
	})
}

// Spoil writes what change makes of the block that has a text last, and of the place
// of the text in it. A nil block is removed.
func Spoil(t testing.TB, data, stream, text string, change func(block []byte, at int) []byte) {
	t.Helper()
	blocks := Blocks(t, data, stream)
	slices.Reverse(blocks)
	for _, path := range blocks {
		block, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.LastIndex(block, []byte(text))
		if at < 0 {
			continue
		}
		if block = change(block, at); block == nil {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, block, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("%q is in no block of %s", text, stream)
}
