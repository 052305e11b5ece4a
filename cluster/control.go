package cluster

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// orderLimit bounds how long a node takes to answer an operator.
const orderLimit = 5 * time.Second

// openControl listens to operators: on a subject of the node's own, and with the
// others on one where any of them says who is there.
func (n *Node) openControl(ctx context.Context) error {
	list, err := n.nc.QueueSubscribe(n.subjects.NodeOrders(""), "nodes", func(msg *nats.Msg) { go n.answerOrder(msg, n.nodes) })
	if err != nil {
		return err
	}
	n.onClose(func() { _ = list.Unsubscribe() })
	mine, err := n.nc.Subscribe(n.subjects.NodeOrders(n.id), func(msg *nats.Msg) { go n.answerOrder(msg, n.ordered) })
	if err != nil {
		return err
	}
	n.onClose(func() { _ = mine.Unsubscribe() })
	return n.heard(ctx)
}

func (n *Node) answerOrder(msg *nats.Msg, do func(context.Context, client.NodeOrder) (client.NodeAnswer, error)) {
	if n.subjects.AllowReply("", msg.Reply) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), orderLimit)
	defer cancel()
	var answer client.NodeAnswer
	var order client.NodeOrder
	err := json.Unmarshal(msg.Data, &order)
	if err != nil {
		err = messages.Refuse(messages.BadInput, "an order is a JSON object such as {\"drain\":true}: %v", err)
	} else {
		answer, err = do(ctx, order)
	}
	if err != nil {
		answer.Err = messages.AsError(err)
	}
	if b, err := json.Marshal(answer); err == nil {
		_ = msg.Respond(b)
	}
}

// nodes answers what any node can: who is there, and that a loss is accepted.
func (n *Node) nodes(ctx context.Context, o client.NodeOrder) (answer client.NodeAnswer, err error) {
	if o.Accept != nil {
		answer.Accepted, err = n.integrity.Accept(ctx, *o.Accept)
		return answer, err
	}
	for _, m := range n.ownership.List() {
		answer.Nodes = append(answer.Nodes, client.Node{ID: m.ID, Host: m.Host, Draining: m.Draining})
	}
	return answer, nil
}

// ordered does what an operator wants of this node and returns how the node is.
func (n *Node) ordered(ctx context.Context, o client.NodeOrder) (answer client.NodeAnswer, err error) {
	if o.Drain != nil {
		if err := n.mayDrain(*o.Drain); err != nil {
			return answer, err
		}
		n.cfg.Logger.Info("an operator started or ended the drain of this node", "drain", *o.Drain)
		if err := n.ownership.Drain(ctx, *o.Drain); err != nil {
			return answer, messages.Refuse(messages.Unavailable, "the other nodes could not be notified yet: %v", err)
		}
	}
	left, draining := n.ownership.Kept(), n.ownership.Draining()
	if draining && left > 0 && !n.ownership.Others() {
		return answer, keeps(left)
	}
	answer.Nodes = []client.Node{{ID: n.id, Host: n.Name(), Draining: draining, Partitions: left}}
	return answer, nil
}
