package actors

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/prefix"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// A fork is detached in three steps: its owner stores the payloads that its parent's events name, then
// the events, and then appends fork.detached, which names them. Until that is in the log the fork begins
// with its parent's events, and its parent is not deleted; from then on either of the two is enough.
// What was stored before a crash is stored again, which changes nothing.

// detach copies the events that a fork has of its parent.
func (a *agent) detach(d *Deliver, c messages.Detach, sender *actor.PID) {
	env := a.env()
	env.Person, env.Trace = d.Cause.Person(), d.Trace
	_, again := a.state.Processed(c.ID)
	if o := a.state.Forks.Origin; o != nil && !o.Owned() && !again {
		copied, err := a.copyPrefix(o)
		if err != nil {
			a.refuse(d, sender, err)
			return
		}
		env.Copied = &copied
	}
	events, err := a.decide(env, c)
	if err != nil {
		a.refuse(d, sender, err)
		return
	}
	a.commitFrame(a.frameOf(d, events), sender)
}

// copyPrefix stores the events up to the fork as a blob of the agent.
func (a *agent) copyPrefix(o *projections.Origin) (messages.Prefix, error) {
	c := &copying{a: a, last: o.At, payloads: make(map[messages.Digest]messages.Blob)}
	r := &rereader{open: c.open}
	defer r.Close()
	stored, err := a.rt.blobs.put(a.ctx, a.id, a.epoch, r)
	if r.err != nil {
		err = r.err
	}
	if err != nil {
		return messages.Prefix{}, a.notCopied(o, err)
	}
	p := c.to.Prefix()
	p.Frames = *stored
	return p, nil
}

// notCopied returns the refusal of a detach whose events cannot be copied.
func (a *agent) notCopied(o *projections.Origin, err error) error {
	var damage *eventlog.DamageError
	switch code := messages.AsError(err).Code; {
	case errors.As(err, &damage), code == messages.NotFound, code == messages.Damaged:
		return messages.Refuse(messages.Damaged, "fork %s cannot be detached, for what it has of %s cannot be read: %v; restore that from a backup, or delete both (--cascade)", a.id, o.Parent, err)
	}
	return messages.Refuse(messages.Unavailable, "what fork %s has of %s cannot be copied now: %v; try again with the same id", a.id, o.Parent, err)
}

// copying is the copying of a prefix. It reads as the frames, which name payloads as they are copied.
// It may be read several times, one after the other.
type copying struct {
	a    *agent
	last messages.EventNumber
	// payloads are those that were copied, by their content.
	payloads map[messages.Digest]messages.Blob

	next func() (eventlog.Recorded, error, bool)
	stop func()
	to   *prefix.Writer
	buf  bytes.Buffer // written and not read yet
}

// open begins with the first frame.
func (c *copying) open() (io.ReadCloser, error) {
	c.next, c.stop = iter.Pull2(c.a.rt.store.Read(c.a.ctx, c.a.id, eventlog.Range{}))
	c.buf.Reset()
	c.to = prefix.NewWriter(c.a.id, &c.buf)
	return c, nil
}

// Read reads the next bytes.
func (c *copying) Read(p []byte) (int, error) {
	for c.buf.Len() == 0 {
		if c.to.Prefix().Last == c.last {
			return 0, io.EOF
		}
		if err := c.frame(); err != nil {
			return 0, err
		}
	}
	return c.buf.Read(p)
}

// frame writes the next frame.
func (c *copying) frame() error {
	rec, err, more := c.next()
	switch {
	case err != nil:
		return err
	case !more || rec.Frame.Last() > c.last: // it was deleted meanwhile, by another owner
		return fmt.Errorf("they end with event %d", c.to.Prefix().Last)
	}
	f, err := c.named(rec.Frame)
	if err == nil {
		err = c.to.Frame(f)
	}
	return err
}

// Close ends the reading.
func (c *copying) Close() error {
	c.stop()
	return nil
}

// named returns a frame with the names that its payloads have as the agent's own.
func (c *copying) named(f *messages.Frame) (_ *messages.Frame, err error) {
	named := *f
	named.Events = slices.Clone(f.Events)
	for i, ev := range named.Events {
		if named.Events[i], err = messages.ReplaceBlobs(ev, c.payload); err != nil {
			return nil, err
		}
	}
	return &named, nil
}

// payload returns a payload as the agent's own, and copies it before that. The frames that an event of
// the prefix names are in front of that event.
func (c *copying) payload(b messages.Blob, form messages.BlobForm) (messages.Blob, error) {
	if form == messages.BlobFrames {
		return messages.Blob{}, nil
	}
	if copied, is := c.payloads[b.SHA256]; is {
		return copied, nil
	}
	copied, err := c.a.rt.blobs.copy(c.a.ctx, c.a.id, c.a.epoch, c.a.id, b)
	if err != nil {
		return b, fmt.Errorf("payload %s: %w", b.SHA256, err)
	}
	c.payloads[b.SHA256] = *copied
	return *copied, nil
}
