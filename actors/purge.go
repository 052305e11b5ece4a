package actors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// Purger takes away what is kept of an agent beside its log, blobs and
// snapshots. Safe for concurrent use.
type Purger interface {
	// Purge removes all that there was when the call began, and says how many dead
	// letters that were and whether there was a key. Doing it again changes nothing.
	// It asks mine between finding and removing, and removes nothing if that says
	// no: what it has found may be of an agent that somebody else has made anew.
	Purge(ctx context.Context, a messages.AgentID, mine func(context.Context) (bool, error)) (letters int, sealed bool, err error)
}

// deletes says that a frame is a tombstone.
func deletes(f *messages.Frame) bool {
	_, is := f.Events[0].(messages.AgentDeleted)
	return is
}

// beginPurge removes what is stored of a deleted agent, until it is done or the
// agent stops. Whoever owns the agent next does it again from the beginning.
func (a *agent) beginPurge(e turn.Effect) func() {
	p := purge{rt: a.rt, agent: a.id, tombstone: a.state.Deleted.N, tail: a.tail, newest: a.newest}
	return a.run(e, nil, func(ctx context.Context) any {
		held, err := backoff.Retry(ctx, func() (messages.Holdings, error) { return p.run(ctx) },
			backoff.WithBackOff(pauses()), backoff.WithMaxElapsedTime(0), backoff.WithNotify(p.waits))
		if err != nil {
			return nil // ctx has ended: nobody listens
		}
		return turn.Purged{Holdings: held}
	})
}

// purge is the removal of what was before a tombstone.
type purge struct {
	rt        *Runtime
	agent     messages.AgentID
	tombstone messages.EventNumber
	// tail is the agent's newest frame: as long as it is, nobody else owns the agent.
	tail eventlog.Tail
	// newest is its sequence.
	newest uint64
}

// run removes everything once and says what it was. If somebody else has
// written for the agent it removes nothing more: what is there now may be of
// another life. The append that follows finds out.
func (p *purge) run(ctx context.Context) (held messages.Holdings, err error) {
	if err := p.rt.writers.wait(ctx, p.agent); err != nil {
		return held, err
	}
	at, held, err := p.count(ctx)
	if err != nil {
		return held, err
	}
	var blobs []messages.Digest
	for b, err := range p.rt.log.ListBlobs(ctx, p.agent) {
		if err != nil {
			return held, err
		}
		blobs = append(blobs, b.SHA256)
		held.Blobs, held.BlobBytes = held.Blobs+1, held.BlobBytes+b.Size
	}
	snapshots, err := p.rt.log.ListSnapshots(ctx, p.agent)
	if err != nil {
		return held, err
	}
	held.Snapshots = len(snapshots)
	var kept error // what the log must keep for now; the rest is removed all the same
	for _, step := range []func() error{
		func() error {
			err := p.rt.log.Purge(ctx, p.agent, at)
			if errors.Is(err, eventlog.ErrKept) {
				kept, err = err, nil
			}
			return err
		},
		func() error { return p.rt.log.RemoveSnapshots(ctx, p.agent) },
		func() error {
			if len(blobs) == 0 { // none named would be all
				return nil
			}
			return p.rt.log.RemoveBlobs(ctx, p.agent, blobs...)
		},
		func() (err error) {
			if p.rt.purger != nil {
				held.Letters, held.Sealed, err = p.rt.purger.Purge(ctx, p.agent, p.mine)
			}
			return err
		},
	} {
		if mine, err := p.mine(ctx); err != nil || !mine {
			return held, err
		}
		if err := step(); err != nil {
			return held, err
		}
	}
	return held, kept
}

// mine says that nobody has written for the agent since the purge began.
func (p *purge) mine(ctx context.Context) (bool, error) {
	tail, err := p.rt.log.Tail(ctx, p.agent)
	return tail.Frame == p.tail.Frame, err
}

// count gives the tombstone's place in the log and what is before it, up to where
// the log is damaged.
func (p *purge) count(ctx context.Context) (at uint64, held messages.Holdings, err error) {
	for rec, err := range p.rt.log.Read(ctx, p.agent, 0) {
		damage := new(eventlog.DamageError)
		if errors.As(err, &damage) || errors.Is(err, messages.ErrShredded) { // by the try before
			at, err := p.place(ctx)
			return at, held, err
		}
		if err != nil {
			return 0, held, err
		}
		if rec.Frame.First == p.tombstone {
			return rec.Seq, held, nil
		}
		held.Frames, held.Events, held.Bytes = held.Frames+1, held.Events+len(rec.Frame.Events), held.Bytes+int64(rec.Size)
	}
	return 0, held, p.missing()
}

// place is the tombstone's place in a log that is damaged before it.
func (p *purge) place(ctx context.Context) (uint64, error) {
	if rec, err := p.rt.log.FrameAt(ctx, p.agent, p.newest); err == nil && rec.Frame.First == p.tombstone {
		return p.newest, nil
	}
	for rec, err := range p.rt.log.Read(ctx, p.agent, p.tombstone) {
		if err != nil {
			return 0, err
		}
		if rec.Frame.First == p.tombstone {
			return rec.Seq, nil
		}
	}
	return 0, p.missing()
}

func (p *purge) missing() error {
	return fmt.Errorf("the tombstone of %s, event %d, is not in the log", p.agent, p.tombstone)
}

func (p *purge) waits(err error, _ time.Duration) {
	p.rt.limited.warn(p.rt.logger, "a deleted agent cannot be purged now; it is tried until it is", "agent", p.agent.String(), "error", err)
}

// pauses are those between the tries of a purge: they double, up to half a minute.
func pauses() backoff.BackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 100*time.Millisecond, 30*time.Second
	return b
}
