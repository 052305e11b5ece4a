package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// Keys are the keys that agents' frames are sealed with.
type Keys interface {
	// Key is the id of the agent's key, empty if it has none, and why it cannot be
	// opened; nil: it can, or there is nothing to try it with.
	Key(ctx context.Context, a messages.AgentID) (id string, closed error, err error)
	// Agents are those of a shard that have a key.
	Agents(ctx context.Context, shard int) ([]messages.AgentID, error)
	// Erase is what an operator does to have an agent's key erased.
	Erase(a messages.AgentID) string
}

// putBack is what helps against keys that are missing.
const putBack = "put the keys back from a copy with `reprise restore --keys`; without one what is sealed is lost, and the agent can only be deleted"

// unlocked is what helps against keys that cannot be opened.
const unlocked = "start the nodes with its wrapping key, too, behind the newest one; if it is damaged, " + putBack

// unlock finds the keys.
func (v *visit) unlock(ctx context.Context) (err error) {
	if v.cfg.Keys != nil {
		v.keys, err = v.cfg.Keys(ctx)
	}
	return err
}

// key looks at the key of an agent whose log is sound.
func (v *visit) key(ctx context.Context, a messages.AgentID, p *patient) error {
	if v.keys == nil {
		return nil
	}
	id, closed, err := v.keys.Key(ctx, a)
	if err != nil {
		return err
	}
	f := Finding{Check: "key", Status: Fail, Agent: a}
	switch {
	case closed != nil:
		f.Detail, f.Remedy = closed.Error(), unlocked
	case p.sealed != "" && id == "":
		f.Detail, f.Remedy = fmt.Sprintf("its events are sealed with key %s, and there is none", p.sealed), putBack
	case p.sealed != "" && id != p.sealed:
		f.Detail, f.Remedy = fmt.Sprintf("its events are sealed with key %s, and the one that is there is %s", p.sealed, id), "what is sealed with the first cannot be read: see who has put the other there"
	case id != "" && p.says.Phase == eventlog.Gone && p.idle:
		f.Detail, f.Remedy = fmt.Sprintf("it is deleted, and key %s is there still: copies of what it was could be read", id), v.keys.Erase(a)
	default:
		return nil
	}
	// It may have gone on, or been deleted, since its log was read.
	if tail, err := v.cfg.Log.Tail(ctx, a); err != nil || tail.Frame != p.tail.Frame {
		return err
	}
	v.found(f)
	return nil
}

// leftovers looks for keys of agents that have no frame.
func (v *visit) leftovers(ctx context.Context, shard int) error {
	if v.keys == nil {
		return nil
	}
	agents, err := v.keys.Agents(ctx, shard)
	if err != nil {
		return err
	}
	for _, a := range agents {
		if v.agents[a] != nil {
			continue
		}
		tail, err := v.cfg.Log.Tail(ctx, a)
		if damage := new(eventlog.DamageError); errors.As(err, &damage) { // its only frame, which the shard does not show
			v.damage(a, tail, damage.Seq, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("examine %s: %w", a, err)
		}
		if tail.Frame == "" {
			v.found(Finding{
				Check: "key", Status: Warn, Agent: a, Detail: "there is a key of it and not one event: it is just being made, or its first event was never stored",
				Remedy: "if it lasts: " + v.keys.Erase(a),
			})
		}
	}
	return nil
}
