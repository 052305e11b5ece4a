package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/cenkalti/backoff/v5"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster/transport"
	"github.com/reprise-dev/reprise/messages"
)

// asking gives agents what doors bring, wherever they live, and asks again, under
// one id, while an owner changes. What comes for one agent through one node is
// accepted in the order in which it came. The zero value is ready. Safe for
// concurrent use.
type asking struct {
	mu sync.Mutex
	// lines are the commands that are not settled, by agent, oldest first.
	lines map[messages.AgentID][]*asked
	// waits end the attempts at other nodes that are under way.
	waits map[*asked]context.CancelFunc
	// afar is how many commands were for agents of other nodes, repeated how often
	// one was sent again.
	afar, repeated atomic.Int64
}

// asked is a command on its way.
type asked struct {
	settled chan struct{} // closed when its sender has its answer
	at      *actor.PID    // whom it was sent to; nil: it waits to be sent, or sent again
}

const (
	// askedFor is how long a command without a deadline is tried.
	askedFor = 30 * time.Second
	// A command that another node does not answer is sent again after firstAttempt,
	// then after twice that, and so on: its node may be frozen, or never have had it.
	firstAttempt = time.Second
	mostAttempt  = 8 * time.Second
)

// begin takes a place behind those who ask the same agent. In the first place it may be
// sent at once. Behind commands that are all on their way to the same actor it may only
// where that is here: on the way to another node one can be lost, and the next one not.
func (q *asking) begin(a messages.AgentID, at *actor.PID, here bool) (mine *asked, now bool) {
	mine = &asked{settled: make(chan struct{})}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lines == nil {
		q.lines = make(map[messages.AgentID][]*asked)
	}
	now = at != nil && !slices.ContainsFunc(q.lines[a], func(before *asked) bool { return !here || before.at == nil || !before.at.Equal(at) })
	if now {
		mine.at = at
	}
	q.lines[a] = append(q.lines[a], mine)
	return mine, now
}

// failed says that a command is to be sent again. Those that come from now on wait
// for it.
func (q *asking) failed(mine *asked) {
	q.repeated.Add(1)
	q.mu.Lock()
	defer q.mu.Unlock()
	mine.at = nil
}

// end settles a command.
func (q *asking) end(a messages.AgentID, mine *asked) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.lines[a]
	i := slices.Index(line, mine)
	if line = slices.Delete(line, i, i+1); len(line) == 0 {
		delete(q.lines, a)
	} else {
		q.lines[a] = line
	}
	close(mine.settled)
}

// turn waits until all those before it are settled, in whatever order they are.
func (q *asking) turn(ctx context.Context, a messages.AgentID, mine *asked) error {
	for {
		q.mu.Lock()
		line := q.lines[a]
		i := slices.Index(line, mine)
		var before *asked
		if i > 0 {
			before = line[i-1]
		}
		q.mu.Unlock()
		if before == nil {
			return nil
		}
		select {
		case <-before.settled:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// afarUntil is ctx for an attempt at another node, which ends when the connection is made
// anew; done must be called.
func (q *asking) afarUntil(ctx context.Context, mine *asked, patience time.Duration) (_ context.Context, done func()) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waits == nil {
		q.waits = make(map[*asked]context.CancelFunc)
	}
	q.waits[mine] = cancel
	return ctx, func() {
		cancel()
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.waits, mine)
	}
}

// reconnected has sent again at once what waits for other nodes: their answers, or the
// commands themselves, may have been on the connection that was lost.
func (q *asking) reconnected() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for mine, end := range q.waits {
		mine.at = nil // nothing may pass it on the new connection
		end()
	}
}

// deliver puts a command of a door on its way, at once where no other is in its way, and
// gives a function that waits for the answer: as long as its ctx lasts, and for askedFor at
// most, after which no owner takes it; an input is not sent again after its own deadline. It
// must be called. What a node reads after it was frozen, or cut off, may have lain there since then,
// so the time counts from when the node was last known to be there.
func (h *host) deliver(d *actors.Deliver) (wait func(context.Context) (messages.Answer, error)) {
	read := time.Now()
	d.Sent = h.there()
	d.Deadline = d.Sent.Add(askedFor)
	pid, gone := h.where(d.Agent)
	here := pid != nil && transport.NodeOf(pid) == h.self
	if pid != nil && !here {
		h.asking.afar.Add(1)
	}
	mine, now := h.asking.begin(d.Agent, pid, here)
	var first *sent
	if now { // to that one, and not to whoever may be the owner by now, before what waits
		first = h.sendTo(pid, gone, d.Agent, d)
	}
	return func(ctx context.Context) (messages.Answer, error) {
		defer h.asking.end(d.Agent, mine)
		ctx, cancel := context.WithTimeout(ctx, askedFor)
		defer cancel()
		return h.again(ctx, d, read, mine, first)
	}
}

// again asks until there is an answer that asking again cannot change.
func (h *host) again(ctx context.Context, d *actors.Deliver, read time.Time, mine *asked, attempt *sent) (messages.Answer, error) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 20*time.Millisecond, 200*time.Millisecond
	for patience := firstAttempt; ; patience = min(2*patience, mostAttempt) {
		if attempt == nil {
			if err := h.asking.turn(ctx, d.Agent, mine); err != nil {
				return messages.Answer{}, late(d, err)
			}
			pid, gone := h.where(d.Agent)
			attempt = h.sendTo(pid, gone, d.Agent, d)
		}
		answer, err := h.attempt(ctx, mine, attempt, patience)
		if err == nil && answer.Err != nil {
			err = answer.Err
		}
		var refused *messages.Error
		if err == nil || !errors.As(err, &refused) || refused.Code != messages.Unavailable {
			return answer, h.unknownThere(d.Agent, err)
		}
		if answer.N != 0 { // it may be for an earlier life
			if !d.Sent.Before(read) || !h.wasSteady(ctx, read) {
				return answer, err // only its sender can tell whether it is still wanted
			}
			fresh := *d
			fresh.Sent, d = read, &fresh
		}
		if in, ok := d.Command.(messages.Input); ok && in.Deadline != nil && !time.Now().Before(*in.Deadline) || !time.Now().Before(d.Deadline) {
			return answer, err
		}
		attempt = nil
		h.asking.failed(mine)
		select {
		case <-time.After(pause.NextBackOff()):
		case <-ctx.Done():
			return messages.Answer{}, err
		}
	}
}

// wasSteady waits until it is known whether this node was neither frozen nor cut off when it
// read something, and reports that.
func (h *host) wasSteady(ctx context.Context, read time.Time) bool {
	for {
		steady, known := h.steady(read)
		if known || !steady {
			return steady
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return false
		}
	}
}

// unknownThere says more of the refusal of an agent whose owner does not define its kind:
// a door lets pass the kinds of all nodes.
func (h *host) unknownThere(a messages.AgentID, err error) error {
	var refused *messages.Error
	if !errors.As(err, &refused) || refused.Code != messages.UnknownKind {
		return err
	}
	owner, _ := h.place(a.Partition())
	return messages.Refuse(messages.Unavailable, "agent %s belongs to node %s, which defines no kind %q, though another node does: start all nodes with the same agents (what is published to the input subject is held until then)",
		a, owner, a.Kind)
}

// attempt waits for the answer to one sending. A local agent answers or ends.
func (h *host) attempt(ctx context.Context, mine *asked, it *sent, patience time.Duration) (messages.Answer, error) {
	if it.to != nil && transport.NodeOf(it.to) != h.self {
		var done func()
		ctx, done = h.asking.afarUntil(ctx, mine, patience)
		defer done()
	}
	return it.wait(ctx)
}

func late(d *actors.Deliver, err error) *messages.Error {
	return messages.Refuse(messages.Unavailable, "agent %s could not be asked in time (%v): try again with the same id", d.Agent, err)
}
