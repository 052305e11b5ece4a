package gateway

import (
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/reprise-dev/reprise/messages"
)

// reply is the reply to one request: messages, and an end. Safe for concurrent use.
type reply struct {
	g  *Gateway
	to string
	// numbered reports that the caller wants its messages numbered, and keep-alives from the
	// start that say how many there were: see messages.HeaderAlive.
	numbered bool

	mu     sync.Mutex
	after  string          // the event up to which the caller has everything; empty: its facts show it
	parts  int             // numbered so far
	sent   time.Time       // when the newest was
	failed *messages.Error // the error that was its end; nil: none
}

func (g *Gateway) replyTo(r *nats.Msg) *reply {
	return &reply{g: g, to: r.Reply, numbered: r.Header.Get(messages.HeaderAlive) != "", sent: time.Now()}
}

// chunk is a message of the reply to a prompt: see [messages.ChunkResponse].
type chunk struct {
	Type string `json:"type"`
	Data any    `json:"data"`
}

// chunk sends a chunk and reports whether the connection has taken it.
func (r *reply) chunk(kind string, data any) (sent bool) {
	b, err := json.Marshal(chunk{kind, data})
	return err == nil && r.data(b) == nil
}

// data sends a message that has no headers of its own.
func (r *reply) data(b []byte) error {
	msg := nats.NewMsg(r.to)
	msg.Data = b
	return r.send(msg)
}

// send sends a message. One that the broken connection does not take has its number
// all the same: by that its caller learns that it is lost.
func (r *reply) send(msg *nats.Msg) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = time.Now()
	if r.numbered {
		r.parts++
		msg.Header.Set(messages.HeaderPart, strconv.Itoa(r.parts))
		if r.after != "" {
			msg.Header.Set(messages.HeaderAfter, r.after)
		}
	}
	return r.g.Conn.PublishMsg(msg)
}

// complete notes that the caller has everything up to event n, of which it gets no facts.
func (r *reply) complete(n messages.EventNumber) {
	r.mu.Lock()
	r.after = number(n)
	r.mu.Unlock()
}

// end ends the reply with a message, which may be empty. Where the broken connection does
// not take it, a caller with numbers gets the count of what was sent once it is back: no
// later number shows that something is lost.
func (r *reply) end(last *nats.Msg) {
	if r.numbered {
		last.Header.Set(messages.HeaderEnd, "1")
		if r.send(last) != nil {
			r.g.Broker.keep(r.alive())
		}
		return
	}
	if len(last.Data) > 0 || len(last.Header) > 0 {
		_ = r.send(last) // a caller that has gone has its turn all the same
	}
	_ = r.data(nil)
}

// fail ends the reply with an error, in the headers that NATS services use.
func (r *reply) fail(why *messages.Error) {
	r.failed = why
	r.end(failure(r.to, why))
}

// failure returns the message by which a reply fails.
func failure(to string, why *messages.Error) *nats.Msg {
	msg := nats.NewMsg(to)
	msg.Header.Set(micro.ErrorCodeHeader, strconv.Itoa(why.Code.Status()))
	msg.Header.Set(micro.ErrorHeader, messages.OneLine(why.Message))
	msg.Header.Set(messages.HeaderCode, string(why.Code))
	return msg
}

// alive returns a message that holds how many were numbered so far; without header if the
// caller has not asked for that.
func (r *reply) alive() *nats.Msg {
	msg := nats.NewMsg(r.to)
	if r.numbered {
		r.mu.Lock()
		defer r.mu.Unlock()
		msg.Header.Set(messages.HeaderAlive, strconv.Itoa(r.parts))
	}
	return msg
}

// silence returns for how long nothing was sent but keep-alives.
func (r *reply) silence() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.sent)
}

// firstAlive is when a caller with numbers gets its first keep-alive, far below what our own client
// takes for silence.
const firstAlive = 300 * time.Millisecond

// keepAlive sends keep-alives while the answer is made: counts to a caller with numbers, to
// others a chunk of a kind, or nothing if that is empty. After stop nothing of the kind is sent.
func (r *reply) keepAlive(kind string, data any) (stop func()) {
	if kind == "" && !r.numbered {
		return func() {}
	}
	first := keepAlive
	if r.numbered {
		first = firstAlive
	}
	var mu sync.Mutex
	var over bool
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(first, func() {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case over:
			return
		case r.numbered:
			_ = r.g.Conn.PublishMsg(r.alive()) // the next one follows
		default:
			r.chunk(kind, data)
		}
		timer.Reset(keepAlive)
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
	}
}
