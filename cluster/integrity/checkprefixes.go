package integrity

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/eventlog/prefix"
	"github.com/reprise-dev/reprise/messages"
)

// CheckPrefixes reads, if it is to look deep, what agents begin with that is a blob of theirs: the frames
// of an import, and those that a detached fork has copied, with the payloads that they name. The
// store has what is stored of an agent itself.
func CheckPrefixes(store eventlog.Store) doctor.Check {
	return func(ctx context.Context, s doctor.Subject, o doctor.Options, report func(doctor.Finding)) error {
		if !o.Deep {
			return nil
		}
		for rec, err := range store.Read(ctx, s.Agent, eventlog.Range{}) {
			if err != nil {
				return err
			}
			p, is := messages.CopyOf(rec.Frame)
			if !is {
				p, _ = messages.PrefixOf(rec.Frame)
			}
			if p.Frames == (messages.Blob{}) { // it is another agent's, or there is none
				continue
			}
			if err := checkPrefix(ctx, store, s.Agent, p, report); err != nil {
				return err
			}
		}
		return nil
	}
}

// checkPrefix reads the frames in a blob to the end.
func checkPrefix(ctx context.Context, store eventlog.Store, a messages.AgentID, p messages.Prefix, report func(doctor.Finding)) error {
	seen := make(map[messages.Digest]bool)
	for rec, err := range prefix.Frames(ctx, store.Blobs, a, p, 0) {
		if damage := new(eventlog.DamageError); errors.As(err, &damage) {
			report(doctor.Finding{
				Check: "prefix", Status: doctor.Fail, Agent: a, Event: damage.Event, Detail: damage.Err.Error(),
				Remedy: "nothing is repaired: a backup restored elsewhere, or the file that the agent was imported from, may have the events; a detached fork is read from its parent as long as that exists",
			})
			return nil
		}
		if err != nil {
			return err
		}
		for _, ev := range rec.Frame.Events {
			for _, b := range messages.BlobsOf(ev) {
				if b == (messages.Blob{}) || seen[b.SHA256] {
					continue
				}
				seen[b.SHA256] = true
				if err := checkPayload(ctx, store, a, b, rec.Frame.First, report); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkPayload reads a payload to the end.
func checkPayload(ctx context.Context, store eventlog.Store, a messages.AgentID, b messages.Blob, n messages.EventNumber, report func(doctor.Finding)) error {
	r, err := store.Blob(ctx, a, b)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
		err = errors.Join(err, r.Close())
	}
	if err == nil {
		return nil
	}
	if code := messages.AsError(err).Code; code != messages.NotFound && code != messages.Damaged {
		return err
	}
	report(doctor.Finding{
		Check: "blob", Status: doctor.Fail, Agent: a, Event: n, Detail: fmt.Sprintf("its payload %s of %d bytes cannot be read: %v", b.SHA256, b.Size, err),
		Remedy: "the event stays, and what needs the payload reports that it is missing; restore a backup elsewhere if it must be read",
	})
	return nil
}
