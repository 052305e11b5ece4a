package client

import (
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
)

// replies receives the answers to all requests of a client by one subscription. It
// subscribes with the first request and keeps the subscription as long as the connection
// lives. Each request gets subjects of its own below it. Safe for concurrent use.
type replies struct {
	nc *nats.Conn

	mu      sync.Mutex
	watched bool               // by a goroutine that ends with the connection
	sub     *nats.Subscription // nil: none yet, or the server refused it
	prefix  string
	last    uint64
	open    map[string]*inbox // by subject
}

// add returns a new subject whose messages go to in.
func (r *replies) add(in *inbox) (subject string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sub == nil {
		if err := r.subscribe(); err != nil {
			return "", err
		}
	}
	r.last++
	subject = r.prefix + strconv.FormatUint(r.last, 36)
	r.open[subject] = in
	return subject, nil
}

// subscribe makes the subscription; r.mu is held.
func (r *replies) subscribe() error {
	prefix := r.nc.NewInbox() + "."
	sub, err := r.nc.Subscribe(prefix+"*", r.deliver)
	if err != nil {
		return err
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil { // deliver is quick, and bounds what each request holds
		return err
	}
	r.sub, r.prefix = sub, prefix
	if !r.watched {
		r.watched, r.open = true, make(map[string]*inbox)
		go r.watch(r.nc.StatusChanged(nats.CONNECTED, nats.CLOSED))
	}
	return nil
}

// deliver hands a message to its request. To a keep-alive for a request that has ended it
// answers as the server does for a subject without subscribers.
func (r *replies) deliver(msg *nats.Msg) {
	r.mu.Lock()
	in := r.open[msg.Subject]
	if in != nil {
		in.push(msg)
	}
	r.mu.Unlock()
	if in == nil && msg.Reply != "" {
		_ = r.nc.PublishMsg(&nats.Msg{Subject: msg.Reply, Header: nats.Header{"Status": {"503"}}}) // the next one is answered, too
	}
}

// watch interrupts all requests when the connection was made again, so that a part of an
// answer may be lost, and when it is closed.
func (r *replies) watch(changed chan nats.Status) {
	defer r.nc.RemoveStatusListener(changed)
	for !r.nc.IsClosed() {
		if <-changed == nats.CONNECTED {
			r.interrupt(lost("the connection to NATS was broken and has been made again: a part of the answer may be lost"))
		}
	}
	r.interrupt(nats.ErrConnectionClosed)
}

func (r *replies) interrupt(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range r.open {
		in.interrupt(err)
	}
}

// remove ends the delivery to all subjects of in but one; empty: to all.
func (r *replies) remove(in *inbox, but string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, subject := range in.subjects {
		if subject != but {
			delete(r.open, subject)
		}
	}
}

// refused drops the subscription, which the server does not allow: the next request
// subscribes again.
func (r *replies) refused() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sub != nil {
		_ = r.sub.Unsubscribe() // fails only with the connection
		r.sub = nil
	}
}
