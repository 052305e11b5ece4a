package doctor

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// The states of a finding.
const (
	Fail = "fail" // something is wrong
	Warn = "warn" // something needs care; no agent is ill of it
)

// Finding is one thing that is wrong, with its place.
type Finding struct {
	// Check is what was examined, such as chain, blobs or store.
	Check string `json:"check"`
	// Status is `warn` if something needs care, or `fail` if something is wrong.
	Status string           `json:"status"`
	Agent  messages.AgentID `json:"agent,omitzero"`
	// Event is the first event that cannot be trusted. Zero: the finding is about no event.
	Event messages.EventNumber `json:"event,omitempty"`
	// Stream is the stream of the message. Empty: the finding is about no message.
	Stream string `json:"stream,omitempty"`
	// Seq is the sequence of the message in its stream.
	Seq uint64 `json:"seq,omitempty"`
	// Detail is what was found, in words for a person.
	Detail string `json:"detail"`
	// Remedy is what to do about it.
	Remedy string `json:"remedy,omitempty"`
	// Repaired reports whether it was repaired.
	Repaired bool `json:"repaired,omitempty"`
}

// Scrubbed is how far the streams of the log were read through in the background.
type Scrubbed struct {
	// Detail is how far, in words for a person.
	Detail string `json:"detail"`
	// Whole reports whether each of them was read to its end at least once.
	Whole bool `json:"whole"`
}

// Counts are how much was examined and found.
type Counts struct {
	// Agents is how many agents were examined.
	Agents int `json:"agents"`
	// Frames is how many frames were read.
	Frames int `json:"frames"`
	// Events is how many events they hold.
	Events int `json:"events"`
	// Blobs is how many payloads were read.
	Blobs int `json:"blobs"`
	// Foreign is how many messages are of no agent.
	Foreign  int `json:"foreign"`
	Problems int `json:"problems"` // that are there still
	// Repaired is how many problems were repaired.
	Repaired int `json:"repaired"`
	// Untold are problems beyond the most that are reported of one shard.
	Untold int `json:"untold,omitempty"`
}

// Add adds what was found elsewhere.
func (c *Counts) Add(d Counts) {
	c.Agents, c.Frames, c.Events, c.Blobs = c.Agents+d.Agents, c.Frames+d.Frames, c.Events+d.Events, c.Blobs+d.Blobs
	c.Foreign, c.Problems, c.Repaired, c.Untold = c.Foreign+d.Foreign, c.Problems+d.Problems, c.Repaired+d.Repaired, c.Untold+d.Untold
}

// Options say how to examine.
type Options struct {
	// Deep reads payloads too, and runs checks that read an agent once more.
	Deep bool
	// Repair removes what can be made again or is named by nothing.
	Repair bool
	// Rate is the most messages of the log to read in a second. Zero: as many as come.
	Rate int
}

// Check examines one agent whose log is sound. It may run for several agents at
// once. Its error ends the examination; it calls tell with what is wrong with the agent.
type Check func(ctx context.Context, s Subject, o Options, tell func(Finding)) error

// Subject is an agent whose log is sound up to Tail.
type Subject struct {
	Agent messages.AgentID
	Tail  eventlog.Position
	// Stream and Summary are those of the newest frame; Stream is empty and Summary
	// not known where the agent was examined alone.
	Stream  string
	Summary eventlog.Summary
}

// Log is what a doctor reads.
type Log interface {
	eventlog.Reader
	eventlog.Feed
}

// Config says what to examine.
type Config struct {
	Log Log
	// Stream is the name of a shard for findings.
	Stream func(shard int) string
	// Blobs are the payloads beside the log. Nil: they are not examined.
	Blobs eventlog.Blobs
	// BlobStored says when a payload was stored. Nil: it is not known, and none that
	// nothing names is removed.
	BlobStored func(context.Context, messages.AgentID, messages.Blob) (time.Time, error)
	// BlobAgents are the agents of a shard that have payloads. Nil: they are not
	// known, and of an agent that has no log none are seen.
	BlobAgents func(ctx context.Context, shard int) ([]messages.AgentID, error)
	// Named are the payloads that a frame names, as they are stored; a negative size
	// is not known. readable is false where they are not known. Nil: Blobs are not
	// examined.
	Named func(*messages.Frame) (named []messages.Blob, readable bool)
	// Parent returns whose events an agent's log begins with: those may name payloads that are
	// stored for the parent. It reports false if there is none, and the zero value if who that is
	// cannot be read. Nil: no agent has one.
	Parent func(context.Context, messages.AgentID) (parent messages.AgentID, forked bool, err error)
	// Keys returns the keys that frames are encrypted with; nil or none: they are not
	// examined.
	Keys func(context.Context) (Keys, error)
	// Checks are run for each agent.
	Checks []Check
	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

// Doctor examines a log. Safe for concurrent use.
type Doctor struct{ cfg Config }

// New makes a doctor.
func New(cfg Config) *Doctor {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Stream == nil {
		cfg.Stream = func(shard int) string { return fmt.Sprintf("shard %d", shard) }
	}
	return &Doctor{cfg}
}

// Shards is how many shards there are to examine.
func (d *Doctor) Shards() int { return d.cfg.Log.Shards() }

// mostTold bounds what is reported of one shard.
const mostTold = 1000

// visit is one examination.
type visit struct {
	*Doctor
	Options
	stream string
	pace   pace

	mu     sync.Mutex
	counts Counts
	told   int
	tell   func(Finding)
	more   func(Counts) // is called with progress; nil: not
	agents map[messages.AgentID]*patient
	keys   Keys // nil: they are not examined
}

// patient is what is known of an agent.
type patient struct {
	tail  eventlog.Position
	says  eventlog.Summary // as the headers of its newest frame say
	ill   bool             // its log is damaged
	idle  bool             // it owes no work
	blind bool             // what some frame names is not known
	// copied reports whether it has a copy of the events that its log begins with.
	copied bool
	named  map[messages.Digest]reference
	// keyID is the id of the key that its present life is encrypted with.
	keyID string
	// shredded says that it was deleted while it was read: its tombstone is to come.
	shredded bool
}

// reference is a payload that an event names.
type reference struct {
	size int64
	by   messages.EventNumber // first of the frame
}

func (d *Doctor) visit(stream string, o Options, tell func(Finding), more func(Counts)) *visit {
	return &visit{Doctor: d, Options: o, stream: stream, tell: tell, more: more, pace: pace{rate: o.Rate}, agents: make(map[messages.AgentID]*patient)}
}

// found reports a finding and counts it.
func (v *visit) found(f Finding) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f.Repaired {
		v.counts.Repaired++
	} else if f.Status == Fail {
		v.counts.Problems++
	}
	if v.told++; v.told > mostTold {
		v.counts.Untold++
		return
	}
	v.tell(f)
}

// Shard examines all agents of one shard, up to what was its end when the call
// began or later. It calls tell with each finding and progress, if given, now and then
// with how far it has come, never both at once. The error is that the log could not be read.
func (d *Doctor) Shard(ctx context.Context, shard int, o Options, tell func(Finding), progress func(Counts)) (Counts, error) {
	v := d.visit(d.cfg.Stream(shard), o, tell, progress)
	if err := v.unlock(ctx); err != nil {
		return v.counts, err
	}
	for m, err := range d.cfg.Log.ReadShard(ctx, shard, 0) {
		if err != nil {
			return v.counts, fmt.Errorf("read %s: %w", v.stream, err)
		}
		if m.Agent == (messages.AgentID{}) {
			break // that was all
		}
		if err := v.message(m); err != nil {
			return v.counts, fmt.Errorf("read %s: %w", v.stream, err)
		}
		if err := v.pace.next(ctx); err != nil {
			return v.counts, err
		}
	}
	if err := v.examine(ctx); err != nil {
		return v.counts, err
	}
	if err := v.leftovers(ctx, shard); err != nil {
		return v.counts, err
	}
	return v.counts, v.strays(ctx, shard)
}

// message examines one message. Its error says that nothing can be read now.
func (v *visit) message(m eventlog.Stored) error {
	p := v.patient(m.Agent)
	switch {
	case m.Frame == nil:
		v.foreign(m)
	case !p.ill:
		if err := v.read(p, m); err != nil {
			return err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.counts.Frames++; v.more != nil && v.counts.Frames%1000 == 0 {
		v.more(v.counts)
	}
	return nil
}

// read examines one frame.
func (v *visit) read(p *patient, m eventlog.Stored) error {
	f, err := m.Frame()
	switch {
	case errors.Is(err, messages.ErrShredded):
		p.shredded = true
		return nil
	case p.shredded && err == nil && !eventlog.Ends(f):
		return nil
	case p.shredded && err == nil:
		*p = patient{named: make(map[messages.Digest]reference)} // it is all that there is
	}
	if err == nil {
		err = v.frame(p, eventlog.Recorded{Agent: m.Agent, Seq: m.Seq, Frame: f, Digest: m.Digest()})
		p.says, p.idle = m.Summary, !m.Open
	} else if damage := new(eventlog.DamageError); !errors.As(err, &damage) && !errors.Is(err, messages.ErrLocked) {
		return err
	}
	if err != nil {
		p.ill = true
		v.damage(m.Agent, p.tail, m.Seq, err)
	}
	return nil
}

func (v *visit) patient(a messages.AgentID) *patient {
	p := v.agents[a]
	if p == nil {
		p = &patient{named: make(map[messages.Digest]reference)}
		v.agents[a] = p
		v.counts.Agents++
	}
	return p
}

// frame sees that a frame follows the one before it, and notes what it names.
func (v *visit) frame(p *patient, r eventlog.Recorded) error {
	err := eventlog.Check(p.tail, r)
	if err != nil && eventlog.Ends(r.Frame) { // what it follows was purged while the log was read
		err = eventlog.Check(eventlog.Position{}, r)
	}
	if err != nil {
		return err
	}
	p.tail = r.Position()
	v.counts.Events += len(r.Frame.Events)
	if eventlog.Ends(r.Frame) {
		clear(p.named) // they went with the events
		p.keyID, p.copied = "", false
	}
	if r.Frame.KeyID != "" {
		p.keyID = r.Frame.KeyID
	}
	if v.cfg.Named == nil {
		return nil
	}
	if _, copied := messages.CopyOf(r.Frame); copied {
		p.copied = true
	}
	named, readable := v.cfg.Named(r.Frame)
	p.blind = p.blind || !readable
	for _, b := range named {
		if _, known := p.named[b.SHA256]; !known {
			p.named[b.SHA256] = reference{b.Size, r.Frame.First}
		}
	}
	return nil
}

func (v *visit) foreign(m eventlog.Stored) {
	v.counts.Foreign++
	v.found(Finding{
		Check: "foreign", Status: Warn, Agent: m.Agent, Stream: v.stream, Seq: m.Seq,
		Detail: "a message that is no frame stands on the agent's log subject; it is skipped",
		Remedy: "let only nodes publish to the log's subjects",
	})
}

// damage reports an agent's first damage.
func (v *visit) damage(a messages.AgentID, tail eventlog.Position, seq uint64, err error) {
	f := Finding{
		Check: "log", Status: Fail, Agent: a, Event: tail.Last + 1, Stream: v.stream, Seq: seq, Detail: err.Error(),
		Remedy: "nothing is repaired, and other agents are not affected: the agent does no more work, unless a snapshot lies behind the place; its events before it can be read, and a backup restored elsewhere may have the rest",
	}
	var damage *eventlog.DamageError
	if errors.As(err, &damage) {
		f.Event, f.Seq, f.Detail = max(f.Event, damage.Event), damage.Seq, damage.Err.Error()
	}
	switch {
	case errors.Is(err, messages.ErrNoKey):
		f.Check, f.Remedy = "key", putBack
	case errors.Is(err, messages.ErrLocked):
		f.Check, f.Remedy = "key", unlocked
	}
	if errors.Is(err, messages.ErrNewer) {
		f.Remedy = "a later version wrote it: run that version, or a later one"
	}
	v.found(f)
}

// Agent examines one agent, as Shard does. messages.NotFound if it has no events.
func (d *Doctor) Agent(ctx context.Context, a messages.AgentID, o Options, tell func(Finding)) (Counts, error) {
	v := d.visit("", o, tell, nil)
	if err := v.unlock(ctx); err != nil {
		return v.counts, err
	}
	p := v.patient(a)
	for r, err := range d.cfg.Log.Read(ctx, a, eventlog.Range{}) {
		if err == nil {
			v.counts.Frames++
			err = v.frame(p, r)
		}
		if damage := new(eventlog.DamageError); errors.As(err, &damage) || errors.Is(err, messages.ErrLocked) {
			p.ill = true
			v.damage(a, p.tail, damage.Seq, err)
			break
		}
		if err != nil {
			return v.counts, err
		}
		if err := v.pace.next(ctx); err != nil {
			return v.counts, err
		}
	}
	if p.tail.Last == 0 && !p.ill {
		return v.counts, messages.Refuse(messages.NotFound, "agent %s does not exist: nothing was ever sent to it", a)
	}
	return v.counts, v.examine(ctx)
}

// atOnce is how many agents are examined at the same time once the log is read.
const atOnce = 4

// examine runs what looks beyond the log, for each agent whose log is sound.
func (v *visit) examine(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	places := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for a, p := range v.sound() {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			defer func() { <-places }()
			err := v.one(ctx, a, p)
			if damage := new(eventlog.DamageError); errors.As(err, &damage) { // the newest frame, which the shard does not show
				p.ill = true
				v.damage(a, p.tail, damage.Seq, err)
			} else if err != nil {
				cancel(fmt.Errorf("examine %s: %w", a, err))
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// sound are the agents whose log was read to its end, in order.
func (v *visit) sound() iter.Seq2[messages.AgentID, *patient] {
	return func(yield func(messages.AgentID, *patient) bool) {
		byName := func(a, b messages.AgentID) int {
			if a.Full() < b.Full() {
				return -1
			}
			return 1
		}
		for _, a := range slices.SortedFunc(maps.Keys(v.agents), byName) {
			if p := v.agents[a]; !p.ill && p.tail.Last > 0 && !yield(a, p) {
				return
			}
		}
	}
}

func (v *visit) one(ctx context.Context, a messages.AgentID, p *patient) error {
	if err := v.blobs(ctx, a, p); err != nil {
		return err
	}
	if err := v.key(ctx, a, p); err != nil {
		return err
	}
	for _, check := range v.cfg.Checks {
		if err := check(ctx, Subject{a, p.tail, v.stream, p.says}, v.Options, v.found); err != nil {
			if still, unknown := v.still(ctx, a, p); unknown == nil && !still {
				break // what is read of an agent that is being deleted may not fit together
			}
			return err
		}
	}
	if v.more != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.more(v.counts)
	}
	return nil
}
