package client

import (
	"context"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// Resend publishes a dead letter to its subject again, under the id it had or,
// if it had none, one made of its number: resent twice it has one effect. The
// letter itself is kept until its time is over.
func (c *Client) Resend(ctx context.Context, l messages.DeadLetter) error {
	if l.Headers[messages.HeaderCut] != nil {
		return messages.Refuse(messages.TooLarge, "dead letter %d was too large to be kept whole: it cannot be sent again", l.Seq)
	}
	if _, _, err := c.subjects.ParseAgent(l.Subject); err != nil {
		return messages.Refuse(messages.BadAddress, "dead letter %d has no agent to go to: %v", l.Seq, err)
	}
	msg := nats.NewMsg(l.Subject)
	msg.Data = []byte(l.Body)
	if l.Base64 != nil {
		msg.Data = l.Base64
	}
	c.named(msg.Header) // unless the letter names a person
	for _, name := range []string{messages.HeaderPerson, messages.HeaderContentType, messages.HeaderID, messages.HeaderDeadline, messages.HeaderReply, messages.HeaderPolicy, messages.HeaderTraceParent, messages.HeaderTraceState} {
		if v := l.Headers[name]; len(v) > 0 {
			msg.Header[name] = slices.Clone(v)
		}
	}
	if msg.Header.Get(messages.HeaderID) == "" {
		msg.Header.Set(messages.HeaderID, "dlq:"+firstOf(l.Headers[messages.HeaderMsgID]))
	}
	return c.store(ctx, msg, nil)
}

func firstOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
