package integrity

import (
	"context"
	"errors"

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
			p, is := messages.StoredPrefixOf(rec.Frame)
			if !is { // it is another agent's, or there is none
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
				found, err := doctor.ReadBlob(ctx, store, a, b)
				if err != nil {
					return err
				}
				if found != nil {
					found.Agent, found.Event = a, rec.Frame.First
					report(*found)
				}
			}
		}
	}
	return nil
}
