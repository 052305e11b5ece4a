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
	CallWaiting   Outcome = "waiting"   // for a person's approval
	CallRunning   Outcome = "running"   // its tool runs, or did when its process died
	CallUnknown   Outcome = "unknown"   // it may have had its effect; a person decides
	CallCompleted Outcome = "completed"
	CallFailed    Outcome = "failed"
	CallDenied    Outcome = "denied"
	CallSkipped   Outcome = "skipped" // it never ran and never will
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
	// OnUnknown and Key are those of its newest start: what to do when the node stops
	// before the result is stored, and its idempotency key.
	OnUnknown messages.OnUnknown `json:"on_unknown,omitempty"`
	Key       string             `json:"key,omitempty"`
	// Arguments are those it ran with, or would; Rewritten reports that they are not
	// the model's own.
	Arguments string `json:"arguments"`
	Rewritten bool   `json:"rewritten,omitempty"`
	// Attempt is how often it was started.
	Attempt int     `json:"attempts,omitempty"`
	Outcome Outcome `json:"outcome"`
	// Kind is that of a failure, as in tool.failed.
	Kind string `json:"kind,omitempty"`
	// By is where the outcome comes from if not from the tool's run: decision for a person,
	// reconcile, timeout of an approval, or remembered for a decision that holds.
	By string `json:"by,omitempty"`
	// Person is who decided about it: approved or denied it, or decided its outcome,
	// whichever came last. Nil: no person decided, or no one who is named.
	Person *messages.Person `json:"person,omitempty"`
	// Reason is why it waits, is unknown or was skipped.
	Reason string `json:"reason,omitempty"`
	// Output is what the model reads of it, if that is not kept as a blob; OutputBytes is
	// the size of the whole.
	Output      string `json:"output,omitempty"`
	OutputBytes int    `json:"output_bytes,omitempty"`
	// Flagged is the earlier call that this one repeats. Empty: none is known.
	Flagged messages.CallID `json:"flagged,omitempty"`
	// Approval is Granted or Denied, if that was decided, ApprovedBy as in the
	// event: decision, remembered or timeout.
	Approval   string `json:"approval,omitempty"`
	ApprovedBy string `json:"approved_by,omitempty"`
	// ArgsHash, Asked (the approval.requested), AskedAt and ExpiresAt belong to a
	// call that waits for approval.
	ArgsHash  string               `json:"args_hash,omitempty"`
	Asked     messages.EventNumber `json:"asked,omitempty"`
	AskedAt   time.Time            `json:"asked_at,omitzero"`
	ExpiresAt time.Time            `json:"expires_at,omitzero"`
	// Started is its first start; 0: it never ran.
	Started   messages.EventNumber `json:"started,omitempty"`
	StartedAt time.Time            `json:"started_at,omitzero"`
	// Ended is the event of its final outcome; 0 while it has none.
	Ended   messages.EventNumber `json:"ended,omitempty"`
	EndedAt time.Time            `json:"ended_at,omitzero"`
}

// origin is where an event comes from: its number, and for views when it was recorded and who
// asked for it.
type origin struct {
	n  messages.EventNumber
	at time.Time
	by *messages.Person
}

// apply folds an event about the call.
func (c *ToolCall) apply(o origin, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.ToolRequested:
		c.Step, c.Tool, c.Arguments = ev.Step, ev.Tool, ev.Arguments
	case messages.HookDecided:
		if HookAction(ev.Decision) == HookRewrite && ev.Arguments != "" {
			c.rewrite(ev.Arguments)
		}
	case messages.ToolFlagged:
		c.Flagged = ev.Of
	case messages.ApprovalRequested:
		c.ask(o, ev)
	case messages.ApprovalGranted:
		if c.decide(o, Granted, ev.By); c.Outcome == CallWaiting {
			c.leave(CallRequested)
		}
	case messages.ApprovalDenied: // it waits until its tool.denied
		c.decide(o, Denied, ev.By)
	case messages.ToolStarted:
		c.start(o, ev)
	case messages.ToolUnknown:
		c.leave(CallUnknown)
		c.Reason = ev.Reason
	case messages.ToolCompleted:
		c.end(o, ToolCall{Outcome: CallCompleted, By: ev.By, Output: ev.Output, OutputBytes: bytesOf(ev.Blob)})
	case messages.ToolFailed:
		c.end(o, ToolCall{Outcome: CallFailed, Kind: ev.Kind, By: ev.By, Output: ev.Message})
	case messages.ToolDenied:
		c.end(o, ToolCall{Outcome: CallDenied, By: c.ApprovedBy, Output: ev.Message})
	case messages.ToolSkipped:
		c.end(o, ToolCall{Outcome: CallSkipped, Reason: ev.Reason, Output: ev.Reason})
	}
}

func bytesOf(b *messages.Blob) int {
	if b == nil {
		return 0
	}
	return int(b.Size)
}

// rewrite gives the call other arguments, unless it waits: a decision is about
// those that were asked about.
func (c *ToolCall) rewrite(arguments string) {
	if c.Outcome != CallWaiting {
		c.Rewritten = c.Rewritten || arguments != c.Arguments
		c.Arguments = arguments
	}
}

// leave gives the call an outcome that is not waiting.
func (c *ToolCall) leave(to Outcome) {
	c.Outcome, c.Reason, c.ArgsHash, c.Asked, c.AskedAt, c.ExpiresAt = to, "", "", 0, time.Time{}, time.Time{}
}

func (c *ToolCall) ask(o origin, ev messages.ApprovalRequested) {
	c.leave(CallWaiting)
	c.Rewritten = c.Rewritten || c.Tool != "" && c.Arguments != ev.Arguments
	c.Tool, c.Arguments = ev.Tool, ev.Arguments
	c.Reason, c.ArgsHash, c.Asked, c.AskedAt = ev.Reason, ev.ArgsHash, o.n, o.at
	if ev.ExpiresAt != nil {
		c.ExpiresAt = *ev.ExpiresAt
	}
}

// byDecision is By of an event that a person has decided.
const byDecision = "decision"

func (c *ToolCall) decide(o origin, approval, by string) {
	c.Approval, c.ApprovedBy = approval, by
	if by == byDecision {
		c.Person = o.by
	}
}

func (c *ToolCall) start(o origin, ev messages.ToolStarted) {
	c.leave(CallRunning)
	c.Tool, c.OnUnknown, c.Key, c.Attempt = ev.Tool, ev.OnUnknown, ev.Key, max(ev.Attempt, c.Attempt+1)
	if ev.Arguments != "" {
		c.rewrite(ev.Arguments)
	}
	if c.Started == 0 {
		c.Started, c.StartedAt = o.n, o.at
	}
}

// end gives the call its final outcome.
func (c *ToolCall) end(o origin, how ToolCall) {
	c.leave(how.Outcome)
	c.Kind, c.By, c.Reason, c.Output, c.OutputBytes = how.Kind, how.By, how.Reason, how.Output, max(how.OutputBytes, len(how.Output))
	if how.By == byDecision && how.Outcome != CallDenied {
		c.Person = o.by
	}
	c.Ended, c.EndedAt = o.n, o.at
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
	// Since is the event since which a person must decide about the call, SinceAt when that
	// was recorded, as in [Work.At].
	Since   messages.EventNumber
	SinceAt time.Time
}

func (c *CallState) apply(o origin, ev messages.Event) {
	c.ToolCall.apply(o, ev)
	switch ev := ev.(type) {
	case messages.ApprovalRequested, messages.ToolUnknown:
		c.Since, c.SinceAt = o.n, o.at
	case messages.ToolCompleted:
		c.Blob = ev.Blob
	case messages.ChildSpawned:
		c.Child = &ChildCall{Agent: ev.Child, Input: ev.Input, Limits: ev.Limits, Detached: ev.Detached}
	default:
		if c.Child != nil {
			c.Child.apply(o, ev)
		}
	}
}

// ListsBelow reports whether the call is a child with something that a person must decide.
func (c *CallState) ListsBelow() bool {
	return c.Outcome == CallRunning && c.Child != nil && len(c.Child.Waiting) > 0
}

// WaitsBelow reports whether nothing else happens there.
func (c *CallState) WaitsBelow() bool { return c.ListsBelow() && !c.Child.Busy }

// ChildCall is the agent that a call is the task of.
type ChildCall struct {
	Agent string // its full address
	Input string
	// Limits are its share of what was left.
	Limits   messages.Limits
	Detached bool
	// N is the child's event as of which Waiting is known.
	N messages.EventNumber
	// Waiting is what it and those below it wait for; Busy reports whether something
	// else happens there meanwhile.
	Waiting []messages.Wait
	Busy    bool
	// More reports whether more waits than Waiting holds.
	More bool
	// Since is the event that brought Waiting, SinceAt when that was recorded, as in [Work.At].
	Since   messages.EventNumber
	SinceAt time.Time
}

func (c *ChildCall) apply(o origin, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.ChildWaiting:
		c.N, c.Waiting, c.More, c.Busy = ev.N, ev.Waiting, ev.More, ev.Busy
		c.Since, c.SinceAt = o.n, o.at
	case messages.ChildResumed:
		c.N, c.Waiting, c.More, c.Busy = ev.N, nil, false, false
	}
}
