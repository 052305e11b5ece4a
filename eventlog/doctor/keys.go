package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// Keys gives access to the keys that agents' frames are encrypted with.
type Keys interface {
	// Key returns the id of the agent's key, empty if it has none, and why it cannot be
	// unwrapped; nil: it can, or there is no wrapping key to try.
	Key(ctx context.Context, a messages.AgentID) (id string, closed error, err error)
	// Agents returns the agents of a shard that have a key.
	Agents(ctx context.Context, shard int) ([]messages.AgentID, error)
	// Erase returns what an operator does to have an agent's key erased.
	Erase(a messages.AgentID) string
}

// putBack is what helps against keys that are missing.
const putBack = "put the keys back from a copy with `reprise restore --keys`; without one what is encrypted is lost, and the agent can only be deleted"

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
	case p.keyID != "" && id == "":
		f.Detail, f.Remedy = fmt.Sprintf("its events are encrypted with key %s, and there is none", p.keyID), putBack
	case p.keyID != "" && id != p.keyID:
		f.Detail, f.Remedy = fmt.Sprintf("its events are encrypted with key %s, and the key in the bucket is %s", p.keyID, id), "what is encrypted with the first cannot be read: find out what replaced it"
	case id != "" && p.says.Phase == messages.PhaseDeleted && p.idle:
		f.Detail, f.Remedy = fmt.Sprintf("it is deleted, and key %s still exists: copies of its events could be read", id), v.keys.Erase(a)
	default:
		return nil
	}
	// It may have gone on, or been deleted, since its log was read.
	if tail, err := v.cfg.Log.Head(ctx, a); err != nil || tail.Frame != p.tail.Frame {
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
		tail, err := v.cfg.Log.Head(ctx, a)
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
