package projections

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"github.com/reprise-dev/reprise/messages"
)

// Digest is a SHA-256, in hex, over the history and the given parts of a
// request. Equal histories give equal digests, in whatever order results came
// in. Each item is hashed once, so that a long history costs no more than a
// short one; only items behind a call that has no result yet are hashed anew.
func (h *History) Digest(parts ...string) messages.Digest {
	part := make([]messages.Part, 1)
	for h.digested < len(h.entries) && h.entries[h.digested].n != 0 {
		h.sum = chain(h.sum, h.entries[h.digested].asItem(part))
		h.digested++
	}
	last := h.sum
	for i := h.digested; i < len(h.entries); i++ {
		if h.entries[i].n != 0 {
			last = chain(last, h.entries[i].asItem(part))
		}
	}
	sum := sha256.New()
	sum.Write(last[:])
	for _, p := range parts {
		writeText(sum, p)
	}
	return messages.Digest(hex.EncodeToString(sum.Sum(nil)))
}

func chain(prev [sha256.Size]byte, item messages.Item) (next [sha256.Size]byte) {
	sum := sha256.New()
	sum.Write(prev[:])
	for _, s := range [...]string{string(item.Type), item.Role, string(item.CallID), item.Name, item.Arguments, item.Output, item.ID, string(item.Raw)} {
		writeText(sum, s)
	}
	for _, p := range item.Content {
		for _, s := range [...]string{p.Type, p.Text, p.ImageURL, p.Detail} {
			writeText(sum, s)
		}
		writeBlob(sum, "part", p.Blob)
	}
	writeBlob(sum, "output", item.Blob)
	writeBlob(sum, "raw", item.RawBlob)
	sum.Sum(next[:0])
	return next
}

// writeBlob writes the hash of a blob, with what it is the payload of; nothing for
// none, so that a history without blobs has the digest that it always had. No part
// has such a type.
func writeBlob(h hash.Hash, of string, b *messages.Blob) {
	if b != nil {
		writeText(h, "blob of "+of)
		writeText(h, string(b.SHA256))
	}
}

// writeText writes s with its length before it, so that no two lists of texts
// hash alike.
func writeText(h hash.Hash, s string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(s)))
	h.Write(n[:])
	h.Write([]byte(s))
}
