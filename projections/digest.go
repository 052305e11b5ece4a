package projections

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/reprise-dev/reprise/messages"
)

// Digest returns a SHA-256, in hex, over the history and the given parts of a request. Equal
// histories have equal digests, in whatever order results came in. Each item is hashed once, so
// that a long history costs no more than a short one; only items behind a call that has no
// result yet are hashed again.
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
	text := append(make([]byte, 0, 1024), last[:]...)
	for _, p := range parts {
		text = appendSized(text, p)
	}
	return messages.DigestOf(text)
}

// chain returns the digest of a history that ends with item, by the one before it.
func chain(prev [sha256.Size]byte, item messages.Item) [sha256.Size]byte {
	text := append(make([]byte, 0, 1024), prev[:]...)
	for _, s := range [...]string{string(item.Type), item.Role, string(item.CallID), item.Name, item.Arguments, item.Output, item.ID, string(item.Raw)} {
		text = appendSized(text, s)
	}
	for _, p := range item.Content {
		for _, s := range [...]string{p.Type, p.Text, p.ImageURL, p.Detail} {
			text = appendSized(text, s)
		}
		text = appendBlob(text, "part", p.Blob)
	}
	text = appendBlob(text, "output", item.Blob)
	return sha256.Sum256(appendBlob(text, "raw", item.RawBlob))
}

// appendBlob appends the hash of a blob, with what it is the payload of; nothing for none. No part
// has such a type.
func appendBlob(text []byte, of string, b *messages.Blob) []byte {
	if b == nil {
		return text
	}
	return appendSized(appendSized(text, "blob of "+of), string(b.SHA256))
}

// appendSized appends s with its length before it, so that no two lists of texts
// hash alike.
func appendSized(text []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint64(text, uint64(len(s))), s...)
}
