// Package prefix lets the log of an agent begin with a part of another agent's log. It wraps any
// [eventlog.Store]: a reader of a fork through it reads the events of its parent first, up to the one
// at which it was forked, and then those of its own, numbered without a gap.
//
// # Guarantees
//
//   - Nothing of the prefix is stored for the fork, however long it is.
//   - The frames of the prefix have the sequence 0 and the epoch 0: they are not in the fork's log,
//     and its owners are others. The last one is cut where the fork begins.
//   - A position within the prefix can be read on from, like any other.
//   - A prefix that is not there any more, or is not the one that was forked, is read from the copy
//     that the fork has made of it. If it has made none, that is a *eventlog.DamageError of the fork.
//   - A blob that the fork has not is looked for where its prefix is.
//
// The prefix of an imported agent is a blob of its own, which [Writer] has written and [Frames] reads.
// For a reader of the log it is the same.
//
// What is written is written as it is: appends, heads, snapshots and removals are the fork's own.
package prefix

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// ErrDeep is wrapped by the error for a fork with more than messages.MaxPrefixes prefixes.
var ErrDeep = errors.New("too many forks are forks of one another")

// errTenant is why a log does not begin with that of a parent.
var errTenant = errors.New("its parent is of another tenant, whose events it has not")

// store is a store whose reads begin with prefixes.
type store struct {
	eventlog.Log
	eventlog.Blobs
	inner eventlog.Store
}

// New returns the store with the prefixes of forks in what is read of it. Safe for concurrent use
// if s is.
func New(s eventlog.Store) eventlog.Store {
	p := &store{Log: s.Log, Blobs: s.Blobs, inner: s}
	return eventlog.Store{Log: p, Blobs: p, Snapshots: s.Snapshots, Definitions: s.Definitions}
}

// Read yields the agent's frames, those of its prefix first; see eventlog.Reader.
func (s *store) Read(ctx context.Context, a messages.AgentID, r eventlog.Range) iter.Seq2[eventlog.Recorded, error] {
	return s.read(ctx, a, r, 0)
}

// within reports whether a position is one of a prefix: no frame of an agent's own has the
// sequence 0.
func within(p eventlog.Position) bool { return p.Frame != "" && p.Seq == 0 }

func (s *store) read(ctx context.Context, a messages.AgentID, r eventlog.Range, depth int) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		own, from := r, r.Event()
		if within(r.After) {
			own = eventlog.Range{After: eventlog.Position{Last: r.After.Last}, Upto: r.Upto}
		}
		first := true
		for rec, err := range s.inner.Read(ctx, a, own) {
			if err == nil && first {
				if !s.before(ctx, rec, r, depth, yield) {
					return
				}
				first = false
			}
			if !yield(rec, err) {
				return
			}
		}
		if first && within(r.After) {
			yield(eventlog.Recorded{}, elsewhere(a, from))
		}
	}
}

// elsewhere is the error for a position of a prefix that the agent has not.
func elsewhere(a messages.AgentID, from messages.EventNumber) error {
	return fmt.Errorf("read %s on from event %d, which was another agent's: %w", a, from-1, eventlog.ErrElsewhere)
}

// before yields what the range has before the first frame of the agent's own. It reports whether
// that frame is to follow.
func (s *store) before(ctx context.Context, rec eventlog.Recorded, r eventlog.Range, depth int, yield func(eventlog.Recorded, error) bool) bool {
	p, forked := messages.PrefixOf(rec.Frame)
	switch {
	case within(r.After) && (!forked || p.Last < r.After.Last):
		yield(eventlog.Recorded{}, elsewhere(rec.Agent, r.Event()))
		return false
	case !forked || r.After.Frame != "" && !within(r.After) || p.Last < r.Event():
		return true
	}
	for before, err := range s.prefix(ctx, rec, p, r.Event(), depth) {
		if !yield(before, err) || err != nil {
			return false
		}
	}
	return true
}

// prefix yields the frames of a prefix from the one that holds event from on.
func (s *store) prefix(ctx context.Context, first eventlog.Recorded, p messages.Prefix, from messages.EventNumber, depth int) iter.Seq2[eventlog.Recorded, error] {
	if p.Agent == (messages.AgentID{}) {
		return Frames(ctx, s.inner.Blobs, first.Agent, p, from)
	}
	return func(yield func(eventlog.Recorded, error) bool) {
		gone := func(why error) {
			why = &eventlog.DamageError{Agent: first.Agent, Seq: first.Seq, Event: from, Err: fmt.Errorf("its events up to %d are those of %s: %w", p.Last, p.Agent, why)}
			s.copied(ctx, first, from, why)(yield)
		}
		switch {
		case p.Agent.Tenant != first.Agent.Tenant:
			gone(errTenant)
			return
		case depth >= messages.MaxPrefixes:
			gone(ErrDeep)
			return
		}
		for rec, err := range s.read(ctx, p.Agent, eventlog.From(from), depth+1) {
			switch damage := new(eventlog.DamageError); {
			case errors.As(err, &damage):
				gone(err)
				return
			case err != nil:
				yield(eventlog.Recorded{}, err)
				return
			case rec.Frame.First > from && !(eventlog.Ends(rec.Frame) && rec.Frame.First <= p.Last): // the life before a tombstone is no one's
				gone(fmt.Errorf("event %d of it is not stored any more", from))
				return
			}
			last := rec.Frame.Last() >= p.Last
			if last && rec.Digest != p.Digest {
				gone(fmt.Errorf("event %d of it is another one than was forked", p.Last))
				return
			}
			from = rec.Frame.Last() + 1
			if !yield(borrowed(rec, first.Agent, p.Last), nil) || last {
				return
			}
		}
		gone(fmt.Errorf("it ends with event %d", from-1))
	}
}

// borrowed returns a frame of a parent as one of its fork's prefix, without the events behind last.
func borrowed(rec eventlog.Recorded, fork messages.AgentID, last messages.EventNumber) eventlog.Recorded {
	rec = rec.Upto(last)
	f := *rec.Frame
	f.Epoch = 0
	rec.Agent, rec.Seq, rec.Frame = fork, 0, &f
	return rec
}
