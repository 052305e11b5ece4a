package gateway

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// page is a streamed reply of JSON lines, several to a message.
type page struct {
	g     *Gateway
	to    string
	limit int
	// eager sends each line at once.
	eager bool

	buf   bytes.Buffer
	lines int
	sent  int                  // bytes
	next  messages.EventNumber // where the next page begins; 0: there is none
	last  messages.EventNumber
	err   error // why nothing more can be sent
}

// The bounds of a page.
const (
	defaultLimit = 1000
	maxLimit     = 10_000
	messageSize  = 64 << 10
	// pageSize is how many bytes a page may have when another line begins: what
	// a reader must hold that is slower than we are.
	pageSize = 8 << 20
)

// line adds a line that tells of event n and says whether the page has room
// for more. A page ends between two events.
func (p *page) line(n messages.EventNumber, v any) (more bool) {
	return p.lineWith(n, v, (*page).write)
}

// lineWith is line for a value whose JSON is written by write.
func (p *page) lineWith(n messages.EventNumber, v any, write func(*page, []byte)) (more bool) {
	limit := p.limit
	if limit <= 0 || limit > maxLimit {
		limit = defaultLimit
	}
	if (p.lines >= limit || p.sent >= pageSize) && n != p.last {
		p.next = n
		return false
	}
	b, err := json.Marshal(v)
	if err != nil {
		p.err = err
		return false
	}
	write(p, b)
	p.write([]byte{'\n'})
	p.lines, p.last = p.lines+1, n
	if p.eager || p.buf.Len() >= messageSize {
		return p.flush()
	}
	return p.err == nil
}

func (p *page) write(b []byte) {
	p.buf.Write(b)
	p.sent += len(b)
}

// flush sends what has gathered. A line that is larger than a message goes out
// in several; the reader joins them at the line's end.
func (p *page) flush() bool {
	most := max(messageSize, int(p.g.Conn.MaxPayload())/2)
	for p.buf.Len() > 0 && p.err == nil {
		p.err = p.g.Conn.Publish(p.to, bytes.Clone(p.buf.Next(most)))
	}
	return p.err == nil
}

// finish sends the end, with the place where the next page begins. A page that
// is not whole has no end but an error.
func (p *page) finish() error {
	if refused := new(messages.Error); errors.As(p.err, &refused) {
		return refused
	}
	if !p.flush() {
		return messages.Refuse(messages.Unavailable, "the view was cut short: %v", p.err)
	}
	msg := nats.NewMsg(p.to)
	if p.next != 0 {
		msg.Header.Set(messages.HeaderNext, number(p.next))
	}
	return p.g.Conn.PublishMsg(msg)
}
