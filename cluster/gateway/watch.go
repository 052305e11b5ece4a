package gateway

import (
	"context"
	"strconv"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func number(n messages.EventNumber) string { return strconv.FormatUint(uint64(n), 10) }

// fact is an event with its place.
type fact struct {
	n     messages.EventNumber
	seq   uint64
	frame messages.FrameID
	at    time.Time
	ev    messages.Event
}

func (f fact) json() projections.EventJSON {
	return projections.NewEventJSON(f.n, f.seq, f.frame, f.at, f.ev)
}

// watcher gives an agent's events from one on, in order, without gap or
// repeat: those that came before from the log, those that come from the hub.
// If the hub had to drop some, they are read from the log.
type watcher struct {
	log   eventlog.Reader
	agent messages.AgentID
	feed  *feed
	next  messages.EventNumber
	// fact and delta are called for what comes; false ends the watch.
	fact  func(fact) bool
	delta func(actors.Delta) bool
	// quiet is called when nothing came for so long; false ends the watch.
	quietAfter time.Duration
	quiet      func() bool
}

// past reads what is in the log from the next event on; more is false when the
// watch has ended.
func (w *watcher) past(ctx context.Context) (more bool, err error) {
	for rec, err := range w.log.Read(ctx, w.agent, w.next) {
		if err != nil {
			return false, err
		}
		if !w.frame(rec.Seq, rec.Frame) {
			return false, nil
		}
	}
	return true, nil
}

// frame gives the events of a frame that were not given yet.
func (w *watcher) frame(seq uint64, f *messages.Frame) (more bool) {
	for i, ev := range f.Events {
		n := f.First + messages.EventNumber(i)
		if n < w.next {
			continue
		}
		w.next = n + 1
		if !w.fact(fact{n, seq, f.ID, f.Time, ev}) {
			return false
		}
	}
	return true
}

// run watches until a callback says no or ctx ends.
func (w *watcher) run(ctx context.Context) error {
	timer := time.NewTimer(w.quietAfter)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			if !w.quiet() {
				return nil
			}
		case <-w.feed.wake:
			if more, err := w.taken(ctx); err != nil || !more {
				return err
			}
		}
		timer.Reset(w.quietAfter)
	}
}

// taken gives what has gathered in the feed.
func (w *watcher) taken(ctx context.Context) (more bool, err error) {
	items, lost := w.feed.take()
	for _, it := range items {
		if more, err := w.item(ctx, it); err != nil || !more {
			return false, err
		}
	}
	if lost {
		return w.past(ctx)
	}
	return true, nil
}

func (w *watcher) item(ctx context.Context, it item) (more bool, err error) {
	switch {
	case it.delta != nil:
		return w.delta(*it.delta), nil
	case it.commit.Frame.First > w.next:
		return w.past(ctx)
	}
	return w.frame(it.commit.Seq, it.commit.Frame), nil
}
