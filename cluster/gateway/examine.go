package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/messages"
)

// Examined is a line of the view doctor: a finding, or how far it has come.
type Examined struct {
	// Type is finding, progress (of the shard under way), or examined (of all of
	// one shard, or of the agent).
	Type string `json:"type"`
	// Finding is set for a finding; its check may be store, which is about no agent.
	Finding *doctor.Finding `json:"finding,omitempty"`
	// Shard of Shards, from 1, and Counts are set otherwise. Zero: an agent was asked for.
	Shard  int            `json:"shard,omitempty"`
	Shards int            `json:"shards,omitempty"`
	Counts *doctor.Counts `json:"counts,omitempty"`
	// Encrypted reports whether the node encrypts what it stores. Nil: it is left out of the answer.
	Encrypted *bool `json:"encrypted,omitempty"`
	// Scrubbed says how far the log was read through in the background. Nil: it is not
	// in this line.
	Scrubbed *Scrubbed `json:"scrubbed,omitempty"`
}

// Scrubbed is how far the streams of the log were read through in the background.
type Scrubbed struct {
	Detail string `json:"detail"`
	// Whole reports whether each of them was read to its end at least once.
	Whole bool `json:"whole"`
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

// examineStore examines one shard for each page, so that nothing goes on for
// long for a reader that has gone; before the first it looks at what the store
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
		for _, f := range g.Store(g.ctx) {
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

// examineAgent examines one agent. It repairs nothing: who may look at an agent
// may not therefore change the store.
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

// usualRate is how many frames are read in a second if nobody says: few enough
// for a running node.
const usualRate = 20_000

func optionsOf(q messages.Query) doctor.Options {
	o := doctor.Options{Deep: q.Deep, Repair: q.Repair, Rate: q.Rate}
	if o.Rate == 0 {
		o.Rate = usualRate
	}
	return o
}

// examiner writes an examination's lines, and ends it when they reach nobody.
type examiner struct {
	ctx  context.Context
	stop func() // ends it, and waits until nothing more is written

	mu sync.Mutex
	p  *page
	at Examined // how far it has come
}

// examiner begins to tell, once a second, how far it has come: the reader gives
// up on one that is silent.
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
func (e *examiner) scrubbed(s *Scrubbed) {
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

// progress hears how far it has come.
func (e *examiner) progress(c doctor.Counts) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at.Counts = &c
}

// end tells that all was examined.
func (e *examiner) end(c doctor.Counts, encrypted *bool) {
	e.stop()
	e.at.Type, e.at.Counts, e.at.Encrypted = "examined", &c, encrypted
	e.p.line(1, e.at)
}

// StoreFindings look at what the whole store stands on: streams that cannot be
// trusted or written to, partitions that nobody owns, inputs that wait for long, and
// agents that are kept for longer than they should be.
type StoreFindings struct {
	Unsound func(context.Context) []error
	// Unwritable are streams that take nothing more until their server is started again.
	Unwritable func(context.Context) []error
	Oldest     func(context.Context) (since time.Time, waiting uint64, err error)
	OwnerOf    func(messages.Partition) string
	// Lost gives findings of its own, about streams of the log that have lost messages.
	Lost func() []doctor.Finding
	// Unread gives findings of its own, about messages of the log that cannot be read.
	Unread func(context.Context) []doctor.Finding
	// Locked says that agents are encrypted and their keys are missing.
	Locked func(context.Context) error
	// Copies gives findings of its own, about streams of which copies are missing.
	Copies func(context.Context) []doctor.Finding
	// Tenants tells of tenants that are not isolated. Nil: it is not looked at.
	Tenants func(context.Context) []doctor.Finding
	// Failing returns findings about agents whose turns fail.
	Failing func() []doctor.Finding
	// Retention gives findings of its own.
	Retention func(context.Context) []doctor.Finding
}

// stuck is how long an input may wait in the queue before it is told.
const stuck = time.Minute

// Find gives what is wrong.
func (s StoreFindings) Find(ctx context.Context) (found []doctor.Finding) {
	add := func(status, remedy, format string, args ...any) {
		found = append(found, doctor.Finding{Check: "store", Status: status, Detail: fmt.Sprintf(format, args...), Remedy: remedy})
	}
	found = append(append(found, s.Lost()...), s.Unread(ctx)...)
	for _, err := range s.Unsound(ctx) {
		add(doctor.Fail, "", "%v", err)
	}
	for _, err := range s.Unwritable(ctx) {
		add(doctor.Fail, "make room on its disk: a node then starts its own embedded server again; another NATS server must be started again by hand. Nothing that was acknowledged is lost", "%v", err)
	}
	if err := s.Locked(ctx); err != nil {
		add(doctor.Fail, "put the keys back from a copy with `reprise restore --keys`; nodes go on with those that they have in memory until they stop", "%v", err)
	}
	free := 0
	for p := range messages.Partitions {
		if s.OwnerOf(messages.Partition(p)) == "" {
			free++
		}
	}
	if free > 0 {
		add(doctor.Warn, "a moment after a node has died this is usual; if it lasts, look at the nodes' logs", "nobody owns %d of %d partitions: their agents do not work", free, messages.Partitions)
	}
	switch since, waiting, err := s.Oldest(ctx); {
	case err != nil:
		add(doctor.Fail, "", "%v", err)
	case waiting > 0 && time.Since(since) > stuck:
		add(doctor.Warn, "see that a node serves their kinds, and that their agents are sound", "%d inputs and commands wait, the oldest since %s", waiting, since.UTC().Format(time.DateTime))
	}
	found = append(found, s.Copies(ctx)...)
	if s.Tenants != nil {
		found = append(found, s.Tenants(ctx)...)
	}
	found = append(found, s.Failing()...)
	return append(found, s.Retention(ctx)...)
}
