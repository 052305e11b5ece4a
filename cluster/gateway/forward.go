package gateway

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/reprise-dev/reprise/messages"
)

// The headers of a forwarded request: the subject that it was sent to and
// where its sender waits.
const (
	headerFor     = "Reprise-Forwarded-For"
	headerReplyTo = "Reprise-Forwarded-Reply"
)

// forwardRoom is what a forwarded request may have beside the original.
const forwardRoom = 1 << 10

// request is what came to a door.
type request struct {
	*nats.Msg
	// receipt is where the door that has sent it on waits for a receipt, and
	// then for the word that the reply is over. Empty: it was sent to us.
	receipt string
}

// receipts are the requests that other nodes answer, so that their senders can
// be told when that node is gone.
type receipts struct {
	prefix string

	mu      sync.Mutex
	waiting map[string]*receipt
}

type receipt struct {
	reply     string
	owner     string
	partition messages.Partition
	pending   bool        // the owner has not said that it has the request
	timer     *time.Timer // until it must have
}

const (
	// receiptWithin is how long an owner may take to say that it has a request.
	receiptWithin = 3 * time.Second
	// ownersLookedAt is how often the owners of what was forwarded are looked at.
	ownersLookedAt = 250 * time.Millisecond
)

// over is what an owner says when a reply has ended.
var over = []byte("over")

// direct is the subject on which a node takes requests that others forward.
func (g *Gateway) direct(node string) string {
	root, _, _ := strings.Cut(g.Subjects.Any("q"), ".")
	return "_actor." + root + ".door." + node
}

// elsewhere hands a request to the node that owns the partition, if it is not
// this one; the owner answers the caller itself. A request is forwarded once,
// with the id that this door made for it.
func (g *Gateway) elsewhere(p messages.Partition, r request, id string) bool {
	owner := g.OwnerOf(p)
	switch {
	case owner == g.Self:
		return false
	case owner == "" || r.receipt != "":
		g.fail(r.Reply, messages.Refuse(messages.Unavailable, "partition %s is changing hands: try again with the same id", p))
		return true
	}
	out := &nats.Msg{Subject: g.direct(owner), Header: nats.Header{}, Data: r.Data}
	for name, values := range r.Header {
		out.Header[name] = slices.Clone(values)
	}
	out.Header.Set(headerFor, r.Subject)
	out.Header.Set(headerReplyTo, r.Reply)
	if id != "" {
		out.Header.Set(messages.HeaderID, id)
	}
	out.Reply = g.expectReceipt(receipt{pending: true, reply: r.Reply, owner: owner, partition: p})
	switch err := g.Conn.PublishMsg(out); {
	case errors.Is(err, nats.ErrMaxPayload):
		g.receipts.take(out.Reply)
		g.fail(r.Reply, messages.Refuse(messages.TooLarge, "the request has %d bytes, which is too near to what the NATS server takes (%d, max_payload) to be sent on to the agent's node: make it %d bytes shorter", r.Size(), g.Conn.MaxPayload(), forwardRoom))
	case err != nil:
		g.noReceipt(out.Reply)
	}
	return true
}

func (g *Gateway) expectReceipt(w receipt) (subject string) {
	subject = g.receipts.prefix + nuid.Next()
	g.receipts.mu.Lock()
	defer g.receipts.mu.Unlock()
	w.timer = time.AfterFunc(receiptWithin, func() { g.noReceipt(subject) })
	g.receipts.waiting[subject] = &w
	return subject
}

// received notes a receipt, that a reply is over, or the server's word that the
// owner is gone.
func (g *Gateway) received(r request) {
	switch {
	case r.Header.Get("Status") == "503":
		g.noReceipt(r.Subject)
	case bytes.Equal(r.Data, over):
		g.receipts.take(r.Subject)
	default:
		g.receipts.mu.Lock()
		defer g.receipts.mu.Unlock()
		if w := g.receipts.waiting[r.Subject]; w != nil {
			w.timer.Stop()
			w.pending = false
		}
	}
}

func (rs *receipts) take(subject string) *receipt {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	w := rs.waiting[subject]
	if w != nil {
		w.timer.Stop()
		delete(rs.waiting, subject)
	}
	return w
}

func (g *Gateway) noReceipt(subject string) {
	if w := g.receipts.take(subject); w != nil {
		g.fail(w.reply, messages.Refuse(messages.Unavailable, "the agent's owner cannot be reached or has changed: ask again with the same id"))
	}
}

// watchOwners tells the senders of forwarded requests whose owner has changed.
func (g *Gateway) watchOwners() {
	ticker := time.NewTicker(ownersLookedAt)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			for _, subject := range g.receipts.list(func(w *receipt) bool { return g.OwnerOf(w.partition) != w.owner }) {
				g.noReceipt(subject)
			}
		case <-g.ctx.Done():
			return
		}
	}
}

func (rs *receipts) list(chosen func(*receipt) bool) (subjects []string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for subject, w := range rs.waiting {
		if chosen(w) {
			subjects = append(subjects, subject)
		}
	}
	return subjects
}

// closeReceipts forgets what other nodes answer and fails what they have not
// said to have.
func (g *Gateway) closeReceipts() {
	for _, subject := range g.receipts.list(func(*receipt) bool { return true }) {
		if w := g.receipts.take(subject); w != nil && w.pending {
			g.fail(w.reply, errShut)
		}
	}
}

// forwarded takes a request from another node's door.
func (g *Gateway) forwarded(r request) {
	if !g.answerable(r) {
		return
	}
	_ = g.Conn.Publish(r.Reply, nil) // the receipt; without it the caller tries again
	r.receipt, r.Subject, r.Reply = r.Reply, r.Header.Get(headerFor), r.Header.Get(headerReplyTo)
	switch {
	case strings.HasPrefix(r.Subject, "agents.prompt."):
		g.prompt(r)
	case strings.HasPrefix(r.Subject, "agents.status."):
		g.status(r)
	default:
		g.query(r)
	}
}

// over tells the door that has sent a request on that its reply has ended.
func (g *Gateway) over(r request) {
	if r.receipt != "" {
		_ = g.Conn.Publish(r.receipt, over) // a loss costs the door a few bytes
	}
}
