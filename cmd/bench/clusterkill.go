package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/cmd/internal/bench"
	"github.com/reprise-dev/reprise/messages"
)

const (
	// recovers bounds how long the agents of a killed node are waited for.
	recovers = 60 * time.Second
	// countings is how often the frames of the log are counted meanwhile: seldom enough
	// to cost it nothing, for it says itself when each was stored.
	countings = 100 * time.Millisecond
	// atOnce is how many appends and inputs are under way at most.
	atOnce = 512
)

// killed kills the node with the most partitions while so many of its agents wait for
// their model, and reports when the log had the next frame of each, beside as many raw appends.
func (t *trial) killed(ctx context.Context, n int) error {
	took, err := t.AppendMany(ctx, atOnce, n)
	if err != nil {
		return err
	}
	return t.during(ctx, t.nodes, func(ctx context.Context) error {
		after, err := t.kill(ctx, n)
		if err != nil {
			return errors.Join(t.running(), err)
		}
		ms := func(q float64) float64 { return bench.Milliseconds(bench.Quantile(after, q)) }
		raw := bench.Milliseconds(took)
		return t.Add(
			t.row("killed: until the next append p50", n, ms(0.5), "ms"),
			t.row("killed: until the next append p99", n, ms(0.99), "ms"),
			t.row("killed: until the last one's", n, ms(1), "ms").Of(raw, "as many raw appends"),
			t.row("as many raw appends", n, raw, "ms"),
			t.row("killed: agents that were not back in time", n, float64(n-len(after)), "agents"),
		)
	})
}

// kill kills a node and returns after what time each agent had its next frame.
func (t *trial) kill(ctx context.Context, n int) ([]time.Duration, error) {
	before, err := t.placed(ctx)
	if err != nil {
		return nil, err
	}
	victim := t.without(before)
	defer func() {
		victim.kill()
		_ = victim.stop(canceled, nil) // its end is no error
	}()
	agents := make(map[string]bool, n) // by the subject of their frames
	var list []messages.AgentID
	for i := 0; len(list) < n; i++ {
		a := bench.AgentID(i, 0)
		if a.Kind = heldKind; before[a.Partition()] == victim.id {
			agents[messages.Subjects{}.Log(a)] = true
			list = append(list, a)
		}
	}
	if err := t.hold(ctx, list); err != nil {
		return nil, err
	}
	if now, _, err := t.owned(ctx); err != nil || now != before {
		return nil, fmt.Errorf("partitions moved before the kill: %w", err)
	}
	from, total, err := t.Lasts(ctx)
	if err != nil {
		return nil, err
	}
	at := time.Now()
	victim.kill()
	return t.returned(ctx, from, total, agents, at)
}

// hold sends each agent an input and returns when all are in mid-turn.
func (t *trial) hold(ctx context.Context, agents []messages.AgentID) error {
	_, before, err := t.Lasts(ctx)
	if err != nil {
		return err
	}
	err = bench.Deal(ctx, min(len(agents), atOnce), len(agents), func(ctx context.Context, _, i int) error {
		_, err := t.client.Send(ctx, agents[i].String(), messages.Input{Content: messages.TextContent(bench.UserInput)})
		return err
	})
	if err != nil {
		return err
	}
	for begun := time.Now(); ; bench.Sleep(ctx, countings) {
		_, now, err := t.Lasts(ctx)
		switch begins := int(now - before); { // the first frame of each asks for its model
		case err != nil || begins >= len(agents):
			return err
		case time.Since(begun) > recovers:
			return fmt.Errorf("%d of %d agents did not begin their turn within %v", len(agents)-begins, len(agents), recovers)
		}
	}
}

// returned waits until each agent, by the subject of its frames, has one that was stored after
// the kill, and returns how long after, shortest first; of those that had none in time it
// returns nothing. The log is read when it holds enough frames, so that reading it delays
// nothing.
func (t *trial) returned(ctx context.Context, from map[string]uint64, before uint64, missing map[string]bool, killed time.Time) (after []time.Duration, err error) {
	for late := killed.Add(recovers); len(missing) > 0 && time.Now().Before(late); {
		now, total, err := t.Lasts(ctx)
		if err != nil {
			return nil, err
		}
		if total-before < uint64(len(missing)) {
			bench.Sleep(ctx, countings)
			continue
		}
		for name, last := range now {
			if last == from[name] {
				continue
			}
			err := each(ctx, t.Store, name, jetstream.OrderedConsumerConfig{
				DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from[name] + 1, HeadersOnly: true,
			}, func(m jetstream.Msg) (bool, error) {
				meta, err := m.Metadata()
				if err != nil {
					return false, err
				}
				if missing[m.Subject()] && meta.Timestamp.After(killed) {
					delete(missing, m.Subject())
					after = append(after, meta.Timestamp.Sub(killed))
				}
				return meta.Sequence.Stream < last, nil
			})
			if err != nil {
				return nil, err
			}
		}
		from, before = now, total
	}
	slices.Sort(after)
	return after, context.Cause(ctx)
}
