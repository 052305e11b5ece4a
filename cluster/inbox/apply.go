package inbox

import (
	"context"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
)

// apply gives one message to its agent and settles it: acknowledged when the
// agent has it, a dead letter when it never will. When ctx ends first it is
// left for the next owner. It says whether the message has deleted the agent.
func (b *Inbox) apply(ctx context.Context, a messages.AgentID, msg message) (deleted bool) {
	d, reply, err := b.parse(a, msg)
	if err != nil {
		b.refuse(ctx, a, msg, reply, messages.AsError(err))
		return false
	}
	_, deletes := d.Command.(messages.Delete)
	if deletes && b.forget(ctx, a, msg.seq) != nil {
		return false // ctx ended
	}
	answer, err := b.deliver(ctx, d)
	switch {
	case err != nil: // ctx ended
	case answer.Err != nil:
		b.refuse(ctx, a, msg, reply, answer.Err)
	default:
		deleted = deletes
		if _, isInput := d.Command.(messages.Input); reply != "" && (!isInput || answer.Duplicate) {
			b.cfg.Told(reply, a, answer)
		}
		if err := msg.Ack(); err != nil {
			b.cfg.Logger.Warn("an input was applied but not acknowledged; it will come again and change nothing", "agent", a.String(), "error", err)
		}
	}
	return deleted
}

// parse reads a message as a command with an id, and checks its reply subject.
func (b *Inbox) parse(a messages.AgentID, msg message) (d *actors.Deliver, reply string, err error) {
	family, _, err := b.cfg.Subjects.ParseInbox(msg.Subject())
	if err != nil {
		return nil, "", err
	}
	header := msg.Headers().Get
	reply = header(messages.HeaderReply)
	if err := b.cfg.Subjects.AllowReply(reply); err != nil {
		return nil, "", err
	}
	d = &actors.Deliver{Agent: a, Cause: messages.Cause{Door: family}}
	switch family {
	case "in":
		in, err := messages.ParseInput(a, header, msg.Data())
		if err != nil {
			return nil, reply, err
		}
		if err := b.cfg.Subjects.AllowReply(in.Reply); err != nil {
			return nil, "", err
		}
		in.ID = or(in.ID, msg.id)
		d.Command, reply = in, in.Reply
	case "ctl", "peer":
		parse := messages.ParseCommand
		if family == "peer" {
			parse = messages.ParsePeer
		}
		c, err := parse(a, header, msg.Data())
		if err != nil {
			return nil, reply, err
		}
		d.Command, d.Cause.Reason = messages.WithID(c, or(c.CommandID(), msg.id)), messages.ReasonOf(c)
	default:
		return nil, reply, messages.Refuse(messages.BadAddress, "subject %q: inputs go to in, commands to ctl", msg.Subject())
	}
	d.Cause.Type, d.Cause.ID = d.Command.CommandType(), d.Command.CommandID()
	return d, reply, nil
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// deliver tries until the agent has answered. Its error is the end of ctx.
func (b *Inbox) deliver(ctx context.Context, d *actors.Deliver) (messages.Answer, error) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 20*time.Millisecond, 2*time.Second
	tries := 0
	return backoff.Retry(ctx, func() (messages.Answer, error) {
		answer, err := b.cfg.Deliver(ctx, d)
		if err == nil && answer.Err != nil && answer.Err.Code == messages.Unavailable {
			err = answer.Err
		}
		if tries++; err != nil && ctx.Err() == nil && tries%20 == 0 {
			b.cfg.Logger.Warn("an input waits for its agent", "agent", d.Agent.String(), "id", d.Cause.ID, "tries", tries, "error", err)
		}
		return answer, err
	}, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(0))
}

// refuse tells the sender, as far as it said where, and keeps a dead letter.
func (b *Inbox) refuse(ctx context.Context, a messages.AgentID, msg message, reply string, why *messages.Error) {
	if reply != "" {
		b.cfg.Told(reply, a, messages.Answer{Err: why})
	}
	b.deadLetter(ctx, msg, a, why)
}

// publishedTo is the subject that a stored one was published to: the server put
// the partition before those it transformed, and it puts the right one. What agents
// say to one another is published as it is stored.
func (b *Inbox) publishedTo(stored string) string {
	root, rest, _ := strings.Cut(stored, ".inq.")
	t := strings.Split(rest, ".")
	if len(t) != 5 || t[1] == "peer" || t[0] != (messages.AgentID{Tenant: t[2], Kind: t[3], Key: t[4]}).Partition().String() {
		return stored
	}
	return root + "." + strings.Join(t[1:], ".")
}
