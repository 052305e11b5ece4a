package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// openKeys returns the agents' keys; nil if nothing is to be encrypted. A store that is encrypted
// is refused without its wrapping key: what would be written plain, and all that cannot be read,
// would be found out too late.
func (n *Node) openKeys(ctx context.Context) (*encrypted.Keys, error) {
	marked, err := n.streams.MarkedEncrypted(ctx)
	if err != nil {
		return nil, err
	}
	bucket, err := n.streams.FindKeys(ctx)
	switch {
	case err != nil:
		return nil, err
	case marked && bucket == nil:
		name := natslog.KeysOf(n.subjects)
		return nil, fmt.Errorf("this store is encrypted and the stream %s, which holds its keys, is missing (no backup has it): put the keys back with `reprise restore --keys` from a copy that `reprise backup --keys` has made, then start with the wrapping key; if there is none and they cannot be recovered, an empty bucket of that name lets new agents begin, and all others stay unreadable", name)
	case len(n.cfg.WrappingKeys) > 0:
		return n.makeKeys(ctx)
	case bucket == nil:
		return nil, nil
	}
	ids, err := encrypted.WrappingKeys(ctx, bucket)
	if err != nil || len(ids) == 0 && !marked {
		return nil, err
	}
	under := "its wrapping key"
	if len(ids) > 0 {
		under = "wrapping key " + strings.Join(ids, " or ")
	}
	return nil, fmt.Errorf("this store is encrypted under %s: start it with that key (reprise: --key-file or REPRISE_KEY)", under)
}

// makeKeys opens the keys, or makes the first ones.
func (n *Node) makeKeys(ctx context.Context) (*encrypted.Keys, error) {
	bucket, err := n.streams.MakeKeys(ctx, n.cfg.Replicas)
	if err != nil {
		return nil, err
	}
	keys, err := encrypted.Open(ctx, bucket, n.cfg.WrappingKeys...)
	if err != nil {
		return nil, err
	}
	if err := n.streams.MarkEncrypted(ctx); err != nil {
		return nil, err
	}
	if len(n.cfg.WrappingKeys) > 1 {
		n.rotates(keys)
	}
	return keys, nil
}

// rotates wraps all keys by the newest wrapping key while the node runs.
func (n *Node) rotates(keys *encrypted.Keys) {
	n.background(func(ctx context.Context) {
		wrapped, err := keys.Rotate(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			n.cfg.Logger.Warn("the agents' keys could not all be wrapped by the newest wrapping key; the older ones are still needed", "error", err)
		default:
			n.cfg.Logger.Info("the agents' keys are wrapped by the newest wrapping key; once every node has it, the older ones can be removed", "wrapped", wrapped)
		}
	})
}

// errPlain ends a node that writes plain what others encrypt.
var errPlain = errors.New("this store has been encrypted since this node was started, and this node has no wrapping key: it would write unencrypted data, so it stops, and its agents continue on other nodes; start it again with the wrapping key (reprise: --key-file or REPRISE_KEY)")

// staysPlain refuses what a node without keys wants to do once the store has been
// encrypted, and ends the node.
func (n *Node) staysPlain(ctx context.Context) error {
	if n.keys != nil {
		return nil
	}
	marked, err := n.streams.MarkedEncrypted(ctx)
	if err == nil && marked {
		err = errPlain
		n.fail(err)
	}
	return err
}

// watchMark looks, for as long as a node without keys lives, whether another has
// encrypted the store. The node looks before it takes partitions, too: one that was
// cut off meanwhile takes none.
func (n *Node) watchMark(ctx context.Context) error {
	if n.keys != nil {
		return nil
	}
	if err := natslog.Await(ctx, n.nc, n.cfg.Logger, n.staysPlain); err != nil {
		return err
	}
	n.background(func(ctx context.Context) {
		for range ticks(ctx, lookEvery) {
			within, done := context.WithTimeout(ctx, 10*lookEvery)
			_ = n.staysPlain(within) // what goes wrong is tried again
			done()
		}
	})
	return nil
}

// locked returns an error if the store is encrypted and the bucket of its keys is gone.
func (n *Node) locked(ctx context.Context) error {
	marked, err := n.streams.MarkedEncrypted(ctx)
	if err != nil || !marked {
		return err
	}
	if bucket, err := n.streams.FindKeys(ctx); err != nil || bucket != nil {
		return err
	}
	return fmt.Errorf("the stream %s, which holds the keys that agents are encrypted with, is missing", natslog.KeysOf(n.subjects))
}

// Encrypted reports whether the data of agents is encrypted where it is stored.
func (n *Node) Encrypted() bool { return n.keys != nil }

// RotateKeys wraps the keys of all agents by the first of Config.WrappingKeys, and
// says how many were wrapped by another. From then on the store knows only that
// one. Give it to every node first. A node that starts with several does it by
// itself.
func (n *Node) RotateKeys(ctx context.Context) (int, error) {
	if n.keys == nil {
		return 0, errors.New("nothing is encrypted here: there are no keys to rotate")
	}
	return n.keys.Rotate(ctx)
}

// shredder is what forgets the keys of deleted agents.
func (n *Node) shredder() shredder {
	if n.keys == nil {
		return noKeys{}
	}
	return n.keys
}

// noKeys is the shredder where nothing is encrypted.
type noKeys struct{}

// Shred finds no key.
func (noKeys) Shred(context.Context, messages.AgentID, func(context.Context) (bool, error)) (bool, error) {
	return false, nil
}
