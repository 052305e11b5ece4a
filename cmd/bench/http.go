package bench

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/openai"
)

// The work of the figure http: agents of a few turns each, so many at once.
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
	loop, err := c.fileLoop(ctx, c.url(), c.stream, c.plan())
	if err != nil {
		return err
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
	return c.out.add(c.rows(loop, got, raw.rate(), store, client, server)...)
}

func (c contest) rows(loop, got tally, raw, store, client, server float64) []Row {
	how := ", whole answers"
	if c.stream {
		how = ", streamed"
	}
	row := func(figure string, value float64, unit string) Row {
		return Row{Figure: figure + how, Agents: c.n, Sync: c.store.sync, Value: value, Unit: unit}
	}
	return []Row{
		row("loop with fsync: turns", loop.rate(), "turns/s"),
		row("turns", got.rate(), "turns/s").of(loop.rate(), "loop with fsync"),
		row("aim: 0.7 of raw appends / 4", 0.7*raw/perTurn, "turns/s"),
		row("loop with fsync: p50", loop.ms(0.5), "ms"),
		row("loop with fsync: p99", loop.ms(0.99), "ms"),
		row("turn p50", got.ms(0.5), "ms"),
		row("turn p99", got.ms(0.99), "ms"),
		row("loop with fsync: CPU per 1,000 turns", loop.cpuPer(1000), "s"),
		row("CPU per 1,000 turns", got.cpuPer(1000), "s").of(loop.cpuPer(1000), "loop with fsync"),
		row("of it store", store, "s"),
		row("of it HTTP client", client, "s"),
		row("of it runtime", max(0, got.cpuPer(1000)-store-client), "s"),
		row("model server's own CPU per 1,000 turns", server, "s"),
	}
}

// plan is the work of a contest.
func (c contest) plan() plan {
	p := plan{AtOnce: c.n, Agents: 128, Turns: turnsHTTP, Window: c.Window}
	if c.n == 1 {
		p.Agents = 40
	}
	return p
}

// runtime does turns on a node.
func (c contest) runtime(ctx context.Context) (got tally, err error) {
	if err := c.store.emptied(ctx); err != nil {
		return got, err
	}
	node, err := c.store.node(ctx, c.provider())
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	a := asker{start: func(agent int) (turn func(context.Context) error, done func(), err error) {
		id := agentID(agent, 0)
		return func(ctx context.Context) error { return ask(ctx, node.Client(), id) }, func() {}, nil
	}}
	return measured(ctx, c.plan(), a.do)
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
