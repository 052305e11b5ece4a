package inbox

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
)

// outcome is what has become of a message that was given to its agent.
type outcome struct {
	did   did
	again bool            // it was applied before
	why   *messages.Error // of again and refused
}

type did int

const (
	settled did = iota + 1 // its agent has it
	deleted                // its agent has it, and is no more
	refused                // it is a dead letter
	again                  // it must be given again
	left                   // to the next owner
	gone                   // it is in the stream no more
)

// apply delivers one message to its agent and settles it: acknowledged when the agent has it, a
// dead letter when it never will. When ctx ends first it is left for the next owner.
func (b *Inbox) apply(ctx context.Context, a messages.AgentID, msg *message, t *trial) outcome {
	d, reply, err := b.parse(a, msg)
	if err != nil {
		return b.refuse(ctx, a, msg, reply, messages.AsError(err))
	}
	_, deletes := d.Command.(messages.Delete)
	if deletes && b.forget(ctx, a, msg.seq) != nil {
		return outcome{did: left}
	}
	answer, err := b.cfg.Deliver(ctx, d)
	switch {
	case ctx.Err() != nil && (err != nil || answer.Err != nil):
		return outcome{did: left}
	case err != nil:
		return b.notNow(d, t, messages.AsError(err))
	case answer.Err != nil && unheard(d.Command, answer.Err):
		b.settle(msg.place, acknowledged)
		return outcome{did: settled}
	case answer.Err != nil:
		if why := b.final(d, t, answer.Err); why != nil {
			if _, begins := d.Command.(messages.BeginFork); begins { // the parent has it on record
				b.settle(msg.place, terminated(why))
				return outcome{did: refused, why: why}
			}
			return b.refuse(ctx, a, msg, reply, why)
		}
		return b.notNow(d, t, answer.Err)
	}
	if _, isInput := d.Command.(messages.Input); reply != "" && (!isInput || answer.Duplicate) {
		b.cfg.Told(reply, a, answer)
	}
	b.settle(msg.place, acknowledged)
	what := outcome{did: settled, again: answer.Duplicate}
	if deletes {
		what.did = deleted
	}
	return what
}

// unheard reports whether a command was for an agent that was deleted since and that alone
// could have used it: what became of a child, or of a decision that it had passed on.
func unheard(c messages.Command, why *messages.Error) bool {
	switch c.(type) {
	case messages.Report, messages.DecisionEffect, messages.ForkEffect:
		return why.Code == messages.NotFound
	}
	return false
}

// final is why a message is a dead letter, nil if it must be given again: what
// passes is waited for, and what the agent itself fails at is tried for a while.
func (b *Inbox) final(d *actors.Deliver, t *trial, why *messages.Error) *messages.Error {
	switch why.Code {
	case messages.Unavailable:
		return nil
	case messages.UnknownKind:
		if b.cfg.KnownElsewhere != nil && b.cfg.KnownElsewhere(d.Agent.Kind) {
			return nil
		}
	case messages.Internal:
		if t.failures++; t.failures < b.failures {
			return nil
		}
		return messages.Refuse(messages.Internal, "the agent failed at this %d times, the last time so: %s", t.failures, why.Message)
	}
	return why
}

// notNow has a message given again, and logs that now and then.
func (b *Inbox) notNow(d *actors.Deliver, t *trial, why *messages.Error) outcome {
	if t.tries%20 == 19 {
		b.cfg.Logger.Warn("an input waits for its agent", b.about(d.Agent), "id", d.Cause.ID, "tries", t.tries+1, "error", why)
	}
	return outcome{did: again, why: why}
}

func (b *Inbox) serves(kind string) bool { return b.cfg.Serves == nil || b.cfg.Serves(kind) }

// How long a message waits until it is given again. A minute at least passes
// between the first and the last failure of an agent.
const (
	failuresAtMost = 10
	firstPause     = 20 * time.Millisecond
	longestPause   = 2 * time.Second
	firstFailed    = 250 * time.Millisecond
	longestFailed  = 15 * time.Second
)

// trial is what has become of a queue's first message so far.
type trial struct {
	tries    int
	failures int // of the agent itself
}

// pause returns how long to wait before the message is given again: longer each time, and
// much longer behind a failure of the agent itself or for a kind that is not defined here.
func (t *trial) pause(long bool) time.Duration {
	first, most := firstPause, longestPause
	if long {
		first, most = firstFailed, longestFailed
	}
	t.tries++
	return min(first<<min(t.tries-1, 16), most)
}

// parse reads a message as a command with an id, and checks its reply subject.
func (b *Inbox) parse(a messages.AgentID, msg *message) (d *actors.Deliver, reply string, err error) {
	family, _, err := b.cfg.Subjects.ParseInbox(msg.subject)
	if err != nil {
		return nil, "", b.stray(msg.subject, err)
	}
	header := msg.header.Get
	reply = header(messages.HeaderReply)
	if err := b.cfg.Subjects.AllowNamedReply(a.Tenant, reply); err != nil {
		return nil, "", err
	}
	d = &actors.Deliver{Agent: a, Cause: messages.Cause{Endpoint: messages.Endpoint(family)}.From(messages.ClaimedBy(header(messages.HeaderPerson))), Received: msg.came, Trace: messages.TraceOf(header)}
	switch family {
	case "in":
		in, err := messages.ParseInput(a, header, msg.data)
		if err != nil {
			return nil, reply, err
		}
		if err := b.cfg.Subjects.AllowNamedReply(a.Tenant, in.Reply); err != nil {
			return nil, "", err
		}
		in.ID = cmp.Or(in.ID, msg.id)
		d.Command, reply = in, in.Reply
	case "ctl", "peer":
		parse := messages.ParseCommand
		if family == "peer" {
			parse, reply = messages.ParsePeer, "" // commands between agents come the same way
		}
		c, err := parse(a, header, msg.data)
		if err != nil {
			return nil, reply, err
		}
		d.Command, d.Cause.Reason = messages.WithID(c, cmp.Or(messages.IDOf(c), msg.id)), messages.ReasonOf(c)
		if family == "peer" {
			d.Cause = d.Cause.From(messages.DecidedBy(c))
		}
	default:
		return nil, reply, messages.Refuse(messages.BadAddress, "subject %q: inputs go to in, commands to ctl", msg.subject)
	}
	d.Cause.Type, d.Cause.ID = d.Command.CommandType(), messages.IDOf(d.Command)
	d.Unasked = reply == ""
	return d, reply, nil
}

// stray returns why a message is refused that is not stored for a partition, and why for
// one that is.
func (b *Inbox) stray(subject string, why error) error {
	if strings.Contains(subject, ".inq.") {
		return why
	}
	if _, _, why := b.cfg.Subjects.ParseAgent(subject); why != nil {
		return why
	}
	return messages.Refuse(messages.BadAddress, "subject %q was not taken by any partition", subject)
}

// refuse keeps a dead letter, and answers the sender, if it said where: until the message
// is out of the queue another owner may be given it, and obey it.
func (b *Inbox) refuse(ctx context.Context, a messages.AgentID, msg *message, reply string, why *messages.Error) outcome {
	if b.deadLetter(ctx, msg, a, why) != nil {
		return outcome{did: left}
	}
	if reply == "" {
		b.settle(msg.place, terminated(why))
		return outcome{did: refused, why: why}
	}
	if b.end(ctx, msg, terminated(why)) != nil {
		return outcome{did: left}
	}
	b.cfg.Told(reply, a, messages.Answer{Err: why})
	return outcome{did: refused, why: why}
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
