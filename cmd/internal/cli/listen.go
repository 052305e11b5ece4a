package cli

import (
	"context"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// heard is what came of the stream of an ask: an event or its end.
type heard struct {
	ev  client.Event
	err error
}

// atHand is how much of what has come is there to be taken, most likely all of it,
// while none is taken.
const atHand = 64

// listen sends the input. next returns what comes until the stream ends, as it does with ctx;
// stop ends it.
func (t *turn) listen(ctx context.Context, in messages.Input) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	stream, left := make(chan heard, atHand), make(chan struct{})
	t.stream, t.known = stream, make(map[string]projections.Waiting)
	t.asked, t.settled = make(map[string]bool), make(map[string]bool)
	go func() {
		defer close(stream)
		for ev, err := range t.client.AskFacts(ctx, t.agent, in) {
			select {
			case stream <- heard{ev, err}:
			case <-left:
				return
			}
		}
	}()
	return func() {
		close(left)
		cancel()
	}
}

// next is what comes next; false at the end of the stream.
func (t *turn) next() (h heard, more bool) {
	if len(t.ahead) > 0 {
		h, t.ahead = t.ahead[0], t.ahead[1:]
		return h, true
	}
	if h, more = t.await(); more {
		t.learn(h.ev)
	}
	return h, more
}

// await waits for what comes next, and shows on a terminal that the turn works: not where
// a line of its answer has no end yet.
func (t *turn) await() (h heard, more bool) {
	var turning <-chan time.Time
	if t.working.line.on {
		ticker := time.NewTicker(redraw)
		defer ticker.Stop()
		turning = ticker.C
	}
	defer t.working.line.end()
	for {
		select {
		case h, more = <-t.stream:
			return h, more
		case now := <-turning:
			if !t.open {
				t.working.spin(now)
			}
		}
	}
}

// lookAhead takes in what comes until found accepts an event, but not for longer than some time;
// next returns it later.
func (t *turn) lookAhead(ctx context.Context, within time.Duration, found func(client.Event) bool) bool {
	end := time.NewTimer(within)
	defer end.Stop()
	for {
		select {
		case h, more := <-t.stream:
			if !more {
				return false
			}
			t.takeIn(h)
			switch {
			case h.err != nil:
				return false
			case found(h.ev):
				return true
			}
		case <-end.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// late returns the agent's question about the call at a place, if it has come meanwhile.
func (t *turn) late(place string) (q client.Question, came bool) {
	for more := true; more; {
		more = false
		select {
		case h, open := <-t.stream:
			if more = open; more {
				t.takeIn(h)
			}
		default:
		}
	}
	i := slices.IndexFunc(t.offered, func(q client.Question) bool { return callOf(q) == place })
	if i < 0 {
		return q, false
	}
	q = t.offered[i]
	t.offered = slices.Delete(t.offered, i, i+1)
	return q, true
}

// takeIn learns from what came; next returns it later, unless it is a question.
func (t *turn) takeIn(h heard) {
	t.learn(h.ev)
	if h.ev.Question == nil {
		t.ahead = append(t.ahead, h)
	}
}

// learn takes notice of what an event has of calls that wait.
func (t *turn) learn(ev client.Event) {
	switch ev.Type {
	case "notice":
		if !t.app.json() {
			t.app.note("%s", projections.Printable(ev.Text, 0))
		}
	case "query":
		if ev.Question != nil && !t.settled[callOf(*ev.Question)] {
			t.offered = append(t.offered, *ev.Question)
		}
	case messages.ApprovalRequested{}.EventType():
		e := raw[messages.ApprovalRequested](ev.Data)
		w := projections.Waiting{
			Call: e.Call, Turn: e.Turn, Tool: e.Tool, Kind: messages.WaitApproval, Reason: e.Reason,
			Arguments: e.Arguments, ArgsHash: e.ArgsHash, N: ev.N, At: ev.At,
		}
		if e.ExpiresAt != nil {
			w.ExpiresAt = *e.ExpiresAt
		}
		t.known[placeOf(w)] = w
	case messages.ApprovalGranted{}.EventType(), messages.ApprovalDenied{}.EventType():
		e := raw[messages.ApprovalGranted](ev.Data) // both have turn and call
		t.decided(e.Turn, e.Call)
	case messages.ChildSettled{}.EventType():
		if s := raw[messages.ChildSettled](ev.Data); s.Refused != "" && !t.app.json() {
			t.app.note("a decision about call %s of %s had no effect: %s", projections.Printable(string(s.Waits), 64), short(s.Agent), projections.Printable(s.Message, 0))
		}
	case messages.TurnPaused{}.EventType():
		t.rests = ev.Turn
	case messages.TurnResumed{}.EventType(), messages.TurnCompleted{}.EventType(), messages.TurnFailed{}.EventType(), messages.TurnAborted{}.EventType():
		t.rests = ""
	}
}

// decided forgets a call that waits no more, and what was asked about it.
func (t *turn) decided(turn messages.TurnID, call messages.CallID) {
	place := placeOf(projections.Waiting{Turn: turn, Call: call})
	delete(t.known, place)
	t.settled[place] = true
	offered := t.offered[:0]
	for _, q := range t.offered {
		if callOf(q) != place {
			offered = append(offered, q)
		}
	}
	t.offered = offered
}

// placeOf names a call: an id alone may come again in another turn.
func placeOf(w projections.Waiting) string { return string(w.Turn) + "/" + string(w.Call) }

// telling is how long a node may take to report what an agent does. A user who may only prompt
// gets no answer at all.
const telling = 5 * time.Second

// status is what the agent is doing now; false if that is not known.
func (t *turn) status(ctx context.Context) (s projections.AgentStatus, ok bool) {
	if t.blind {
		return s, false
	}
	ctx, cancel := context.WithTimeout(ctx, telling)
	defer cancel()
	s, err := t.client.Show(ctx, t.agent)
	t.blind = err != nil
	return s, err == nil
}

// now is what a paused turn waits for; false if it continues. Without a status it
// is what the stream had of it.
func (t *turn) now(ctx context.Context, e messages.TurnPaused) (s projections.AgentStatus, waits bool) {
	if s, ok := t.status(ctx); ok {
		return s, s.Phase == messages.PhasePaused && s.Turn == e.Turn
	}
	s.Turn, s.Paused, s.Message = e.Turn, e.Reason, e.Message
	for _, call := range e.Calls {
		w := projections.Waiting{Call: call, Turn: e.Turn}
		known, ok := t.known[placeOf(w)]
		switch {
		case ok:
			s.Waiting = append(s.Waiting, known)
		case t.settled[placeOf(w)]:
		default:
			if e.Reason == projections.PausedApproval {
				w.Kind = messages.WaitApproval
			}
			s.Waiting = append(s.Waiting, w)
		}
	}
	if len(s.Waiting) == 0 && t.rests == e.Turn { // that it continues may come in a moment
		t.lookAhead(ctx, offering, func(client.Event) bool { return t.rests != e.Turn })
	}
	return s, t.rests == e.Turn
}
