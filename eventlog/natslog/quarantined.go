package natslog

import (
	"context"
	"fmt"
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// Quarantined is a place of a stream of the log whose messages could not be read and were
// taken out of its files.
type Quarantined struct {
	// ID is that of the report, which may name several places.
	ID string `json:"id"`
	// First and Last are the sequences of the messages, or a range in which they lay.
	// First is zero if it is not known how far down they reached.
	First uint64 `json:"first,omitempty"`
	Last  uint64 `json:"last"`
	// Agent is the one that lost a frame. Zero: it is not known.
	Agent messages.AgentID `json:"agent,omitzero"`
}

// mostNamed is how many places of a stream are kept with their agents. More become one of
// which no agent is known, so that the record stays small.
const mostNamed = 1000

// Quarantine records what was taken out of a stream of the log, once for each id: the
// messages that are missing for it are no other loss, and the agents that lost a frame are
// known. No node may have partitions of the stream.
func (l *Log) Quarantine(ctx context.Context, shard int, id string, places []Quarantined) error {
	stream, c, err := l.shard(shard)
	if err != nil {
		return err
	}
	info, err := c.info(ctx, stream)
	if err != nil {
		return err
	}
	r, err := l.readEvidence(ctx, shard)
	if err == nil && r.base == nil {
		if err = l.adopt(ctx, shard, r, info); err == nil {
			r, err = l.readEvidence(ctx, shard)
		}
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(r.base.Quarantined, func(q Quarantined) bool { return q.ID == id }) {
		return nil
	}
	b := *r.base
	b.Removed += r.explained(places, info)
	if places, err = l.needed(ctx, c, stream, places); err != nil {
		return err
	}
	b.Quarantined = fewer(append(slices.Clone(b.Quarantined), places...))
	if err := l.putBase(ctx, shard, b, r.rev); err != nil {
		return err
	}
	l.remember(shard, &b)
	return nil
}

// needed returns the places without those of agents that were deleted since.
func (l *Log) needed(ctx context.Context, c *conn, stream string, places []Quarantined) (out []Quarantined, err error) {
	for _, q := range places {
		ended := false
		if q.Agent != (messages.AgentID{}) {
			if ended, err = l.endedSince(ctx, c, stream, q.Agent, q.Last); err != nil {
				return nil, err
			}
		}
		if !ended {
			out = append(out, q)
		}
	}
	return out, nil
}

// explained returns how many of the messages that are missing the places explain.
func (r evidence) explained(places []Quarantined, info streamInfo) (n uint64) {
	for _, q := range places {
		n += q.Last - max(q.First, 1) + 1
	}
	_, most := r.removed()
	missing := info.removed()
	return min(n, missing-min(missing, most))
}

// fewer puts places of one report together if there are too many.
func fewer(places []Quarantined) []Quarantined {
	if len(places) <= mostNamed {
		return places
	}
	one := Quarantined{ID: places[len(places)-1].ID, First: places[0].First}
	for _, q := range places {
		one.First, one.Last = min(one.First, q.First), max(one.Last, q.Last)
	}
	return []Quarantined{one}
}

// Quarantines returns what was taken out of a stream of the log since its record began, as
// of the last Check.
func (l *Log) Quarantines(shard int) []Quarantined {
	if b := l.marks.bases[shard].Load(); b != nil {
		return b.Quarantined
	}
	return nil
}

// LostFrame returns a place that was taken out and held a frame of the agent, or may have
// held one: its newest frame is at a sequence below, and what the place held is not known.
// Nil: there is none.
func (l *Log) LostFrame(a messages.AgentID, newest uint64) *Quarantined {
	for _, q := range l.Quarantines(Shard(a.Partition())) {
		if q.Agent == a || q.Agent == (messages.AgentID{}) && newest < q.Last {
			return &q
		}
	}
	return nil
}

// quarantinedDetail says what was taken out of a stream.
func quarantinedDetail(all []Quarantined) string {
	return fmt.Sprintf("messages that could not be read were taken out of it, up to sequence %d; places: %d", all[len(all)-1].Last, len(all))
}

// settleQuarantined forgets what was taken out of an agent's log below a sequence: it is
// purged.
func (l *Log) settleQuarantined(ctx context.Context, a messages.AgentID, before uint64) error {
	shard := Shard(a.Partition())
	purged := func(q Quarantined) bool { return q.Agent == a && q.Last < before }
	for range 3 {
		if !slices.ContainsFunc(l.Quarantines(shard), purged) {
			return nil
		}
		var b base
		rev, err := l.getMark(ctx, baseKey(shard), &b)
		if err != nil {
			return err
		}
		b.Quarantined = slices.DeleteFunc(b.Quarantined, purged)
		if err = l.putBase(ctx, shard, b, rev); err == nil {
			l.remember(shard, &b)
		} else if !conflicting(err) {
			return err
		}
	}
	return messages.Refuse(messages.Unavailable, "the record of stream %s is being changed: purge %s again", l.names.log(shard), a)
}

// Recall reads what is on record of a stream of the log, without comparing it.
func (l *Log) Recall(ctx context.Context, shard int) error {
	r, err := l.readEvidence(ctx, shard)
	if err == nil && r.base != nil {
		l.remember(shard, r.base)
	}
	return err
}
