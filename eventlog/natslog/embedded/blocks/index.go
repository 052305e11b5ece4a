package blocks

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
)

// index is what index.db says: the state of the stream when it was written, which is at
// an orderly stop and every other minute.
type index struct {
	messages, bytes uint64
	first, last     uint64
	blocks          []indexed
	newest          uint32
	sum             [sumSize]byte // the end of the newest block
	live            []Span        // sequences of messages; normal
}

// indexed is a block in index.db.
type indexed struct {
	number      uint32
	bytes       uint64
	first, last uint64
	live        []Span
}

const (
	indexMagic   = 11
	indexVersion = 4 // the newest that is understood
	indexLeast   = 32
)

// readIndex reads index.db. It returns nil if there is none, or none that the server
// would believe.
func readIndex(folder, stream string) *index {
	data, err := os.ReadFile(filepath.Join(folder, indexFile))
	if err != nil || len(data) < indexLeast {
		return nil
	}
	data, sum := data[:len(data)-sumSize], data[len(data)-sumSize:]
	d := newDigest(stream)
	_, _ = d.Write(data)
	if !bytes.Equal(d.Sum(nil), sum) || data[0] != indexMagic || data[1] < 1 || data[1] > indexVersion {
		return nil
	}
	return parseIndex(data[2:], data[1])
}

// cursor reads numbers from bytes. After a read beyond their end it is bad, and all
// that it returns is zero.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) take(n uint64) []byte {
	if c.bad = c.bad || n > uint64(len(c.b)); c.bad {
		return nil
	}
	out := c.b[:n]
	c.b = c.b[n:]
	return out
}

func (c *cursor) number() uint64 {
	v, n := binary.Uvarint(c.b)
	if c.bad = c.bad || n <= 0; c.bad {
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) skip(n int) {
	for range n {
		c.number()
	}
}

// parseIndex returns nil if the bytes are not what the server writes.
func parseIndex(data []byte, version byte) *index {
	c := &cursor{b: data}
	x := &index{messages: c.number(), bytes: c.number(), first: c.number()}
	c.skip(1) // the time of the first message
	x.last = c.number()
	c.skip(1) // the time of the last one
	c.subjects(version)
	for n := c.number(); n > 0 && !c.bad; n-- {
		x.blocks = append(x.blocks, c.block(version))
	}
	x.newest = uint32(c.number())
	copy(x.sum[:], c.take(sumSize))
	if c.bad {
		return nil
	}
	for _, b := range x.blocks {
		x.live = append(x.live, b.live...)
	}
	x.live = normal(x.live)
	return x
}

// subjects passes over the subjects.
func (c *cursor) subjects(version byte) {
	for n := c.number(); n > 0 && !c.bad; n-- {
		if length := c.number(); length > 0 {
			c.take(length)
			total := c.number()
			c.skip(1) // the first block with the subject
			if total > 1 || version >= 4 {
				c.skip(1) // the last one
			}
		}
	}
}

func (c *cursor) block(version byte) indexed {
	b := indexed{number: uint32(c.number()), bytes: c.number(), first: c.number()}
	c.skip(1) // the time of the first message
	b.last = c.number()
	c.skip(1) // the time of the last one
	deleted := c.number()
	c.skip(int(min(version, 3)) - 1) // counts of what expires and is scheduled
	var gone []Span
	if deleted > 0 {
		gone = c.set()
	}
	if !c.bad && b.first > 0 && b.first <= b.last {
		b.live = minus([]Span{{b.first, b.last}}, gone)
	}
	return b
}

const setMagic = 22

// set reads a set of sequences as package avl of the server encodes it.
func (c *cursor) set() []Span {
	head := c.take(10)
	if c.bad = c.bad || head[0] != setMagic || head[1] < 1 || head[1] > 2; c.bad {
		return nil
	}
	words := 32
	if head[1] == 1 {
		words = 64
	}
	var out []Span
	for n := binary.LittleEndian.Uint32(head[2:]); n > 0 && !c.bad; n-- {
		out = node(out, c.take(uint64(8+words*8+2)))
	}
	return normal(out)
}

// node adds the sequences of a node of such a set: a base, then one bit for each
// sequence from there on.
func node(out []Span, b []byte) []Span {
	if len(b) == 0 {
		return out
	}
	base := binary.LittleEndian.Uint64(b)
	for i := 8; i+8 <= len(b); i += 8 {
		for w := binary.LittleEndian.Uint64(b[i:]); w != 0; w &= w - 1 {
			out = extend(out, base+uint64(i-8)*8+uint64(bits.TrailingZeros64(w)))
		}
	}
	return out
}

// current reports whether the newest block is the one that was the newest when index.db
// was written, and nothing was written to it since.
func (x *index) current(files []file) (bool, error) {
	if len(files) == 0 || files[len(files)-1].number != x.newest {
		return false, nil
	}
	sum, err := files[len(files)-1].end()
	return sum == x.sum, err
}

// trusted reports whether the server believes index.db, if it is current, and so reads
// no block.
func (x *index) trusted(files []file) bool {
	if n := len(x.blocks); n == 0 || x.blocks[n-1].number != x.newest || x.missing(files) {
		return false
	}
	var messages, bytes, last, first uint64
	for i, b := range x.blocks {
		if n := count(b.live); n > 0 || i == len(x.blocks)-1 {
			if first == 0 || b.first < first && n > 0 {
				first = b.first
			}
			messages, bytes, last = messages+n, bytes+b.bytes, max(last, b.last)
		}
	}
	return messages == x.messages && bytes == x.bytes && last == x.last && (first <= 1 || first == x.first)
}

// missing reports whether a block with messages, or the newest, has no file.
func (x *index) missing(files []file) bool {
	there := make(map[uint32]bool, len(files))
	for _, f := range files {
		there[f.number] = true
	}
	return slices.ContainsFunc(x.blocks, func(b indexed) bool {
		return !there[b.number] && (len(b.live) > 0 || b.number == x.newest)
	})
}
