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

// Node is what a node says of itself to operators.
type Node struct {
	ID   string `json:"node"`
	Host string `json:"host"`
	// Draining says that it gives its partitions away and takes none.
	Draining bool `json:"draining"`
	// Partitions is how many it has; a list of nodes does not tell.
	Partitions int `json:"partitions"`
}

// NodeOrder is what operators tell a node. Its zero value asks how it is.
type NodeOrder struct {
	// Drain has it give its partitions away, or take part again. Nil: neither.
	Drain *bool `json:"drain,omitempty"`
	// Accept has it record that what a stream of the log lost is accepted. Nil: nothing
	// is.
	Accept *AcceptLoss `json:"accept,omitempty"`
}

// AcceptLoss says whose decision it is that what a stream lost may stay lost.
type AcceptLoss struct {
	Stream string `json:"stream"`
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// NodeAnswer is what a node answers to operators.
type NodeAnswer struct {
	Nodes []Node `json:"nodes,omitempty"`
	// Accepted is the loss that was accepted.
	Accepted string          `json:"accepted,omitempty"`
	Err      *messages.Error `json:"error,omitempty"`
}

// FindNode finds the living node with that id, with an id that begins so, or on a
// host of that name, where there is only one. It needs an operator's permissions.
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

// Drain has a node give its partitions to the others, or with on false take part
// again, and says how far it is. The order is carried out after it returns; asked
// again, Node reports it. It needs an operator's permissions.
func (c *Client) Drain(ctx context.Context, id string, on bool) (Node, error) {
	return c.orderNode(ctx, id, NodeOrder{Drain: &on})
}

// AcceptLoss has any node record that what a stream of the log lost is accepted, and
// returns what that is. It needs an operator's permissions.
func (c *Client) AcceptLoss(ctx context.Context, a AcceptLoss) (string, error) {
	answer, err := c.order(ctx, c.subjects.NodeOrders(""), NodeOrder{Accept: &a})
	if errors.Is(err, errUnheard) {
		err = messages.Refuse(messages.Unavailable, "no node answers for root %q: start one, or point --nats elsewhere", c.root())
	}
	return answer.Accepted, err
}

// Node asks a node how it is. One that is not there any more is messages.NotFound.
func (c *Client) Node(ctx context.Context, id string) (Node, error) {
	return c.orderNode(ctx, id, NodeOrder{})
}

func (c *Client) orderNode(ctx context.Context, id string, o NodeOrder) (Node, error) {
	answer, err := c.order(ctx, c.subjects.NodeOrders(id), o)
	nodes := answer.Nodes
	switch {
	case errors.Is(err, errUnheard):
		return Node{}, messages.Refuse(messages.NotFound, "node %s has left the cluster", id)
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

// orderSilence is how long anybody may take to answer an order, at most: nodes give up
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
