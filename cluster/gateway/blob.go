package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// blobsAtOnce is how many blobs are read for callers at the same time, and
// pieceSize how many bytes of each are at hand.
const (
	blobsAtOnce = 16
	pieceSize   = 256 << 10
)

// open opens a blob of an agent. Reading it and closing it is up to the caller; a
// place among those who read is taken until then.
func (g *Gateway) open(ctx context.Context, a messages.AgentID, b messages.Blob) (io.ReadCloser, error) {
	select {
	case g.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r, err := g.Blobs.Blob(ctx, a, b)
	if err != nil {
		<-g.reading
		return nil, gone(a, b, err)
	}
	return &opened{r, func() { <-g.reading }}, nil
}

// opened frees its slot when it is closed.
type opened struct {
	io.ReadCloser
	leave func()
}

// Skip passes over n bytes.
func (o *opened) Skip(n int64) error { return eventlog.Skip(o.ReadCloser, n) }

// Close closes the blob.
func (o *opened) Close() error {
	defer o.leave()
	return o.ReadCloser.Close()
}

// gone returns the error for a blob that is not there, with what can be done.
func gone(a messages.AgentID, b messages.Blob, err error) error {
	switch messages.AsError(err).Code {
	case messages.NotFound:
		return messages.Refuse(messages.NotFound, "blob %s of agent %s (%d bytes) is not stored any more: put it back from a backup", b.SHA256, a, b.Size)
	case messages.Damaged:
		return messages.Refuse(messages.Damaged, "blob %s of agent %s (%d bytes) is damaged: put it back from a backup; %v", b.SHA256, a, b.Size, err)
	}
	return err
}

// pour passes the bytes of a blob to each in pieces, cut between characters, until it returns
// false.
func (g *Gateway) pour(a messages.AgentID, b messages.Blob, each func(piece []byte) bool) error {
	r, err := g.open(g.ctx, a, b)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	if err := pieces(r, each); err != nil {
		return gone(a, b, err)
	}
	return nil
}

// marks stand in a line for the blobs whose bytes go there, so that no line need
// be held as a whole. Only one who has seen it can write it.
type marks struct {
	g     *Gateway
	agent messages.AgentID
	name  string
	blobs []marked
}

type marked struct {
	messages.Blob
	form messages.BlobForm
}

func (g *Gateway) marks(a messages.AgentID) *marks {
	return &marks{g: g, agent: a, name: "blob:" + rand.Text() + ":"}
}

// fill returns the mark of a blob.
func (m *marks) fill(b messages.Blob, form messages.BlobForm) (string, error) {
	m.blobs = append(m.blobs, marked{b, form})
	mark := m.name + strconv.Itoa(len(m.blobs)-1) + ";"
	if form == messages.BlobJSON {
		return `"` + mark + `"`, nil
	}
	return mark, nil
}

// cut is s up to the first mark, the blob that it stands for, and what follows;
// false if there is none.
func (m *marks) cut(s []byte) (before []byte, b marked, after []byte, found bool) {
	before, rest, found := bytes.Cut(s, []byte(m.name))
	if !found {
		return s, marked{}, nil, false
	}
	number, after, _ := bytes.Cut(rest, []byte{';'})
	i, _ := strconv.Atoi(string(number)) // we wrote it
	b = m.blobs[i]
	if b.form == messages.BlobJSON { // its mark has quotes, it has none
		before, after = before[:len(before)-1], after[1:]
	}
	return before, b, after, true
}

// named is s with the name of each blob in the place of its mark.
func (m *marks) named(s string) string {
	var text strings.Builder
	rest := []byte(s)
	for {
		before, b, after, found := m.cut(rest)
		text.Write(before)
		if !found {
			return text.String()
		}
		fmt.Fprintf(&text, "[%d bytes, kept as blob %s]", b.Size, b.SHA256)
		rest = after
	}
}

// change is what an event did, with the names of blobs in the place of their marks.
func (m *marks) change(c projections.Change) projections.Change {
	if len(m.blobs) == 0 {
		return c
	}
	c.Summary, c.History = m.named(c.Summary), slices.Clone(c.History)
	for i := range c.History {
		c.History[i] = m.named(c.History[i])
	}
	return c
}

// line adds a line with the bytes of blobs in the place of their marks.
func (m *marks) line(p *page, n messages.EventNumber, v any) (more bool) {
	return p.lineWith(n, v, func(p *page, line []byte) {
		for {
			before, b, after, found := m.cut(line)
			p.write(before)
			if !found {
				return
			}
			m.pour(p, b)
			line = after
		}
	})
}

// pour writes a blob into a line, as what stands between the quotes of a string
// unless it is JSON itself.
func (m *marks) pour(p *page, b marked) {
	if p.err != nil {
		return
	}
	p.err = m.g.pour(m.agent, b.Blob, func(piece []byte) bool {
		if b.form != messages.BlobJSON {
			quoted, _ := json.Marshal(string(piece)) // a string encodes
			piece = quoted[1 : len(quoted)-1]
		}
		p.write(piece)
		return p.flush()
	})
}

// pieces passes what r holds to each, cut between characters, until each returns false.
func pieces(r io.Reader, each func([]byte) bool) error {
	buf, held := make([]byte, pieceSize), 0
	for {
		n, err := io.ReadFull(r, buf[held:])
		held += n
		over := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !over {
			return err
		}
		end := held
		for back := 1; !over && back < utf8.UTFMax && back <= held; back++ {
			if utf8.RuneStart(buf[held-back]) {
				if !utf8.FullRune(buf[held-back : held]) {
					end = held - back
				}
				break
			}
		}
		if end > 0 && !each(buf[:end]) || over {
			return nil
		}
		held = copy(buf, buf[end:held])
	}
}

// stored returns why a blob is not there, or nil.
func (g *Gateway) stored(a messages.AgentID, b messages.Blob) error {
	r, err := g.open(g.ctx, a, b)
	if err != nil {
		return err
	}
	return r.Close()
}

// history pages the items of a history. One whose payload is lost is shown with its reference and
// why.
func (g *Gateway) history(p *page, a messages.AgentID, q messages.Query) error {
	var h projections.History
	items, err := folded(p, a, q, func() []projections.HistoryItem {
		return slices.DeleteFunc(h.View(), func(i projections.HistoryItem) bool { return !ofTurn(q, i.Turn) })
	}, &h)
	if err != nil {
		return err
	}
	m, from := g.marks(a), firstOf(q, len(items))
	for i, item := range items { // paged by line: an answer of several calls is not in the order of its events
		n := messages.EventNumber(i + 1)
		if n < from {
			continue
		}
		if !item.HasBlob() {
			if !p.line(n, item) {
				return nil
			}
			continue
		}
		m.blobs = nil
		whole, err := item.Whole(func(b messages.Blob, form messages.BlobForm) (string, error) {
			if err := g.stored(a, b); err != nil {
				return "", err
			}
			return m.fill(b, form)
		})
		if refused := new(messages.Error); errors.As(err, &refused) && (refused.Code == messages.NotFound || refused.Code == messages.Damaged) {
			item.Missing = refused.Message
		} else if err != nil {
			return err
		} else {
			item.Item = whole.WithoutBlobs()
		}
		if !m.line(p, n, item) {
			return nil
		}
	}
	return nil
}

// event writes an event with its payloads in it.
func (m *marks) event(p *page, f fact) (more bool) {
	m.blobs = nil
	f.ev, _ = messages.Whole(f.ev, m.fill) // fill never fails
	return m.line(p, f.n, f.json())
}

// blob writes the bytes of a blob from an offset on. A page ends in the middle of a large one: it
// need not fit into memory.
func (g *Gateway) blob(p *page, a messages.AgentID, q messages.Query) error {
	b, err := g.find(a, q.Blob)
	if err != nil {
		return err
	}
	if q.From > messages.EventNumber(b.Size) {
		return messages.Refuse(messages.BadInput, "blob %s has %d bytes: there is no byte %d", b.SHA256, b.Size, q.From)
	}
	r, err := g.open(g.ctx, a, b)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	offset, end := int64(q.From), int64(q.From)+pageSize
	if err := eventlog.Skip(r, offset); err != nil {
		return gone(a, b, err)
	}
	buf := make([]byte, pieceSize)
	for {
		n, err := io.ReadFull(r, buf)
		over := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !over {
			return gone(a, b, err)
		}
		if !p.line(messages.EventNumber(offset), messages.BlobPiece{Blob: b, Offset: offset, Data: buf[:n]}) || over {
			return nil
		}
		if offset += int64(n); offset >= end {
			p.next = messages.EventNumber(offset)
			return nil
		}
	}
}

// find is the agent's blob with that hash, or whose hash alone begins so.
func (g *Gateway) find(a messages.AgentID, b messages.Blob) (messages.Blob, error) {
	if b.Size > 0 {
		return b, nil
	}
	if b.SHA256 == "" {
		return b, messages.Refuse(messages.BadInput, "the view blob wants the hash of one: set \"blob\" to {\"sha256\":…} as an event names it")
	}
	found, err := g.listed(a, b)
	if err != nil {
		return b, err
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return b, messages.Refuse(messages.NotFound, "agent %s has no blob %q: its events name those that it has or had; one that is gone must be put back from a backup", a, b.SHA256)
	}
	return b, messages.Refuse(messages.BadInput, "%d blobs of agent %s begin with %q: write more of the hash", len(found), a, b.SHA256)
}

// listed are the agent's blobs whose hash begins so. The store lists those that are stored by
// another hash than their events do, so the log is read where the list alone is not enough.
func (g *Gateway) listed(a messages.AgentID, b messages.Blob) (found []messages.Blob, err error) {
	for have, err := range g.Blobs.ListBlobs(g.ctx, a) {
		switch {
		case err != nil:
			return nil, err
		case have.SHA256 == b.SHA256:
			return []messages.Blob{have}, nil
		case strings.HasPrefix(string(have.SHA256), string(b.SHA256)):
			found = append(found, have)
		}
	}
	named := encryptedBlobs{}
	if err := g.fold(a, 0, named); err != nil && messages.AsError(err).Code != messages.NotFound {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(have messages.Blob) bool { return named[have.SHA256].Stored != "" })
	for _, have := range named {
		same := func(other messages.Blob) bool { return other.SHA256 == have.SHA256 } // stored twice, say
		if strings.HasPrefix(string(have.SHA256), string(b.SHA256)) && !slices.ContainsFunc(found, same) {
			found = append(found, have)
		}
	}
	return found, nil
}

// encryptedBlobs are those that events name, by the hash that a store lists them by.
type encryptedBlobs map[messages.Digest]messages.Blob

// Apply takes the blobs of an event in.
func (s encryptedBlobs) Apply(_ messages.EventNumber, ev messages.Event) {
	for _, b := range messages.BlobsOf(ev) {
		if b.Stored != "" {
			s[b.Stored] = b
		}
	}
}
