package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// inventory shows what is stored of an agent now, and what a delete of it would remove.
func (g *Gateway) inventory(p *page, a messages.AgentID) error {
	ctx, cancel := context.WithTimeout(g.ctx, time.Minute)
	defer cancel()
	line := messages.Inventory{Agent: a}
	var life projections.Life
	var children projections.Children
	for rec, err := range g.Log.Read(ctx, a, eventlog.Range{}) {
		if damage := new(eventlog.DamageError); errors.As(err, &damage) {
			line.Damaged, line.Last = err.Error(), max(line.Last, damage.Event)
			break
		}
		if errors.Is(err, messages.ErrLocked) {
			tail, unknown := g.Log.Head(ctx, a)
			if unknown != nil {
				return unknown
			}
			line.Damaged, line.Last, line.Encrypted = err.Error(), tail.Last, true
			break
		}
		if err != nil {
			return err
		}
		projections.Fold(rec.Frame, 0, &life, &children)
		line.Last = rec.Frame.Last()
		if rec.Seq == 0 { // of the agent that this one was forked from
			continue
		}
		line.Frames, line.Events, line.Bytes = line.Frames+1, line.Events+len(rec.Frame.Events), line.Bytes+int64(rec.Size)
		line.Encrypted = line.Encrypted || rec.Frame.KeyID != ""
	}
	if err := exists(a, 0, line.Last); err != nil {
		return err
	}
	line.Deleted = life.Deletion() != nil
	if !line.Deleted {
		line.Children, line.ChildAgents = family(children.List())
	}
	for b, err := range g.Blobs.ListBlobs(ctx, a) {
		if err != nil {
			return err
		}
		line.Blobs, line.BlobBytes = line.Blobs+1, line.BlobBytes+b.Size
	}
	snapshots, err := g.Snapshots.ListSnapshots(ctx, a)
	if err != nil {
		return err
	}
	line.Snapshots = len(snapshots)
	if line.DeadLetters, err = g.held(ctx, g.DeadLetters, g.Subjects.DeadLetter(a)); err != nil {
		return err
	}
	if line.Waiting, err = g.held(ctx, g.Inbox, g.Subjects.InboxOfAgent(a)); err != nil {
		return err
	}
	p.line(0, line)
	return nil
}

// mostNamed is how many children are listed by their address.
const mostNamed = 20

// family counts the agents among children, each once, and names the first.
func family(children []projections.Child) (n int, first []messages.AgentID) {
	seen := make(map[messages.AgentID]bool)
	for _, child := range children {
		if seen[child.Agent] {
			continue
		}
		if seen[child.Agent] = true; len(first) < mostNamed {
			first = append(first, child.Agent)
		}
	}
	return len(seen), first
}

// held is how many messages a stream holds on subjects that the filter matches.
func (g *Gateway) held(ctx context.Context, stream, filter string) (int, error) {
	s, err := g.js.Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, nil
	}
	var info *jetstream.StreamInfo
	if err == nil {
		info, err = s.Info(ctx, jetstream.WithSubjectFilter(filter))
	}
	if err != nil {
		return 0, messages.Refuse(messages.Unavailable, "stream %s cannot be read now: %v", stream, err)
	}
	n := 0
	for _, count := range info.State.Subjects {
		n += int(count)
	}
	return n, nil
}
