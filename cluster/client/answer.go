package client

import (
	"context"

	"github.com/nats-io/nats.go"
)

// Answer answers an agent's question with the words of a person, such as yes or no; see
// [messages.ParseDecision]. The effect shows in the stream that the question came from: events
// that follow, the same question again, or a notice. An answer that contradicts an earlier
// decision changes nothing.
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
