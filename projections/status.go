package projections

import (
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// AgentStatus is one agent as `reprise show` prints it. Lists are empty, not null, in its JSON
// if [NewAgentStatus] made it.
type AgentStatus struct {
	Agent
	// Queue are the ids of the inputs that wait for a turn.
	Queue []string `json:"queue"`
	// Steered are the ids of the inputs that wait for the next model call of the running turn.
	Steered []string `json:"steered,omitempty"`
	// Waiting are the calls that a person must decide.
	Waiting []Waiting `json:"waiting"`
	// WaitingMore reports whether more calls wait below than Waiting has.
	WaitingMore bool `json:"waiting_more,omitempty"`
	// Paused is why the turn is paused, as in turn.paused.
	Paused string `json:"paused,omitempty"`
	// Message is what to do about the pause.
	Message string `json:"message,omitempty"`
	// Failed is the newest turn that ended, if it has failed. Nil: it has not.
	Failed *FailedTurn `json:"failed,omitempty"`
	// Limit is the limit that a paused turn has exceeded, whatever else it waits for. It must be
	// raised before the turn can continue. Nil: none.
	Limit *Exceeded `json:"limit,omitempty"`
	// Parent is the call that the agent works for, or did last. Nil: it never did.
	Parent *messages.Caller `json:"parent,omitempty"`
	// Children are the children of its newest turn.
	Children []Child `json:"children,omitempty"`
	// Fork is where the agent was forked or imported from. Nil: it is no fork.
	Fork *Origin `json:"fork,omitempty"`
	// Forks is how many forks were made of it.
	Forks int `json:"forks,omitempty"`
	// Timers is how many scheduled inputs it has.
	Timers int `json:"timers,omitempty"`
	// Next is when the first of them is due.
	Next time.Time `json:"next,omitzero"`
	// Budget is what bounds the agent and its turn. Nil: it is idle, and has no limit that a
	// person has set.
	Budget *Budgets `json:"budget,omitempty"`
	// Deleted is the end of the agent. Nil: it exists.
	Deleted *Deletion `json:"deleted,omitempty"`
}

// FailedTurn is a turn that has failed.
type FailedTurn struct {
	Turn messages.TurnID `json:"turn"`
	// Reason is the kind of the model's failure, or else the reason of its turn.failed.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// At is when it failed.
	At time.Time `json:"at,omitzero"`
}

// NewAgentStatus returns the status of an agent with this row, work and family.
func NewAgentStatus(row Agent, w *Work, c *Children) AgentStatus {
	s := AgentStatus{
		Agent: row, Queue: append([]string{}, w.Inputs.QueuedIDs()...), Steered: w.Inputs.SteeredIDs(),
		Waiting: append([]Waiting{}, w.Waiting()...), WaitingMore: w.More(), Parent: c.Parent(), Children: c.Newest(),
	}
	if s.Timers = len(w.Timers.Scheduled); s.Timers > 0 {
		s.Next = w.Timers.Next().At
	}
	if t := w.Turn; t != nil && t.Phase == Paused {
		s.Paused, s.Message, s.Limit = t.Reason, t.Message, t.Exceeded
	}
	if t := w.Ended; t != nil && t.Phase == Failed {
		s.LastFailed = t.Why()
		s.Failed = &FailedTurn{t.ID, s.LastFailed, t.Message, t.EndedAt}
	}
	if budgets := w.Budgets(); budgets.Turn != nil || budgets.Agent.Limits != (messages.Limits{}) {
		s.Budget = &budgets
	}
	return s
}
