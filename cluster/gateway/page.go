package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// page is a streamed reply of JSON lines, several to a message.
type page struct {
	g     *Gateway
	to    *reply
	limit int
	// eager sends each line at once.
	eager bool

	buf   bytes.Buffer
	lines int
	sent  int                  // bytes
	next  messages.EventNumber // where the next page begins; 0: there is none
	rest  any                  // what it is made of; nil: that is found again
	last  messages.EventNumber
	err   error // why nothing more can be sent

	// cursor is that of the newest row, more that there are rows behind it,
	// unreadable how many of their agents' frames could not be read, encrypted how many agents were not
	// searched for words, and uncovered the partitions
	// of which the rows do not show everything.
	cursor     string
	more       bool
	unreadable int
	encrypted  int
	uncovered  []messages.Uncovered
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

// line adds a line about event n and reports whether the page has room
// for more. A page ends between two events.
func (p *page) line(n messages.EventNumber, v any) (more bool) {
	return p.lineWith(n, v, (*page).write)
}

// lineWith is line for a value whose JSON is written by write.
func (p *page) lineWith(n messages.EventNumber, v any, write func(*page, []byte)) (more bool) {
	if p.full(n) {
		return false
	}
	b, err := marshalled(v)
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

// marshalled returns the JSON of v. A line that is JSON already is kept as it is.
func marshalled(v any) ([]byte, error) {
	if line, ok := v.(json.RawMessage); ok {
		return line, nil
	}
	return json.Marshal(v)
}

// full reports whether the page has no room for the line about event n, with which
// the next one begins then.
func (p *page) full(n messages.EventNumber) bool {
	if p.lines < p.most() && p.sent < pageSize || n == p.last {
		return false
	}
	p.next = n
	return true
}

func (p *page) write(b []byte) {
	p.buf.Write(b)
	p.sent += len(b)
}

// most is how many lines the page has room for.
func (p *page) most() int { return mostLines(p.limit) }

// mostLines is how many lines a page with that limit has room for.
func mostLines(limit int) int {
	if limit <= 0 || limit > maxLimit {
		return defaultLimit
	}
	return limit
}

// after adds a row and reports whether the page has room for more; with cursor, the next
// page is asked for from behind the row.
func (p *page) after(cursor string, v any) (more bool) {
	if cursor != "" && (p.lines >= p.most() || p.sent >= pageSize) {
		p.more = true
		return false
	}
	p.cursor = cursor
	return p.line(p.last, v)
}

// flush sends what has gathered. A line that is larger than a message goes out
// in several; the reader joins them at the line's end.
func (p *page) flush() bool {
	most := max(1, int(p.g.Conn.MaxPayload())/2)
	for p.buf.Len() > 0 && p.err == nil {
		p.err = p.to.data(bytes.Clone(p.buf.Next(most)))
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
	msg := nats.NewMsg(p.to.to)
	if p.next != 0 {
		msg.Header.Set(messages.HeaderNext, number(p.next))
	}
	if p.more {
		msg.Header.Set(messages.HeaderCursor, p.cursor)
	}
	if p.unreadable > 0 {
		msg.Header.Set(messages.HeaderUnreadable, strconv.Itoa(p.unreadable))
	}
	if p.encrypted > 0 {
		msg.Header.Set(messages.HeaderEncrypted, strconv.Itoa(p.encrypted))
	}
	if len(p.uncovered) > 0 {
		uncovered, err := json.Marshal(p.uncovered)
		if err != nil {
			return err
		}
		msg.Header.Set(messages.HeaderUncovered, string(uncovered))
	}
	return p.to.send(msg)
}
