package index

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Message is a message of a shard of the log.
type Message struct {
	Agent messages.AgentID
	Seq   uint64
	// ID is the frame's. Empty: it is no frame, or one whose headers cannot be read.
	ID messages.FrameID
	// Time is when the log stored it, or soon after.
	Time time.Time
	// Types are those of the frame's events.
	Types []string
	// Foreign reports whether it is no frame, or one whose headers cannot be read.
	Foreign bool
	// Frame decodes it. Nil: it is no frame. After an error that wraps [ErrLater] it may be
	// read at another time, after any other one never.
	Frame func() (*messages.Frame, error)
	// Before yields all frames of the agent that come before a frame, if with that one the agent has
	// got some that its log does not hold: it is the first one of an imported agent, or the one with
	// which a fork has copied the events of its parent. Else it yields nothing. Frames that the log
	// does not hold have the epoch 0. Its errors are as those of Frame. Nil: there are none.
	Before func(frame *messages.Frame) iter.Seq2[*messages.Frame, error]
}

// Position is that of the message.
func (m Message) Position() Position { return Position{m.Seq, m.Agent, m.ID, m.Time} }

// ErrLater is wrapped by Add's error for a frame that cannot be read now. Nothing
// of its message was applied: the same one must be added again.
var ErrLater = errors.New("it cannot be read now")

// ends reports whether nothing of the agent is left after an event of this type.
func ends(eventType string) bool { return messages.Is(eventType, messages.EndsAgent) }

// indexed reports whether a frame with an event of this type is decoded.
func indexed(eventType string) bool { return messages.Is(eventType, messages.Indexed) }

// Batch is frames that are committed together. It holds their results, not the frames.
// It is for one goroutine; one that was not committed leaves nothing.
type Batch struct {
	s      *Store
	agents map[messages.AgentID]*folding
	shards map[int]Shard
	frames int
	size   int // bytes of arguments and texts in its agents
}

// Batch begins a batch. Only one may be under way.
func (s *Store) Batch() *Batch {
	return &Batch{s: s, agents: make(map[messages.AgentID]*folding), shards: make(map[int]Shard)}
}

// Len is how many messages were added.
func (b *Batch) Len() int { return b.frames }

// maxSize is how many bytes of arguments and texts a batch should hold.
const maxSize = 16 << 20

// Full reports whether it should be committed: it has so many messages, or holds enough.
func (b *Batch) Full(most int) bool { return b.frames >= most || b.size >= maxSize }

// folding is an agent within a batch.
type folding struct {
	id    int64 // 0: it has no rows
	shard int
	last  messages.EventNumber
	bad   int // frames that could not be read
	// forked is the event at which it was forked. 0: it was not, or has no events before that.
	forked messages.EventNumber
	// encrypted reports whether one of its frames was encrypted where it is stored.
	encrypted bool
	// gone reports whether the rows under was must be deleted first.
	gone []int64

	effects *projections.Effects
	usage   *projections.Usage // without calls that are in used
	used    map[usedAt]used
	said    []item
	texts   int // bytes of texts in said
}

type usedAt struct {
	model string
	hour  int64
}

// used is what some model calls used.
type used struct {
	projections.Used
	failed int
}

// carry is the state of an agent's projections from one batch to the next.
type carry struct {
	Effects []projections.Effect    `json:"effects,omitempty"`
	Asked   []projections.ModelCall `json:"asked,omitempty"`
}

func newFolding(shard int, c carry) *folding {
	return &folding{shard: shard, effects: projections.EffectsAfter(c.Effects), usage: projections.UsageAfter(c.Asked), used: make(map[usedAt]used)}
}

// Add applies the next message of a shard. Its error is the file's, unless it wraps
// ErrLater; a frame that can never be read is no error.
func (b *Batch) Add(ctx context.Context, shard int, m Message) error {
	at, ok := b.shards[shard]
	if !ok {
		at = b.s.shards[shard]
	}
	if m.Seq <= at.Seq {
		return fmt.Errorf("message %d of shard %d comes after %d", m.Seq, shard, at.Seq)
	}
	if err := b.add(ctx, shard, m); err != nil {
		return err
	}
	b.frames++
	at.Position = m.Position()
	b.shards[shard] = at
	return nil
}

func (b *Batch) add(ctx context.Context, shard int, m Message) error {
	if m.Frame == nil || !m.Foreign && !slices.ContainsFunc(m.Types, indexed) {
		return nil
	}
	frame, unread := m.Frame()
	switch {
	case errors.Is(unread, ErrLater):
		return fmt.Errorf("read message %d of shard %d: %w", m.Seq, shard, unread)
	case errors.Is(unread, messages.ErrShredded): // the tombstone comes behind it
		b.s.logger.Debug("a frame of an agent that has been deleted since is left out of the index", "agent", m.Agent.String(), "shard", shard, "sequence", m.Seq)
		return nil
	}
	f, err := b.folding(ctx, shard, m.Agent)
	if err != nil {
		return err
	}
	switch {
	case unread != nil && slices.ContainsFunc(m.Types, ends): // its only use was to end the agent
		f.delete()
	case unread != nil:
		f.leftOut(b.s.logger, m, "a frame cannot be read; the index leaves it out", "error", unread)
	case frame.First <= f.last:
		f.leftOut(b.s.logger, m, "a frame repeats events that were applied; the index leaves it out", "event", frame.First)
	default:
		before := f.size()
		err := f.begin(m, frame)
		switch {
		case errors.Is(err, ErrLater):
			return fmt.Errorf("read what was imported or copied before message %d of shard %d: %w", m.Seq, shard, err)
		case err != nil:
			f.leftOut(b.s.logger, m, "what was imported or copied cannot be read; the index leaves it out", "error", err)
		}
		f.apply(frame, true)
		b.size += f.size() - before
	}
	return nil
}

// begin folds the agent again from its beginning if a frame has put others before those that were
// folded: all of them, or none after an error. What others used was not used by this agent.
func (f *folding) begin(m Message, frame *messages.Frame) error {
	if m.Before == nil {
		return nil
	}
	var g *folding // nil: nothing is put before
	for before, err := range m.Before(frame) {
		if err != nil {
			return err
		}
		if g == nil {
			g = f.fresh()
			g.bad = f.bad
		}
		own := before.Epoch != 0
		if !own {
			before.KeyID = frame.KeyID // they are encrypted as a whole
		}
		g.apply(before, own)
	}
	if g != nil && g.last >= f.last {
		*f = *g
	}
	return nil
}

// leftOut counts a frame that the index leaves out. It warns of the first one of each agent.
func (f *folding) leftOut(logger *slog.Logger, m Message, what string, args ...any) {
	level := slog.LevelWarn
	if f.bad > 0 {
		level = slog.LevelDebug
	}
	f.bad++
	logger.Log(context.Background(), level, what, append([]any{"agent", m.Agent.String(), "shard", f.shard, "sequence", m.Seq}, args...)...)
}

// folding returns the agent's projections as of the batch.
func (b *Batch) folding(ctx context.Context, shard int, a messages.AgentID) (*folding, error) {
	if f := b.agents[a]; f != nil {
		return f, nil
	}
	var id int64
	var last uint64
	var bad int
	var forked uint64
	var encrypted bool
	var raw []byte
	var c carry
	err := b.s.find.QueryRowContext(context.WithoutCancel(ctx), a.Tenant, a.Kind, a.Key).Scan(&id, &last, &bad, &forked, &encrypted, &raw)
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return nil, err
	case raw != nil && json.Unmarshal(raw, &c) != nil:
		return nil, errStrange
	}
	f := newFolding(shard, c)
	f.id, f.last, f.bad, f.forked, f.encrypted = id, messages.EventNumber(last), bad, messages.EventNumber(forked), encrypted
	b.agents[a] = f
	b.size += f.size()
	return f, nil
}

// size returns how many bytes of arguments and texts the agent holds.
func (f *folding) size() int { return f.effects.Size() + f.texts }

// apply folds a frame, with what its model calls used or without.
func (f *folding) apply(frame *messages.Frame, used bool) {
	f.effects.InFrame(frame)
	if p, begins := messages.PrefixOf(frame); begins && p.Agent != (messages.AgentID{}) {
		f.forked = p.Last
	}
	for i, ev := range frame.Events {
		n := frame.First + messages.EventNumber(i)
		if ends(ev.EventType()) {
			f.delete()
			f.effects.InFrame(frame)
		}
		f.effects.Apply(n, ev)
		if used {
			f.usage.Apply(n, ev)
		}
		f.say(n, frame, ev)
	}
	f.last = frame.Last()
	f.count(frame.Time)
}

// count adds the model calls that have ended, which usage need not hold any more.
func (f *folding) count(at time.Time) {
	calls := f.usage.Calls()
	if len(calls) == 0 {
		return
	}
	for _, c := range calls {
		key := usedAt{c.Model, at.Unix() / 3600}
		s := f.used[key]
		s.Used = s.With(c)
		if c.Failed != "" {
			s.failed++
		}
		f.used[key] = s
	}
	f.usage = projections.UsageAfter(f.usage.Asked())
}

// fresh returns the agent with nothing folded and without its rows.
func (f *folding) fresh() *folding {
	fresh := newFolding(f.shard, carry{})
	if fresh.gone = f.gone; f.id != 0 {
		fresh.gone = append(fresh.gone, f.id)
	}
	return fresh
}

// delete drops everything of the agent.
func (f *folding) delete() {
	last := f.last
	*f = *f.fresh()
	f.last = last
}

// Commit writes the batch, all of it or nothing. After an error the Store must
// be opened again; once ctx has ended the error is its.
//
// The end of ctx is noticed between agents, not within a statement: for each statement whose
// context may end the driver starts a goroutine.
func (b *Batch) Commit(ctx context.Context) error {
	ended := ctx.Err
	ctx = context.WithoutCancel(ctx)
	tx, err := b.s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	w := writer{ctx: ctx, tx: tx, statements: make(map[string]*sql.Stmt), hours: make(map[hourAt]used)}
	for a, f := range b.agents {
		if err := ended(); err != nil {
			return err
		}
		w.agent(a, f)
		b.s.untidy = b.s.untidy || len(f.gone) > 0
	}
	w.said()
	w.sums()
	now := time.Now()
	for shard, at := range b.shards {
		at.Applied = now
		b.shards[shard] = at
		w.position(shard, at)
	}
	if w.err != nil {
		return w.err
	}
	bad, err := count(ctx, tx)
	if err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	b.s.bad.Store(bad)
	for shard, at := range b.shards {
		b.s.shards[shard] = at
	}
	return b.s.tidy(ctx)
}
