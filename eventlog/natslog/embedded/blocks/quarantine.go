package blocks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Quarantine sets the damaged records of a stream aside, so that a server can open it
// with every good message. No server may have the stream open, and damage must be what
// Verify reports of it now.
//
// It copies index.db and the damaged blocks to the folder aside, which must not have such
// files yet, removes index.db, so that the server rebuilds it, and then replaces each
// block by one with an erased record in place of the bad bytes, or where Verify missed
// sequences. The server takes all sequences from the good record before to that of the
// erased record as deleted. A torn end remains: the server cuts it off. If it fails,
// the copies and, whole, either the old or the new blocks are there. It fails, before it
// writes anything, for damage that does not lie in a block.
func Quarantine(s Stream, damage []Damage, aside string) error {
	files, err := byFile(s, damage)
	if err != nil || len(files) == 0 {
		return err
	}
	for _, d := range files {
		if _, err := mended(s, d); err != nil {
			return fmt.Errorf("quarantine stream %s: %w", s.Name, err)
		}
	}
	if err := setAside(files, aside); err != nil {
		return fmt.Errorf("quarantine stream %s: %w", s.Name, err)
	}
	index := filepath.Join(filepath.Dir(files[0][0].File), indexFile)
	if err := os.Remove(index); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("quarantine stream %s: %w", s.Name, err)
	}
	for _, d := range files {
		block, err := mended(s, d)
		if err == nil {
			err = replace(d[0].File, block)
		}
		if err != nil {
			return fmt.Errorf("quarantine stream %s: %w", s.Name, err)
		}
	}
	return nil
}

// byFile groups the damage by block file, in the order of offsets.
func byFile(s Stream, damage []Damage) ([][]Damage, error) {
	var out [][]Damage
	damage = slices.Clone(damage)
	slices.SortStableFunc(damage, func(a, b Damage) int {
		if a.Block != b.Block {
			return int(int64(a.Block) - int64(b.Block))
		}
		return int(a.Offset - b.Offset)
	})
	for _, d := range damage {
		if d.Block == 0 || filepath.Dir(filepath.Dir(d.File)) != filepath.Clean(s.Dir) {
			return nil, fmt.Errorf("quarantine stream %s: %s cannot be mended: restore it from a backup", s.Name, d.File)
		}
		if n := len(out); n > 0 && out[n-1][0].File == d.File {
			out[n-1] = append(out[n-1], d)
			continue
		}
		out = append(out, []Damage{d})
	}
	return out, nil
}

// setAside copies the files, and index.db, that are there.
func setAside(files [][]Damage, aside string) error {
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return err
	}
	paths := []string{filepath.Join(filepath.Dir(files[0][0].File), indexFile)}
	for _, d := range files {
		paths = append(paths, d[0].File)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = write(filepath.Join(aside, filepath.Base(path)), data, 0o600)
		}
		if err != nil {
			return fmt.Errorf("copy %s to %s: %w", path, aside, err)
		}
	}
	return syncFolder(aside)
}

// mended returns a block without its bad bytes. One that is missing is made again, with
// nothing but the erased record.
func mended(s Stream, damage []Damage) ([]byte, error) {
	path, number := damage[0].File, damage[0].Block
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	b := newBlock(s.Name, number, old)
	var out []byte
	var at int64
	before := &clock{}
	for _, d := range damage {
		if d.Offset < at || d.Length < 0 || d.Offset+d.Length > int64(len(old)) {
			return nil, fmt.Errorf("%s has changed since it was verified: verify it again", path)
		}
		out = append(out, old[at:d.Offset]...)
		if at = d.Offset + d.Length; d.Last > 0 {
			out = b.erased(out, d.Last, before.read(out))
		}
	}
	out = append(out, old[at:]...)
	if !newBlock(s.Name, number, out).whole() {
		return nil, fmt.Errorf("%s has damage that was not given: verify it again", path)
	}
	return out, nil
}

// clock finds the time of the last message in a block that grows.
type clock struct {
	at int
	ts int64
}

// read returns the time of the last message, or now if there is none: the server takes
// that of an erased record for the time of the last message.
func (c *clock) read(buf []byte) int64 {
	for c.at < len(buf) {
		r, err := split(buf[c.at:])
		if err != nil {
			break
		}
		if c.at += r.size; r.ts > 0 && r.kind() != Tombstone {
			c.ts = r.ts
		}
	}
	if c.ts == 0 {
		return time.Now().UnixNano()
	}
	return c.ts
}

// erased appends an erased record, as the server writes it where a sequence is skipped.
func (b *block) erased(out []byte, seq uint64, ts int64) []byte {
	var head [headSize]byte
	le := binary.LittleEndian
	le.PutUint32(head[0:], emptySize)
	le.PutUint64(head[4:], seq|erasedBit)
	le.PutUint64(head[12:], uint64(ts))
	b.hash.Reset()
	_, _ = b.hash.Write(head[4:20])
	return b.hash.Sum(append(out, head[:]...))
}

// whole reports whether all records are good, but for a torn end.
func (b *block) whole() bool {
	for off := 0; off < len(b.buf); {
		r, sealed, err := b.at(off)
		if !sealed {
			end, _ := b.resync(off, 0)
			return end == len(b.buf)
		}
		if err != nil {
			return false
		}
		off += r.size
	}
	return true
}

// replace writes a file beside the one at path, then renames it, so that after a crash
// either is there whole.
func replace(path string, data []byte) error {
	temp := path + ".tmp" // the server passes over these
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	mode := fs.FileMode(0o640) // as the server makes them
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := write(temp, data, mode); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// WriteWhole writes a file so that after a crash it is there whole, as it was or not at all.
func WriteWhole(path string, data []byte) error { return replace(path, data) }

// write makes a file and forces it to disk. It fails if there is one.
func write(path string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = bytes.NewReader(data).WriteTo(f)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncFolder forces the names in a folder to disk, where the system can.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
