package gateway

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func number(n messages.EventNumber) string { return strconv.FormatUint(uint64(n), 10) }

// eventNumber reads a number from a header; what is none is 0.
func eventNumber(s string) messages.EventNumber {
	n, _ := strconv.ParseUint(s, 10, 64)
	return messages.EventNumber(n)
}

// fact is an event with its place.
type fact struct {
	n     messages.EventNumber
	seq   uint64
	frame messages.FrameID
	at    time.Time
	by    *messages.Person
	ev    messages.Event
}

func (f fact) json() projections.EventJSON {
	e := projections.NewEventJSON(f.n, f.seq, f.frame, f.at, f.ev)
	e.Person = f.by
	return e
}

// append appends the fact as a JSON object.
func (f fact) append(b []byte) []byte { return f.json().Append(b) }

// turn is the turn that the event names; empty if it names none.
func (f fact) turn() messages.TurnID { return messages.TurnOf(f.ev) }

// watcher passes on an agent's events from one on, in order, without gap or repeat: those that
// came before from the log, those that come from the broker. If the broker had to drop some, they
// are read from the log.
type watcher struct {
	log   eventlog.Reader
	agent messages.AgentID
	feed  *feed
	next  messages.EventNumber
	// named is the event that the agent's owner has named as the first of a frame; 0: none.
	named messages.EventNumber
	// after is behind a frame whose events were all passed on, near the next one. Zero: the next
	// one is looked for.
	after eventlog.Position
	// fact and delta are called for what comes; false ends the watch. flush is
	// called after the facts of each frame; nil: nothing is.
	fact  func(fact) bool
	flush func()
	delta func(actors.Delta) bool
	// idle is called when nothing came for as long as idleAfter; false ends the watch.
	idleAfter time.Duration
	idle      func() bool
	// until ends the watch however much comes. Zero: never.
	until time.Time
	// behind reports whether the log could not be read though it may hold more.
	behind bool
}

// past reads what is in the log from the next event on; more is false when the
// watch has ended.
func (w *watcher) past(ctx context.Context) (more bool, err error) {
	for rec, err := range w.read(ctx) {
		if err != nil {
			return false, err
		}
		if !w.frame(rec.Seq, rec.Frame) {
			return false, nil
		}
		w.after = rec.Position()
	}
	return true, nil
}

// read reads from the next event on, or from somewhat before it.
func (w *watcher) read(ctx context.Context) iter.Seq2[eventlog.Recorded, error] {
	if w.after.Frame == "" {
		r := eventlog.From(w.next)
		r.Seen = w.next == w.named
		return w.log.Read(ctx, w.agent, r)
	}
	return func(yield func(eventlog.Recorded, error) bool) {
		for rec, err := range w.log.Read(ctx, w.agent, eventlog.Range{After: w.after, Seen: true}) {
			if errors.Is(err, eventlog.ErrElsewhere) { // the agent was deleted since
				w.log.Read(ctx, w.agent, eventlog.From(w.next))(yield)
				return
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// frame passes on those events of a frame that were not passed on before.
func (w *watcher) frame(seq uint64, f *messages.Frame) (more bool) {
	by := f.Cause.Person()
	for i, ev := range f.Events {
		n := f.First + messages.EventNumber(i)
		if n < w.next {
			continue
		}
		if !w.fact(fact{n, seq, f.ID, f.Time, by, ev}) {
			return false
		}
		w.next = n + 1
	}
	if w.flush != nil {
		w.flush()
	}
	return true
}

// run watches until a callback says no or ctx ends.
func (w *watcher) run(ctx context.Context) error {
	timer := time.NewTimer(w.idleAfter)
	defer timer.Stop()
	for w.until.IsZero() || time.Now().Before(w.until) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			if !w.idle() {
				return nil
			}
			if !w.behind {
				break
			}
			if more, err := w.missed(ctx); err != nil || !more {
				return err
			}
		case <-w.feed.wake:
			if more, err := w.taken(ctx); err != nil || !more {
				return err
			}
		}
		timer.Reset(w.idleAfter)
	}
	return nil
}

// missed reads from the log what was not received, if there is something.
func (w *watcher) missed(ctx context.Context) (more bool, err error) {
	tail, err := w.log.Head(ctx, w.agent)
	if w.behind = err != nil && ctx.Err() == nil; err != nil || tail.Last < w.next {
		return true, nil
	}
	return w.more(ctx)
}

// more reads what the log holds from the next event on. A log that cannot be read now is asked
// again later.
func (w *watcher) more(ctx context.Context) (more bool, err error) {
	more, err = w.past(ctx)
	if w.behind = errors.Is(err, eventlog.ErrUnavailable) && ctx.Err() == nil; w.behind {
		return true, nil
	}
	return more, err
}

// taken passes on what has gathered in the feed.
func (w *watcher) taken(ctx context.Context) (more bool, err error) {
	items, lost := w.feed.take()
	for _, it := range items {
		if more, err := w.item(ctx, it); err != nil || !more {
			return false, err
		}
	}
	if lost {
		if more, err := w.missed(ctx); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

func (w *watcher) item(ctx context.Context, it item) (more bool, err error) {
	switch {
	case it.delta != nil:
		return w.delta(*it.delta), nil
	case it.reached == everything:
		return w.missed(ctx)
	case it.reached >= w.next:
		return w.more(ctx)
	case it.commit == nil: // it was read already
		return true, nil
	case it.commit.Frame.First > w.next:
		return w.missed(ctx)
	}
	return w.frame(it.commit.Seq, it.commit.Frame), nil
}
