package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/projections/index"
)

// examine compares what this node's index holds of an agent that is its own with a replay, if it
// is to look deep. An index that lags, and an agent that changes meanwhile, are passed over.
func (v *agentsIndex) examine(log eventlog.Reader) doctor.Check {
	return func(ctx context.Context, s doctor.Subject, o doctor.Options, tell func(doctor.Finding)) error {
		if !o.Deep {
			return nil
		}
		store, err := v.upTo(ctx, s)
		if err != nil || store == nil {
			return err
		}
		effects, spent, err := v.replayed(ctx, log, s.Agent)
		var damage *eventlog.DamageError
		if errors.As(err, &damage) { // another check reports it
			return nil
		}
		if err != nil {
			return err
		}
		held, err := store.Indexed(ctx, s.Agent)
		switch {
		case index.Damaged(err):
			tell(doctor.Finding{
				Check: "index", Status: doctor.Fail, Agent: s.Agent, Detail: fmt.Sprintf("the file of this node's index is damaged: %v", err),
				Remedy: "it is a cache and is built again from the log now: check the disk, and run doctor again",
			})
			return nil
		case err != nil:
			return ctx.Err() // the index is being opened again
		}
		detail, err := differs(held, effects, spent)
		if err != nil || detail == "" {
			return err
		}
		if tail, err := log.Head(ctx, s.Agent); err != nil || tail.Frame != s.Tail.Frame {
			return err
		}
		tell(doctor.Finding{
			Check: "index", Status: doctor.Fail, Agent: s.Agent, Detail: detail,
			Remedy: "it is a cache: stop this node, delete the file of its index (`reprise index -o json` names it) and start the node; it is built again from the log",
		})
		return nil
	}
}

// upTo returns the index once it has the agent's newest frame; nil if it
// does not have it even after a while, or if the agent is another node's.
func (v *agentsIndex) upTo(ctx context.Context, s doctor.Subject) (*index.Store, error) {
	p := s.Agent.Partition()
	for range 2 {
		v.mu.Lock()
		store, _ := v.whole()
		x := v.partitions[p]
		v.mu.Unlock()
		switch {
		case !x.heard:
			return nil, nil
		case store != nil && x.ready && x.at >= s.Tail.Seq:
			return store, nil
		}
		if _, _, _, err := v.Index(ctx, []messages.Partition{p}, true); err != nil {
			return nil, ctx.Err() // there are none now
		}
	}
	return nil, nil
}

// replayed folds an agent's frames as the index does, which drops a deleted agent, and has of what was
// imported or copied the calls alone.
func (v *agentsIndex) replayed(ctx context.Context, log eventlog.Reader, a messages.AgentID) ([]projections.Effect, projections.Used, error) {
	effects, usage := new(projections.Effects), new(projections.Usage)
	for rec, err := range log.Read(ctx, a, eventlog.Range{}) {
		if err != nil {
			return nil, projections.Used{}, err
		}
		if eventlog.Ends(rec.Frame) {
			effects, usage = new(projections.Effects), new(projections.Usage)
		}
		var again *projections.Effects // what was used is counted from the agent's own frames alone
		for frame, err := range v.before(ctx, a, rec.Seq, rec.Frame) {
			if err != nil {
				return nil, projections.Used{}, err
			}
			if again == nil {
				again = new(projections.Effects)
				effects = again
			}
			projections.Fold(frame, 0, again)
		}
		projections.Fold(rec.Frame, 0, effects, usage)
	}
	calls := effects.List(a)
	projections.MarkRepeats(calls)
	return calls, usage.Total(), nil
}

// differs returns how the index differs from a replay; empty if it does not.
func differs(held index.Indexed, effects []projections.Effect, spent projections.Used) (string, error) {
	if len(held.Effects) != len(effects) {
		return fmt.Sprintf("this node's index has %d of its tool calls, its events have %d", len(held.Effects), len(effects)), nil
	}
	for i, e := range effects {
		line, err := json.Marshal(e)
		if err != nil {
			return "", err
		}
		if !bytes.Equal(line, held.Effects[i]) {
			return fmt.Sprintf("this node's index has another outcome of its call of %s at event %d than its events", e.Tool, e.N), nil
		}
	}
	if held.Used != spent {
		return fmt.Sprintf("this node's index has %d model calls of it with %d tokens, its events have %d with %d",
			held.Used.Calls, held.Used.Usage.Input+held.Used.Usage.Output, spent.Calls, spent.Usage.Input+spent.Usage.Output), nil
	}
	return "", nil
}
