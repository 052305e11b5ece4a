package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/openai"
)

// The plan of peers-performance.md: agents of a few turns each, so many at once.
var (
	atOnce    = []int{1, 16, 128}
	turnsHTTP = 4
	warmTurns = 100
)

// http measures turns whose model is a server in a process of its own.
func (l *lab) http(ctx context.Context) (err error) {
	m, err := l.startModel(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.stop()) }()
	return l.each(ctx, func(ctx context.Context, s *store) error {
		for _, stream := range []bool{false, true} {
			for _, n := range atOnce {
				c := contest{lab: l, store: s, model: m, n: n, stream: stream}
				if err := c.run(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// contest is one number of agents at once, with answers streamed or whole.
type contest struct {
	*lab
	store  *store
	model  *model
	n      int
	stream bool
}

func (c contest) url() string {
	if c.stream {
		return c.model.Stream
	}
	return c.model.Whole
}

func (c contest) provider() providers.Provider {
	return openai.New("", openai.BaseURL(c.url()), openai.Name("bench"))
}

// run measures the runtime and all that it is compared with.
func (c contest) run(ctx context.Context) error {
	c.say("sync %s, %d at once, streamed %v: turns over HTTP", c.store.sync, c.n, c.stream)
	floor, err := c.floor(ctx)
	if err != nil {
		return fmt.Errorf("the bare loop: %w", err)
	}
	raw, err := c.store.raw(ctx, c.n, c.Window/2)
	if err != nil {
		return err
	}
	modelBefore, err := c.model.cpu()
	if err != nil {
		return err
	}
	got, err := c.runtime(ctx)
	if err != nil {
		return err
	}
	modelAfter, err := c.model.cpu()
	if err != nil {
		return err
	}
	paced, err := c.store.rawPaced(ctx, c.n, c.Window/2, got.rate())
	if err != nil {
		return err
	}
	calls, err := c.calls(ctx)
	if err != nil {
		return err
	}
	store, client := paced.cpuPer(perTurn*1000), calls.cpuPer(1000)
	server := (modelAfter - modelBefore).Seconds() * 1000 / float64(max(1, got.all))
	return c.out.add(c.rows(floor, got, raw.rate(), store, client, server)...)
}

func (c contest) rows(floor, got tally, raw, store, client, server float64) []Row {
	how := ", whole answers"
	if c.stream {
		how = ", streamed"
	}
	row := func(figure string, value float64, unit string) Row {
		return Row{Figure: figure + how, Agents: c.n, Sync: c.store.sync, Value: value, Unit: unit}
	}
	return []Row{
		row("loop with fsync: turns", floor.rate(), "turns/s"),
		row("turns", got.rate(), "turns/s").of(floor.rate(), "loop with fsync"),
		row("aim: 0.7 of raw appends / 4", 0.7*raw/perTurn, "turns/s"),
		row("loop with fsync: p50", floor.ms(0.5), "ms"),
		row("loop with fsync: p99", floor.ms(0.99), "ms"),
		row("turn p50", got.ms(0.5), "ms"),
		row("turn p99", got.ms(0.99), "ms"),
		row("loop with fsync: CPU per 1,000 turns", floor.cpuPer(1000), "s"),
		row("CPU per 1,000 turns", got.cpuPer(1000), "s").of(floor.cpuPer(1000), "loop with fsync"),
		row("of it store", store, "s"),
		row("of it HTTP client", client, "s"),
		row("of it runtime", max(0, got.cpuPer(1000)-store-client), "s"),
		row("model server's own CPU per 1,000 turns", server, "s"),
	}
}

// runtime does rounds of turns on a node.
func (c contest) runtime(ctx context.Context) (got tally, err error) {
	if err := c.store.emptied(ctx); err != nil {
		return got, err
	}
	node, err := c.store.node(ctx, c.provider())
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	return c.rounds(ctx, func(agent int) (turn func(context.Context) error, done func(), err error) {
		a := agentID(agent, 0)
		return func(ctx context.Context) error { return ask(ctx, node.Client(), a) }, func() {}, nil
	})
}

// floor does the same rounds with a bare loop.
func (c contest) floor(ctx context.Context) (tally, error) {
	dir, err := os.MkdirTemp(c.dir, "floor-")
	if err != nil {
		return tally{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // with the whole folder at the latest
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 256
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	return c.rounds(ctx, func(agent int) (func(context.Context) error, func(), error) {
		file, err := os.Create(filepath.Join(dir, agentID(agent, 0).Key))
		if err != nil {
			return nil, nil, err
		}
		f := &floor{file: file, client: client, url: c.url(), stream: c.stream}
		return f.turn, func() { _ = file.Close() }, nil // every line was synced
	})
}

// starter makes what does the turns of an agent, and what ends it.
type starter func(agent int) (turn func(context.Context) error, done func(), err error)

// rounds warms up, then lets so many agents do their turns, workers taking one
// agent after the other, again and again with new agents until a window is
// full.
func (c contest) rounds(ctx context.Context, start starter) (tally, error) {
	agents := 128
	if c.n == 1 {
		agents = 40
	}
	var sum tally
	next := 0
	if _, err := c.round(ctx, start, &next, max(1, warmTurns/turnsHTTP)); err != nil {
		return sum, err
	}
	for sum.window == 0 || sum.window < c.Window {
		t, err := c.round(ctx, start, &next, agents)
		if err != nil {
			return sum, err
		}
		sum.window, sum.cpu, sum.done = sum.window+t.window, sum.cpu+t.cpu, sum.done+t.done
		sum.latencies = append(sum.latencies, t.latencies...)
	}
	sum.all = sum.done + max(1, warmTurns/turnsHTTP)*turnsHTTP
	slices.Sort(sum.latencies)
	return sum, nil
}

// round lets agents, numbered from next on, do their turns.
func (c contest) round(ctx context.Context, start starter, next *int, agents int) (tally, error) {
	took := make([]time.Duration, agents*turnsHTTP)
	first, taken := *next, atomic.Int64{}
	*next += agents
	begin, cpu := time.Now(), cpuTime()
	err := crowd(ctx, c.n, func(ctx context.Context) (more bool, err error) {
		i := int(taken.Add(1)) - 1
		if i >= agents {
			return false, nil
		}
		turn, done, err := start(first + i)
		if err != nil {
			return false, err
		}
		defer done()
		for k := range turnsHTTP {
			asked := time.Now()
			if err := turn(ctx); err != nil {
				return false, err
			}
			took[i*turnsHTTP+k] = time.Since(asked)
		}
		return true, nil
	})
	return tally{window: time.Since(begin), cpu: cpuTime() - cpu, done: len(took), latencies: took}, err
}

// calls makes the two model calls of a turn and nothing else, through the same
// adapter.
func (c contest) calls(ctx context.Context) (tally, error) {
	p := c.provider()
	spec := echo.Spec()
	req := providers.Request{
		Model: "two", Instructions: instructions,
		Tools: []providers.ToolSpec{{Name: spec.Name, Description: spec.Description, Parameters: spec.Parameters}},
		Items: []messages.Item{messages.Text(messages.RoleUser, userInput)},
	}
	return drive(ctx, c.n, c.Window/5, c.Window/2, func(ctx context.Context, worker int) (time.Duration, error) {
		start := time.Now()
		req := req
		req.Agent, req.Call = agentID(worker, 0), "m1"
		resp, err := p.Generate(ctx, req, nil)
		if err != nil {
			return 0, err
		}
		for _, item := range resp.Items {
			result := messages.Item{Type: messages.ItemCallOutput, CallID: item.CallID, Output: "hi"}
			req.Items = append(slices.Clip(req.Items), item, result)
		}
		_, err = p.Generate(ctx, req, nil)
		return time.Since(start), err
	})
}
