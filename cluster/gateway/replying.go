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

// replying is the reply to one request on its way. Safe for concurrent use.
type replying struct {
	g  *Gateway
	to string
	// attentive says that the caller wants to hear that we are there, and to have the
	// messages numbered: see messages.HeaderAlive.
	attentive bool

	mu    sync.Mutex
	after string    // the event up to which the caller has seen everything; empty: its facts show it
	parts int       // numbered so far
	sent  time.Time // when the newest was

	failed *messages.Error // its end; nil: none, or no error
}

func (g *Gateway) replying(r *nats.Msg) *replying {
	return &replying{g: g, to: r.Reply, attentive: r.Header.Get(messages.HeaderAlive) != "", sent: time.Now()}
}

// send sends a message. One that the broken connection does not take has its number
// all the same: by that its caller learns that it is lost.
func (r *replying) send(msg *nats.Msg) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = time.Now()
	if r.attentive {
		r.parts++
		msg.Header.Set(messages.HeaderPart, strconv.Itoa(r.parts))
		if r.after != "" {
			msg.Header.Set(messages.HeaderAfter, r.after)
		}
	}
	return r.g.Conn.PublishMsg(msg)
}

// data sends a message that has no headers of its own.
func (r *replying) data(b []byte) error {
	msg := nats.NewMsg(r.to)
	msg.Data = b
	return r.send(msg)
}

// say sends one JSON message and says whether that went out.
func (r *replying) say(v any) bool {
	b, err := json.Marshal(v)
	return err == nil && r.data(b) == nil
}

func (r *replying) ack() { r.say(chunk{messages.ChunkStatus, "ack"}) }

// seen notes that the caller has seen everything up to event n, of which it gets no facts.
func (r *replying) seen(n messages.EventNumber) {
	r.mu.Lock()
	r.after = number(n)
	r.mu.Unlock()
}

// end ends the reply with a message, which may be empty. Where the broken connection does
// not take it, an attentive caller gets the count of what was sent once it is back: no
// later number shows that something is lost.
func (r *replying) end(last *nats.Msg) {
	if r.attentive {
		last.Header.Set(messages.HeaderEnd, "1")
		if r.send(last) != nil {
			r.g.Hub.keep(r.alive())
		}
		return
	}
	if len(last.Data) > 0 || len(last.Header) > 0 {
		_ = r.send(last) // a caller that has gone has its turn all the same
	}
	_ = r.data(nil)
}

// fail ends the reply with an error, in the headers that NATS services use.
func (r *replying) fail(why *messages.Error) {
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

// alive makes a message that says how many were numbered so far; without header if the
// caller has not asked for that.
func (r *replying) alive() *nats.Msg {
	msg := nats.NewMsg(r.to)
	if r.attentive {
		r.mu.Lock()
		defer r.mu.Unlock()
		msg.Header.Set(messages.HeaderAlive, strconv.Itoa(r.parts))
	}
	return msg
}

// beat tells an attentive caller that we are there.
func (r *replying) beat() {
	if r.attentive {
		_ = r.g.Conn.PublishMsg(r.alive()) // the next one follows
	}
}

// silent is for how long nothing was sent that has a meaning of its own.
func (r *replying) silent() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.sent)
}

// firstBeat is how long an attentive caller waits for the first word, far below what
// our own client takes for silence.
const firstBeat = 300 * time.Millisecond

// company keeps the caller company while its answer is made: an attentive one from
// firstBeat on; others by say, where that is not nil, from keepAlive on. It ends by
// leave, behind which nothing of the kind is sent.
func (r *replying) company(say func()) (leave func()) {
	first := keepAlive
	if r.attentive {
		first, say = firstBeat, r.beat
	}
	if say == nil {
		return func() {}
	}
	var mu sync.Mutex
	var over bool
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(first, func() {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			say()
			timer.Reset(keepAlive)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
	}
}
