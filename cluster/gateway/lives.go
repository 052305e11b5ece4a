package gateway

import (
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
)

// delivery is a prompt as it is given to its agent. What the caller may have known of the
// agent is what is known here; if the prompt may have lain here while the node was cut
// off, nothing is taken for known, unless the caller is in another account: whether that
// one still waits could not be seen.
func (g *Gateway) delivery(a messages.AgentID, in messages.Input, r *nats.Msg) *actors.Deliver {
	var known messages.EventNumber
	if g.Steady == nil || g.Steady() || messages.Across(r.Reply) {
		known = g.Agents.Newest(a)
	}
	return &actors.Deliver{Agent: a, Command: in, Cause: messages.Cause{Type: "input", ID: in.ID, Door: "prompt"}.From(personOf(r)), Known: &known}
}

// overtaken says whether a prompt is for its agent's next life. Behind a tombstone ids are
// new again, and the caller may have had the answer through another door before the agent
// was deleted; so it is if the caller still waits.
func (g *Gateway) overtaken(d *actors.Deliver, to *replying) func(messages.EventNumber) error {
	return func(tombstone messages.EventNumber) error {
		there, err := to.there(g.ctx)
		if there && err == nil && !messages.Across(to.to) {
			return nil
		}
		g.Logger.Info("a prompt was not taken: its agent was deleted since it may have been sent, and nobody seems to wait for it", d.Agent.LogAttr(0), "id", d.Command.CommandID())
		return messages.Refuse(messages.Unavailable, "agent %s was deleted (event %d), and this prompt may have been sent before that: ask again with id %q if it is still wanted", d.Agent, tombstone, d.Command.CommandID())
	}
}
