package blocks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Which says which blocks Verify reads.
type Which int

// The choices of blocks.
const (
	// All blocks.
	All Which = iota
	// Rebuilt are those that the server will read when it opens the stream. If it can
	// trust index.db, as after an orderly stop, that is the newest: unless the server
	// cannot walk its records, no checksum is looked at. Else it is all.
	Rebuilt
)

// Options say how to verify a stream. The zero value reads all blocks.
type Options struct {
	Blocks Which
	// Mark is a sequence that is known to have been stored: a stream that ends below it
	// is damaged. Zero: nothing is known but what index.db says.
	Mark uint64
	// Killed reports that the process which wrote the stream was killed and the machine was
	// not: what it wrote is there from its beginning, so that a bad record of full length at
	// the end is no torn one.
	Killed bool
	// Check reports what is wrong with a message whose record is good, such as a
	// checksum of the payload's own. Nil: nothing.
	Check func(Record) error
	// Record receives every good record in the order of the blocks. An error ends Verify.
	Record func(Record) error
	// Progress receives, after each block, how many bytes of how many are done.
	Progress func(done, total int64)
}

// mostBlock is the largest block file that Verify reads into memory. The server's are of
// 8 MiB, or hold one message of up to 32 MiB.
const mostBlock = 64 << 20

// verifier is the state of one Verify.
type verifier struct {
	s      Stream
	o      Options
	folder string
	files  []file
	limits limits
	index  *index // nil if there is none
	mark   uint64
	markBy string

	report  Report
	first   uint64 // of the messages and erased records; 0 if there was none yet
	last    uint64 // of the messages and erased records so far
	low     uint64 // the same; 0 if the block before is unverified
	block   uint32 // where last is
	pending []pending
}

// pending is damage whose sequences are not all known yet.
type pending struct {
	at    int    // in report.Damage
	claim uint64 // what the record itself says; 0 if that cannot be believed
}

// Verify reads the blocks of a stream that no server has open, and reports what it found.
// It writes nothing and keeps one block in memory. It fails if a file cannot be read, if
// ctx ends or if Options.Record fails; damage is no failure.
func Verify(ctx context.Context, s Stream, o Options) (Report, error) {
	v := &verifier{s: s, o: o, mark: o.Mark, markBy: "by what is on record"}
	if err := v.open(); err != nil {
		return v.report, fmt.Errorf("verify stream %s: %w", s.Name, err)
	}
	if s.encrypted(v.folder) {
		v.unverified(v.folder, "the stream is encrypted")
		return v.report, nil
	}
	if err := v.believe(); err != nil {
		return v.report, fmt.Errorf("verify stream %s: %w", s.Name, err)
	}
	read, err := v.report.Rebuild || o.Blocks == All, error(nil)
	if !read {
		read, err = v.broken()
	}
	if err != nil {
		return v.report, fmt.Errorf("verify stream %s: %w", s.Name, err)
	}
	if read {
		if err := v.blocks(ctx); err != nil {
			return v.report, fmt.Errorf("verify stream %s: %w", s.Name, err)
		}
	}
	v.finish()
	return v.report, nil
}

// open finds the files.
func (v *verifier) open() (err error) {
	if v.folder, err = v.s.folder(); err != nil {
		return err
	}
	if v.files, err = blockFiles(v.folder); err != nil {
		return err
	}
	v.limits, err = v.s.settings()
	if err == nil {
		return nil
	}
	if pe := (*os.PathError)(nil); errors.As(err, &pe) && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	v.add(Damage{
		File: filepath.Join(v.s.Dir, metaFile),
		Err:  fmt.Errorf("the server would leave out the stream: %w", err),
	})
	return nil
}

// believe reads index.db and finds out whether the server will trust it.
func (v *verifier) believe() error {
	v.report.Rebuild = true
	if v.index = readIndex(v.folder, v.s.Name); v.index == nil {
		return nil
	}
	current, err := v.index.current(v.files)
	if err != nil {
		return err
	}
	if v.index.last > v.mark {
		v.mark, v.markBy = v.index.last, "by index.db"
	}
	v.report.First, v.report.Last = v.index.first, v.index.last
	v.report.Rebuild = !current || !v.index.trusted(v.files)
	return nil
}

// blocks reads all blocks.
func (v *verifier) blocks(ctx context.Context) error {
	v.report.First, v.report.Last = 0, 0
	var total, done int64
	for _, f := range v.files {
		total += f.size
	}
	var buf []byte
	for i, f := range v.files {
		err := ctx.Err()
		if err == nil {
			buf, err = v.read(f, buf, i == len(v.files)-1)
		}
		if err != nil {
			return err
		}
		if done += f.size; v.o.Progress != nil {
			v.o.Progress(done, total)
		}
	}
	return nil
}

// read reads one block. It returns buf, which may have grown.
func (v *verifier) read(f file, buf []byte, newest bool) ([]byte, error) {
	if f.size > mostBlock {
		v.unverified(f.path, fmt.Sprintf("it has %d bytes: the format is unknown", f.size))
		return buf, nil
	}
	buf, err := f.read(buf)
	if err != nil {
		return buf, err
	}
	b := newBlock(v.s.Name, f.number, buf)
	if b.compressed() {
		v.unverified(f.path, "the block is compressed")
		return buf, nil
	}
	if f.size == 0 && !newest {
		v.empty(f)
	}
	v.report.Blocks++
	v.report.Bytes += f.size
	return buf, v.records(b, f, newest)
}

// records reads the records of a block, the good and the bad ones.
func (v *verifier) records(b *block, f file, newest bool) error {
	for off := 0; off < len(b.buf); {
		r, sealed, err := b.at(off)
		if sealed {
			if err := v.sealed(b, f, off, r, err); err != nil {
				return err
			}
			off += r.size
			continue
		}
		end, one := b.resync(off, v.last)
		if newest && end == len(b.buf) && b.budget >= 0 && v.report.Last >= v.mark && !(one && v.o.Killed) {
			v.report.Torn = &Torn{f.path, int64(off), int64(end - off), err}
		} else {
			v.bad(b, f, off, end, one, err)
		}
		off = end
	}
	return nil
}

// sealed takes a record whose checksum matches. fault is what is wrong with it all the
// same.
func (v *verifier) sealed(b *block, f file, off int, r raw, fault error) error {
	n, kind := r.number(), r.kind()
	v.report.Last = max(v.report.Last, n)
	if kind == Message && n <= v.last {
		fault = fmt.Errorf("sequence %d after %d: %w", n, v.last, errOrder)
	} else if kind != Tombstone && n > v.last {
		v.advance(n, b.number)
	}
	rec := Record{}
	if fault == nil {
		rec = r.record(b.number, off)
		fault = v.judge(rec)
	}
	if fault == nil {
		return v.take(rec)
	}
	d := Damage{
		File: f.path, Block: b.number, Offset: int64(off), Length: int64(r.size),
		First: n, Last: n, Subject: readable(r.subject), Err: fault,
	}
	if errors.Is(fault, errOrder) {
		d.First, d.Last = 0, 0 // another record has the sequence
	}
	v.add(d)
	return nil
}

// judge asks the caller about a message.
func (v *verifier) judge(r Record) error {
	if v.o.Check == nil || r.Kind != Message {
		return nil
	}
	return v.o.Check(r)
}

// take counts a good record and hands it on.
func (v *verifier) take(r Record) error {
	switch r.Kind {
	case Message:
		if v.report.Messages++; v.report.First == 0 {
			v.report.First = r.Seq
		}
	case Erased:
		v.report.Erased++
	case Tombstone:
		v.report.Tombstones++
		v.report.Deleted = extend(v.report.Deleted, r.Seq)
	}
	if v.o.Record == nil {
		return nil
	}
	return v.o.Record(r)
}
