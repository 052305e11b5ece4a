package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// ceiling is what the servers do without nodes.
type ceiling struct {
	// rate of raw appends by as many publishers as agents do turns.
	rate float64
	// frames of new agents that were appended at once, and how long that took.
	many map[int]time.Duration
}

// rawBefore measures what the parts are compared with, before there is any node.
func (t *trial) rawBefore(ctx context.Context, chosen []part) error {
	t.ceiling = ceiling{many: make(map[int]time.Duration)}
	for _, p := range chosen {
		switch {
		case p.name == "turns":
			raw, err := t.store.raw(ctx, t.Others, t.Window/2)
			if err != nil {
				return err
			}
			t.ceiling.rate = raw.rate()
		case p.name == killPart:
			took, err := t.appendMany(ctx, p.agents)
			if err != nil {
				return err
			}
			t.ceiling.many[p.agents] = took
		}
	}
	return nil
}

// publishing is how many raw appends are under way at most.
const publishing = 512

// appendMany appends the first frame of so many agents.
func (s *store) appendMany(ctx context.Context, n int) (time.Duration, error) {
	if err := s.emptied(ctx); err != nil {
		return 0, err
	}
	workers := min(n, publishing)
	ps, leave, err := s.publishers(workers)
	if err != nil {
		return 0, err
	}
	defer leave()
	begun := time.Now()
	err = deal(ctx, workers, n, func(ctx context.Context, worker, i int) error {
		return s.appender(ps[worker], agentID(i, 0)).append(ctx)
	})
	return time.Since(begun), err
}

// deal lets workers do n pieces; each is done once.
func deal(ctx context.Context, workers, n int, do func(ctx context.Context, worker, piece int) error) error {
	var taken, named atomic.Int64
	worker := make(chan int, workers)
	for range workers {
		worker <- int(named.Add(1)) - 1
	}
	return crowd(ctx, workers, func(ctx context.Context) (bool, error) {
		i := int(taken.Add(1)) - 1
		if i >= n {
			return false, nil
		}
		w := <-worker
		defer func() { worker <- w }()
		return true, do(ctx, w, i)
	})
}

// asks asks one agent after the other, and does between any two what an ask cannot
// do without: a request to a node's process and the appends of a turn.
func (t *trial) asks(ctx context.Context) error {
	bare, err := t.bare(ctx)
	if err != nil {
		return err
	}
	defer bare.leave()
	c := client.New(t.conns[1], "")
	agents, err := t.oneEach(kind)
	if err != nil {
		return err
	}
	doors, err := t.requests(ctx)
	if err != nil {
		return err
	}
	var raw, local, remote []time.Duration
	warm, until := time.Now().Add(t.Window/3), time.Now().Add(t.Window/3+2*t.Window)
	missed := func() bool { return len(local) == 0 || len(remote) == 0 && len(t.members) > 1 }
	for i := 0; missed() || time.Now().Before(until); i++ {
		a := agents[i%len(agents)]
		start := time.Now()
		if err := ask(ctx, c, a); err != nil {
			return err
		}
		took := time.Since(start)
		if start.After(until.Add(patience)) {
			return fmt.Errorf("of %d asks, %d met the node that owns its agent, %d another", i, len(local), len(remote))
		}
		before := doors
		if doors, err = t.requests(ctx); err != nil {
			return err
		}
		least, err := bare.turn(ctx, t.members[i%len(t.members)].id)
		if err != nil {
			return err
		}
		if start.Before(warm) {
			continue
		}
		raw = append(raw, least)
		if t.elsewhere(t.places.owner(a.Partition()), before, doors) {
			remote = append(remote, took)
		} else {
			local = append(local, took)
		}
	}
	return t.tellAsks(raw, local, remote)
}

func (t *trial) tellAsks(raw, local, remote []time.Duration) error {
	const least = "a request and the appends of a turn"
	var rows []Row
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		base := t.took(least+" "+q.name, raw, q.at)
		rows = append(rows, base, t.took("ask of an agent at the door's node "+q.name, local, q.at).of(base.Value, least))
		if len(remote) > 0 {
			rows = append(rows, t.took("ask of an agent at another node "+q.name, remote, q.at).of(base.Value, least))
		}
	}
	return t.out.add(rows...)
}

// took is a row of a quantile of times; it sorts them.
func (t *trial) took(figure string, times []time.Duration, at float64) Row {
	slices.Sort(times)
	return t.row(figure, 1, milliseconds(quantile(times, at)), "ms")
}

// oneEach is an agent of a kind for each partition.
func (t *trial) oneEach(kind string) ([]messages.AgentID, error) {
	agents := make([]messages.AgentID, messages.Partitions)
	missing := len(agents)
	for n := 0; missing > 0; n++ {
		a := agentID(n, 0)
		a.Kind = kind
		if p := a.Partition(); agents[p] == (messages.AgentID{}) {
			agents[p] = a
			missing--
		}
	}
	return agents, t.running()
}

// requests is how many prompts have come to each node, as it tells by the protocol
// of NATS services.
func (t *trial) requests(ctx context.Context) (map[string]int, error) {
	counts := make(map[string]int, len(t.members))
	for _, m := range t.members {
		ctx, cancel := context.WithTimeout(ctx, patience)
		answer, err := t.conns[2].RequestWithContext(ctx, "$SRV.STATS.agents."+m.id+"-"+kind, nil)
		cancel()
		if err != nil {
			return nil, errors.Join(t.running(), fmt.Errorf("ask node %s for its statistics: %w", m.id, err))
		}
		var stats micro.Stats
		if err := json.Unmarshal(answer.Data, &stats); err != nil {
			return nil, err
		}
		for _, e := range stats.Endpoints {
			counts[m.id] += e.NumRequests
		}
	}
	return counts, nil
}

// elsewhere says that a prompt came to a node that does not own its agent. The
// server chooses the door; nodes count what came to theirs.
func (t *trial) elsewhere(owner string, before, after map[string]int) bool {
	for id, n := range after {
		if id != owner && n > before[id] {
			return true
		}
	}
	return false
}

// bare does the least that an ask takes.
type bare struct {
	of    *trial
	to    *appender
	leave func()
}

func (t *trial) bare(ctx context.Context) (*bare, error) {
	stream, err := t.beside(ctx)
	if err != nil {
		return nil, err
	}
	ps, leave, err := t.publishers(1)
	if err != nil {
		return nil, err
	}
	b := &bare{of: t, to: t.appenderTo(ps[0], stream, besideSubject), leave: leave}
	last, err := t.js.Stream(ctx, stream)
	if err != nil {
		leave()
		return nil, err
	}
	b.to.fence[0] = fmt.Sprint(last.CachedInfo().State.LastSeq)
	return b, nil
}

// turn sends a request to a node's process, waits for its answer, and appends the
// frames of a turn one after the other.
func (b *bare) turn(ctx context.Context, node string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	start := time.Now()
	if _, err := b.of.conns[1].RequestWithContext(ctx, echoSubject(node), []byte(userInput)); err != nil {
		return 0, fmt.Errorf("a request to the process of node %s: %w", node, err)
	}
	for range perTurn {
		if err := b.to.append(ctx); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

// turns asks many agents at once, one ask each at a time.
func (t *trial) turns(ctx context.Context) error {
	clients := make([]*client.Client, len(t.conns))
	for i, nc := range t.conns {
		clients[i] = client.New(nc, "")
	}
	before, err := t.written(ctx)
	if err != nil {
		return err
	}
	n := t.Others
	asked := make([]int, n)
	got, err := drive(ctx, n, t.Window, 2*t.Window, func(ctx context.Context, w int) (time.Duration, error) {
		a := agentID(w, 1+asked[w]/turnsEach)
		asked[w]++
		start := time.Now()
		err := ask(ctx, clients[w%len(clients)], a)
		return time.Since(start), err
	})
	if err != nil {
		return errors.Join(t.running(), err)
	}
	after, err := t.written(ctx)
	if err != nil {
		return err
	}
	writes := float64(after-before) / float64(max(1, got.all))
	return t.out.add(
		t.row("raw appends", n, t.ceiling.rate, "frames/s"),
		t.row("frames", n, got.rate()*writes, "frames/s").of(t.ceiling.rate, "raw appends"),
		t.row("turns", n, got.rate(), "turns/s"),
		t.row("turn p50", n, got.ms(0.5), "ms"),
		t.row("turn p99", n, got.ms(0.99), "ms"),
	)
}
