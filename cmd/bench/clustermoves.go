package bench

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// leave tells the node with the most partitions to stop while all are asked.
func (t *trial) leave(ctx context.Context) error {
	l, err := t.begin(ctx)
	if err != nil {
		return err
	}
	defer l.end()
	if sleep(ctx, t.Window); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	victim := t.busiest()
	told := time.Now()
	if err := t.dismiss(ctx, victim); err != nil {
		return err
	}
	gone := time.Since(told)
	if err := t.settled(ctx); err != nil {
		return err
	}
	l.end()
	during := l.between(told, time.Now())
	return t.out.add(append(t.pauses("leave", l, told, during), t.row("leave: until it has gone", len(l.agents), milliseconds(gone), "ms"))...)
}

// dismiss has a node stop in order, and waits until its process has ended.
func (t *trial) dismiss(ctx context.Context, m *member) error {
	t.without(m)
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-m.gone:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(serves):
		return fmt.Errorf("node %s was told to stop and still runs after %v; it said: %s", m.id, serves, &m.log)
	}
	if !m.cmd.ProcessState.Success() {
		return fmt.Errorf("node %s did not stop in order (%v); it said: %s", m.id, m.cmd.ProcessState, &m.log)
	}
	return nil
}

// settled waits until partitions are where they stay, and a little longer.
func (t *trial) settled(ctx context.Context) error {
	if err := t.placed(ctx); err != nil {
		return err
	}
	sleep(ctx, t.Window/2)
	return context.Cause(ctx)
}

// pauses are the rows that a leave and a join have in common.
func (t *trial) pauses(what string, l *load, from time.Time, during asks) []Row {
	before := l.between(from.Add(-t.Window), from)
	base := milliseconds(quantile(before.times(), 0.99))
	n := len(l.agents)
	return []Row{
		t.row(what+": ask p99 before", n, base, "ms"),
		t.row(what+": longest ask", n, milliseconds(quantile(during.times(), 1)), "ms").of(base, "ask p99 before"),
		t.row(what+": failed asks", n, float64(during.failed()), "asks"),
		t.row(what+": asks", n, float64(len(during)), "asks"),
	}
}

// join starts a node while all are asked.
func (t *trial) join(ctx context.Context) error {
	if len(t.members) == t.nodes {
		if err := t.dismiss(ctx, t.busiest()); err != nil {
			return err
		}
		if err := t.placed(ctx); err != nil {
			return err
		}
	}
	l, err := t.begin(ctx)
	if err != nil {
		return err
	}
	defer l.end()
	if sleep(ctx, t.Window); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_, moves, err := t.places.share()
	if err != nil {
		return err
	}
	began := time.Now()
	m, err := t.launch(ctx, t.nodes-1)
	if err != nil {
		return err
	}
	serves := time.Since(began)
	t.members = append(t.members, m)
	if err := t.settled(ctx); err != nil {
		return err
	}
	l.end()
	return t.tellJoin(l, m, began, serves, t.places.since(moves))
}

func (t *trial) tellJoin(l *load, m *member, began time.Time, serves time.Duration, moves []move) error {
	n := len(l.agents)
	var moved []messages.Partition
	last := time.Duration(0)
	for _, mv := range moves {
		if mv.to == m.id {
			moved = append(moved, mv.partition)
		}
		last = max(last, mv.at.Sub(began))
	}
	have, _, err := t.places.share()
	if err != nil {
		return err
	}
	if len(moved) == 0 {
		t.tell("no partition moved to the node that joined: there is no pause of one to tell of")
	}
	during := l.between(began, time.Now())
	pauses := during.of(moved).longest()
	return t.out.add(append(t.pauses("join", l, began, during),
		t.row("join: from its start until it serves", n, milliseconds(serves), "ms"),
		t.row("join: from its start until the last move", n, milliseconds(last), "ms"),
		t.row("join: partitions that moved to it", n, float64(len(moved)), "partitions"),
		t.row("join: partitions of the smallest share", n, float64(t.smallest(have)), "partitions"),
		t.row("moved partition: longest ask p50", n, milliseconds(quantile(pauses, 0.5)), "ms"),
		t.row("moved partition: longest ask", n, milliseconds(quantile(pauses, 1)), "ms"),
	)...)
}

// smallest is how many partitions the node has that has the fewest.
func (t *trial) smallest(have map[string]int) int {
	least := messages.Partitions
	for _, m := range t.members {
		least = min(least, have[m.id])
	}
	return least
}
