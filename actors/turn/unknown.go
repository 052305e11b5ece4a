package turn

import "github.com/reprise-dev/reprise/messages"

// An agent whose kind is not defined here can be deleted, its tasks can be cancelled, and reports
// of children that are to stop are recorded. What needs the definition waits for a node that has
// it. The same holds for a fork whose changes name a model that the node does not have.

// unknown refuses a command until the kind is defined.
func (d *decision) unknown() error {
	return messages.Refuse(messages.Unavailable, "this node does not define agent %s: its kind, or the model of a fork, is not configured; the command waits for a node that does", d.env.Agent)
}
