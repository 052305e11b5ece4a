package gateway

import (
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// headerFor is the subject that a forwarded request was sent to.
const headerFor = "Reprise-Forwarded-For"

// direct is the subject on which a node takes requests that others forward.
func (g *Gateway) direct(node string) string {
	root, _, _ := strings.Cut(g.Subjects.Any("q"), ".")
	return "_actor." + root + ".door." + node
}

// elsewhere hands a request to the node that owns the partition, if it is not
// this one; the owner answers the caller itself. A request is forwarded once.
func (g *Gateway) elsewhere(p messages.Partition, msg *nats.Msg) bool {
	owner := g.OwnerOf(p)
	switch {
	case owner == g.Self:
		return false
	case owner == "" || msg.Header.Get(headerFor) != "":
		g.fail(msg.Reply, messages.Refuse(messages.Unavailable, "partition %s is changing hands: try again with the same id", p))
		return true
	}
	out := &nats.Msg{Subject: g.direct(owner), Reply: msg.Reply, Header: nats.Header{}, Data: msg.Data}
	for name, values := range msg.Header {
		out.Header[name] = slices.Clone(values)
	}
	out.Header.Set(headerFor, msg.Subject)
	if err := g.Conn.PublishMsg(out); err != nil {
		g.fail(msg.Reply, messages.Refuse(messages.Unavailable, "the owner of partition %s cannot be reached: %v", p, err))
	}
	return true
}

// forwarded takes a request from another node's door.
func (g *Gateway) forwarded(msg *nats.Msg) {
	msg.Subject = msg.Header.Get(headerFor)
	switch {
	case strings.HasPrefix(msg.Subject, "agents.prompt."):
		g.prompt(msg)
	case strings.HasPrefix(msg.Subject, "agents.status."):
		g.status(msg)
	case strings.Count(msg.Subject, ".") == 2:
		g.queryTenant(msg)
	default:
		g.query(msg)
	}
}
