package turn

import "github.com/reprise-dev/reprise/messages"

// An agent whose kind is not defined here, because its definition is gone or has yet to come,
// can be deleted, its tasks can be cancelled, and it takes the reports of children that are to
// stop. What takes a definition waits for a node that knows the kind.

// unknown holds a command back until the kind is defined.
func (d *decision) unknown() error {
	return messages.Refuse(messages.Unavailable, "kind %q is not defined here: this waits for a node that knows it", d.env.Agent.Kind)
}
