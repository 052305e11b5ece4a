package client

import (
	"context"
	"encoding/json"
	"iter"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// Approvals yields the calls that wait for a person's approval: of one agent,
// if of is an address such as support/ticket-42, else of the whole tenant that
// it names.
func (c *Client) Approvals(ctx context.Context, of string) iter.Seq2[messages.Approval, error] {
	q := messages.Query{View: "approvals"}
	if strings.Contains(of, "/") {
		return decoded[messages.Approval](c.Query(ctx, of, q))
	}
	return decoded[messages.Approval](c.QueryTenant(ctx, of, q))
}

// Remembered yields the decisions that hold for an agent's later calls.
func (c *Client) Remembered(ctx context.Context, agent string) iter.Seq2[messages.Remembered, error] {
	return decoded[messages.Remembered](c.Query(ctx, agent, messages.Query{View: "approvals", Remembered: true}))
}

// Timers yields the inputs that are to reach an agent later, those that come first
// before the others.
func (c *Client) Timers(ctx context.Context, agent string) iter.Seq2[messages.Timer, error] {
	return decoded[messages.Timer](c.Query(ctx, agent, messages.Query{View: "timers"}))
}

// decoded reads a view's lines.
func decoded[T any](lines iter.Seq2[json.RawMessage, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for line, err := range lines {
			var v T
			if err == nil {
				err = json.Unmarshal(line, &v)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// Answer answers an agent's question with a person's words, as its Prompt says
// and messages.ParseDecision reads them. What came of it is reported by the events
// that follow, by the same question again, or by a notice: an answer that
// contradicts what was decided before changes nothing.
func (c *Client) Answer(ctx context.Context, q Question, text string) error {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	// No answer comes to the reply subject. With one, a server that brings this to another
	// account vouches for the header that names the sender.
	err := c.nc.PublishMsg(&nats.Msg{Subject: q.ReplySubject, Reply: c.nc.NewInbox(), Header: c.named(nats.Header{}), Data: []byte(text)})
	if err == nil {
		err = c.nc.FlushWithContext(ctx)
	}
	return c.unsent(err)
}
