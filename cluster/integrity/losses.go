package integrity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

// remedy is what to do about a loss.
func (g *Monitor) remedy(stream string) string {
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
func (g *Monitor) lost(p messages.Partition) *natslog.LossError {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shards[natslog.Shard(p)].loss
}

// losses returns all that was lost.
func (g *Monitor) losses() (all []*natslog.LossError) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.shards {
		if s.loss != nil {
			all = append(all, s.loss)
		}
	}
	return all
}

// Damaged is what agents of a partition answer whose stream has lost messages; nil: it
// has not.
func (g *Monitor) Damaged(p messages.Partition) *messages.Error {
	loss := g.lost(p)
	if loss == nil {
		return nil
	}
	return messages.Refuse(messages.Damaged, "the log of partition %s, which this agent is in, is damaged: %v; nothing is written to it. See `reprise doctor`", p, loss)
}

// Whole implements actors.Evidence.
func (g *Monitor) Whole(a messages.AgentID, newest uint64) error {
	err := g.Relied(natslog.Shard(a.Partition()))
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

// WholeNow is Whole of an agent's log as it is now.
func (g *Monitor) WholeNow(ctx context.Context, a messages.AgentID) error {
	err := g.Whole(a, 0)
	if err == nil || g.Relied(natslog.Shard(a.Partition())) != nil {
		return err
	}
	tail, unread := g.log.Head(ctx, a)
	if unread != nil {
		return err
	}
	return g.Whole(a, tail.Seq)
}

// Identity distinguishes a stream from others of the same name.
func (g *Monitor) Identity(shard int) string { return g.log.Identity(shard) }

// Witness takes in that a stream has held a message with a sequence.
func (g *Monitor) Witness(shard int, seq uint64) {
	if g.lag == 0 && g.log.Witness(shard, seq) {
		g.Doubt(shard)
	}
}

// Witnessed reports that all that the agents index knows has been taken in.
func (g *Monitor) Witnessed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.indexed = true
}

// Relied returns why a stream cannot be relied on now; nil: it can.
func (g *Monitor) Relied(shard int) error {
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
func (g *Monitor) Seen(a messages.AgentID) (messages.EventNumber, time.Time) {
	if g.lag > 0 { // it need not be on disk
		return 0, time.Time{}
	}
	row, _ := g.agents.Agent(a)
	return row.Events, row.Updated
}

// Counts implements actors.Evidence.
func (g *Monitor) Counts(a messages.AgentID, seq uint64, at time.Time) bool {
	p := a.Partition()
	return at.After(g.log.Accepted(p)) && (g.lag == 0 || seq <= g.log.Stored(p))
}

// Accept records that a person accepts what a stream has lost, and returns what that
// is. Accepted again it returns the same.
func (g *Monitor) Accept(ctx context.Context, a client.AcceptLoss) (string, error) {
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

// Reasons returns why agents of this store do not work: streams that have lost messages, and
// those that seem to have.
func (g *Monitor) Reasons() (why []string) {
	for _, loss := range g.losses() {
		text := loss.Error()
		if g.notOpened(loss.Stream) != nil { // without the place, which may name an agent: no login guards this
			text = fmt.Sprintf("stream %s: its files are damaged, so it is not opened", loss.Stream)
		}
		why = append(why, text+"; its agents answer that they are damaged, see `reprise doctor`")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var suspected []string
	for shard, s := range g.shards {
		if !s.suspected.IsZero() {
			suspected = append(suspected, g.log.ShardName(shard))
		}
	}
	if len(suspected) > 0 {
		why = append(why, "streams seem to have lost messages, and have no owner until that is certain: "+strings.Join(suspected, ", "))
	}
	return why
}

// Find returns doctor's findings: what the streams have lost, and what in them cannot be read.
func (g *Monitor) Find(ctx context.Context) []doctor.Finding {
	return append(g.findLost(ctx), g.scrubber.find(ctx)...)
}

func (g *Monitor) findLost(ctx context.Context) (found []doctor.Finding) {
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
				Remedy: g.frameRemedy(ctx, stream, q),
			})
		}
	}
	return found
}

// frameRemedy is what to do about messages that were taken out of a stream. To accept the loss of a frame
// from the middle of an agent's log helps only with a snapshot that was made later.
func (g *Monitor) frameRemedy(ctx context.Context, stream string, q natslog.Quarantined) string {
	remedy, condition := "restore a backup; or delete the agent", "what is gone may stay gone"
	if q.Agent != (messages.AgentID{}) {
		if head, err := g.log.Head(ctx, q.Agent); err == nil && head.Frame != "" && head.Seq > q.Last {
			if names, err := g.log.ListSnapshots(ctx, q.Agent); err == nil && len(names) == 0 {
				return remedy
			}
			condition += " and the agent has a snapshot that was made later"
		}
	}
	return remedy + "; or, if " + condition + ": " + acceptance(stream)
}
