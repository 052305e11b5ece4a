package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// activation measures how long an agent that is not in memory takes from an
// ask to its model's call, which comes after the agent was read and the turn's
// start stored: from its whole log, and, once it has left a snapshot, from there.
// Its history is written by us, under the node's own epoch, so that there is
// nothing to take over.
//
// ids adds agents with the shortest history and so many processed commands beside it.
func (l *lab) activation(ctx context.Context, s *store, ids ...int) (err error) {
	l.say("sync %s: activation", s.sync)
	if err := s.emptied(ctx); err != nil {
		return err
	}
	log, err := natslog.Open(ctx, natslog.Config{Conns: s.conns, Logger: s.logger})
	if err != nil {
		return err
	}
	clock := newClock(1)
	cfg := s.config(clock)
	cfg.IdleAfter = forgetful
	node, err := cluster.Start(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	seeds, err := seed(ctx, node, log)
	if err != nil {
		return err
	}
	var all []*passive
	add := func(events, ids int) error {
		if s.sync != "relaxed" && max(events, ids) > mostSynced {
			return nil // each of its frames would wait for the disk
		}
		p := &passive{s: s, node: node, clock: clock, seeds: seeds, events: events, ids: ids, number: (len(all) + 1) * 1_000_000}
		l.say("sync %s: write agents with %s", s.sync, p.history())
		all = append(all, p)
		return p.begin(ctx)
	}
	for _, events := range l.Events {
		if err := add(events, 0); err != nil {
			return err
		}
	}
	for _, n := range ids {
		if err := add(l.Events[0], n); err != nil {
			return err
		}
	}
	if err := l.activate(ctx, node, all); err != nil {
		return err
	}
	for _, p := range all {
		if err := p.tell(ctx, l.out, all[0]); err != nil {
			return err
		}
	}
	return nil
}

// activate asks agents of all lengths in turn, so that what else the machine does
// meets them all.
func (l *lab) activate(ctx context.Context, node *cluster.Node, all []*passive) error {
	for round := 0; slices.ContainsFunc(all, func(p *passive) bool { return len(p.quick) < activations }); round++ {
		l.say("activation, round %d", round+1)
		for i := range all {
			p := all[(round+i)%len(all)]
			if err := rest(ctx, node); err != nil {
				return err
			}
			took, err := p.asked(ctx)
			if err != nil {
				return err
			}
			p.quick = append(p.quick, took...)
		}
	}
	return nil
}

// mostSynced is the longest history that is written to a store that syncs always.
const mostSynced = 10_000

// spread is how many partitions, each in a stream of its own, the agents of an
// activation are written to.
const spread = 8

// seed lets an agent in each of these partitions do a turn, which tells the
// partition's epoch. What it gives are histories that have not begun.
func seed(ctx context.Context, node *cluster.Node, log eventlog.Log) ([]history, error) {
	var seeds []history
	for i := range spread {
		a := agentIn(messages.Partition(i*messages.Partitions/spread), 0)
		if err := ask(ctx, node.Client(), a); err != nil {
			return nil, err
		}
		tail, err := log.Head(ctx, a)
		if err != nil {
			return nil, err
		}
		def, err := definitionOf(ctx, log, a)
		if err != nil {
			return nil, err
		}
		seeds = append(seeds, history{log: log, agent: a, def: def, epoch: tail.Epoch})
	}
	return seeds, nil
}

// agentIn is an agent of worker 0 in a partition, the first one from number on.
func agentIn(p messages.Partition, number int) messages.AgentID {
	for {
		if a := agentID(0, number); a.Partition() == p {
			return a
		}
		number++
	}
}

// passive are agents with so many events that are not in memory.
type passive struct {
	s      *store
	node   *cluster.Node
	clock  *clock
	seeds  []history
	events int
	// ids is how many commands they have processed beside those events.
	ids int
	// number is where the numbers in their keys begin.
	number int
	all    []history
	// The times of asks: of agents without a snapshot, of new ones, of those with
	// a snapshot.
	whole, fresh, quick []time.Duration
}

// activations is how many times agents are activated for a figure, at least.
const activations = 32

// begin writes the agents and asks each for the first time.
func (p *passive) begin(ctx context.Context) (err error) {
	if err := p.write(ctx); err != nil {
		return fmt.Errorf("write an agent with %s: %w", p.history(), err)
	}
	if err := rest(ctx, p.node); err != nil {
		return err
	}
	if p.whole, err = p.asked(ctx); err != nil {
		return err
	}
	p.fresh, err = p.newcomers(ctx)
	return err
}

// tell tells what was measured, beside the agents with the shortest histories.
func (p *passive) tell(ctx context.Context, out *report, shortest *passive) error {
	slices.Sort(p.quick)
	base := milliseconds(quantile(p.fresh, 0.5))
	quick := p.row("activation with %s, p50", p.quick)
	if p == shortest {
		quick = quick.of(base, "an ask of a new agent")
	} else {
		quick = quick.of(milliseconds(quantile(shortest.quick, 0.5)), "with "+shortest.history())
	}
	if err := out.add(quick, p.row("activation with %s, whole log, p50", p.whole).of(base, "an ask of a new agent")); err != nil {
		return err
	}
	return p.replay(ctx, out)
}

// history describes what the agents have in their logs.
func (p *passive) history() string {
	if p.ids > 0 {
		return whole(p.ids) + " processed ids"
	}
	return whole(p.events) + " events"
}

func (p *passive) row(figure string, took []time.Duration) Row {
	return Row{Figure: fmt.Sprintf(figure, p.history()), Agents: 1, Sync: p.s.sync, Value: milliseconds(quantile(took, 0.5)), Unit: "ms"}
}

// write writes the agents: two for each seed, or fewer if they are long.
func (p *passive) write(ctx context.Context) error {
	turns := max(1, p.events/eventsPerTurn)
	n := 2 * len(p.seeds)
	if turns > 500 || p.ids > 0 {
		n = 3
	}
	if turns > 5000 {
		n = 2
	}
	for i := range n {
		of := p.seeds[i%len(p.seeds)]
		p.all = append(p.all, history{log: of.log, def: of.def, epoch: of.epoch, agent: agentIn(of.agent.Partition(), p.number+1000*i)})
	}
	return deal(ctx, n, n, func(ctx context.Context, _, i int) error {
		if err := p.all[i].turns(ctx, turns); err != nil {
			return err
		}
		return p.all[i].commands(ctx, p.ids)
	})
}

// asked asks each agent; their times come sorted.
func (p *passive) asked(ctx context.Context) ([]time.Duration, error) {
	var agents []messages.AgentID
	for i := range p.all {
		agents = append(agents, p.all[i].agent)
	}
	return p.times(ctx, agents)
}

// newAgents is how many new agents are asked, which is at least as many as are written.
const newAgents = 16

// newcomers asks agents that nothing has happened to.
func (p *passive) newcomers(ctx context.Context) ([]time.Duration, error) {
	var agents []messages.AgentID
	for i := range newAgents {
		agents = append(agents, agentIn(p.seeds[i%len(p.seeds)].agent.Partition(), p.number+1000*(i+newAgents)))
	}
	return p.times(ctx, agents)
}

func (p *passive) times(ctx context.Context, agents []messages.AgentID) (took []time.Duration, err error) {
	for _, a := range agents {
		start := time.Now()
		if err := ask(ctx, p.node.Client(), a); err != nil {
			return nil, err
		}
		took = append(took, p.clock.since(0, start))
	}
	slices.Sort(took)
	return took, nil
}

// replay measures how fast an agent's frames are read, verified and folded
// beside how fast the same messages are fetched, each several times in turn. What
// is told is the median, and that of the ratios of each pair.
func (p *passive) replay(ctx context.Context, out *report) error {
	if p.events < 1000 {
		return nil // too short to tell
	}
	agent := &p.all[0]
	var rates, ratios []float64
	if _, err := agent.replayed(ctx); err != nil { // which counts its frames
		return err
	}
	for round := range replays {
		var rate, raw float64
		both := []func() error{
			func() (err error) { rate, err = agent.replayed(ctx); return err },
			func() (err error) { raw, err = p.s.fetched(ctx, agent.agent, agent.frames); return err },
		}
		for i := range both { // neither is always the first
			if err := both[(round+i)%len(both)](); err != nil {
				return err
			}
		}
		rates, ratios = append(rates, rate), append(ratios, rate/raw)
	}
	return out.add(Row{
		Figure: "replay of " + whole(p.events) + " events", Agents: 1, Sync: p.s.sync, Value: median(rates), Unit: "frames/s",
		Ratio: median(ratios), RatioTo: "fetching the messages",
	})
}

// replays is how often an agent is replayed, and its messages are fetched.
const replays = 9

// replayed is how many of the agent's frames are read, verified and folded in a
// second.
func (h *history) replayed(ctx context.Context) (rate float64, err error) {
	var state turn.State
	start, frames := time.Now(), 0
	for rec, err := range h.log.Read(ctx, h.agent, eventlog.Range{}) {
		if err != nil {
			return 0, err
		}
		state.Apply(rec.Frame)
		frames++
	}
	rate = float64(frames) / time.Since(start).Seconds()
	h.frames = frames
	return rate, nil
}

// fetched is how many of the agent's messages come in a second by a consumer that
// looks at none of them, up to so many.
func (s *store) fetched(ctx context.Context, a messages.AgentID, count int) (float64, error) {
	start := time.Now()
	c, err := s.js.OrderedConsumer(ctx, s.names.Log(a.Partition()), jetstream.OrderedConsumerConfig{FilterSubjects: []string{messages.Subjects{}.Log(a)}})
	if err != nil {
		return 0, err
	}
	it, err := c.Messages()
	if err != nil {
		return 0, err
	}
	defer it.Stop()
	defer context.AfterFunc(ctx, it.Stop)()
	for range count {
		if _, err := it.Next(); err != nil {
			return 0, errors.Join(context.Cause(ctx), err)
		}
	}
	return float64(count) / time.Since(start).Seconds(), nil
}
