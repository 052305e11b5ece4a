//go:build unix

package chaos

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// progress counts acknowledgements of inputs and events that readers were shown.
func (b *book) progress() (acks, facts int) {
	b.Lock()
	defer b.Unlock()
	return b.acks, b.facts
}

// refusedWrite is what a node logs when the log refuses a frame of it, not when it finds at
// the load of an agent that another node owns it.
const refusedWrite = "a write was refused: another node owns the agent"

// fenced counts the writes that the fence refused, as the nodes have logged them.
func (c *cluster) fenced() (n int) {
	logs, _ := filepath.Glob(filepath.Join(c.dir, "node-*.log")) // a good pattern
	for _, path := range logs {
		b, err := os.ReadFile(path)
		if err != nil {
			c.t.Error(err)
		}
		n += bytes.Count(b, []byte(refusedWrite))
	}
	return n
}

// figures are what a run comes to.
type figures struct {
	lost, doubled, turns int
	// cluster is the longest pause of all agents, agent that of a single one, and long are
	// the pauses that are allowed only where the test itself is the cause.
	cluster, agent pause
	long           []pause
}

// paused takes in a pause; longest is the one so far.
func (f *figures) paused(p pause, longest *pause) {
	if p.lasts() > longest.lasts() {
		*longest = p
	}
	if p.lasts() > tenfold*failover {
		f.long = append(f.long, p)
	}
}

// figure reckons from the logs of agents, or of what was shown of them.
func figure(logs map[string][]client.Event, sent map[string]*sent, until time.Time) (f figures) {
	var at []time.Time
	taken := make(map[string]int)
	for agent, log := range logs {
		pauses := pausing{waits: make(map[string]bool), open: make(map[string]bool)}
		for _, ev := range log {
			if strings.HasPrefix(ev.Type, "turn.") && len(endedBy(ev)) > 0 {
				f.turns++
			}
			if ev.Type == "input.accepted" {
				taken[field(ev).Input]++
			}
			if p, is := pauses.add(ev); is {
				p.agent = agent
				f.paused(p, &f.agent)
			}
			if !ev.At.After(until) { // then the load is over, and not all need have work
				at = append(at, ev.At)
			}
		}
	}
	for id, s := range sent {
		switch {
		case s.Command != "input":
		case s.owed() && taken[id] == 0:
			f.lost++
		case taken[id] > 1:
			f.doubled++
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	for i := range max(0, len(at)-1) {
		f.paused(pause{from: at[i], to: at[i+1]}, &f.cluster)
	}
	return f
}

// table shows what has come of the run so far, of which logs are what is known.
func (c *cluster) table(logs map[string][]client.Event, until time.Time) string {
	var b strings.Builder
	row := func(what string, n any) { fmt.Fprintf(&b, "  %-26s %v\n", what, n) }
	all := 0
	for _, f := range faults {
		if n := c.counts[f.name]; n > 0 {
			row("fault: "+f.name, n)
			all += n
		}
	}
	c.book.Lock()
	sent, acks, again, open := maps.Clone(c.book.sent), c.book.acks, c.book.again, len(c.book.open)
	c.book.Unlock()
	f := figure(logs, sent, until)
	row("faults", all)
	row("inputs acknowledged", fmt.Sprintf("%d, and %d once more", acks, again))
	row("of them open", open)
	row("lost, or not yet seen", max(0, f.lost-open))
	row("doubled", f.doubled)
	row("turns finished", f.turns)
	row("worst pause, cluster", f.cluster)
	row("worst pause, agent", f.agent)
	row("writes refused", c.fenced())
	row("partitions moved", c.at.Moves())
	row("model calls", c.asked.Load())
	c.effects(row)
	return b.String()
}

// effects lists for each tool what it did, and what they did once more.
func (c *cluster) effects(row func(string, any)) {
	ledger, err := readLedger(c.ledger())
	if err != nil {
		c.t.Error(err)
	}
	ran, done := make(map[string]map[string]int), make(map[string]map[string]int)
	for _, e := range ledger {
		by := ran
		if e.What == "effect" {
			by = done
		}
		if by[e.Tool] == nil {
			by[e.Tool] = make(map[string]int)
		}
		by[e.Tool][e.Key]++
	}
	for _, tool := range slices.Sorted(maps.Keys(ran)) {
		row("tool "+tool, fmt.Sprintf("%d calls, %d ran more than once, %d effects, %d doubled",
			len(ran[tool]), repeated(ran[tool]), len(done[tool]), repeated(done[tool])))
	}
}

func repeated(by map[string]int) (n int) {
	for _, times := range by {
		if times > 1 {
			n++
		}
	}
	return n
}

// known are the events that readers were shown, by agent and in order, but for those of branches.
func (b *book) known() map[string][]client.Event {
	b.Lock()
	defer b.Unlock()
	logs := make(map[string][]client.Event)
	for agent, shown := range b.shown {
		if b.branches[agent] != nil {
			continue
		}
		for _, n := range slices.Sorted(maps.Keys(shown)) {
			if n == messages.EventNumber(len(logs[agent])+1) {
				logs[agent] = append(logs[agent], shown[n])
			}
		}
	}
	return logs
}
