package actors

import "github.com/reprise-dev/reprise/messages"

// undefined is the definition of agents whose kind is not defined here.
var undefined = fixed(&definition{})

// takes refuses what an agent whose kind is not defined here cannot do. It can be
// ended, for an operator must always be able to delete it, and a parent to stop it.
// Other commands of other agents are held, and not refused: the kind is known where
// they are, and so will be here, or was, and comes back. A person is refused at once.
func (r *Runtime) takes(a messages.AgentID, m any) error {
	err := r.Serves(a.Kind)
	d, is := m.(*Deliver)
	if err == nil || !is { // an Activate: the agent continues as far as it can
		return nil
	}
	switch d.Command.(type) {
	case messages.Delete, messages.CancelChild, messages.Report, messages.Task:
		return nil
	}
	if d.Cause.Endpoint == messages.EndpointPeer {
		return messages.Refuse(messages.Unavailable, "%v", err)
	}
	return err
}
