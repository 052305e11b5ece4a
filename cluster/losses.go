package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

// remedy is what to do about a loss.
func (g *integrity) remedy(stream string) string {
	x := g.notOpened(stream)
	if x != nil && slices.ContainsFunc(x.Damage, func(p embedded.Place) bool { return !p.InBlock() }) {
		return "stop the node and copy what can be read of its folder with `reprise doctor --data DIR --salvage OUT`, to restore that; or restore a backup"
	}
	if x != nil {
		return "stop the node and run `reprise doctor --data DIR --quarantine` on its folder, which takes the damaged messages out and keeps a copy; or restore a backup"
	}
	return "restore a backup; or, if what is gone may stay gone: " + acceptance(stream)
}

func acceptance(stream string) string {
	return fmt.Sprintf("`reprise doctor --accept-loss %s --reason TEXT`", stream)
}

// lost returns what the stream that holds a partition has lost; nil: nothing.
func (g *integrity) lost(p messages.Partition) *natslog.LossError {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shards[natslog.Shard(p)].loss
}

// losses returns all that was lost.
func (g *integrity) losses() (all []*natslog.LossError) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.shards {
		if s.loss != nil {
			all = append(all, s.loss)
		}
	}
	return all
}

// damaged is what agents of a partition answer whose stream has lost messages; nil: it
// has not.
func (g *integrity) damaged(p messages.Partition) *messages.Error {
	loss := g.lost(p)
	if loss == nil {
		return nil
	}
	return messages.Refuse(messages.Damaged, "the log of partition %s, which this agent is in, is damaged: %v; nothing is written to it. See `reprise doctor`", p, loss)
}

// Whole implements actors.Evidence.
func (g *integrity) Whole(a messages.AgentID, newest uint64) error {
	err := g.relied(natslog.Shard(a.Partition()))
	switch {
	case errors.Is(err, errChecked):
		return messages.Refuse(messages.Unavailable, "the log of agent %s is being checked for losses: try again with the same id", a)
	case err != nil:
		return &eventlog.DamageError{Agent: a, Err: err}
	case g.log == nil:
		return nil
	}
	if q := g.log.LostFrame(a, newest); q != nil {
		return &eventlog.DamageError{Agent: a, Err: lostFrame(g.log.ShardName(natslog.Shard(a.Partition())), *q)}
	}
	return nil
}

// lostFrame says why an agent is damaged by what was taken out of its stream.
func lostFrame(stream string, q natslog.Quarantined) error {
	if q.Agent == (messages.AgentID{}) {
		return fmt.Errorf("messages up to sequence %d of stream %s could not be read and were taken out, and it is not known whose they were: this agent may have lost its newest", q.Last, stream)
	}
	return fmt.Errorf("its frame at sequence %d of stream %s could not be read and was taken out", q.Last, stream)
}

// wholeNow is Whole of an agent's log as it is now.
func (g *integrity) wholeNow(ctx context.Context, a messages.AgentID) error {
	err := g.Whole(a, 0)
	if err == nil || g.relied(natslog.Shard(a.Partition())) != nil {
		return err
	}
	tail, unread := g.log.Head(ctx, a)
	if unread != nil {
		return err
	}
	return g.Whole(a, tail.Seq)
}

// identity implements streams.
func (g *integrity) identity(shard int) string { return g.log.Identity(shard) }

// witness implements streams.
func (g *integrity) witness(shard int, seq uint64) {
	if g.lag == 0 && g.log.Witness(shard, seq) {
		g.doubt(shard)
	}
}

// witnessed implements streams.
func (g *integrity) witnessed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.indexed = true
}

// relied implements streams.
func (g *integrity) relied(shard int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shards[shard].relied()
}

// relied returns why the stream cannot be relied on now; nil: it can.
func (s *shardState) relied() error {
	switch {
	case s.loss != nil:
		return s.loss
	case s.doubted() || !s.suspected.IsZero():
		return errChecked
	}
	return nil
}

// Seen implements actors.Evidence.
func (g *integrity) Seen(a messages.AgentID) (messages.EventNumber, time.Time) {
	if g.lag > 0 { // it need not be on disk
		return 0, time.Time{}
	}
	row, _ := g.agents.Agent(a)
	return row.Events, row.Updated
}

// Counts implements actors.Evidence.
func (g *integrity) Counts(a messages.AgentID, seq uint64, at time.Time) bool {
	p := a.Partition()
	return at.After(g.log.Accepted(p)) && (g.lag == 0 || seq <= g.log.Stored(p))
}

// accept records that a person accepts what a stream has lost, and returns what that
// is. Accepted again it returns the same.
func (g *integrity) accept(ctx context.Context, a client.AcceptLoss) (string, error) {
	shard := 0
	for ; shard < len(g.shards) && g.log.ShardName(shard) != a.Stream; shard++ {
	}
	switch {
	case shard == len(g.shards):
		return "", messages.Refuse(messages.NotFound, "%q is no stream of the log: they are %s to %s", a.Stream, g.log.ShardName(0), g.log.ShardName(shard-1))
	case a.Reason == "":
		return "", messages.Refuse(messages.BadInput, "a loss is accepted with a reason, which is kept")
	}
	if x := g.notOpened(a.Stream); x != nil {
		return "", messages.Refuse(messages.Conflict, "%s; nothing is lost but what cannot be read, so there is nothing to accept yet: %s", unopenedLoss(*x), g.remedy(a.Stream))
	}
	accepted, now, err := g.log.Accept(ctx, shard, a.By, a.Reason)
	switch {
	case err != nil && messages.AsError(err).Code == messages.Conflict:
		return "", err
	case err != nil:
		return "", messages.Refuse(messages.Unavailable, "the loss of stream %s cannot be accepted now: %v", a.Stream, err)
	case accepted == nil:
		return "", messages.Refuse(messages.Conflict, "stream %s has lost nothing: there is nothing to accept", a.Stream)
	case now:
		g.logger.Warn("a person has accepted the loss of a stream of the log", "stream", a.Stream, "by", a.By, "reason", a.Reason, "loss", accepted.Loss)
	}
	_ = g.check(ctx, shard) // else it is found later
	return accepted.Loss, nil
}

// suspects returns the streams that seem to have lost messages.
func (g *integrity) suspects() (all []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for shard, s := range g.shards {
		if !s.suspected.IsZero() {
			all = append(all, g.log.ShardName(shard))
		}
	}
	return all
}

// find gives doctor's findings.
func (g *integrity) find() (found []doctor.Finding) {
	for _, loss := range g.losses() {
		if x := g.notOpened(loss.Stream); x != nil {
			found = append(found, g.places(*x)...)
			continue
		}
		found = append(found, doctor.Finding{
			Check: "store", Status: doctor.Fail, Stream: loss.Stream, Seq: loss.Found + 1,
			Detail: fmt.Sprintf("%v; its agents answer that they are damaged", loss), Remedy: g.remedy(loss.Stream),
		})
	}
	for shard := range g.shards {
		stream := g.log.ShardName(shard)
		for _, q := range g.log.Quarantines(shard) {
			found = append(found, doctor.Finding{
				Check: "store", Status: doctor.Fail, Agent: q.Agent, Stream: stream, Seq: q.Last,
				Detail: fmt.Sprintf("%v; it answers that it is damaged", lostFrame(stream, q)),
				Remedy: "restore a backup; or delete the agent; or, if what is gone may stay gone: " + acceptance(stream),
			})
		}
	}
	return found
}
