package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// recovers bounds how long the agents of a killed node are waited for.
const recovers = 60 * time.Second

// countings is how often the frames of the log are counted meanwhile: seldom enough
// to cost it nothing, for it says itself when each was stored.
const countings = 100 * time.Millisecond

// kill kills the node with the most partitions while so many of its agents wait for
// their model, and tells when the log had the next frame of each.
func (t *trial) kill(ctx context.Context, n int) error {
	victim, agents, err := t.midTurn(ctx, n)
	if err != nil {
		return errors.Join(t.running(), err)
	}
	from, err := t.lasts(ctx)
	if err != nil {
		return err
	}
	_, moves, err := t.places.share()
	if err != nil {
		return err
	}
	t.without(victim)
	killed := time.Now()
	if err := victim.kill(); err != nil {
		return err
	}
	after, err := t.returned(ctx, from, agents, killed)
	if err != nil {
		return errors.Join(t.running(), err)
	}
	first, last := taken(t.places.since(moves), killed)
	raw := milliseconds(t.ceiling.many[n])
	return t.out.add(
		t.row("killed: until a partition is taken", n, milliseconds(first), "ms"),
		t.row("killed: until all are", n, milliseconds(last), "ms"),
		t.row("killed: until the next append of the first", n, milliseconds(quantile(after, 0)), "ms"),
		t.row("killed: until the next append p50", n, milliseconds(quantile(after, 0.5)), "ms"),
		t.row("killed: until the next append p99", n, milliseconds(quantile(after, 0.99)), "ms"),
		t.row("killed: until the last one's", n, milliseconds(quantile(after, 1)), "ms").of(raw, "as many raw appends"),
		t.row("as many raw appends", n, raw, "ms"),
		t.row("killed: agents that were not back in time", n, float64(n-len(after)), "agents"),
	)
}

// taken is how long after a time the first and the last partition came to a node.
func taken(moves []move, after time.Time) (first, last time.Duration) {
	for _, m := range moves {
		if d := m.at.Sub(after); m.to != "" && d > 0 {
			if last = max(last, d); first == 0 {
				first = d
			}
		}
	}
	return first, last
}

// tries is how often agents are held anew because their partitions moved meanwhile.
const tries = 5

// midTurn gives a node, and so many of its agents that wait for their model.
func (t *trial) midTurn(ctx context.Context, n int) (*member, []messages.AgentID, error) {
	for try := range tries {
		if try > 0 {
			if err := t.placed(ctx); err != nil {
				return nil, nil, err
			}
		}
		m := t.busiest()
		agents := t.agentsOf(m, n, try)
		if err := t.hold(ctx, agents); err != nil {
			return nil, nil, err
		}
		if !slices.ContainsFunc(agents, func(a messages.AgentID) bool { return t.places.owner(a.Partition()) != m.id }) {
			return m, agents, nil
		}
	}
	return nil, nil, fmt.Errorf("partitions did not stay for as long as it takes %d agents to begin a turn", n)
}

// agentsOf are agents of a generation whose model never answers, in partitions of
// one node.
func (t *trial) agentsOf(m *member, n, generation int) []messages.AgentID {
	var mine [messages.Partitions]bool
	for p := range mine {
		mine[p] = t.places.owner(messages.Partition(p)) == m.id
	}
	agents := make([]messages.AgentID, 0, n)
	for i := 0; len(agents) < n; i++ {
		a := agentID(i, generation)
		a.Kind = heldKind
		if mine[a.Partition()] {
			agents = append(agents, a)
		}
	}
	return agents
}

// hold gives each agent an input and returns when all are in mid-turn.
func (t *trial) hold(ctx context.Context, agents []messages.AgentID) error {
	before, err := t.written(ctx)
	if err != nil {
		return err
	}
	body, err := inputBody("")
	if err != nil {
		return err
	}
	workers := min(len(agents), publishing)
	ps, leave, err := t.publishers(workers)
	if err != nil {
		return err
	}
	defer leave()
	err = deal(ctx, workers, len(agents), func(ctx context.Context, worker, i int) error {
		_, err := ps[worker].publish(ctx, &nats.Msg{Subject: messages.Subjects{}.In(agents[i]), Data: body})
		return err
	})
	if err != nil {
		return err
	}
	for begun := time.Now(); ; {
		now, err := t.written(ctx)
		if err != nil {
			return err
		}
		if now >= before+uint64(len(agents)) { // the first frame of each asks for its model
			return nil
		}
		if time.Since(begun) > recovers {
			return fmt.Errorf("%d of %d agents did not begin their turn within %v", before+uint64(len(agents))-now, len(agents), recovers)
		}
		if sleep(ctx, countings); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// lasts are the last sequences of the log's streams, by name.
func (s *store) lasts(ctx context.Context) (map[string]uint64, error) {
	last := make(map[string]uint64)
	for _, name := range s.logs() {
		stream, err := s.js.Stream(ctx, name)
		if err != nil {
			return nil, err
		}
		last[name] = stream.CachedInfo().State.LastSeq
	}
	return last, nil
}

// returned waits until each agent has a frame that was stored after the kill, and
// gives how long after, shortest first; of those that had none in time it gives
// nothing. The log is read when it holds enough frames, so that reading it is in
// nobody's way.
func (t *trial) returned(ctx context.Context, from map[string]uint64, agents []messages.AgentID, killed time.Time) ([]time.Duration, error) {
	missing := make(map[string]bool, len(agents))
	for _, a := range agents {
		missing[messages.Subjects{}.Log(a)] = true
	}
	var after []time.Duration
	for late := killed.Add(recovers); len(missing) > 0 && time.Now().Before(late); {
		now, err := t.lasts(ctx)
		if err != nil {
			return nil, err
		}
		if more := sum(now) - sum(from); more < uint64(len(missing)) {
			if sleep(ctx, countings); ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			continue
		}
		for name, last := range now {
			err := t.stored(ctx, name, from[name], last, func(subject string, at time.Time) {
				if missing[subject] && at.After(killed) {
					delete(missing, subject)
					after = append(after, at.Sub(killed))
				}
			})
			if err != nil {
				return nil, err
			}
		}
		from = now
	}
	slices.Sort(after)
	return after, nil
}

func sum(of map[string]uint64) (total uint64) {
	for _, n := range of {
		total += n
	}
	return total
}

// stored reads the subjects and times of a stream's messages after one sequence, up
// to another.
func (s *store) stored(ctx context.Context, stream string, after, last uint64, each func(subject string, at time.Time)) error {
	if last <= after {
		return nil
	}
	c, err := s.js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: after + 1, HeadersOnly: true,
	})
	if err != nil {
		return err
	}
	it, err := c.Messages()
	if err != nil {
		return err
	}
	defer it.Stop()
	defer context.AfterFunc(ctx, it.Stop)()
	for at := after; at < last; {
		msg, err := it.Next()
		if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		at = meta.Sequence.Stream
		each(msg.Subject(), meta.Timestamp)
	}
	return nil
}
