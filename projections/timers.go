package projections

import (
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// Timers is the inputs that are to reach an agent later. The zero value has none.
type Timers struct {
	list []timer
}

type timer struct {
	messages.Timer
	input messages.TimedInput
}

// Apply folds event number n.
func (t *Timers) Apply(n messages.EventNumber, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.TimerSet:
		if ev.Turn == "" && ev.For == messages.ForInput {
			t.set(n, ev)
		}
	case messages.TimerFired:
		if i := t.find(ev.Turn, ev.Timer); i >= 0 && t.list[i].Cron == "" {
			t.list = slices.Delete(t.list, i, i+1)
		}
	case messages.TimerCancelled:
		if i := t.find(ev.Turn, ev.Timer); i >= 0 {
			t.list = slices.Delete(t.list, i, i+1)
		}
	case messages.AgentCleared, messages.AgentDeleted:
		t.list = nil
	}
}

func (t *Timers) find(turn messages.TurnID, id string) int {
	return slices.IndexFunc(t.list, func(x timer) bool { return turn == "" && x.Timer.Timer == id })
}

func (t *Timers) set(n messages.EventNumber, ev messages.TimerSet) {
	x := timer{Timer: messages.Timer{Timer: ev.Timer, Next: ev.At, Cron: ev.Cron, Zone: ev.Zone, N: n, Set: ev.Set}}
	i := t.find("", ev.Timer)
	switch {
	case ev.Input != nil:
		x.input = *ev.Input
	case i >= 0:
		x.input = t.list[i].input
	}
	x.Input, x.Policy, x.Text = x.input.ID, x.input.Policy, contentText(x.input.Content)
	if i >= 0 {
		t.list[i] = x
		return
	}
	t.list = append(t.list, x)
}

// Lines is the timers of agent a, those that come first before the others.
func (t *Timers) Lines(a messages.AgentID) []messages.Timer {
	lines := make([]messages.Timer, len(t.list))
	for i := range t.list {
		lines[i] = t.list[i].Timer
		lines[i].Agent = a
	}
	slices.SortStableFunc(lines, func(x, y messages.Timer) int { return x.Next.Compare(y.Next) })
	return lines
}
