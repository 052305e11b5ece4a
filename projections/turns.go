package projections

import (
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Phase is what a turn is doing, or how it ended.
type Phase string

// The phases of a turn. Completed, Failed and Aborted are final.
const (
	Running   Phase = "running"
	Paused    Phase = "paused" // waits for a person
	Completed Phase = "completed"
	Failed    Phase = "failed"
	Aborted   Phase = "aborted"
)

// Turn is one turn as of the newest event.
type Turn struct {
	Turn   messages.TurnID `json:"turn"`
	Inputs []string        `json:"inputs,omitempty"`
	Phase  Phase           `json:"phase"`
	// Reason says why it is paused, failed or aborted.
	Reason string `json:"reason,omitempty"`
	// Continues is the failed turn that this one goes on from.
	Continues messages.TurnID      `json:"continues,omitempty"`
	Started   messages.EventNumber `json:"started"`
	StartedAt time.Time            `json:"started_at,omitzero"`
	// Ended is its terminal event; 0 while it has none.
	Ended   messages.EventNumber `json:"ended,omitempty"`
	EndedAt time.Time            `json:"ended_at,omitzero"`
	// Steps is the number of the newest model call, those of the turn that it
	// continues included.
	Steps int `json:"steps"`
	// Usage is the sum over this turn's own model calls, failed ones included.
	Usage messages.Usage `json:"usage"`
}

// Turns lists an agent's turns. The zero value has none.
type Turns struct {
	turns []Turn // as they started
	at    time.Time
}

// At says when the events that are applied next were recorded.
func (t *Turns) At(at time.Time) { t.at = at.UTC() }

// Apply folds event number n. What is said of a turn that never started
// changes nothing, and the first terminal event of a turn is its last word.
func (t *Turns) Apply(n messages.EventNumber, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.TurnStarted:
		if t.find(ev.Turn) == nil {
			t.turns = append(t.turns, Turn{Turn: ev.Turn, Inputs: ev.Inputs, Phase: Running, Continues: ev.Continues,
				Started: n, StartedAt: t.at, Steps: ev.Steps})
		}
	case messages.TurnPaused:
		t.phase(ev.Turn, Paused, ev.Reason)
	case messages.TurnResumed:
		t.phase(ev.Turn, Running, "")
	case messages.TurnCompleted:
		t.end(n, ev.Turn, Completed, "", ev.Steps)
	case messages.TurnFailed:
		t.end(n, ev.Turn, Failed, ev.Reason, ev.Steps)
	case messages.TurnAborted:
		t.end(n, ev.Turn, Aborted, ev.Reason, ev.Steps)
	case messages.ModelRequested:
		if turn := t.find(ev.Turn); turn != nil {
			turn.Steps = max(turn.Steps, ev.Step)
		}
	case messages.ModelCompleted:
		t.spent(ev.Turn, ev.Usage)
	case messages.ModelFailed:
		t.spent(ev.Turn, ev.Usage)
	}
}

// find looks from the newest turn back: it is nearly always the one.
func (t *Turns) find(id messages.TurnID) *Turn {
	for i := len(t.turns) - 1; i >= 0; i-- {
		if t.turns[i].Turn == id {
			return &t.turns[i]
		}
	}
	return nil
}

func (t *Turns) phase(id messages.TurnID, p Phase, reason string) {
	if turn := t.find(id); turn != nil && turn.Ended == 0 {
		turn.Phase, turn.Reason = p, reason
	}
}

func (t *Turns) end(n messages.EventNumber, id messages.TurnID, p Phase, reason string, steps int) {
	if turn := t.find(id); turn != nil && turn.Ended == 0 {
		turn.Phase, turn.Reason, turn.Steps = p, reason, steps
		turn.Ended, turn.EndedAt = n, t.at
	}
}

func (t *Turns) spent(id messages.TurnID, u messages.Usage) {
	if turn := t.find(id); turn != nil {
		turn.Usage = turn.Usage.Add(u)
	}
}

// Turn is the turn with this id.
func (t *Turns) Turn(id messages.TurnID) (Turn, bool) {
	if turn := t.find(id); turn != nil {
		return turn.clone(), true
	}
	return Turn{}, false
}

// Newest is the turn that started last; false if none has.
func (t *Turns) Newest() (Turn, bool) {
	if len(t.turns) == 0 {
		return Turn{}, false
	}
	return t.turns[len(t.turns)-1].clone(), true
}

// List is every turn, oldest first.
func (t *Turns) List() []Turn {
	list := make([]Turn, len(t.turns))
	for i := range t.turns {
		list[i] = t.turns[i].clone()
	}
	return list
}

func (t *Turn) clone() Turn {
	c := *t
	c.Inputs = slices.Clone(t.Inputs)
	return c
}
