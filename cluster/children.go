package cluster

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
)

// send stores a command for another agent among the inputs of its partition,
// whoever owns that. It has no Nats-Msg-Id: the stream de-duplicates across
// agents, and agents do so themselves.
func (n *Node) send(ctx context.Context, to messages.AgentID, c messages.Command) error {
	body, err := messages.Body(c)
	if err != nil {
		return err
	}
	msg := nats.NewMsg(n.subjects.Peer(to))
	msg.Header.Set(messages.HeaderContentType, "application/json")
	msg.Data = body
	ack, err := n.js.PublishMsg(ctx, msg)
	if err == nil && ack.Duplicate {
		err = errors.New("the stream took the command for another one")
	}
	return err
}

// refused tells a parent that its child does not take a task, or a recall. That is not
// settled before that is stored.
func (n *Node) refused(ctx context.Context, d *actors.Deliver, answer messages.Answer) error {
	if answer.Err == nil || answer.Err.Code == messages.Unavailable {
		return nil
	}
	to, report, ok := messages.Refused(d.Agent, d.Command, answer.Err)
	if !ok {
		return nil
	}
	return n.send(ctx, to, report)
}
