package blocks

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/minio/highwayhash"
)

// block is a block file in memory.
type block struct {
	number uint32
	buf    []byte
	hash   *highwayhash.Digest64
	budget int64 // bytes that resync may still hash
}

// newDigest returns the server's hash under the name of what is hashed.
func newDigest(name string) *highwayhash.Digest64 {
	key := sha256.Sum256([]byte(name))
	d, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		panic(err) // a key of 32 bytes is never refused
	}
	return d
}

// searches is how many times its own size resync may hash in one block: bytes that
// were made to look like records must not hold up a start for hours.
const searches = 64

func newBlock(stream string, number uint32, buf []byte) *block {
	return &block{
		number: number, buf: buf,
		hash:   newDigest(fmt.Sprintf("%s-%d", stream, number)),
		budget: searches * int64(len(buf)),
	}
}

// compressed reports whether the server compressed the block.
func (b *block) compressed() bool {
	return len(b.buf) >= 5 && bytes.HasPrefix(b.buf, []byte{'c', 'm', 'p', 1})
}

// at reads the record at an offset. If it fails, sealed reports whether the checksum
// matches all the same.
func (b *block) at(off int) (r raw, sealed bool, err error) {
	r, err = split(b.buf[off:])
	if err != nil {
		return r, false, err
	}
	if !b.sealed(off, r) {
		return r, false, errChecksum
	}
	return r, true, r.check()
}

// sealed reports whether the checksum of the record at an offset matches.
func (b *block) sealed(off int, r raw) bool {
	rest := r.rest
	if r.headed {
		rest = rest[4:]
	}
	b.hash.Reset()
	_, _ = b.hash.Write(b.buf[off+4 : off+20])
	_, _ = b.hash.Write(r.subject)
	_, _ = b.hash.Write(rest)
	var sum [sumSize]byte
	return bytes.Equal(b.hash.Sum(sum[:0]), b.buf[off+r.size-sumSize:off+r.size])
}

// farthest is how far above the last one a sequence may be for resync to believe it.
const farthest = 1 << 48

// good reports whether the bytes at an offset are a record that may follow the
// sequence last, and returns it.
func (b *block) good(off int, last uint64) (raw, bool) {
	r, err := split(b.buf[off:])
	n := r.number()
	if err != nil || n == 0 || n > last && n-last > farthest || n <= last && r.kind() != Tombstone || b.budget < 0 {
		return r, false
	}
	if b.budget -= int64(r.size); !b.sealed(off, r) {
		return r, false
	}
	return r, r.check() == nil
}

// resync returns where the bad bytes that begin at an offset end: at the next good
// record, or at the end of the block. The result is one record if its length was
// believed: good bytes or the block's end follow it. A record that is found inside of it
// is taken for the next one only if good records lead from there to that very end, so
// that what a message has in its body is not taken for a record.
func (b *block) resync(off int, last uint64) (end int, one bool) {
	r, _ := split(b.buf[off:])
	limit := off + r.size
	if one = r.size > 0 && limit == len(b.buf); !one && r.size > 0 {
		_, one = b.good(limit, last)
	}
	if !one {
		limit = len(b.buf)
	}
	for p := off + 1; p+emptySize <= limit; p++ {
		next, ok := b.good(p, last)
		if ok && (!one || b.leads(p, next, limit, last)) {
			return p, false
		}
	}
	return limit, one
}

// leads reports whether good records follow one another from the one at p to end.
func (b *block) leads(p int, r raw, end int, last uint64) bool {
	for ok := true; ok && p < end; {
		if r.kind() != Tombstone {
			last = r.number()
		}
		if p += r.size; p == end {
			return true
		}
		if p < end {
			r, ok = b.good(p, last)
		}
	}
	return false
}
