package blocks

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Copy writes the good messages of a stream that keep accepts into the folder of a stream
// of the same name, in place of what that holds. No server may have either open, and it
// changes nothing in from. It returns how many messages it wrote.
//
// Messages keep their sequences and times, and the copy ends with the sequence that from
// is known to have reached, so that none is given twice. Settings are copied, but for the
// number of replicas, which is 1, for a server that stands alone; if those of from are
// damaged, the copy keeps its own. Consumers are not copied.
//
// It reads as Verify does with the same options, whose Record is not called, and fails as
// that does, or if it cannot write. Then the copy is of no use.
func Copy(ctx context.Context, from, to Stream, o Options, keep func(Record) bool) (messages uint64, err error) {
	folder := filepath.Join(to.Dir, blockFolder)
	err = os.RemoveAll(folder)
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err == nil {
		err = copySettings(from, to)
	}
	if err != nil {
		return 0, fmt.Errorf("copy stream %s: %w", from.Name, err)
	}
	c := &copier{stream: to.Name, folder: folder}
	o.Record = func(r Record) error {
		if r.Kind != Message || !keep(r) {
			return nil
		}
		return c.add(r)
	}
	report, err := Verify(ctx, from, o)
	if err != nil {
		return 0, err
	}
	if err := c.end(max(o.Mark, report.Reached())); err != nil {
		return 0, fmt.Errorf("copy stream %s: %w", from.Name, err)
	}
	return c.messages, nil
}

// Reached returns the highest sequence that was in use, as far as the report knows.
func (r Report) Reached() uint64 {
	last := r.Last
	for _, d := range r.Damage {
		last = max(last, d.Last)
	}
	return last
}

// copier writes blocks. It keeps one in memory.
type copier struct {
	stream, folder string
	block          *block // nil: none was begun
	out            []byte
	last           uint64 // sequence
	ts             int64  // of the last message
	messages       uint64
}

// add appends a message to the block of the same number as the one that it comes from.
func (c *copier) add(r Record) error {
	if c.block == nil || c.block.number != r.Block {
		if err := c.flush(); err != nil {
			return err
		}
		c.block = newBlock(c.stream, r.Block, nil)
	}
	c.out = c.block.message(c.out, r)
	c.last, c.ts = r.Seq, r.Time.UnixNano()
	c.messages++
	return nil
}

// end has the stream end with a sequence.
func (c *copier) end(last uint64) error {
	if c.last < last {
		if c.block == nil {
			c.block, c.ts = newBlock(c.stream, 1, nil), time.Now().UnixNano()
		}
		c.out = c.block.erased(c.out, last, c.ts)
	}
	return c.flush()
}

// flush writes the block.
func (c *copier) flush() error {
	if c.block == nil {
		return nil
	}
	err := os.WriteFile(filepath.Join(c.folder, fmt.Sprint(c.block.number, blockSuffix)), c.out, 0o600)
	c.out = c.out[:0]
	return err
}

// message appends the record of a message, as the server writes it.
func (b *block) message(out []byte, r Record) []byte {
	at, size, headed := len(out), emptySize+len(r.Subject)+len(r.Body), uint32(0)
	if r.Header != nil {
		size, headed = size+4+len(r.Header), headerBit
	}
	le := binary.LittleEndian
	out = le.AppendUint32(slices.Grow(out, size), uint32(size)|headed)
	out = le.AppendUint64(out, r.Seq)
	out = le.AppendUint64(out, uint64(r.Time.UnixNano()))
	out = le.AppendUint16(out, uint16(len(r.Subject)))
	out = append(out, r.Subject...)
	if r.Header != nil {
		out = append(le.AppendUint32(out, uint32(len(r.Header))), r.Header...)
	}
	out = append(out, r.Body...)
	b.hash.Reset()
	_, _ = b.hash.Write(out[at+4 : at+20])
	_, _ = b.hash.Write([]byte(r.Subject))
	_, _ = b.hash.Write(r.Header)
	_, _ = b.hash.Write(r.Body)
	return b.hash.Sum(out)
}

// replicasField is the one of meta.inf.
const replicasField = "num_replicas"

// copySettings writes meta.inf as it is in from, with one replica. If it is damaged there,
// to keeps its own.
func copySettings(from, to Stream) error {
	if _, err := from.settings(); err != nil || from.encrypted(filepath.Join(from.Dir, blockFolder)) {
		if pe := (*fs.PathError)(nil); errors.As(err, &pe) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	meta, err := os.ReadFile(filepath.Join(from.Dir, metaFile))
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(meta, &fields); err != nil {
		return err
	}
	if string(fields[replicasField]) != "1" {
		fields[replicasField] = json.RawMessage("1")
		if meta, err = json.Marshal(fields); err != nil {
			return err
		}
	}
	d := newDigest(to.Name)
	_, _ = d.Write(meta)
	return errors.Join(
		os.WriteFile(filepath.Join(to.Dir, metaFile), meta, 0o600),
		os.WriteFile(filepath.Join(to.Dir, metaSumFile), []byte(hex.EncodeToString(d.Sum(nil))), 0o600))
}
