package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"

	"github.com/reprise-dev/reprise/messages"
)

// Blob writes a payload that is stored beside an agent's log to w, and returns its description. hash
// is its SHA-256 in hex, or the beginning of it. The memory that Blob takes does not grow with the
// payload. messages.NotFound: there is none. messages.Damaged: the bytes that were written do not
// match the hash.
func (c *Client) Blob(ctx context.Context, agent string, hash messages.Digest, w io.Writer) (messages.Blob, error) {
	return c.BlobOf(ctx, agent, messages.Blob{SHA256: hash}, w)
}

// BlobOf is [Client.Blob] for a blob that an event names, which is found without a search.
func (c *Client) BlobOf(ctx context.Context, agent string, b messages.Blob, w io.Writer) (messages.Blob, error) {
	a, err := messages.ParseAgentID(agent)
	if err != nil {
		return messages.Blob{}, err
	}
	r := &blobReading{to: w, sum: sha256.New(), blob: b}
	var try trying
	for {
		before := r.offset
		more, err := r.page(ctx, c, a)
		if r.offset > before {
			try = trying{}
		}
		switch {
		case r.failed != nil:
			return r.blob, r.failed
		case err == nil && !more:
			return r.blob, r.check(a)
		case err != nil:
			if err := try.again(ctx, err); err != nil {
				return r.blob, err
			}
		}
	}
}

// blobReading is a blob on its way.
type blobReading struct {
	to  io.Writer
	sum interface {
		io.Writer
		Sum([]byte) []byte
	}
	blob   messages.Blob
	offset int64 // of what comes next
	failed error // of to
}

// page asks for the next page and reports whether there is another one behind it.
func (r *blobReading) page(ctx context.Context, c *Client, a messages.AgentID) (more bool, err error) {
	body, err := json.Marshal(messages.Query{View: "blob", Blob: r.blob, From: messages.EventNumber(r.offset)})
	if err != nil {
		return false, err
	}
	next, err := c.page(ctx, call{subject: c.subjects.Query(a), body: body}, func(line json.RawMessage) bool {
		var piece messages.BlobPiece
		if json.Unmarshal(line, &piece) != nil || piece.Offset != r.offset {
			return true
		}
		r.blob = piece.Blob
		_, _ = r.sum.Write(piece.Data) // never fails
		_, r.failed = r.to.Write(piece.Data)
		r.offset += int64(len(piece.Data))
		return r.failed == nil
	})
	return next.more(), err
}

func (r *blobReading) check(a messages.AgentID) error {
	if sum := hex.EncodeToString(r.sum.Sum(nil)); messages.Digest(sum) != r.blob.SHA256 || r.offset != r.blob.Size {
		return messages.Refuse(messages.Damaged, "blob %s of agent %s came as %d bytes with hash %s: put it back from a backup", r.blob.SHA256, a, r.offset, sum)
	}
	return nil
}
