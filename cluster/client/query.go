package client

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// Query asks for a view of an agent and yields its JSON lines, page by page.
// With q.Follow it goes on until ctx ends or the loop is left: if the agent's
// owner goes away it asks again, from the event after the last, and gives up
// when nobody has answered for half a minute.
func (c *Client) Query(ctx context.Context, agent string, q messages.Query) iter.Seq2[json.RawMessage, error] {
	a, err := messages.ParseAgentID(agent)
	return c.pages(ctx, c.subjects.Query(a), q, err, nil)
}

// QueryTenant asks for a view of a tenant: agents, approvals, usage, effects, dlq
// or views. An answer that does not tell of all that was stored says to each of
// lacks what it lacks.
func (c *Client) QueryTenant(ctx context.Context, tenant string, q messages.Query, lacks ...func(Lacks)) iter.Seq2[json.RawMessage, error] {
	return c.pages(ctx, c.subjects.TenantQuery(tenant), q, messages.ValidateToken("tenant", tenant), lacks)
}

// Lacks is what a view of a tenant does not tell of.
type Lacks struct {
	// Behind is how many messages were stored when it was asked and not read yet.
	Behind uint64
	// Unreadable is how many frames of the tenant's agents could not be read.
	Unreadable uint64
}

// QueryStore asks for a view of the whole store, all tenants together: doctor.
func (c *Client) QueryStore(ctx context.Context, q messages.Query) iter.Seq2[json.RawMessage, error] {
	return c.pages(ctx, c.subjects.StoreQuery(), q, nil, nil)
}

func (c *Client) pages(ctx context.Context, subject string, q messages.Query, err error, lacks []func(Lacks)) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		left, lines, limit := false, 0, q.Limit
		var try trying
		for err == nil {
			if limit > 0 {
				q.Limit = limit - lines
			}
			var body []byte
			if body, err = json.Marshal(q); err != nil {
				break
			}
			var next place
			next, err = c.page(ctx, subject, body, func(line json.RawMessage) bool {
				lines++
				if q.Follow {
					q.From, try = after(line, q.From), trying{}
				}
				left = !yield(line, nil)
				return !left
			})
			for _, say := range lacks {
				if next.Lacks != (Lacks{}) && q.Cursor == "" {
					say(next.Lacks)
				}
			}
			switch {
			case left || err == nil && (!next.more() || limit > 0 && lines >= limit):
				return
			case err == nil:
				q.From, q.Cursor, try = next.from, next.cursor, trying{}
			case q.Follow:
				err = try.again(ctx, err)
			}
		}
		yield(nil, err)
	}
}

// after is the number of the event that follows a line of events.
func after(line json.RawMessage, from messages.EventNumber) messages.EventNumber {
	var event struct{ N messages.EventNumber }
	if json.Unmarshal(line, &event) != nil {
		return from
	}
	return event.N + 1
}

// place is where the next page begins, as the end of one tells.
type place struct {
	from   messages.EventNumber
	cursor string
	Lacks  // of the page itself
}

func (p place) more() bool { return p.from != 0 || p.cursor != "" }

func placeOf(h nats.Header) (p place, err error) {
	p.cursor = h.Get(messages.HeaderCursor)
	for name, number := range map[string]*uint64{
		messages.HeaderNext: (*uint64)(&p.from), messages.HeaderBehind: &p.Behind, messages.HeaderUnreadable: &p.Unreadable,
	} {
		if text := h.Get(name); text != "" && err == nil {
			*number, err = strconv.ParseUint(text, 10, 64)
		}
	}
	return p, err
}

func (c *Client) page(ctx context.Context, subject string, body []byte, line func(json.RawMessage) bool) (next place, err error) {
	var begun joiner
	end, err := c.stream(ctx, call{subject: subject, body: body, silence: silence}, func(data []byte) (bool, error) {
		return begun.add(data, line), nil
	})
	if err != nil || end == nil {
		return place{}, err
	}
	return placeOf(end.Header)
}

// joiner makes lines of messages: a large line goes on in the next one.
type joiner struct{ begun []byte }

// add gives each line that ends in data, and says whether more are wanted.
func (j *joiner) add(data []byte, line func(json.RawMessage) bool) (more bool) {
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			j.begun = append(j.begun, data...)
			break
		}
		one := data[:end:end]
		if data = data[end+1:]; len(j.begun) > 0 {
			one, j.begun = append(j.begun, one...), nil
		}
		if !line(one) {
			return false
		}
	}
	return true
}

// call is a request with a streamed reply.
type call struct {
	subject string
	header  nats.Header
	body    []byte
	silence time.Duration
}

// stream sends a request and gives each message of its streamed reply to
// message, until the empty one that ends it, which it returns.
func (c *Client) stream(ctx context.Context, to call, message func([]byte) (bool, error)) (end *nats.Msg, err error) {
	in, err := c.listen()
	if err != nil {
		return nil, why(ctx, err)
	}
	defer in.close()
	ctx, leave := c.refused.heed(ctx, to.subject, in.sub.Subject)
	defer leave()
	in.changed = c.nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer c.nc.RemoveStatusListener(in.changed)
	if err := c.nc.PublishMsg(&nats.Msg{Subject: to.subject, Reply: in.sub.Subject, Header: to.header, Data: to.body}); err != nil {
		return nil, c.unsent(why(ctx, err))
	}
	for {
		msg, err := in.next(ctx, to.silence)
		switch {
		case err != nil:
			return nil, why(ctx, err)
		case msg.Header.Get("Status") == "503":
			return nil, messages.Refuse(messages.Unavailable, "no Reprise node answers at %s: is one running?", c.nc.ConnectedUrlRedacted())
		case msg.Header.Get("Nats-Service-Error") != "":
			return nil, &messages.Error{Code: messages.Code(msg.Header.Get(messages.HeaderCode)), Message: msg.Header.Get("Nats-Service-Error")}
		case len(msg.Data) == 0:
			return msg, nil
		}
		if more, err := message(msg.Data); err != nil || !more {
			return nil, err
		}
	}
}
