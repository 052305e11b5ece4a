package inbox

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
)

// apply gives one message to its agent and settles it: acknowledged when the
// agent has it, a dead letter when it never will. When ctx ends first it is
// left for the next owner.
func (b *Inbox) apply(ctx context.Context, a messages.AgentID, msg jetstream.Msg) {
	d, reply, err := b.parse(a, msg)
	if err != nil {
		b.refuse(ctx, a, msg, reply, messages.AsError(err))
		return
	}
	answer, err := b.deliver(ctx, d)
	switch {
	case err != nil: // ctx ended
	case answer.Err != nil:
		b.refuse(ctx, a, msg, reply, answer.Err)
	default:
		if _, isInput := d.Command.(messages.Input); reply != "" && (!isInput || answer.Duplicate) {
			b.cfg.Told(reply, a, answer)
		}
		if err := msg.Ack(); err != nil {
			b.cfg.Logger.Warn("an input was applied but not acknowledged; it will come again and change nothing", "agent", a.String(), "error", err)
		}
	}
}

// parse reads a message as a command with an id, and checks its reply subject.
func (b *Inbox) parse(a messages.AgentID, msg jetstream.Msg) (d *actors.Deliver, reply string, err error) {
	family, _, err := b.cfg.Subjects.ParseInbox(msg.Subject())
	if err != nil {
		return nil, "", err
	}
	meta, err := msg.Metadata()
	if err != nil {
		return nil, "", messages.Refuse(messages.BadInput, "the message has no place in a stream: %v", err)
	}
	id := messages.StreamInputID(b.stream.CachedInfo().Created, meta.Sequence.Stream)
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
		in.ID = or(in.ID, id)
		d.Command, reply = in, in.Reply
	case "ctl":
		c, err := messages.ParseCommand(a, header, msg.Data())
		if err != nil {
			return nil, reply, err
		}
		d.Command, d.Cause.Reason = messages.WithID(c, or(c.CommandID(), id)), messages.ReasonOf(c)
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
func (b *Inbox) deliver(ctx context.Context, d *actors.Deliver) (actors.Answer, error) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 20*time.Millisecond, 2*time.Second
	return backoff.Retry(ctx, func() (actors.Answer, error) {
		answer, err := b.cfg.Deliver(ctx, d)
		if err == nil && answer.Err != nil && answer.Err.Code == messages.Unavailable {
			err = answer.Err
		}
		return answer, err
	}, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(0))
}

// refuse tells the sender, as far as it said where, and keeps a dead letter.
func (b *Inbox) refuse(ctx context.Context, a messages.AgentID, msg jetstream.Msg, reply string, why *messages.Error) {
	if reply != "" {
		b.cfg.Told(reply, a, actors.Answer{Err: why})
	}
	b.deadLetter(ctx, msg, a, why)
}

// The headers of a dead letter, beside those that the message came with.
const (
	headerReason   = "Reprise-Reason"
	headerCode     = "Reprise-Code"
	headerSubject  = "Reprise-Subject"
	headerReceived = "Reprise-Received"
	headerCut      = "Reprise-Cut" // the full size of a body that did not fit
)

// deadLetter stores a message that can never be applied with the reason, and
// only then takes it out of the queue.
func (b *Inbox) deadLetter(ctx context.Context, msg jetstream.Msg, a messages.AgentID, why *messages.Error) {
	letter := nats.NewMsg(b.cfg.Subjects.DeadLetter(a))
	if a.Validate() != nil {
		letter.Subject = b.cfg.Subjects.DeadLetter(messages.AgentID{Tenant: "_", Kind: "_", Key: "_"})
	}
	for name, values := range msg.Headers() {
		letter.Header[name] = values
	}
	letter.Header.Del(messages.HeaderMsgID)
	letter.Header.Set(headerReason, oneLine(why.Message))
	letter.Header.Set(headerCode, string(why.Code))
	letter.Header.Set(headerSubject, b.publishedTo(msg.Subject()))
	if meta, err := msg.Metadata(); err == nil {
		letter.Header.Set(headerReceived, meta.Timestamp.UTC().Format(time.RFC3339Nano))
		letter.Header.Set(messages.HeaderMsgID, messages.StreamInputID(b.stream.CachedInfo().Created, meta.Sequence.Stream))
	}
	letter.Data = msg.Data()
	if room := int(b.cfg.Conn.MaxPayload()) - 16<<10; len(letter.Data) > room {
		letter.Header.Set(headerCut, strconv.Itoa(len(letter.Data)))
		letter.Data = letter.Data[:room]
	}
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval = 2 * time.Second
	_, err := backoff.Retry(ctx, func() (*jetstream.PubAck, error) { return b.js.PublishMsg(ctx, letter) },
		backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(0))
	if err != nil {
		return // ctx ended: the next owner sees the message again
	}
	b.cfg.Logger.Warn("an input was refused and kept as a dead letter", "subject", letter.Header.Get(headerSubject), "code", string(why.Code), "reason", why.Message)
	if err := msg.TermWithReason(oneLine(why.Message)); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		b.cfg.Logger.Warn("a dead letter was stored but its message not removed; it will come again", "error", err)
	}
}

// publishedTo is the subject that a stored one was published to.
func (b *Inbox) publishedTo(stored string) string {
	family, a, err := b.cfg.Subjects.ParseInbox(stored)
	switch {
	case err != nil:
		return stored
	case family == "ctl":
		return b.cfg.Subjects.Ctl(a)
	}
	return b.cfg.Subjects.In(a)
}

// oneLine makes text fit for a header.
func oneLine(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c < ' ' {
			b[i] = ' '
		}
	}
	return string(b[:min(len(b), 1024)])
}
