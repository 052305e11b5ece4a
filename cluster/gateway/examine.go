package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/messages"
)

// Examined is a line of the view doctor: a finding, or how far the examination has come.
type Examined struct {
	// Type is `finding`, `progress` (of the shard under way), or `examined` (all of one shard, or of the
	// agent).
	Type string `json:"type"`
	// Finding is what was found, in a line of type `finding`. A finding whose check is `store` is about
	// no agent.
	Finding *doctor.Finding `json:"finding,omitempty"`
	// Shard is the shard that the line is about, from 1. Absent: an agent was asked for.
	Shard int `json:"shard,omitempty"`
	// Shards is how many there are.
	Shards int `json:"shards,omitempty"`
	// Counts are how much was examined and found so far.
	Counts *doctor.Counts `json:"counts,omitempty"`
	// Encrypted reports whether the node encrypts what it stores. Absent: the line is about something
	// else.
	Encrypted *bool `json:"encrypted,omitempty"`
	// Scrubbed is how far the log was read through in the background. Absent: the line is about
	// something else.
	Scrubbed *doctor.Scrubbed `json:"scrubbed,omitempty"`
}

// queryStore answers a view of the whole store.
func (g *Gateway) queryStore(msg *nats.Msg) {
	if !g.answerable(msg) {
		return
	}
	q, err := messages.ParseQuery(msg.Data)
	if err != nil {
		g.replyTo(msg).fail(messages.AsError(err))
		return
	}
	g.page(msg, q, func(p *page) error {
		if err := fits(q, filterableOfStore); err != nil {
			return err
		}
		switch q.View {
		case "doctor":
			return g.examineStore(p, q)
		case "nodes":
			return g.nodes(p)
		case "partitions":
			return g.partitions(p, q)
		case "index":
			return g.ofOwners(p, ownersQuery{Query: q})
		}
		return messages.Refuse(messages.BadInput, "view %q: the whole store has the views doctor, nodes, partitions and index", q.View)
	})
}

// examineStore examines one shard for each page, so that work does not continue
// for long for a reader that has gone; before the first it looks at what the store
// stands on. Two who ask take turns.
func (g *Gateway) examineStore(p *page, q messages.Query) error {
	if g.Doctor == nil {
		return errNoDoctor
	}
	shard := max(int(q.From), 1)
	if shard > g.Doctor.Shards() {
		return messages.Refuse(messages.BadInput, "there is no shard %d: there are %d", shard, g.Doctor.Shards())
	}
	e := g.examiner(p, Examined{Type: "progress", Shard: shard, Shards: g.Doctor.Shards()})
	defer e.stop()
	select {
	case g.examining <- struct{}{}:
	case <-e.ctx.Done():
		return e.ctx.Err()
	}
	defer func() { <-g.examining }()
	if shard == 1 && g.Store != nil {
		for _, f := range g.storeFindings(g.ctx) {
			e.finding(f)
		}
		if g.Scrubbed != nil {
			e.scrubbed(g.Scrubbed(g.ctx))
		}
		e.flush() // they may be why the rest cannot be read
	}
	counts, err := g.Doctor.Shard(e.ctx, shard-1, optionsOf(q), e.finding, e.progress)
	if err != nil {
		return err
	}
	e.end(counts, &g.Encrypted)
	if p.next = 0; shard < g.Doctor.Shards() {
		p.next = messages.EventNumber(shard + 1)
	}
	return nil
}

// examineAgent examines one agent. It repairs nothing: permission to look at an
// agent is no permission to change the store.
func (g *Gateway) examineAgent(p *page, a messages.AgentID, q messages.Query) error {
	switch {
	case g.Doctor == nil:
		return errNoDoctor
	case q.Repair:
		return messages.Refuse(messages.BadInput, "only the whole store is repaired: leave the agent out")
	}
	e := g.examiner(p, Examined{Type: "progress"})
	defer e.stop()
	counts, err := g.Doctor.Agent(e.ctx, a, optionsOf(q), e.finding)
	if err != nil {
		return err
	}
	e.end(counts, nil)
	return nil
}

var errNoDoctor = messages.Refuse(messages.Unavailable, "this node examines nothing: ask one of the same version as this program")

// usualRate is how many frames are read in a second if the request does not say: few enough
// for a running node.
const usualRate = 20_000

func optionsOf(q messages.Query) doctor.Options {
	o := doctor.Options{Deep: q.Deep, Repair: q.Repair, Rate: q.Rate}
	if o.Rate == 0 {
		o.Rate = usualRate
	}
	return o
}

// examiner writes an examination's lines, and ends it when they do not arrive.
type examiner struct {
	ctx  context.Context
	stop func() // ends it, and waits until nothing more is written

	mu sync.Mutex
	p  *page
	at Examined // how far it has come
}

// examiner starts to report, once a second, how far it has come: the reader gives up on one that
// is silent.
func (g *Gateway) examiner(p *page, at Examined) *examiner {
	e := &examiner{p: p, at: at}
	ctx, cancel := context.WithCancel(g.ctx)
	done := make(chan struct{})
	e.ctx, e.stop = ctx, func() {
		cancel()
		<-done
	}
	go func() {
		defer close(done)
		every := time.NewTicker(time.Second)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			e.mu.Lock()
			if p.line(1, e.at); !p.flush() {
				cancel()
			}
			e.mu.Unlock()
		}
	}()
	return e
}

func (e *examiner) finding(f doctor.Finding) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.p.line(1, Examined{Type: "finding", Finding: &f}) // all are of one place: a page never ends between them
}

// scrubbed notes how far the log was read through in the background.
func (e *examiner) scrubbed(s *doctor.Scrubbed) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at.Scrubbed = s
}

// flush sends what was found.
func (e *examiner) flush() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.p.flush()
}

// progress takes note of how far it has come.
func (e *examiner) progress(c doctor.Counts) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at.Counts = &c
}

// end reports that all was examined.
func (e *examiner) end(c doctor.Counts, encrypted *bool) {
	e.stop()
	e.at.Type, e.at.Counts, e.at.Encrypted = "examined", &c, encrypted
	e.p.line(1, e.at)
}
