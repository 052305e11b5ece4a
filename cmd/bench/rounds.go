package bench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"time"
)

// plan is the work of one measurement: rounds of Agents new agents that do Turns
// turns each, AtOnce of them at a time, until the rounds together have taken
// Window. It is at least one round.
type plan struct {
	AtOnce, Agents, Turns int
	Window                time.Duration
}

// warmUp is the round before a measurement.
func (p plan) warmUp() plan {
	p.Agents, p.Window = max(1, warmTurns/p.Turns), 0
	return p
}

// worked is what was done for a plan.
type worked struct {
	Window    time.Duration   // of all rounds
	CPU       time.Duration   // of the process that did it
	Latencies []time.Duration // of all turns
}

// starter returns what does one turn of an agent, and what ends the agent.
type starter func(agent int) (turn func(context.Context) error, done func(), err error)

// asker does the turns of plans, with new agents for each.
type asker struct {
	start starter
	next  int // the number of the next agent
}

// do does the work of a plan.
func (a *asker) do(ctx context.Context, p plan) (worked, error) {
	var sum worked
	for first := true; first || sum.Window < p.Window; first = false {
		w, err := a.round(ctx, p)
		if err != nil {
			return sum, err
		}
		sum.Window, sum.CPU, sum.Latencies = sum.Window+w.Window, sum.CPU+w.CPU, append(sum.Latencies, w.Latencies...)
	}
	return sum, nil
}

func (a *asker) round(ctx context.Context, p plan) (worked, error) {
	took := make([]time.Duration, p.Agents*p.Turns)
	first, taken := a.next, atomic.Int64{}
	a.next += p.Agents
	begin, cpu := time.Now(), cpuTime()
	err := crowd(ctx, p.AtOnce, func(ctx context.Context) (more bool, err error) {
		i := int(taken.Add(1)) - 1
		if i >= p.Agents {
			return false, nil
		}
		return true, a.life(ctx, first+i, took[i*p.Turns:(i+1)*p.Turns])
	})
	return worked{time.Since(begin), cpuTime() - cpu, took}, err
}

// life does the turns of one agent and notes how long each took.
func (a *asker) life(ctx context.Context, agent int, took []time.Duration) error {
	turn, done, err := a.start(agent)
	if err != nil {
		return err
	}
	defer done()
	for i := range took {
		asked := time.Now()
		if err := turn(ctx); err != nil {
			return err
		}
		took[i] = time.Since(asked)
	}
	return nil
}

// measured warms up, then does the work of a plan.
func measured(ctx context.Context, p plan, do func(context.Context, plan) (worked, error)) (tally, error) {
	warm, err := do(ctx, p.warmUp())
	if err != nil {
		return tally{}, err
	}
	w, err := do(ctx, p)
	slices.Sort(w.Latencies)
	done := len(w.Latencies)
	return tally{window: w.Window, done: done, all: done + len(warm.Latencies), cpu: w.CPU, latencies: w.Latencies}, err
}

// target is what the turns of a child process are asked of.
type target struct {
	URL    string
	Stream bool   // answers of the model are streamed
	Dir    string // for files of the process
}

// serveAsker reads a target and does the work of each plan that it reads then,
// until in ends.
func serveAsker(ctx context.Context, in io.Reader, out io.Writer, open func(target) (starter, func(), error)) error {
	orders := json.NewDecoder(in)
	var t target
	if err := orders.Decode(&t); err != nil {
		return ignoreEOF(err)
	}
	start, done, err := open(t)
	if err != nil {
		return err
	}
	defer done()
	a, answers := asker{start: start}, json.NewEncoder(out)
	for {
		var p plan
		if err := orders.Decode(&p); err != nil {
			return ignoreEOF(err)
		}
		w, err := a.do(ctx, p)
		if err == nil {
			err = answers.Encode(w)
		}
		if err != nil {
			return err
		}
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// remote measures turns that a child process does. cpu returns the CPU time that
// counts as theirs; nil: that of the child.
func (l *lab) remote(ctx context.Context, name string, t target, p plan, cpu func() time.Duration) (got tally, err error) {
	c, err := l.child(ctx, name)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	if err := c.to.Encode(t); err != nil {
		return got, c.failed(err)
	}
	return measured(ctx, p, func(_ context.Context, p plan) (w worked, err error) {
		if cpu == nil {
			return w, c.ask(p, &w)
		}
		before := cpu()
		err = c.ask(p, &w)
		w.CPU = cpu() - before
		return w, err
	})
}
