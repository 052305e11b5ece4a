package projections

import (
	"encoding/json"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// ModelRequest is what one model call was sent, rebuilt from the log: a line of the view request.
type ModelRequest struct {
	Agent messages.AgentID `json:"agent"`
	// N is the number of the event that recorded the request.
	N messages.EventNumber `json:"n"`
	// At is the time of that event.
	At time.Time `json:"at"`
	// Turn is the turn. Empty: a summary that no turn waits for.
	Turn messages.TurnID `json:"turn,omitempty"`
	// Step is the step of the turn, from 1. 0: a summary.
	Step    int             `json:"step,omitempty"`
	Attempt int             `json:"attempt"`
	Call    messages.CallID `json:"call"`
	// Summary reports whether the call is for a summary of the history.
	Summary bool `json:"summary,omitempty"`
	// Model is the model that was called, as `provider/model`.
	Model string `json:"model"`
	// SentAs is the name of the model that a hook sent in place of the one in Model. Empty: no hook did.
	SentAs string `json:"sent_as,omitempty"`
	// Definition is the SHA-256 of the definition, in hex.
	Definition string `json:"definition"`
	// Instructions are the text that comes before the items.
	Instructions string `json:"instructions,omitempty"`
	// ToolChoice is `required`, `none`, or the name of a tool. Empty: the model chooses.
	ToolChoice string `json:"tool_choice,omitempty"`
	// Settings are the settings of the call, by their names in reprise.yaml.
	Settings json.RawMessage `json:"settings"`
	// Tools are the tools that the model may call.
	Tools []ModelTool `json:"tools,omitempty"`
	// Items are the history as the model was shown it, oldest first.
	Items []RequestItem `json:"items"`
	// Changed are the names of the fields that hooks have changed.
	Changed []string `json:"changed,omitempty"`
	// LeftOut is how many items of the history hooks have removed.
	LeftOut int `json:"left_out,omitempty"`
	// Hooks are the hooks that have changed the request, in their order.
	Hooks []RequestHook `json:"hooks,omitempty"`
	// Around are the hooks that wrap calls of the model. They cannot change the request, but may have
	// had it answered again, elsewhere or not at all.
	Around []string `json:"around,omitempty"`
	// Hash is the hash that was recorded when the request was sent.
	Hash string `json:"hash"`
	// Matches reports whether the request as it is here has that hash.
	Matches bool `json:"matches"`
	// Why is why it does not match. Empty: it does.
	Why string `json:"why,omitempty"`
}

// RequestItem is an item of a request.
type RequestItem struct {
	HistoryItem
	// ByHook reports whether a hook has added it: it comes from no event, and N is 0.
	ByHook bool `json:"by_hook,omitempty"`
}

// ModelTool is a tool that a model may call.
type ModelTool struct {
	// Name is the name of the tool.
	Name string `json:"name"`
	// Description is what the model reads about it.
	Description string `json:"description,omitempty"`
	// Parameters is the JSON schema of the arguments.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// ByHook reports whether a hook has added or changed it.
	ByHook bool `json:"by_hook,omitempty"`
}

// RequestHook is a hook that has changed the request.
type RequestHook struct {
	// Hook is the name of the hook.
	Hook   string `json:"hook"`
	Reason string `json:"reason,omitempty"`
}

// RequestedCall is a model call as it was requested.
type RequestedCall struct {
	N  messages.EventNumber
	At time.Time
	// Model is the request of a turn's model call. Nil: Summary is that of a summary.
	Model   *messages.ModelRequested
	Summary *messages.CompactionRequested
	// Hooks are those that have made another request of it.
	Hooks []RequestHook
}

// LastRequest finds the model call that the newest event belongs to: the one that it requests, the
// one that it ends, or the one that asked for what it is about, such as a call of a tool. The zero
// value has seen no event.
type LastRequest struct {
	origin
	model, summary *RequestedCall
	hooks          []RequestHook // of the next model call
	of             *RequestedCall
	n              messages.EventNumber
	kind           string
}

// Apply folds event number n.
func (l *LastRequest) Apply(n messages.EventNumber, ev messages.Event) {
	l.n, l.kind = n, ev.EventType()
	f := messages.FieldsOf(ev)
	switch ev := ev.(type) {
	case messages.ModelRequested:
		l.model = &RequestedCall{N: n, At: l.at, Model: &ev, Hooks: l.hooks}
		l.hooks, l.of = nil, l.model
		return
	case messages.CompactionRequested:
		l.summary = &RequestedCall{N: n, At: l.at, Summary: &ev}
		l.of = l.summary
		return
	case messages.HookDecided:
		if l.before(ev) {
			l.of = nil
			return
		}
	}
	if f.Is(messages.HoldsTurn | messages.BeginsTurn) { // the hooks are asked again
		l.hooks = nil
	}
	if f.Is(messages.EndsAgent) {
		*l = LastRequest{origin: l.origin, n: n, kind: l.kind}
	}
	l.of = l.calls(f, messages.StepOf(ev))
}

// before folds a decision of a hook. It reports whether that is about the model call that is next.
func (l *LastRequest) before(ev messages.HookDecided) bool {
	if ev.Point != messages.PointBeforeModel && ev.Point != messages.PointTurnStart {
		return false
	}
	if HookAction(ev.Decision) == HookRewrite && ev.Point == messages.PointBeforeModel {
		l.hooks = append(l.hooks, RequestHook{ev.Hook, ev.Reason})
	}
	return true
}

// calls returns the model call that an event with these fields belongs to; nil if it belongs to none.
func (l *LastRequest) calls(f messages.Fields, step int) *RequestedCall {
	if s := l.summary; s != nil && f.Call != "" && f.Call == s.Summary.Call {
		return s
	}
	m := l.model
	if m == nil || f.Turn != m.Model.Turn || step != 0 && step != m.Model.Step || f.Is(messages.JoinsTurn|messages.BeginsTurn) {
		return nil
	}
	return m
}

// Of returns the model call that the newest event belongs to; nil if that belongs to none.
func (l *LastRequest) Of() *RequestedCall { return l.of }

// Newest returns the model call that was requested last; nil if there is none.
func (l *LastRequest) Newest() *RequestedCall {
	if l.model == nil || l.summary != nil && l.summary.N > l.model.N {
		return l.summary
	}
	return l.model
}

// Event returns the number and the type of the newest event.
func (l *LastRequest) Event() (n messages.EventNumber, kind string) { return l.n, l.kind }
