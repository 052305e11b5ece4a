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
	// Message is the same for a person; of a paused turn, with what to do.
	Message string `json:"message,omitempty"`
	// Kind and Status are those of the model's failure, where Reason is model.
	Kind   string `json:"kind,omitempty"`
	Status int    `json:"status,omitempty"`
	// Finish is that of turn.completed.
	Finish string `json:"finish,omitempty"`
	// By is the command that aborted it.
	By string `json:"by,omitempty"`
	// Calls are those that a paused turn waits for.
	Calls []messages.CallID `json:"calls,omitempty"`
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
	// Limits bound it; zero values are no limit.
	Limits messages.Limits `json:"limits,omitzero"`
	// Usage and Cost are sums over this turn's own model calls, failed ones
	// included.
	Usage messages.Usage `json:"usage"`
	Cost  messages.Cost  `json:"cost_nanos,omitempty"`
	// Cleared says that the agent was cleared since: its history and state know
	// nothing of the turn.
	Cleared bool `json:"cleared,omitempty"`
}

// Turns lists an agent's turns, those before it was cleared included. The zero
// value has none.
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
			t.turns = append(t.turns, Turn{Turn: ev.Turn, Inputs: slices.Clone(ev.Inputs), Phase: Running, Continues: ev.Continues,
				Started: n, StartedAt: t.at, Steps: ev.Steps, Limits: ev.Limits.Raise(messages.Limits{MaxSteps: ev.MaxSteps})})
		}
	case messages.TurnPaused:
		t.phase(ev.Turn, Turn{Phase: Paused, Reason: ev.Reason, Message: ev.Message, Calls: ev.Calls})
	case messages.TurnResumed:
		t.phase(ev.Turn, Turn{Phase: Running})
		t.raise(ev.Turn, messages.Limits{MaxSteps: ev.MaxSteps})
	case messages.BudgetRaised:
		if ev.Scope != "agent" {
			t.raise(ev.Turn, ev.Limits)
		}
	case messages.TurnCompleted:
		t.end(n, ev.Turn, ev.Inputs, Turn{Phase: Completed, Finish: ev.Finish, Steps: ev.Steps})
	case messages.TurnFailed:
		t.end(n, ev.Turn, ev.Inputs, Turn{Phase: Failed, Reason: ev.Reason, Kind: ev.Kind, Status: ev.Status, Message: ev.Message, Steps: ev.Steps})
	case messages.TurnAborted:
		t.end(n, ev.Turn, ev.Inputs, Turn{Phase: Aborted, Reason: ev.Reason, By: ev.By, Steps: ev.Steps})
	case messages.ModelRequested:
		if turn := t.find(ev.Turn); turn != nil && turn.Ended == 0 {
			turn.Steps = max(turn.Steps, ev.Step)
			turn.take(ev.Inputs)
		}
	case messages.ModelCompleted:
		t.spent(ev.Turn, ev.Usage, ev.Cost)
	case messages.ModelFailed:
		t.spent(ev.Turn, ev.Usage, ev.Cost)
	case messages.HistoryCompacted:
		t.summary(ev.Turn, ev.Usage, ev.Cost, ev.Unknown)
	case messages.CompactionFailed:
		t.summary(ev.Turn, ev.Usage, ev.Cost, ev.Unknown)
	case messages.AgentDeleted:
		t.turns = nil
	case messages.AgentCleared:
		for i := range t.turns {
			t.turns[i].Cleared = true
		}
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

// phase gives a turn that has not ended the phase of p and what goes with it.
func (t *Turns) phase(id messages.TurnID, p Turn) {
	if turn := t.find(id); turn != nil && turn.Ended == 0 {
		turn.Phase, turn.Reason, turn.Message, turn.By = p.Phase, p.Reason, p.Message, p.By
		turn.Calls = slices.Clone(p.Calls)
	}
}

func (t *Turns) raise(id messages.TurnID, limits messages.Limits) {
	if turn := t.find(id); turn != nil && turn.Ended == 0 {
		turn.Limits = turn.Limits.Raise(limits)
	}
}

func (t *Turns) end(n messages.EventNumber, id messages.TurnID, inputs []string, how Turn) {
	turn := t.find(id)
	if turn == nil || turn.Ended != 0 {
		return
	}
	t.phase(id, how)
	turn.take(inputs)
	turn.Steps, turn.Ended, turn.EndedAt = how.Steps, n, t.at
	turn.Kind, turn.Status, turn.Finish = how.Kind, how.Status, how.Finish
}

// take adds inputs that have steered the turn.
func (t *Turn) take(inputs []string) {
	for _, id := range inputs {
		if !slices.Contains(t.Inputs, id) {
			t.Inputs = append(t.Inputs, id)
		}
	}
}

// summary counts what a summary has used, as far as that is known.
func (t *Turns) summary(id messages.TurnID, u messages.Usage, c messages.Cost, unknown bool) {
	if unknown {
		c = 0
	}
	t.spent(id, u, c)
}

func (t *Turns) spent(id messages.TurnID, u messages.Usage, c messages.Cost) {
	if turn := t.find(id); turn != nil {
		turn.Usage, turn.Cost = turn.Usage.Add(u), turn.Cost+c
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

// newestEnded returns the turn that ended last. It reports whether there is one.
func (t *Turns) newestEnded() (Turn, bool) {
	for i := len(t.turns) - 1; i >= 0; i-- {
		if t.turns[i].Ended != 0 {
			return t.turns[i].clone(), true
		}
	}
	return Turn{}, false
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
	c.Inputs, c.Calls = slices.Clone(t.Inputs), slices.Clone(t.Calls)
	return c
}
