package gateway

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// queryTenant answers a view of a whole tenant.
func (g *Gateway) queryTenant(msg *nats.Msg) {
	if !g.answerable(msg) {
		return
	}
	tenant := msg.Subject[strings.LastIndexByte(msg.Subject, '.')+1:]
	q, err := messages.ParseQuery(msg.Data)
	if err == nil {
		err = messages.ValidateToken("tenant", tenant)
	}
	if err != nil {
		g.replyTo(msg).fail(messages.AsError(err))
		return
	}
	g.page(msg, q, func(p *page) error {
		if err := fits(q, filterableOfTenant); err != nil {
			return err
		}
		switch q.View {
		case "agents", "approvals", "usage", "effects", "find":
			return g.ofOwners(p, ownersQuery{Tenant: tenant, Query: q})
		case "dlq":
			return g.deadLetters(p, tenant, q)
		}
		return messages.Refuse(messages.BadInput, "view %q: a tenant has the views agents, approvals, usage, effects, find and dlq", q.View)
	})
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
