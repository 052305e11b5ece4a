package cluster

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// send stores a command for another agent among the inputs of its partition,
// on whatever node. It has no Nats-Msg-Id: the stream de-duplicates across
// agents, and agents do so themselves.
func (n *Node) send(ctx context.Context, to messages.AgentID, c messages.Command) error {
	body, err := messages.Body(c)
	if err != nil {
		return err
	}
	msg := nats.NewMsg(n.subjects.Peer(to))
	msg.Header.Set(messages.HeaderContentType, "application/json")
	for name, value := range messages.TraceIn(ctx).Headers() {
		msg.Header.Set(name, value)
	}
	msg.Data = body
	ack, err := n.js.PublishMsg(ctx, msg)
	if err == nil && ack.Duplicate {
		err = errors.New("the stream took the command for another one")
	}
	return err
}

// reply sends another agent the result of its command, if it is to know that. The command is not
// settled before the reply is stored.
func (n *Node) reply(ctx context.Context, d *actors.Deliver, answer messages.Answer) error {
	m, ok := turn.Reply(d.Agent, d.Command, answer)
	if !ok {
		return nil
	}
	return n.send(ctx, m.To, m.Command)
}
