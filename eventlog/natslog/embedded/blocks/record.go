package blocks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"time"
)

// Kind says what a record is.
type Kind int

// The kinds of records.
const (
	// Message is a stored message.
	Message Kind = iota
	// Erased is a message that was overwritten, or a sequence that was skipped.
	Erased
	// Tombstone records that the message of the sequence was deleted.
	Tombstone
)

// Record is a record that can be read. Header and Body are those of the block in
// memory: they are valid until the function that was given the record returns.
type Record struct {
	Kind    Kind
	Seq     uint64
	Time    time.Time
	Subject string
	Header  []byte // as stored, with NATS/1.0; nil if there is none
	Body    []byte
	Block   uint32 // the number of the block file
	Offset  int64  // where the record begins in it
}

// The layout of a record; see the package comment.
const (
	headSize   = 22
	sumSize    = 8
	emptySize  = headSize + sumSize
	headerBit  = 1 << 31
	erasedBit  = 1 << 63
	tombBit    = 1 << 62
	mostRecord = 32 << 20
)

var (
	errShort    = errors.New("the record is cut off: fewer bytes are left than a record has")
	errLength   = errors.New("the length of the record cannot be right")
	errBorder   = errors.New("the length of the subject cannot be right")
	errChecksum = errors.New("the checksum does not match the record")
	errHeader   = errors.New("the header does not end where its length says")
	errSubject  = errors.New("the subject is not one that a message can have")
	errOrder    = errors.New("the sequence is not above the one before it, so the server ignores the record")
)

// raw is a record as it lies in a block.
type raw struct {
	size    int    // of the record; 0 if its length cannot be right
	seq     uint64 // with its flags
	ts      int64
	subject []byte // nil if its length cannot be right
	rest    []byte // header length, header and body
	headed  bool   // it has a header
}

// number returns the sequence without its flags.
func (r raw) number() uint64 { return r.seq &^ (erasedBit | tombBit) }

func (r raw) kind() Kind {
	switch {
	case r.seq&tombBit != 0:
		return Tombstone
	case r.seq&erasedBit != 0 || r.seq == 0:
		return Erased
	}
	return Message
}

// split takes the record at the start of b apart by its lengths, as the server does.
// It fails if they cannot be right; what was found until then is in the result.
func split(b []byte) (raw, error) {
	if len(b) < emptySize {
		return raw{}, errShort
	}
	le := binary.LittleEndian
	length := le.Uint32(b)
	r := raw{seq: le.Uint64(b[4:]), ts: int64(le.Uint64(b[12:])), headed: length&headerBit != 0}
	length &^= headerBit
	if length < emptySize || length > mostRecord || int64(length) > int64(len(b)) {
		return r, errLength
	}
	r.size = int(length)
	data, n := b[headSize:length-sumSize], int(le.Uint16(b[20:]))
	least := n
	if r.headed {
		least += 4
	}
	if least > len(data) {
		return r, errBorder
	}
	r.subject, r.rest = data[:n], data[n:]
	return r, nil
}

// check reports what is wrong with a record whose checksum matches: the checksum
// does not cover the lengths.
func (r raw) check() error {
	if r.kind() != Message {
		return nil
	}
	if !plausible(r.subject) {
		return errSubject
	}
	if !r.headed {
		return nil
	}
	length, text := binary.LittleEndian.Uint32(r.rest), r.rest[4:]
	end := bytes.Index(text, []byte("\r\n\r\n"))
	if !bytes.HasPrefix(text, []byte("NATS/1.0")) || end < 0 || uint64(end)+4 != uint64(length) {
		return errHeader
	}
	return nil
}

// plausible reports whether a message can have the subject.
func plausible(subject []byte) bool {
	before := byte('.')
	for _, c := range subject {
		if c <= ' ' || c == 0x7f || c == '.' && before == '.' {
			return false
		}
		before = c
	}
	return before != '.'
}

// record returns a checked record as callers see it.
func (r raw) record(block uint32, offset int) Record {
	out := Record{Kind: r.kind(), Seq: r.number(), Time: time.Unix(0, r.ts).UTC(), Block: block, Offset: int64(offset)}
	if out.Kind != Message {
		return out
	}
	out.Subject, out.Body = string(r.subject), r.rest
	if r.headed {
		n := binary.LittleEndian.Uint32(r.rest)
		out.Header, out.Body = r.rest[4:4+n], r.rest[4+n:]
	}
	return out
}
