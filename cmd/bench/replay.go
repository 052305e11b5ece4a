package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/actors/verify"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cmd/internal/bench"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
)

const (
	// replays is how often an agent is replayed or forked, and its messages are fetched.
	replays = 9
	// openedEvents is how many of the newest events a debugger reads before it shows anything.
	openedEvents = 2000
	// verifiedEvents is how many events each stream has that is verified.
	verifiedEvents = 50
	// verifiers is how many streams are verified at the same time.
	verifiers = 8
)

// replay measures what those pay who find out what happened: folding a log beside fetching its
// messages, forking agents with short and long logs, the first rows of a timeline, and verifying
// many short streams beside fetching their messages.
func (w *work) replay(l *bench.Lab, ctx context.Context) error {
	return l.With(ctx, "relaxed", func(ctx context.Context, s *bench.Store) error {
		all := w.passives(s)
		l.Say("replay: let agents live")
		err := live(ctx, s, all)
		var log eventlog.Log
		if err == nil {
			log, err = natslog.Open(ctx, natslog.Config{Conns: s.Conns, Logger: s.Logger})
		}
		for _, p := range all {
			if err == nil {
				err = p.replay(ctx, l, s, log)
			}
		}
		if err != nil {
			return err
		}
		if err := forks(ctx, l, s, all); err != nil {
			return err
		}
		return w.verify(ctx, l, s, log)
	})
}

// replay adds how fast an agent's frames are read, verified and folded.
func (p *passive) replay(ctx context.Context, l *bench.Lab, s *bench.Store, log eventlog.Log) error {
	if p.events < 1000 {
		return nil // too short to measure
	}
	var rates, ratios []float64
	for range replays {
		rate, frames, err := replayed(ctx, log, p.agent(0))
		if err != nil {
			return err
		}
		raw, err := fetched(ctx, s, p.agent(0), frames)
		if err != nil {
			return err
		}
		rates, ratios = append(rates, rate), append(ratios, rate/raw)
	}
	return l.Add(bench.Row{
		Figure: "replay of " + p.name, Agents: 1, Sync: s.Sync, Value: median(rates), Unit: "frames/s",
		Ratio: median(ratios), RatioTo: "fetching the messages",
	})
}

// replayed is how many of an agent's frames are read, verified and folded in a
// second, and how many there are.
func replayed(ctx context.Context, log eventlog.Log, a messages.AgentID) (rate float64, frames int, err error) {
	var state turn.State
	start := time.Now()
	for rec, err := range log.Read(ctx, a, eventlog.Range{}) {
		if err != nil {
			return 0, 0, err
		}
		state.Apply(rec.Frame)
		frames++
	}
	return float64(frames) / time.Since(start).Seconds(), frames, nil
}

// fetched is how many of an agent's messages come in a second by a consumer that
// looks at none of them, up to so many.
func fetched(ctx context.Context, s *bench.Store, a messages.AgentID, count int) (float64, error) {
	start, missing := time.Now(), count
	err := each(ctx, s, s.Names.Log(a.Partition()), jetstream.OrderedConsumerConfig{FilterSubjects: []string{messages.Subjects{}.Log(a)}},
		func(jetstream.Msg) (bool, error) { missing--; return missing > 0, nil })
	return float64(count) / time.Since(start).Seconds(), err
}

// forks adds how long it takes to fork each agent at its newest event, until the fork has begun,
// and to read the first rows of its timeline.
func forks(ctx context.Context, l *bench.Lab, s *bench.Store, all []*passive) (err error) {
	node, err := s.Node(ctx, bench.TwoStep, withoutIndex)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	forked, opened := make([][]time.Duration, len(all)), make([][]time.Duration, len(all))
	for round := range 1 + replays {
		for i, p := range all { // in turn, so that what else the machine does meets them all
			fork, err := timed(func() error { return makeFork(ctx, node, p.agent(0), round) })
			if err != nil {
				return err
			}
			open, err := timed(func() error { return openTimeline(ctx, node.Client(), p.agent(0)) })
			if err != nil {
				return err
			}
			if round > 0 { // the first one loads the agent
				forked[i], opened[i] = append(forked[i], fork), append(opened[i], open)
			}
		}
	}
	for i, p := range all {
		for figure, times := range map[string][][]time.Duration{"fork at event ": forked, "first rows of a timeline, event ": opened} {
			row := bench.Row{Figure: figure + bench.Whole(p.events), Agents: 1, Sync: s.Sync, Value: medianOf(times[i]), Unit: "ms"}
			if i > 0 {
				row = row.Of(medianOf(times[0]), "at event "+bench.Whole(all[0].events))
			}
			if err := l.Add(row); err != nil {
				return err
			}
		}
	}
	return nil
}

func timed(f func() error) (time.Duration, error) {
	start := time.Now()
	err := f()
	return time.Since(start), err
}

// makeFork forks an agent at its newest event and waits until the fork has begun.
func makeFork(ctx context.Context, node *cluster.Node, parent messages.AgentID, round int) error {
	fork := parent
	fork.Key += "-fork-" + strconv.Itoa(round)
	answer, err := node.Client().Do(ctx, parent.String(), messages.Fork{Fork: fork.Full()})
	if err != nil {
		return err
	}
	for _, err := range node.Client().Events(ctx, parent.String(), client.Only(messages.Query{From: answer.N + 1, Follow: true})) {
		return err // the next event of the parent is that the fork has begun
	}
	return fmt.Errorf("fork %s: it was not settled", fork)
}

// openTimeline reads the rows that a debugger shows first.
func openTimeline(ctx context.Context, c *client.Client, a messages.AgentID) error {
	var rows []projections.Row
	for row, err := range c.Timeline(ctx, a.String(), client.Only(messages.Query{Tail: openedEvents})) {
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return fmt.Errorf("the timeline of %s has no rows", a)
	}
	return nil
}

// verify adds how many frames of short streams are read and decided again in a second, beside
// fetching the messages of all of them by one consumer for each stream of the log.
func (w *work) verify(ctx context.Context, l *bench.Lab, s *bench.Store, log eventlog.Log) error {
	if err := s.Emptied(ctx); err != nil {
		return err
	}
	l.Say("replay: let %d agents live", w.verified)
	current, err := w.liveShort(ctx, s)
	if err != nil {
		return err
	}
	var rates, ratios []float64
	for range replays {
		var frames atomic.Int64
		start := time.Now()
		err := bench.Deal(ctx, verifiers, w.verified, func(ctx context.Context, _, i int) error {
			a := bench.AgentID(i, 0)
			if r := verify.Stream(a, current, counted(log.Read(ctx, a, eventlog.Range{}), &frames)); r.Result != verify.Equal {
				return fmt.Errorf("%s: %s %s", a, r.Result, r.Why)
			}
			return nil
		})
		if err != nil {
			return err
		}
		rate := float64(frames.Load()) / time.Since(start).Seconds()
		raw, err := fetchedAll(ctx, s, int(frames.Load()))
		if err != nil {
			return err
		}
		rates, ratios = append(rates, rate), append(ratios, rate/raw)
	}
	return l.Add(bench.Row{
		Figure: fmt.Sprintf("verify streams of %d events", verifiedEvents), Agents: w.verified, Sync: s.Sync, Value: median(rates), Unit: "frames/s",
		Ratio: median(ratios), RatioTo: "fetching the messages",
	})
}

// liveShort lets agents live whose streams are verified, and returns what they are verified with.
func (w *work) liveShort(ctx context.Context, s *bench.Store) (current verify.Current, err error) {
	node, err := s.Node(ctx, bench.TwoStep, withoutIndex)
	if err != nil {
		return current, err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	err = bench.Deal(ctx, 64, w.verified, func(ctx context.Context, _, i int) error {
		for range verifiedEvents / eventsPerTurn {
			if err := bench.Ask(ctx, node.Client(), bench.AgentID(i, 0)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return current, err
	}
	rt, err := actors.NewRuntime(ctx, actors.Config{
		Store: memlog.NewStore(), Providers: providers.Set{"bench": bench.TwoStep}, Definitions: []actors.Definition{bench.Definition(bench.Kind, bench.Echo)},
		Logger: s.Logger, Send: func(context.Context, messages.AgentID, messages.Command) error { return errors.ErrUnsupported },
	})
	if err != nil {
		return current, err
	}
	return rt.Current(ctx, bench.Kind)
}

// counted yields frames alone, and counts them.
func counted(read iter.Seq2[eventlog.Recorded, error], n *atomic.Int64) iter.Seq2[*messages.Frame, error] {
	return func(yield func(*messages.Frame, error) bool) {
		for rec, err := range read {
			n.Add(1)
			if !yield(rec.Frame, err) {
				return
			}
		}
	}
}

// fetchedAll is how many messages of the log come in a second, up to so many.
func fetchedAll(ctx context.Context, s *bench.Store, count int) (float64, error) {
	start := time.Now()
	for _, name := range s.Logs() {
		stream, err := s.JS.Stream(ctx, name)
		if err != nil {
			return 0, err
		}
		missing := stream.CachedInfo().State.Msgs
		if missing == 0 {
			continue
		}
		if err := each(ctx, s, name, jetstream.OrderedConsumerConfig{}, func(jetstream.Msg) (bool, error) { missing--; return missing > 0, nil }); err != nil {
			return 0, err
		}
	}
	return float64(count) / time.Since(start).Seconds(), nil
}
