//go:build unix

package chaos

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/clustertest"
)

// What is promised: that a node's agents continue elsewhere, by when a node is given up that
// hangs (docs/operate/scale.md), and an election of the NATS servers at its longest
// (docs/decisions/0014-nats.md). A run holds ten times that.
const (
	failover = time.Second
	hang     = 3 * time.Second
	election = 9 * time.Second
	tenfold  = 10
)

// pause is a time in which the log has nothing of an agent that had work and waited for
// no one, or nothing of any agent.
type pause struct {
	agent    string // empty: of any
	from, to time.Time
}

func (p pause) lasts() time.Duration { return p.to.Sub(p.from) }

func (p pause) String() string {
	return fmt.Sprintf("%s: %s from %s", cmp.Or(p.agent, "all agents"), p.lasts().Round(time.Millisecond), p.from.Format(time.StampMilli))
}

// outage is a time in which agents could not work by the test's own doing.
type outage struct {
	from, to time.Time
	// What the outage is of: servers were harmed, there was no node, a tool was held, or a
	// node hung.
	servers, alone, held, hangs bool
}

// within is how much of a pause an outage took.
func (o outage) within(p pause) time.Duration {
	from, to := o.from, o.to
	if p.from.After(from) {
		from = p.from
	}
	if p.to.Before(to) {
		to = p.to
	}
	return max(0, to.Sub(from))
}

// allowed is how long a pause may be at most: ten times a failover, what outages took of it,
// and once, for the worst of these, ten times what it takes to continue after it.
func (p pause) allowed(outages []outage, elections bool) time.Duration {
	limit, after := tenfold*failover, time.Duration(0)
	for _, o := range outages {
		took := o.within(p)
		if took == 0 {
			continue
		}
		if o.servers || o.alone || o.held && p.agent != "" {
			limit += took
		}
		switch {
		case o.servers && elections:
			after = max(after, tenfold*(failover+election))
		case o.servers:
			after = max(after, tenfold*failover)
		}
		if o.hangs {
			after = max(after, tenfold*hang)
		}
	}
	return limit + after
}

// late are the pauses that were longer than is allowed.
func (f figures) late(outages []outage, elections bool) (all []pause) {
	for _, p := range f.long {
		if p.lasts() > p.allowed(outages, elections) {
			all = append(all, p)
		}
	}
	return all
}

// punctual holds that no pause was longer than is allowed. A run in which the machine stood
// still is not judged: its nodes were given up for that.
func (w *world) punctual(f figures, outages []outage, elections bool) {
	late := f.late(outages, elections)
	if n := clustertest.StoodStill() - w.stood; n > 0 {
		w.t.Logf("pauses are not judged, for the machine stood still %d times; too long were %v", n, late)
		return
	}
	for _, p := range late {
		w.t.Errorf("seed %d: nothing happened to %s, more than %s", *seed, p, p.allowed(outages, elections).Round(time.Millisecond))
	}
}

// pausing finds an agent's pauses.
type pausing struct {
	open, waits map[string]bool // its inputs; who it waits for
	last        time.Time
}

// add takes in the next event and returns the time before it, if that is a pause.
func (p *pausing) add(ev client.Event) (before pause, is bool) {
	before, is = pause{from: p.last, to: ev.At}, len(p.open) > 0 && len(p.waits) == 0
	p.last = ev.At
	f := field(ev)
	switch ev.Type {
	case "input.accepted":
		p.open[f.Input] = true
	case "agent.forked", "agent.imported":
		if ev.Turn != "" { // the turn of its source, whose calls wait for a person
			p.waits[ev.Type] = true
		}
	case "approval.requested", "tool.unknown", "child.spawned":
		p.waits[string(f.Call)] = true
	case "approval.granted", "approval.denied", "tool.started", "tool.completed", "tool.failed", "tool.denied", "tool.skipped":
		delete(p.waits, string(f.Call))
	case "turn.completed", "turn.failed", "turn.aborted":
		clear(p.waits)
	}
	for _, id := range endedBy(ev) {
		delete(p.open, id)
	}
	return before, is
}

// outages are the times without a node that was ready.
func (w *single) outages() (all []outage) {
	var from time.Time
	for _, l := range w.lives {
		select {
		case <-l.ready:
			if !from.IsZero() {
				all = append(all, outage{from: from, to: l.since, alone: true})
			}
			from = l.ended
		default: // killed before: still without
		}
	}
	return all
}

// TestPausesBite holds that a pause is found too long if it is, and only then.
func TestPausesBite(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	event := func(seconds int, eventType, data string) client.Event {
		return client.Event{At: at(seconds), Type: eventType, Data: []byte(data)}
	}
	works := func(end int) []client.Event {
		return []client.Event{event(0, "input.accepted", `{"input":"i"}`), event(1, "turn.started", `{}`), event(end, "turn.completed", `{"inputs":["i"]}`)}
	}
	waits := []client.Event{works(0)[0], event(1, "approval.requested", `{"call":"c"}`), event(30, "approval.granted", `{"call":"c"}`), works(31)[2]}
	forked := append([]client.Event{{At: at(0), Type: "agent.forked", Turn: "t1"}}, works(30)...)
	busy := make([]client.Event, 60) // another agent, so that not all are paused
	for i := range busy {
		busy[i] = event(i, "state.patched", `{}`)
	}
	var round []outage // a short one every few seconds
	for i := range 10 {
		round = append(round, outage{from: at(6 * i), to: at(6*i + 1), servers: true})
	}
	for name, c := range map[string]struct {
		log       []client.Event
		others    []client.Event
		outages   []outage
		elections bool
		want      string
	}{
		"short":                    {works(11), busy, nil, false, ""},
		"long":                     {works(12), busy, nil, false, "default/worker/a"},
		"behind the load":          {works(70), busy, nil, false, "default/worker/a"},
		"a person":                 {waits, busy, nil, false, ""},
		"a turn of the source":     {forked, busy, nil, false, ""},
		"all":                      {waits, nil, nil, false, "all agents"},
		"no servers meanwhile":     {works(22), busy, []outage{{from: at(3), to: at(4), servers: true}}, false, ""},
		"no servers, but too long": {works(23), busy, []outage{{from: at(3), to: at(4), servers: true}}, false, "default/worker/a"},
		"no servers before it":     {works(12), busy, []outage{{from: at(-40), to: at(1), servers: true}}, false, "default/worker/a"},
		"no servers at its end":    {works(23), busy, []outage{{from: at(22), to: at(40), servers: true}}, false, "default/worker/a"},
		"no node meanwhile":        {works(12), busy, []outage{{from: at(3), to: at(4), alone: true}}, false, ""},
		"no node, but too long":    {works(13), busy, []outage{{from: at(3), to: at(4), alone: true}}, false, "default/worker/a"},
		"an election":              {works(70), busy, []outage{{from: at(3), to: at(4), servers: true}}, true, ""},
		"a held tool":              {works(12), busy, []outage{{from: at(3), to: at(4), held: true}}, true, ""},
		"all, and a held tool":     {waits, nil, []outage{{from: at(3), to: at(29), held: true}}, true, "all agents"},
		"many outages":             {works(40), busy, round, false, "default/worker/a"},
		"a node hangs":             {works(41), busy, []outage{{from: at(3), to: at(4), hangs: true}}, false, ""},
		"a node hangs, too long":   {works(42), busy, []outage{{from: at(3), to: at(4), hangs: true}}, false, "default/worker/a"},
		"a node hung before":       {works(12), busy, []outage{{from: at(-3), to: at(1), hangs: true}}, false, "default/worker/a"},
		"a fault of nodes":         {works(12), busy, []outage{{from: at(3), to: at(40)}}, true, "default/worker/a"},
	} {
		t.Run(name, func(t *testing.T) {
			logs := map[string][]client.Event{"default/worker/a": c.log, "default/worker/b": c.others}
			found := fmt.Sprint(figure(logs, nil, at(60)).late(c.outages, c.elections))
			if c.want == "" && found != "[]" || !strings.Contains(found, c.want) {
				t.Errorf("want %q, found %s", c.want, found)
			}
		})
	}
}
