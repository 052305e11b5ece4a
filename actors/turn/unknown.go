package turn

import "github.com/reprise-dev/reprise/messages"

// An agent whose kind is not defined here can be deleted, its tasks can be cancelled, and reports
// of children that are to stop are recorded. What needs the definition waits for a node that has
// it.

// unknown refuses a command until the kind is defined.
func (d *decision) unknown() error {
	return messages.Refuse(messages.Unavailable, "kind %q is not defined here: this waits for a node that knows it", d.env.Agent.Kind)
}
