package client

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// inbox holds the messages of one streamed reply, or the answers to the copies of one
// command, until they are read. It grows as they come, up to mostHeld.
type inbox struct {
	replies  *replies
	subjects []string // one for each endpoint that was asked, or copy that was published; oldest first
	wake     chan struct{}
	timer    *time.Timer
	// refused is what became of an earlier copy of a command; nil: nothing yet.
	refused *messages.Error

	mu   sync.Mutex
	msgs []*nats.Msg
	held int  // bytes of msgs
	full bool // what comes is dropped
	// failed is why some messages may be lost, or no more come; it is returned behind
	// those that are held.
	failed error
}

// mostHeld is how many bytes an inbox holds of what its reader has not read. Beyond it
// what comes is dropped, and the answer is lost behind what is held: its reader asks again
// from there. A page of a view is far smaller.
const mostHeld = 64 << 20

// messageCost is what a message takes in memory beside its data, roughly.
const messageCost = 512

func (c *Client) newInbox() *inbox {
	return &inbox{replies: c.replies, wake: make(chan struct{}, 1), timer: time.NewTimer(silence)}
}

// open returns another subject that in listens to.
func (in *inbox) open() (subject string, err error) {
	subject, err = in.replies.add(in)
	if err == nil {
		in.subjects = append(in.subjects, subject)
	}
	return subject, err
}

// newest reports whether a subject is the one opened last.
func (in *inbox) newest(subject string) bool { return subject == in.subjects[len(in.subjects)-1] }

// keep listens to one subject alone from now on.
func (in *inbox) keep(subject string) {
	if len(in.subjects) == 1 {
		return
	}
	in.replies.remove(in, subject)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.msgs = slices.DeleteFunc(in.msgs, func(m *nats.Msg) bool { return m.Subject != subject })
	in.held = 0
	for _, m := range in.msgs {
		in.held += len(m.Data) + messageCost
	}
}

// push adds a message. It does not block.
func (in *inbox) push(msg *nats.Msg) {
	in.mu.Lock()
	switch size := len(msg.Data) + messageCost; {
	case in.full:
	case in.held+size > mostHeld:
		in.full, in.failed = true, lost("the answer was read too slowly: more than %d MiB of it were waiting", mostHeld>>20)
	default:
		in.msgs, in.held = append(in.msgs, msg), in.held+size
	}
	in.mu.Unlock()
	in.signal()
}

// interrupt has next fail once what is held was read.
func (in *inbox) interrupt(err error) {
	in.mu.Lock()
	in.failed = err
	in.mu.Unlock()
	in.signal()
}

func (in *inbox) signal() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

func (in *inbox) close() {
	in.timer.Stop()
	in.replies.remove(in, "")
}

// lostError is the error of an answer that has not come whole, and may if it is asked for
// again.
type lostError struct {
	refused *messages.Error
	silent  bool // nothing has come in time, and may yet
}

// lost makes one.
func lost(format string, args ...any) error {
	return lostError{refused: messages.Refuse(messages.Unavailable, format, args...)}
}

// Error is the text of the refusal, for callers.
func (e lostError) Error() string { return e.refused.Error() }

// Unwrap returns the refusal that callers get.
func (e lostError) Unwrap() error { return e.refused }

// isLost reports whether asking again can bring an answer that was lost.
func isLost(err error) bool { return errors.As(err, new(lostError)) }

// isSilence reports whether an answer may still come.
func isSilence(err error) bool {
	var l lostError
	return errors.As(err, &l) && l.silent
}

// next returns the oldest message not yet taken. It waits for it until ctx ends, the
// connection changes, or nothing came for too long.
func (in *inbox) next(ctx context.Context, most time.Duration) (*nats.Msg, error) {
	in.timer.Reset(most)
	for {
		if msg, err := in.take(); msg != nil || err != nil {
			return msg, err
		}
		select {
		case <-in.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-in.timer.C:
			return nil, lostError{messages.Refuse(messages.Unavailable, "nothing was received for %v", most), true}
		}
	}
}

// take returns the oldest message; without one, once, why more may be lost; else nothing.
func (in *inbox) take() (*nats.Msg, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.msgs) == 0 {
		err := in.failed
		in.failed = nil
		return nil, err
	}
	msg := in.msgs[0]
	in.msgs[0] = nil
	in.msgs, in.held = in.msgs[1:], in.held-len(msg.Data)-messageCost
	return msg, nil
}

// answer waits for what becomes of a command: one of its copies was obeyed, or the newest
// was refused. A refusal of an older one is no answer, for a newer one may be obeyed: its
// agent may have come to life in between.
func (in *inbox) answer(ctx context.Context, most time.Duration) (messages.Answer, error) {
	for {
		msg, err := in.next(ctx, most)
		if err != nil {
			return messages.Answer{}, err
		}
		var answer messages.Answer
		if err := json.Unmarshal(msg.Data, &answer); err != nil {
			return messages.Answer{}, err
		}
		if answer.Err == nil || in.newest(msg.Subject) {
			return answer, nil
		}
		in.refused = answer.Err
	}
}
