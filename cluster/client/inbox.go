package client

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// inbox gathers the messages of one streamed reply. It grows as they come, so
// that a reader that pauses loses none, and costs little when they are few,
// which a synchronous subscription's channel of half a megabyte does not.
type inbox struct {
	subs  []*nats.Subscription // one for each door that was asked, oldest first; or one for all copies of a command
	wake  chan struct{}
	timer *time.Timer
	// copies counts those of a command, and newest is where the answer to the last one
	// comes. refused is what became of an earlier one; nil: nothing yet.
	copies  int
	newest  string
	refused *messages.Error
	// changed receives when the connection was made anew, so that a part of the
	// reply may be lost, and when it was closed for good. Nil: never.
	changed chan nats.Status

	mu   sync.Mutex
	msgs []*nats.Msg
	only string // the subject that is heard; empty: each
}

func newInbox() *inbox {
	return &inbox{wake: make(chan struct{}, 1), timer: time.NewTimer(silence)}
}

// open listens to another subject, which reply gives from now on.
func (in *inbox) open(nc *nats.Conn) error { return in.listen(nc, nc.NewInbox()) }

// reply is the newest subject.
func (in *inbox) reply() string { return in.subs[len(in.subs)-1].Subject }

// copied is the subject for what becomes of another copy of a command. All copies' have
// one subscription, so that their answers keep their order.
func (in *inbox) copied(nc *nats.Conn) (subject string, err error) {
	if len(in.subs) == 0 {
		if err := in.listen(nc, nc.NewInbox()+".*"); err != nil {
			return "", err
		}
	}
	in.copies++
	in.newest = strings.TrimSuffix(in.reply(), "*") + strconv.Itoa(in.copies)
	return in.newest, nil
}

func (in *inbox) listen(nc *nats.Conn, subject string) error {
	sub, err := nc.Subscribe(subject, in.push)
	if err != nil {
		return err
	}
	in.subs = append(in.subs, sub)
	return sub.SetPendingLimits(-1, -1)
}

// keep goes on listening to one subject alone.
func (in *inbox) keep(subject string) {
	in.mu.Lock()
	in.only = subject
	in.msgs = slices.DeleteFunc(in.msgs, func(m *nats.Msg) bool { return m.Subject != subject })
	in.mu.Unlock()
	for _, sub := range in.subs {
		if sub.Subject != subject {
			_ = sub.Unsubscribe() // fails only with the connection
		}
	}
}

func (in *inbox) push(msg *nats.Msg) {
	in.mu.Lock()
	if in.only == "" || in.only == msg.Subject {
		in.msgs = append(in.msgs, msg)
	}
	in.mu.Unlock()
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

func (in *inbox) close() {
	in.timer.Stop()
	for _, sub := range in.subs {
		_ = sub.Unsubscribe() // fails only with the connection, or because it was before
	}
}

// lostError says that an answer, or a part of it, has not come, and may come if it is
// asked for again.
type lostError struct {
	refused *messages.Error
	silent  bool // nothing has come in time, and may yet
}

// lost makes one.
func lost(format string, args ...any) error {
	return lostError{refused: messages.Refuse(messages.Unavailable, format, args...)}
}

// Error is what callers are told.
func (e lostError) Error() string { return e.refused.Error() }

// Unwrap is the refusal that callers are told.
func (e lostError) Unwrap() error { return e.refused }

// isLost says whether to ask again can bring an answer that was lost.
func isLost(err error) bool { return errors.As(err, new(lostError)) }

// isSilence says whether an answer may still come.
func isSilence(err error) bool {
	var l lostError
	return errors.As(err, &l) && l.silent
}

// next gives the oldest message not yet taken, waiting for it until ctx ends
// or nothing was heard for too long.
func (in *inbox) next(ctx context.Context, most time.Duration) (*nats.Msg, error) {
	in.timer.Reset(most)
	for {
		in.mu.Lock()
		if len(in.msgs) > 0 {
			msg := in.msgs[0]
			in.msgs[0] = nil
			in.msgs = in.msgs[1:]
			in.mu.Unlock()
			return msg, nil
		}
		in.mu.Unlock()
		select {
		case <-in.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		case status := <-in.changed:
			if status != nats.CONNECTED {
				return nil, nats.ErrConnectionClosed
			}
			return nil, lost("the connection to NATS was broken and has been made again: a part of the answer may be lost")
		case <-in.timer.C:
			return nil, lostError{messages.Refuse(messages.Unavailable, "nothing was heard for %v", most), true}
		}
	}
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
		if answer.Err == nil || msg.Subject == in.newest {
			return answer, nil
		}
		in.refused = answer.Err
	}
}
