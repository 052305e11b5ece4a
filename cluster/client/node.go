package client

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// Node is the state of a node, for operators.
type Node struct {
	ID   string `json:"node"`
	Host string `json:"host"`
	// Draining reports whether it gives its partitions to other nodes and takes none.
	Draining bool `json:"draining"`
	// Partitions is how many it owns. It is 0 in a list of nodes.
	Partitions int `json:"partitions"`
}

// NodeOrder is a request of an operator to a node. The zero value asks for its state.
type NodeOrder struct {
	// Drain makes it give its partitions to other nodes, or take part again. Nil: neither.
	Drain *bool `json:"drain,omitempty"`
	// Accept makes it record that a loss of a stream of the log is accepted. Nil: none is.
	Accept *AcceptLoss `json:"accept,omitempty"`
}

// AcceptLoss is the decision that the messages which a stream has lost are given up.
type AcceptLoss struct {
	Stream string `json:"stream"`
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// NodeAnswer is a node's answer to a [NodeOrder].
type NodeAnswer struct {
	Nodes []Node `json:"nodes,omitempty"`
	// Accepted is the loss that was accepted.
	Accepted string          `json:"accepted,omitempty"`
	Err      *messages.Error `json:"error,omitempty"`
}

// FindNode returns the running node whose id is name or begins with it, or whose host has that
// name, if there is only one. It needs the permissions of an operator.
func (c *Client) FindNode(ctx context.Context, name string) (Node, error) {
	answer, err := c.order(ctx, c.subjects.NodeOrders(""), NodeOrder{})
	nodes := answer.Nodes
	if errors.Is(err, errUnheard) {
		err = messages.Refuse(messages.Unavailable, "no node answers for root %q: start one, or point --nats elsewhere", c.root())
	}
	if err != nil {
		return Node{}, err
	}
	var found, known []string
	var is Node
	for _, n := range nodes {
		known = append(known, n.ID+" on "+n.Host)
		if n.ID == name {
			return n, nil
		}
		if name != "" && (strings.HasPrefix(n.ID, strings.ToUpper(name)) || n.Host == name) {
			is, found = n, append(found, n.ID+" on "+n.Host)
		}
	}
	switch len(found) {
	case 1:
		return is, nil
	case 0:
		return Node{}, messages.Refuse(messages.NotFound, "no node has the id or host %q: there are %s", name, strings.Join(known, ", "))
	}
	return Node{}, messages.Refuse(messages.Conflict, "%q may be any of %s: write more of the id", name, strings.Join(found, ", "))
}

// Drain makes a node give its partitions to the others, or with on false take part again. It
// returns before that is done; [Client.Node] reports the progress. It needs the permissions of an
// operator.
func (c *Client) Drain(ctx context.Context, id string, on bool) (Node, error) {
	return c.orderNode(ctx, id, NodeOrder{Drain: &on})
}

// AcceptLoss makes a node record that a loss of a stream of the log is accepted, and returns what was
// lost. It needs the permissions of an operator.
func (c *Client) AcceptLoss(ctx context.Context, a AcceptLoss) (string, error) {
	answer, err := c.order(ctx, c.subjects.NodeOrders(""), NodeOrder{Accept: &a})
	if errors.Is(err, errUnheard) {
		err = messages.Refuse(messages.Unavailable, "no node answers for root %q: start one, or point --nats elsewhere", c.root())
	}
	return answer.Accepted, err
}

// Node returns the state of a node. messages.NotFound: it is gone.
func (c *Client) Node(ctx context.Context, id string) (Node, error) {
	return c.orderNode(ctx, id, NodeOrder{})
}

func (c *Client) orderNode(ctx context.Context, id string, o NodeOrder) (Node, error) {
	answer, err := c.order(ctx, c.subjects.NodeOrders(id), o)
	nodes := answer.Nodes
	switch {
	case errors.Is(err, errUnheard):
		return Node{}, messages.Refuse(messages.NotFound, "node %s does not answer: it has stopped, or has no connection to NATS at the moment", id)
	case err != nil:
		return Node{}, err
	case len(nodes) != 1:
		return Node{}, messages.Refuse(messages.Internal, "node %s answers with %d nodes", id, len(nodes))
	}
	return nodes[0], nil
}

var errUnheard = errors.New("nothing listens")

func (c *Client) order(ctx context.Context, subject string, o NodeOrder) (answer NodeAnswer, err error) {
	ctx, leave := c.refused.heed(ctx, subject)
	defer leave()
	b, err := json.Marshal(o)
	if err != nil {
		return answer, err
	}
	msg, err := c.orderAgain(ctx, subject, b)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return answer, errUnheard
	case err != nil:
		return answer, why(ctx, err)
	}
	if err := json.Unmarshal(msg.Data, &answer); err != nil {
		return answer, err
	}
	if answer.Err != nil {
		return answer, answer.Err
	}
	return answer, nil
}

// orderSilence is how long a node may take to answer an order, at most: nodes give up
// before.
const orderSilence = 6 * time.Second

// orderAgain orders again while there is no answer: the node that was given the order may be
// frozen, and the others know as much. Later it may take longer, for one that is only
// slow. An order that is taken twice changes nothing.
func (c *Client) orderAgain(ctx context.Context, subject string, order []byte) (*nats.Msg, error) {
	for patience := firstSilence; ; patience = min(2*patience, orderSilence) {
		attempt, cancel := context.WithTimeout(ctx, patience)
		msg, err := c.nc.RequestWithContext(attempt, subject, order)
		late := attempt.Err() != nil
		cancel()
		if err == nil || !late || ctx.Err() != nil {
			return msg, err
		}
	}
}
