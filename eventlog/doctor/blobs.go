package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// young is how old a payload must be before it counts as named by nothing: it
// is stored before the frame that names it.
const young = time.Hour

// blobs compares the payloads that are stored with those that frames name.
func (v *visit) blobs(ctx context.Context, a messages.AgentID, p *patient) error {
	if v.cfg.Blobs == nil || v.cfg.Named == nil {
		return nil
	}
	stored := make(map[messages.Digest]messages.Blob)
	for b, err := range v.cfg.Blobs.ListBlobs(ctx, a) {
		if err != nil {
			return err
		}
		stored[b.SHA256] = b
	}
	v.mu.Lock()
	v.counts.Blobs += len(stored)
	v.mu.Unlock()
	var all []Finding
	for hash, r := range p.named {
		f, err := v.named(ctx, a, p, messages.Blob{SHA256: hash, Size: r.size}, stored)
		if err != nil {
			return err
		}
		if f != nil {
			f.Agent, f.Event = a, r.by
			all = append(all, *f)
		}
		delete(stored, hash)
	}
	orphans, err := v.orphans(ctx, a, p, stored)
	if err != nil || len(all) == 0 && len(orphans) == 0 {
		return err
	}
	if still, err := v.still(ctx, a, p); err != nil || !still {
		return err
	}
	for _, f := range all {
		v.found(f)
	}
	return v.remove(ctx, a, p, orphans)
}

// strays looks, if it is to look deep, for payloads of agents that have no frame.
func (v *visit) strays(ctx context.Context, shard int) error {
	if !v.Deep || v.cfg.BlobAgents == nil || v.cfg.Blobs == nil {
		return nil
	}
	agents, err := v.cfg.BlobAgents(ctx, shard)
	if err != nil {
		return err
	}
	for _, a := range agents {
		if p := v.agents[a]; p != nil && (p.ill || p.tail.Last > 0) {
			continue
		}
		if err := v.blobs(ctx, a, &patient{idle: true}); err != nil {
			return fmt.Errorf("examine %s: %w", a, err)
		}
	}
	return nil
}

// named looks at a payload that an event names.
func (v *visit) named(ctx context.Context, a messages.AgentID, p *patient, b messages.Blob, stored map[messages.Digest]messages.Blob) (*Finding, error) {
	there, ok := stored[b.SHA256]
	if !ok {
		var err error
		if a, there, err = v.lent(ctx, a, b.SHA256); err != nil || a == (messages.AgentID{}) {
			return nil, err
		}
	}
	switch {
	case there.SHA256 == "" && p.copied && b.Size < 0: // by the name under the parent's key, where the fork's copy has another
		return nil, nil
	case there.SHA256 == "":
		return lostBlob("its payload %s is not stored", b.SHA256), nil
	case b.Size >= 0 && there.Size != b.Size:
		return lostBlob("its payload %s has %d bytes, not %d", b.SHA256, there.Size, b.Size), nil
	case !v.Deep:
		return nil, nil
	}
	return ReadBlob(ctx, v.cfg.Blobs, a, there)
}

// ReadBlob reads a payload to its end. It returns a finding, without agent and event, if the payload is
// missing or damaged, and an error if it cannot be read now.
func ReadBlob(ctx context.Context, from eventlog.Blobs, a messages.AgentID, b messages.Blob) (*Finding, error) {
	r, err := from.Blob(ctx, a, b)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
		err = errors.Join(err, r.Close())
	}
	if err == nil {
		return nil, nil
	}
	if code := messages.AsError(err).Code; code != messages.Damaged && code != messages.NotFound {
		return nil, err
	}
	return lostBlob("its payload %s of %d bytes cannot be read: %v", b.SHA256, b.Size, err), nil
}

// lostBlob returns the finding for a payload that an event names.
func lostBlob(detail string, args ...any) *Finding {
	return &Finding{
		Check: "blob", Status: Fail, Detail: fmt.Sprintf(detail, args...),
		Remedy: "the event stays, and what needs the payload reports that it is missing; restore a backup elsewhere if it must be read",
	}
}

// lent looks for a payload that an agent has not among those that its log begins with the events of.
// It returns the last one that it looked at, the zero value if who that is cannot be read, and the
// payload; the zero value: none has it.
func (v *visit) lent(ctx context.Context, a messages.AgentID, hash messages.Digest) (of messages.AgentID, there messages.Blob, err error) {
	for range messages.MaxPrefixes {
		if v.cfg.Parent == nil {
			break
		}
		parent, forked, err := v.cfg.Parent(ctx, a)
		if err != nil || !forked {
			return a, there, err
		}
		if a = parent; a == (messages.AgentID{}) {
			break
		}
		for b, err := range v.cfg.Blobs.ListBlobs(ctx, a) {
			if err != nil || b.SHA256 == hash {
				return a, b, err
			}
		}
	}
	return a, there, nil
}

// orphans are the payloads that nothing names and that are not young, of an agent
// all of whose frames could be read.
func (v *visit) orphans(ctx context.Context, a messages.AgentID, p *patient, left map[messages.Digest]messages.Blob) (old []messages.Blob, err error) {
	if p.blind {
		return nil, nil
	}
	for _, hash := range slices.Sorted(maps.Keys(left)) {
		at := time.Time{}
		if v.cfg.BlobStored != nil {
			if at, err = v.cfg.BlobStored(ctx, a, left[hash]); err != nil {
				return nil, err
			}
		}
		if v.cfg.Now().Sub(at) >= young {
			old = append(old, left[hash])
		}
	}
	return old, nil
}

// still reports whether the agent has not gone on, or been deleted, since its log was
// read.
func (v *visit) still(ctx context.Context, a messages.AgentID, p *patient) (bool, error) {
	tail, err := v.cfg.Log.Head(ctx, a)
	return tail.Frame == p.tail.Frame, err
}

// remove reports payloads that nothing names, and removes them if it may. An
// agent that owes work may be about to name one, and so may one that has gone on.
func (v *visit) remove(ctx context.Context, a messages.AgentID, p *patient, orphans []messages.Blob) error {
	for _, b := range orphans {
		f := Finding{
			Check: "blob", Status: Warn, Agent: a,
			Detail: fmt.Sprintf("payload %s of %d bytes is named by no event: a crash came between storing it and its event", b.SHA256, b.Size),
			Remedy: "it only takes room; doctor --repair removes it while the agent is idle",
		}
		if v.Repair && p.idle && v.cfg.BlobStored != nil {
			if still, err := v.still(ctx, a, p); err != nil || !still {
				return err
			}
			if err := v.cfg.Blobs.RemoveBlobs(ctx, a, eventlog.All, b.SHA256); err != nil {
				return err
			}
			f.Repaired, f.Remedy = true, ""
		}
		v.found(f)
	}
	return nil
}
