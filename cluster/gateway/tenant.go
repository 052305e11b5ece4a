package gateway

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// queryTenant answers a view of a whole tenant.
func (g *Gateway) queryTenant(msg request) {
	if !g.answerable(msg) {
		return
	}
	tenant := msg.Subject[strings.LastIndexByte(msg.Subject, '.')+1:]
	q, err := messages.ParseQuery(msg.Data)
	if err == nil {
		err = messages.ValidateToken("tenant", tenant)
	}
	if err != nil {
		g.fail(msg.Reply, messages.AsError(err))
		return
	}
	g.page(msg, q, func(p *page) error {
		switch q.View {
		case "agents":
			g.agents(p, tenant, q)
			return nil
		case "approvals":
			return g.allApprovals(p, tenant, q)
		case "dlq":
			return g.deadLetters(p, tenant, q)
		}
		return messages.Refuse(messages.BadInput, "view %q: a tenant has the views agents, approvals and dlq", q.View)
	})
}

func (g *Gateway) agents(p *page, tenant string, q messages.Query) {
	rows := g.Agents.List(projections.AgentFilter{Tenant: tenant, Kind: q.Kind, Phase: q.Phase})
	for i, row := range rows {
		n := messages.EventNumber(i + 1)
		if n < q.From {
			continue
		}
		row.Owner = g.OwnerOf(row.Agent.Partition())
		if !p.line(n, row) {
			return
		}
	}
}

// allApprovals lists the calls that wait for approval in a whole tenant, agent
// by agent. Only agents whose row says that a call waits are read. A page ends
// between two agents and the next one begins where it ended in the list as it
// is then. An agent whose log cannot be read hides no other's calls.
func (g *Gateway) allApprovals(p *page, tenant string, q messages.Query) error {
	if q.Remembered || q.At != 0 {
		return messages.Refuse(messages.BadInput, "the approvals of a tenant are those that wait now: ask an agent for remembered ones, or for an event's")
	}
	for i, row := range g.Agents.List(projections.AgentFilter{Tenant: tenant, Kind: q.Kind, Phase: q.Phase}) {
		n := messages.EventNumber(i + 1) // among all agents: a page must not shift when a call is decided
		if n < q.From || row.Waiting == 0 {
			continue
		}
		var queue projections.Queue
		if err := g.fold(row.Agent, 0, &queue); err != nil {
			if g.ctx.Err() != nil {
				return err
			}
			g.Logger.Warn("an agent's approvals cannot be told", "agent", row.Agent.String(), "error", err)
			continue
		}
		for _, approval := range queue.Approvals(row.Agent) {
			if approval.Agent != row.Agent {
				continue // its own row tells of it
			}
			if !p.line(n, approval) {
				return nil
			}
		}
	}
	return nil
}

// deadLetters lists a tenant's dead letters. Those without a readable address
// belong to the default tenant.
func (g *Gateway) deadLetters(p *page, tenant string, q messages.Query) error {
	ctx, cancel := context.WithTimeout(g.ctx, 10*time.Second)
	defer cancel()
	stream, err := g.js.Stream(ctx, g.DeadLetters)
	if err != nil {
		return messages.Refuse(messages.Unavailable, "the dead letters cannot be read now: %v", err)
	}
	root := strings.TrimSuffix(g.Subjects.Any("dlq"), ">")
	filters := []string{root + tenant + ".>"}
	if tenant == messages.DefaultTenant {
		filters = append(filters, root+"_.>")
	}
	for seq := max(uint64(q.From), 1); ; {
		var first *jetstream.RawStreamMsg
		for _, filter := range filters {
			raw, err := stream.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(filter))
			switch {
			case errors.Is(err, jetstream.ErrMsgNotFound):
			case err != nil:
				return messages.Refuse(messages.Unavailable, "the dead letters cannot be read now: %v", err)
			case first == nil || raw.Sequence < first.Sequence:
				first = raw
			}
		}
		if first == nil || !p.line(messages.EventNumber(first.Sequence), letterOf(first)) {
			return nil
		}
		seq = first.Sequence + 1
	}
}

func letterOf(raw *jetstream.RawStreamMsg) messages.DeadLetter {
	h := raw.Header
	l := messages.DeadLetter{
		Seq: raw.Sequence, Subject: h.Get(messages.HeaderSubject), Code: h.Get(messages.HeaderCode), Reason: h.Get(messages.HeaderReason),
		Size: len(raw.Data), Headers: h,
	}
	l.Received, _ = time.Parse(time.RFC3339Nano, h.Get(messages.HeaderReceived)) // zero where it is missing
	if s := string(raw.Data); strings.ToValidUTF8(s, "") == s {
		l.Body = s
	} else {
		l.Base64 = raw.Data
	}
	return l
}
