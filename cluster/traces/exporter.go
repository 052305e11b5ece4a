package traces

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

const (
	// maxWaiting is how many turns that have ended may wait to be sent, maxTurns how many are sent
	// in one request.
	maxWaiting, maxTurns = 4096, 64
	// sendFor is how long one request is tried, lastFor how long an Exporter sends when it is
	// closed.
	sendFor, lastFor = 30 * time.Second, 3 * time.Second
)

// Exporter sends the spans of each turn to a collector when the turn has ended, made of the log as
// `reprise traces` makes them. Traces that their caller does not sample are left out.
type Exporter struct {
	cfg     ExporterConfig
	waiting chan ended
	dropped atomic.Int64 // turns, without those in full
	full    atomic.Int64 // turns for which there was no room, and that are not reported yet
	lost    atomic.Int64 // spans
}

// ExporterConfig is what an Exporter is made of.
type ExporterConfig struct {
	Sender *Sender
	// Log is read for the events of turns that have ended.
	Log eventlog.Reader
	// Content sends content, too, except for that of encrypted agents.
	Content bool
	Logger  *slog.Logger
}

// ended is a turn that has ended.
type ended struct {
	agent messages.AgentID
	turn  messages.TurnID
}

// errFull is why turns are not sent for which there is no room.
var errFull = fmt.Errorf("the collector is too slow: %d turns wait for it", maxWaiting)

// errEnded is why turns are not sent that still wait when an Exporter ends.
var errEnded = errors.New("the node ended before the collector had taken them")

// NewExporter returns an Exporter. It sends nothing before Run.
func NewExporter(cfg ExporterConfig) *Exporter {
	return &Exporter{cfg: cfg, waiting: make(chan ended, maxWaiting)}
}

// Observer returns an observer that queues the turns that commits end, and hands all on to next.
func (x *Exporter) Observer(next actors.Observer) actors.Observer { return observed{next, x} }

type observed struct {
	actors.Observer
	x *Exporter
}

// Committed queues the turns that a frame ends and hands the commit on. It does not block.
func (o observed) Committed(c actors.Commit) {
	for _, ev := range c.Frame.Events {
		if f := messages.FieldsOf(ev); f.Is(messages.EndsTurn) {
			select {
			case o.x.waiting <- ended{c.Agent, f.Turn}:
			default:
				o.x.full.Add(1)
			}
		}
	}
	o.Observer.Committed(c)
}

// Dropped returns how many turns were not sent: there was no room for them, their log could not be
// read, or the node ended before.
func (x *Exporter) Dropped() int64 { return x.dropped.Load() + x.full.Load() }

// Lost returns how many spans were sent and not taken by the collector.
func (x *Exporter) Lost() int64 { return x.lost.Load() }

// Run sends until ctx ends, and from then on for a moment what waits.
func (x *Exporter) Run(ctx context.Context) {
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastFor, cancel) })()
	for {
		select {
		case first := <-x.waiting:
			x.send(sending, first)
		case <-ctx.Done():
			for len(x.waiting) > 0 && sending.Err() == nil {
				x.send(sending, <-x.waiting)
			}
			if left := len(x.waiting); left > 0 {
				x.drop(left, errEnded)
			}
			return
		}
	}
}

// send sends a turn, and those that wait behind it.
func (x *Exporter) send(ctx context.Context, first ended) {
	ctx, cancel := context.WithTimeout(ctx, sendFor)
	defer cancel()
	if n := x.full.Swap(0); n > 0 {
		x.drop(int(n), errFull)
	}
	var spans []projections.Span
	for _, t := range x.batch(first) {
		list, err := x.spans(ctx, t)
		if err != nil {
			x.drop(1, err)
			continue
		}
		spans = append(spans, list...)
	}
	if lost, err := x.cfg.Sender.Send(ctx, spans); err != nil {
		x.cfg.Logger.Warn("the collector did not take all spans; `reprise traces --otlp` sends them again", "spans", lost, "lost", x.lost.Add(int64(lost)), "error", err)
	}
}

// batch returns a turn and those that wait now, up to maxTurns.
func (x *Exporter) batch(first ended) []ended {
	list := []ended{first}
	for len(list) < maxTurns {
		select {
		case next := <-x.waiting:
			list = append(list, next)
		default:
			return list
		}
	}
	return list
}

// drop counts turns that were not sent, and reports why.
func (x *Exporter) drop(turns int, why error) {
	x.cfg.Logger.Warn("the spans of turns were not sent; `reprise traces --otlp` sends them", "turns", turns, "dropped", x.dropped.Add(int64(turns)), "error", why)
}

// spans returns the spans of a turn; none if its trace is not sampled.
func (x *Exporter) spans(ctx context.Context, t ended) ([]projections.Span, error) {
	s, err := x.fold(ctx, t, t.turn.Start())
	if err == nil && s.Content && s.Lacks() { // an input that waited for its turn
		s, err = x.fold(ctx, t, 0)
	}
	if err != nil {
		return nil, err
	}
	return sampled(s.Take(), t.turn), nil
}

// sampled returns the spans of one turn, if its trace is sampled.
func sampled(spans []projections.Span, turn messages.TurnID) (list []projections.Span) {
	for _, s := range spans {
		if s.Turn == turn && s.Flags&1 != 0 {
			list = append(list, s)
		}
	}
	return list
}

// fold folds an agent's events from one on, until the turn has ended.
func (x *Exporter) fold(ctx context.Context, t ended, from messages.EventNumber) (*projections.Spans, error) {
	s := &projections.Spans{Agent: t.agent, Content: x.cfg.Content}
	for rec, err := range x.cfg.Log.Read(ctx, t.agent, eventlog.From(from)) {
		if err != nil {
			return nil, err
		}
		if rec.Frame.KeyID != "" {
			s.Content = false
		}
		projections.Fold(rec.Frame, 0, s)
		if ends(rec.Frame, t.turn) {
			break
		}
	}
	return s, nil
}

// ends reports whether a frame ends the turn.
func ends(f *messages.Frame, turn messages.TurnID) bool {
	for _, ev := range f.Events {
		if of := messages.FieldsOf(ev); of.Is(messages.EndsTurn) && of.Turn == turn {
			return true
		}
	}
	return false
}
