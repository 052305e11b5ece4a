package projections

import (
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Outcome is what became of a call of a tool, so far.
type Outcome string

// The outcomes. Those from Completed on are final.
const (
	CallRequested Outcome = "requested" // the model has asked; nothing has begun
	CallWaiting   Outcome = "waiting"   // it waits for a person's approval
	CallRunning   Outcome = "running"   // its tool runs, or did when its process died
	CallUnknown   Outcome = "unknown"   // it may have had its effect; a person decides
	CallCompleted Outcome = "completed" // it has a result
	CallFailed    Outcome = "failed"    // it failed
	CallDenied    Outcome = "denied"    // it was denied, and did not run
	CallSkipped   Outcome = "skipped"   // it did not run and will not
)

// Outcomes are all of them.
var Outcomes = []Outcome{CallRequested, CallWaiting, CallRunning, CallUnknown, CallCompleted, CallFailed, CallDenied, CallSkipped}

// Final reports whether the outcome is a call's last.
func (o Outcome) Final() bool {
	return o == CallCompleted || o == CallFailed || o == CallDenied || o == CallSkipped
}

// ToolCall is one call of a tool, from its request to its outcome.
type ToolCall struct {
	Turn messages.TurnID `json:"turn"`
	Step int             `json:"step,omitempty"`
	ID   messages.CallID `json:"call"`
	Tool string          `json:"tool"`
	// OnUnknown is what to do if the node stops before the result is stored, as of its newest start.
	OnUnknown messages.OnUnknown `json:"on_unknown,omitempty"`
	// Key is its idempotency key. Empty: it was never started.
	Key string `json:"key,omitempty"`
	// Arguments are those that it ran with, or would run with.
	Arguments string `json:"arguments"`
	// Rewritten reports whether a hook has changed the arguments that the model wrote.
	Rewritten bool `json:"rewritten,omitempty"`
	// Attempt is how often it was started.
	Attempt int `json:"attempts,omitempty"`
	// Dry reports whether the tool was never called, because the tools of the fork were dry each time.
	Dry bool `json:"dry,omitempty"`
	// Outcome is what became of the call so far.
	Outcome Outcome `json:"outcome"`
	// Kind is why it failed, as in tool.failed.
	Kind messages.ToolFailure `json:"kind,omitempty"`
	// By is where the outcome comes from. Empty: from the run of the tool.
	By messages.By `json:"by,omitempty"`
	// Person is who made the newest decision about it: approved it, denied it, or decided its outcome.
	// Nil: no person decided, or one without a name.
	Person *messages.Person `json:"person,omitempty"`
	// Reason is why it waits, is unknown or was skipped.
	Reason string `json:"reason,omitempty"`
	// Output is what the model reads as its result, or the beginning of that. Empty: there is none, or
	// it is stored as a blob.
	Output string `json:"output,omitempty"`
	// OutputBytes is the size of the whole output.
	OutputBytes int `json:"output_bytes,omitempty"`
	// Flagged is the earlier call that this one repeats. Empty: none is known.
	Flagged messages.CallID `json:"flagged,omitempty"`
	// Approval is `granted` or `denied`. Empty: nothing was decided.
	Approval string `json:"approval,omitempty"`
	// ApprovedBy is where that decision comes from: `decision`, `remembered` or `timeout`.
	ApprovedBy messages.By `json:"approved_by,omitempty"`
	// ArgsHash is the SHA-256 of the arguments of a call that waits for approval, in hex.
	ArgsHash string `json:"args_hash,omitempty"`
	// Asked is the number of the approval.requested of a call that waits for approval.
	Asked messages.EventNumber `json:"asked,omitempty"`
	// AskedAt is the time of that event.
	AskedAt time.Time `json:"asked_at,omitzero"`
	// ExpiresAt is when a call that waits for approval is denied without a decision. Zero: never.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// Started is its first start; 0: it never ran.
	Started messages.EventNumber `json:"started,omitempty"`
	// StartedAt is the time of that event.
	StartedAt time.Time `json:"started_at,omitzero"`
	// Ended is the event of its final outcome; 0 while it has none.
	Ended messages.EventNumber `json:"ended,omitempty"`
	// EndedAt is the time of that event.
	EndedAt time.Time `json:"ended_at,omitzero"`
}

// apply folds an event about the call.
func (c *ToolCall) apply(e *event) {
	switch ev := e.Event.(type) {
	case messages.ToolRequested:
		c.Step, c.Tool, c.Arguments = ev.Step, ev.Tool, ev.Arguments
	case messages.HookDecided:
		if HookAction(ev.Decision) == HookRewrite && ev.Arguments != "" {
			c.rewrite(ev.Arguments)
		}
	case messages.ToolFlagged:
		c.Flagged = ev.Of
	case messages.ApprovalRequested:
		c.ask(e, ev)
	case messages.ToolStarted:
		c.start(e, ev)
	case messages.ToolUnknown:
		c.leave(CallUnknown)
		c.Reason = ev.Reason
	default:
		if r := resultOf(ev); r.outcome != "" {
			c.end(e, r)
		} else if d := decisionOf(ev); d.Decision.Decision != "" {
			c.decide(e, d)
		}
	}
}

// toolResult is the final outcome of a call.
type toolResult struct {
	outcome Outcome
	kind    messages.ToolFailure
	by      messages.By
	text    string         // that the model reads
	blob    *messages.Blob // that holds it; nil: text does
}

// resultOf returns the final outcome that an event sets for its call; without an outcome: none.
func resultOf(ev messages.Event) toolResult {
	switch ev := ev.(type) {
	case messages.ToolCompleted:
		return toolResult{outcome: CallCompleted, by: ev.By, text: ev.Output, blob: ev.Blob}
	case messages.ToolFailed:
		return toolResult{outcome: CallFailed, kind: ev.Kind, by: ev.By, text: ev.Message}
	case messages.ToolDenied:
		return toolResult{outcome: CallDenied, text: ev.Message}
	case messages.ToolSkipped:
		return toolResult{outcome: CallSkipped, text: ev.Reason}
	}
	return toolResult{}
}

// rewrite replaces the call's arguments, unless it waits: a decision is about
// those that were asked about.
func (c *ToolCall) rewrite(arguments string) {
	if c.Outcome != CallWaiting {
		c.Rewritten = c.Rewritten || arguments != c.Arguments
		c.Arguments = arguments
	}
}

// leave sets the call's outcome to one that is not waiting.
func (c *ToolCall) leave(to Outcome) {
	c.Outcome, c.Reason, c.ArgsHash, c.Asked, c.AskedAt, c.ExpiresAt = to, "", "", 0, time.Time{}, time.Time{}
}

func (c *ToolCall) ask(e *event, ev messages.ApprovalRequested) {
	c.leave(CallWaiting)
	c.Rewritten = c.Rewritten || c.Tool != "" && c.Arguments != ev.Arguments
	c.Tool, c.Arguments = ev.Tool, ev.Arguments
	c.Reason, c.ArgsHash, c.Asked, c.AskedAt = ev.Reason, ev.ArgsHash, e.n, e.at
	if ev.ExpiresAt != nil {
		c.ExpiresAt = *ev.ExpiresAt
	}
}

// decide folds a decision. A denied call waits until its tool.denied.
func (c *ToolCall) decide(e *event, d givenDecision) {
	c.Approval, c.ApprovedBy = d.Decision.Decision, d.by
	if d.by == messages.ByDecision {
		c.Person = e.by
	}
	if c.Approval == Granted && c.Outcome == CallWaiting {
		c.leave(CallRequested)
	}
}

func (c *ToolCall) start(e *event, ev messages.ToolStarted) {
	c.leave(CallRunning)
	c.Dry = ev.Dry && (c.Started == 0 || c.Dry)
	c.Tool, c.OnUnknown, c.Key, c.Attempt = ev.Tool, ev.OnUnknown, ev.Key, max(ev.Attempt, c.Attempt+1)
	if ev.Arguments != "" {
		c.rewrite(ev.Arguments)
	}
	if c.Started == 0 {
		c.Started, c.StartedAt = e.n, e.at
	}
}

// end sets the call's final outcome.
func (c *ToolCall) end(e *event, r toolResult) {
	c.leave(r.outcome)
	c.Kind, c.By, c.Output, c.OutputBytes = r.kind, r.by, r.text, len(r.text)
	if r.blob != nil {
		c.OutputBytes = max(c.OutputBytes, int(r.blob.Size))
	}
	switch r.outcome {
	case CallDenied:
		c.By = c.ApprovedBy
	case CallSkipped:
		c.Reason = r.text
	default:
		if r.by == messages.ByDecision {
			c.Person = e.by
		}
	}
	c.Ended, c.EndedAt = e.n, e.at
}

// giveUp ends a call that has no outcome when its turn ends.
func (c *ToolCall) giveUp(e *event) {
	outcome := CallSkipped
	if c.Started != 0 {
		outcome = CallUnknown
	}
	c.leave(outcome)
	c.Reason, c.Ended, c.EndedAt = "its turn ended without a word of it", e.n, e.at
}

// Waits reports whether a person must approve or deny the call.
func (c *ToolCall) Waits() bool { return c.Outcome == CallWaiting && c.Approval != Denied }

// CallState is a call of the newest step of a turn, with what the turn needs of it.
type CallState struct {
	ToolCall
	// Blob holds the output where it is too large for a frame. Nil: it is Output.
	Blob *messages.Blob
	// Child is the agent that the call is the task of. Nil: it runs here.
	Child *ChildCall
	// Since is the event since which the call has its outcome, or its child waits for what it
	// does; SinceAt when that was recorded, as in [Work.At].
	Since   messages.EventNumber
	SinceAt time.Time
}

func (c *CallState) apply(e *event) {
	before, attempts := c.Outcome, c.Attempt
	if c.ToolCall.apply(e); c.Outcome != before {
		c.Since, c.SinceAt = e.n, e.at
	}
	if c.Attempt > attempts { // another one may run here
		c.Child = nil
	}
	if ev, ok := e.Event.(messages.ChildSpawned); ok {
		c.Child = &ChildCall{Agent: ev.Child, Input: ev.Input, Limits: ev.Limits, Detached: ev.Detached}
	} else if w, ok := childWaits(e.Event); ok && c.Child != nil {
		c.Child.ChildWaiting = w
		c.Since, c.SinceAt = e.n, e.at
	} else if r := resultOf(e.Event); r.outcome != "" {
		c.Blob = r.blob
	}
}

// needs returns what a person must decide about the call, as the kind of a messages.Wait.
// Empty: nothing.
func (c *CallState) needs() messages.WaitKind {
	switch c.Outcome {
	case CallWaiting:
		return messages.WaitApproval
	case CallUnknown:
		return messages.WaitUnknown
	}
	return ""
}

// ListsBelow reports whether the call is a child with something that a person must decide.
func (c *CallState) ListsBelow() bool {
	return c.Outcome == CallRunning && c.Child != nil && len(c.Child.Waiting) > 0
}

// WaitsBelow reports whether that person is all that the child waits for.
func (c *CallState) WaitsBelow() bool { return c.ListsBelow() && !c.Child.Busy }

// ChildCall is the agent that a call is the task of.
type ChildCall struct {
	Agent string // its full address
	Input string
	// Limits are its share of what was left.
	Limits   messages.Limits
	Detached bool
	// ChildWaiting is what it and those below it wait for. The zero value: nothing.
	messages.ChildWaiting
}
