package client

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// Query yields the JSON lines of a view of an agent. Methods such as [Client.History] yield them
// decoded. With q.Follow it continues until ctx ends or the loop is left: if the agent's owner
// goes away, it asks again, from the event after the last, and gives up after half a minute
// without an answer.
func (c *Client) Query(ctx context.Context, agent string, q messages.Query) iter.Seq2[json.RawMessage, error] {
	a, err := messages.ParseAgentID(agent)
	return c.pages(ctx, c.subjects.Query(a), q, err, nil)
}

// QueryTenant is [Client.Query] for a view of a tenant: agents, approvals, usage, effects, find or
// dlq. If the answer is incomplete, each of lacks is called with what is missing; for uncovered
// partitions, once for each page.
func (c *Client) QueryTenant(ctx context.Context, tenant string, q messages.Query, lacks ...func(Lacks)) iter.Seq2[json.RawMessage, error] {
	return c.pages(ctx, c.subjects.TenantQuery(tenant), q, messages.ValidateToken("tenant", tenant), lacks)
}

// Lacks is what is missing from a view of a tenant.
type Lacks struct {
	// Unreadable is how many frames of the tenant's agents could not be read.
	Unreadable uint64
	// Encrypted is how many encrypted agents were not searched for words; the view is find.
	Encrypted uint64
	// Uncovered are the partitions of which not everything is shown.
	Uncovered []messages.Uncovered
}

// QueryStore is [Client.QueryTenant] for a view of the whole store, of all tenants together: doctor,
// nodes, partitions or index.
func (c *Client) QueryStore(ctx context.Context, q messages.Query, lacks ...func(Lacks)) iter.Seq2[json.RawMessage, error] {
	return c.pages(ctx, c.subjects.StoreQuery(), q, nil, lacks)
}

func (c *Client) pages(ctx context.Context, subject string, q messages.Query, err error, lacks []func(Lacks)) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		r := &reading{c: c, subject: subject, Query: q, yield: yield, lacks: lacks, most: q.Limit}
		for more := true; err == nil && more; {
			more, err = r.page(ctx)
		}
		if err != nil && !r.left {
			yield(nil, err)
		}
	}
}

// reading is a view that is read page by page.
type reading struct {
	c       *Client
	subject string
	messages.Query
	yield func(json.RawMessage, error) bool
	lacks []func(Lacks)
	left  bool
	most  int // lines in all; 0: no bound
	lines int // yielded
	// held are lines of a page that has no end yet: it may have to be asked for again.
	held []json.RawMessage
	try  trying
}

// holds reports whether the lines of a page are held until it is whole. Those of
// what happens now are not: a view that is followed continues behind its last event, and an
// examination of the store is not begun again.
func (r *reading) holds() bool { return !r.Follow && r.View != "doctor" }

// page asks for a page, again if it was lost, and reports whether there is another one.
func (r *reading) page(ctx context.Context) (more bool, err error) {
	if r.most > 0 {
		r.Limit = r.most - r.lines
	}
	body, err := json.Marshal(r.Query)
	if err != nil {
		return false, err
	}
	r.held = nil
	before := r.lines
	next, err := r.c.page(ctx, call{subject: r.subject, body: body}, r.line)
	again := isLost(err) && (r.holds() || r.lines == before) || r.Follow && err != nil || r.holds() && r.try.soon(err)
	switch {
	case r.left:
		return false, nil
	case again:
		if err = r.try.again(ctx, err); err == nil {
			return true, nil
		}
	}
	if !r.give() || err != nil {
		return false, err
	}
	r.report(next.Lacks)
	r.From, r.Cursor, r.try = next.from, next.cursor, trying{}
	return !r.left && next.more() && (r.most == 0 || r.lines < r.most), nil
}

// line takes a line and reports whether more are wanted.
func (r *reading) line(line json.RawMessage) (more bool) {
	if r.holds() {
		r.held = append(r.held, line)
		return true
	}
	r.lines++
	if r.Follow {
		r.From, r.try = after(line, r.From), trying{}
	}
	r.left = !r.yield(line, nil)
	return !r.left
}

// give yields the lines that were held, and reports whether more are wanted.
func (r *reading) give() (more bool) {
	for _, line := range r.held {
		r.lines++
		if r.left = !r.yield(line, nil); r.left {
			return false
		}
	}
	return true
}

// report reports what a page lacks: for each page which partitions are uncovered, all
// else once for each view.
func (r *reading) report(lacks Lacks) {
	if r.Cursor != "" {
		lacks = Lacks{Uncovered: lacks.Uncovered}
	}
	if lacks.Unreadable == 0 && lacks.Encrypted == 0 && len(lacks.Uncovered) == 0 {
		return
	}
	for _, say := range r.lacks {
		say(lacks)
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

// place is where the next page begins, as the end of one names it.
type place struct {
	from   messages.EventNumber
	cursor string
	Lacks  // of the page itself
}

func (p place) more() bool { return p.from != 0 || p.cursor != "" }

func placeOf(h nats.Header) (p place, err error) {
	p.cursor = h.Get(messages.HeaderCursor)
	for name, number := range map[string]*uint64{
		messages.HeaderNext: (*uint64)(&p.from), messages.HeaderUnreadable: &p.Unreadable, messages.HeaderEncrypted: &p.Encrypted,
	} {
		if text := h.Get(name); text != "" && err == nil {
			*number, err = strconv.ParseUint(text, 10, 64)
		}
	}
	if text := h.Get(messages.HeaderUncovered); text != "" && err == nil {
		err = json.Unmarshal([]byte(text), &p.Uncovered)
	}
	return p, err
}

func (c *Client) page(ctx context.Context, to call, line func(json.RawMessage) bool) (next place, err error) {
	var begun joiner
	end, err := c.stream(ctx, to, func(msg *nats.Msg) (bool, error) {
		return begun.add(msg.Data, line), nil
	})
	if err != nil || end == nil {
		return place{}, err
	}
	return placeOf(end.Header)
}

// joiner makes lines of messages: a large line continues in the next one.
type joiner struct{ begun []byte }

// add passes each line that ends in data on, and reports whether more are wanted.
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
}

// received counts the numbered messages of a reply.
type received int

// take takes notice of the headers of a message: one that has a number must be the
// next, and as many must have come as were sent.
func (r *received) take(h nats.Header) error {
	if text := h.Get(messages.HeaderPart); text != "" {
		if n, err := strconv.Atoi(text); err != nil || n != int(*r)+1 {
			return lost("a part of the answer was lost on its way: part %s came after part %d", text, *r)
		}
		*r++
	}
	if text := h.Get(messages.HeaderAlive); text != "" {
		if sent, err := strconv.Atoi(text); err == nil && sent > int(*r) {
			return lost("a part of the answer was lost on its way: %d of %d have come", *r, sent)
		}
	}
	return nil
}

// quickEndpoints is how many endpoints are asked firstSilence apart: of two nodes one that is
// frozen is asked so often in one case of a thousand. Those behind come ever slower, for
// then it is more likely that all have too much to do.
const quickEndpoints = 10

// firstWord sends a request to an endpoint, and to others while none has answered, for silence at
// most. The first that does is the only one that is read from then on.
func (c *Client) firstWord(ctx context.Context, to call, in *inbox) (*nats.Msg, error) {
	request := nats.NewMsg(to.subject)
	request.Data = to.body
	maps.Copy(request.Header, to.header)
	request.Header.Set(messages.HeaderAlive, "1")
	within := firstSilence
	for asked, began := 1, time.Now(); ; asked++ {
		var err error
		if request.Reply, err = in.open(); err != nil {
			return nil, err
		}
		if err := c.nc.PublishMsg(request); err != nil {
			return nil, c.unsent(err)
		}
		msg, err := in.next(ctx, within)
		switch {
		case err == nil:
			in.keep(msg.Subject)
			return msg, nil
		case !isSilence(err) || time.Since(began) > silence:
			return nil, err
		case asked >= quickEndpoints:
			within *= 2
		}
	}
}

// stream sends a request and passes each message of its streamed reply to message, until the last
// one, which is empty or says so; it returns that.
func (c *Client) stream(ctx context.Context, to call, message func(*nats.Msg) (bool, error)) (end *nats.Msg, err error) {
	in := c.newInbox()
	defer in.close()
	ctx, leave := c.refused.heed(ctx, to.subject)
	defer leave()
	var got received
	msg, err := c.firstWord(ctx, to, in)
	for ; ; msg, err = in.next(ctx, aliveSilence) {
		switch {
		case err != nil:
			return nil, why(ctx, err)
		case msg.Header.Get("Status") == "503":
			return nil, noEndpointError{messages.Refuse(messages.Unavailable, "no Reprise node answers at %s: is one running?", c.Server())}
		}
		if err := got.take(msg.Header); err != nil {
			return nil, err
		}
		switch {
		case msg.Header.Get("Nats-Service-Error") != "":
			return nil, &messages.Error{Code: messages.Code(msg.Header.Get(messages.HeaderCode)), Message: msg.Header.Get("Nats-Service-Error")}
		case len(msg.Data) > 0:
			if more, err := message(msg); err != nil || !more {
				return nil, err
			}
			if msg.Header.Get(messages.HeaderEnd) != "" {
				return msg, nil
			}
		case msg.Header.Get(messages.HeaderAlive) == "":
			return msg, nil
		}
	}
}
