package main

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cmd/internal/bench"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

const (
	// eventsPerTurn and itemsPerTurn are how many events and items of the history an
	// ordinary turn has.
	eventsPerTurn, itemsPerTurn = 10, 4
	// mostSynced is the longest history that is written to a store that syncs always: each
	// of its frames waits for the disk.
	mostSynced = 10_000
	// passives is how many agents have a history of each length.
	passives = 4
	// activations is how many times each of them is activated for a figure, from a snapshot.
	activations = 8
)

// activation measures how long an agent that is not in memory takes from an ask to its model's
// call, which comes after the agent was read and the turn's start stored: from its whole log,
// and, once it has left a snapshot, from there. The turns before are those of a node that takes no
// snapshots; the histories of all agents have as many items.
func (w *work) activation(l *bench.Lab, ctx context.Context) error {
	return l.Each(ctx, func(ctx context.Context, s *bench.Store) (err error) {
		if err := s.Emptied(ctx); err != nil {
			return err
		}
		all := w.passives(s)
		l.Say("sync %s: let agents live", s.Sync)
		if err := live(ctx, s, all); err != nil {
			return err
		}
		clock := bench.NewClock(len(all) * passives)
		node, err := s.Node(ctx, clock, forgetful)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, node.Close()) }()
		for i := range warmTurns { // what a node does first is measured of none
			if err := bench.Ask(ctx, node.Client(), bench.AgentID(0, 1+i)); err != nil {
				return err
			}
		}
		for round := range 1 + activations {
			for i := range all { // in turn, so that what else the machine does meets them all
				if err := all[(round+i)%len(all)].activate(ctx, node, clock, round == 0); err != nil {
					return err
				}
			}
		}
		for _, p := range all {
			if err := p.report(l, s, all[0]); err != nil {
				return err
			}
		}
		return nil
	})
}

// passive are agents with so many events.
type passive struct {
	name                           string
	events, turns, longest, number int
	whole, quick                   []time.Duration // of asks of agents without a snapshot, and with one
}

// passives returns agents with each length of log that the store can be given in time.
func (w *work) passives(s *bench.Store) (all []*passive) {
	for i, events := range w.events {
		if s.Sync == "relaxed" || events <= mostSynced {
			all = append(all, &passive{events: events, turns: max(1, events/eventsPerTurn), longest: w.longest, name: bench.Whole(events) + " events", number: i})
		}
	}
	return all
}

// agent is one of them.
func (p *passive) agent(i int) messages.AgentID { return bench.AgentID(p.number*passives+i, 0) }

// live lets the agents do their turns. Where they are more than the longest history shows,
// an agent is cleared now and then, so that the last ones fill it; where they are fewer, their
// answers have more messages.
func live(ctx context.Context, s *bench.Store, all []*passive) (err error) {
	more := make(map[string]int)
	for _, p := range all {
		for i := range passives {
			more[p.agent(i).Key] = itemsPerTurn * (max(p.turns, p.longest) - p.turns) / p.turns
		}
	}
	model := providers.Func(func(ctx context.Context, r providers.Request, emit func(providers.Delta)) (providers.Response, error) {
		answer, err := bench.TwoStep.Generate(ctx, r, emit)
		if answer.Finish == "stop" {
			for range more[r.Agent.Key] {
				answer.Items = append(answer.Items[:len(answer.Items):len(answer.Items)], messages.Text(messages.RoleAssistant, bench.UserInput))
			}
		}
		return answer, err
	})
	node, err := s.Node(ctx, model, withoutIndex, func(c *cluster.Config) { c.SnapshotEvery = -1 })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	return bench.Deal(ctx, passives*len(all), passives*len(all), func(ctx context.Context, _, i int) error {
		p := all[i/passives]
		a := p.agent(i % passives)
		for n := range p.turns {
			if n > 0 && (p.turns-n)%p.longest == 0 {
				if _, err := node.Client().Do(ctx, a.String(), messages.Clear{}); err != nil {
					return err
				}
			}
			if err := bench.Ask(ctx, node.Client(), a); err != nil {
				return err
			}
		}
		return nil
	})
}

// activate asks each agent when none is in memory.
func (p *passive) activate(ctx context.Context, node *cluster.Node, clock *bench.Clock, first bool) error {
	if err := rest(ctx, node); err != nil {
		return err
	}
	for i := range passives {
		start := time.Now()
		if err := bench.Ask(ctx, node.Client(), p.agent(i)); err != nil {
			return err
		}
		if took := clock.Since(p.number*passives+i, start); first {
			p.whole = append(p.whole, took)
		} else {
			p.quick = append(p.quick, took)
		}
	}
	return nil
}

// report prints what was measured, beside the agents with the shortest histories.
func (p *passive) report(l *bench.Lab, s *bench.Store, shortest *passive) error {
	row := func(figure string, ms float64) bench.Row {
		return bench.Row{Figure: figure, Agents: 1, Sync: s.Sync, Value: ms, Unit: "ms"}
	}
	quick := row("activation with "+p.name+", p50", medianOf(p.quick))
	if p != shortest {
		quick = quick.Of(medianOf(shortest.quick), "with "+shortest.name)
	}
	return l.Add(quick, row("activation with "+p.name+", whole log, p50", medianOf(p.whole)))
}

// medianOf is that of times, in milliseconds.
func medianOf(times []time.Duration) float64 {
	var ms []float64
	for _, t := range times {
		ms = append(ms, bench.Milliseconds(t))
	}
	return median(ms)
}

// each passes the messages of a stream to f until it wants no more.
func each(ctx context.Context, s *bench.Store, stream string, c jetstream.OrderedConsumerConfig, f func(jetstream.Msg) (more bool, err error)) error {
	consumer, err := s.JS.OrderedConsumer(ctx, stream, c)
	if err != nil {
		return err
	}
	it, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer it.Stop()
	defer context.AfterFunc(ctx, it.Stop)()
	for more := true; more; {
		msg, err := it.Next()
		if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		if more, err = f(msg); err != nil {
			return err
		}
	}
	return nil
}
