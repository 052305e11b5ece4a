package projections

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/messages"
)

// Outcome is what became of a call of a tool, so far.
type Outcome string

// The outcomes. Those from Completed on are final.
const (
	CallRequested Outcome = "requested" // the model has asked; nothing has begun
	CallWaiting   Outcome = "waiting"   // for a person's approval
	CallRunning   Outcome = "running"
	CallUnknown   Outcome = "unknown" // it may have had its effect; a person decides
	CallCompleted Outcome = "completed"
	CallFailed    Outcome = "failed"
	CallDenied    Outcome = "denied"
	CallSkipped   Outcome = "skipped" // it never ran and never will
)

// Outcomes are all of them.
var Outcomes = []Outcome{CallRequested, CallWaiting, CallRunning, CallUnknown, CallCompleted, CallFailed, CallDenied, CallSkipped}

// Final says that the outcome is a call's last.
func (o Outcome) Final() bool {
	return o == CallCompleted || o == CallFailed || o == CallDenied || o == CallSkipped
}

// MaxPreview is the most bytes of an output that an Effect holds.
const MaxPreview = 400

// Effect is one call of a tool: a line of `reprise effects -o json`.
type Effect struct {
	Agent messages.AgentID `json:"agent"`
	// N is the event that asked for it; it names the call within its agent. At is
	// when that was recorded.
	N    messages.EventNumber `json:"n"`
	At   time.Time            `json:"at,omitzero"`
	Turn messages.TurnID      `json:"turn"`
	Step int                  `json:"step,omitempty"`
	Call messages.CallID      `json:"call"`
	Tool string               `json:"tool"`
	// OnUnknown and Key are those of its newest start: what to do when the node stops
	// before the result is stored, and its idempotency key.
	OnUnknown messages.OnUnknown `json:"on_unknown,omitempty"`
	Key       string             `json:"key,omitempty"`
	// Arguments are those it ran with, or would; Rewritten says that they are not
	// the model's own.
	Arguments string `json:"arguments"`
	Rewritten bool   `json:"rewritten,omitempty"`
	// Attempts is how often it was started.
	Attempts int     `json:"attempts,omitempty"`
	Outcome  Outcome `json:"outcome"`
	// Kind is that of a failure, as in tool.failed.
	Kind string `json:"kind,omitempty"`
	// By is who told the outcome if the tool's run did not: decision for a person,
	// reconcile, timeout of an approval, or remembered for a decision that holds.
	By string `json:"by,omitempty"`
	// Person is who decided about it: approved or denied it, or settled its outcome,
	// whichever came last. Nil: no person decided, or no one who is named.
	Person *messages.Person `json:"person,omitempty"`
	// Reason is why it waits, is unknown or was skipped.
	Reason string `json:"reason,omitempty"`
	// Output is the beginning of what the model reads of it, at most MaxPreview
	// bytes; OutputBytes is the size of the whole. Of one that is kept as a blob
	// the size alone is told.
	Output      string `json:"output,omitempty"`
	OutputBytes int    `json:"output_bytes,omitempty"`
	// Flagged is the earlier call that this one repeats. Empty: none is known.
	Flagged messages.CallID `json:"flagged,omitempty"`
	// Approval is granted or denied, if that was decided, ApprovedBy as in the
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

// Effects lists every call of a tool that an agent's models asked for, those
// before it was cleared included. The zero value has none. A call is first told
// of by tool.requested; what is said of another call of the same name, once the
// first has ended, is another call's.
type Effects struct {
	at   time.Time
	by   *messages.Person
	list []Effect
	open []int // indexes in list of calls that may still change
}

// EffectsAfter is the fold of what comes after open: calls without a final
// outcome, as another Effects told them.
func EffectsAfter(open []Effect) *Effects {
	e := &Effects{list: slices.Clone(open)}
	for i := range open {
		e.open = append(e.open, i)
	}
	return e
}

// At says when the events that are applied next were recorded.
func (e *Effects) At(at time.Time) { e.at = at.UTC() }

// By implements [Attributed].
func (e *Effects) By(p *messages.Person) { e.by = p }

// Apply folds event number n.
func (e *Effects) Apply(n messages.EventNumber, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.ToolRequested:
		c := e.call(n, ev.Turn, ev.Call)
		c.Step, c.Tool, c.Arguments = ev.Step, ev.Tool, ev.Arguments
	case messages.HookDecided:
		if ev.Call != "" && ev.Arguments != "" {
			e.call(n, ev.Turn, ev.Call).rewrite(ev.Arguments)
		}
	case messages.ToolFlagged:
		e.call(n, ev.Turn, ev.Call).Flagged = ev.Of
	case messages.ApprovalRequested:
		e.gate(n, ev)
	case messages.ApprovalGranted:
		e.decided(n, ev.Turn, ev.Call, "granted", ev.By)
	case messages.ApprovalDenied:
		e.decided(n, ev.Turn, ev.Call, "denied", ev.By)
	case messages.ToolStarted:
		e.start(n, ev)
	case messages.ToolUnknown:
		c := e.call(n, ev.Turn, ev.Call)
		c.waitNoMore(CallUnknown)
		c.Reason = ev.Reason
	case messages.TurnCompleted, messages.TurnFailed, messages.TurnAborted:
		turn := messages.TurnOf(ev)
		e.giveUp(n, func(c *Effect) bool { return c.Turn == turn })
	case messages.AgentCleared:
		e.giveUp(n, func(*Effect) bool { return true })
	case messages.AgentDeleted:
		*e = Effects{at: e.at}
	default:
		e.outcome(n, ev)
	}
}

// outcome folds how a call has ended.
func (e *Effects) outcome(n messages.EventNumber, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.ToolCompleted:
		c := Effect{Outcome: CallCompleted, By: ev.By, OutputBytes: len(ev.Output)}
		if ev.Blob != nil {
			c.OutputBytes = int(ev.Blob.Size)
		}
		e.end(n, ev.Turn, ev.Call, c, ev.Output)
	case messages.ToolFailed:
		e.end(n, ev.Turn, ev.Call, Effect{Outcome: CallFailed, Kind: ev.Kind, By: ev.By}, ev.Message)
	case messages.ToolDenied:
		e.end(n, ev.Turn, ev.Call, Effect{Outcome: CallDenied}, ev.Message)
	case messages.ToolSkipped:
		e.end(n, ev.Turn, ev.Call, Effect{Outcome: CallSkipped, Reason: ev.Reason}, ev.Reason)
	}
}

// call is a turn's call that has not ended, good until the next change. One
// that is not known is told of by event n for the first time.
func (e *Effects) call(n messages.EventNumber, turn messages.TurnID, call messages.CallID) *Effect {
	for _, i := range slices.Backward(e.open) {
		if c := &e.list[i]; c.Turn == turn && c.Call == call {
			return c
		}
	}
	e.open = append(e.open, len(e.list))
	e.list = append(e.list, Effect{N: n, At: e.at, Turn: turn, Call: call, Outcome: CallRequested})
	return &e.list[len(e.list)-1]
}

// rewrite gives the call other arguments, unless it waits: a decision is about
// those that were asked about.
func (c *Effect) rewrite(arguments string) {
	if c.Outcome == CallWaiting {
		return
	}
	c.Rewritten = c.Rewritten || arguments != c.Arguments
	c.Arguments = arguments
}

// waitNoMore gives the call an outcome that is not waiting.
func (c *Effect) waitNoMore(o Outcome) {
	c.Outcome, c.Reason, c.ArgsHash, c.Asked, c.AskedAt, c.ExpiresAt = o, "", "", 0, time.Time{}, time.Time{}
}

func (e *Effects) gate(n messages.EventNumber, ev messages.ApprovalRequested) {
	c := e.call(n, ev.Turn, ev.Call)
	c.waitNoMore(CallWaiting)
	c.Rewritten = c.Rewritten || c.Tool != "" && c.Arguments != ev.Arguments
	c.Tool, c.Arguments = ev.Tool, ev.Arguments
	c.Reason, c.ArgsHash, c.Asked, c.AskedAt = ev.Reason, ev.ArgsHash, n, e.at
	if ev.ExpiresAt != nil {
		c.ExpiresAt = *ev.ExpiresAt
	}
}

func (e *Effects) decided(n messages.EventNumber, turn messages.TurnID, call messages.CallID, what, by string) {
	c := e.call(n, turn, call)
	c.Approval, c.ApprovedBy = what, by
	c.decide(by, e.by)
	if c.Outcome == CallWaiting {
		c.waitNoMore(CallRequested)
	}
}

// decision is what By is in an event where a person has decided.
const decision = "decision"

// decide notes who decided about the call, if by is a person's decision.
func (c *Effect) decide(by string, person *messages.Person) {
	if by == decision {
		c.Person = person
	}
}

func (e *Effects) start(n messages.EventNumber, ev messages.ToolStarted) {
	c := e.call(n, ev.Turn, ev.Call)
	c.waitNoMore(CallRunning)
	c.Tool, c.OnUnknown, c.Key, c.Attempts = ev.Tool, ev.OnUnknown, ev.Key, max(ev.Attempt, c.Attempts+1)
	if ev.Arguments != "" {
		c.rewrite(ev.Arguments)
	}
	if c.Started == 0 {
		c.Started, c.StartedAt = n, e.at
	}
}

// end gives a call its final outcome, with what the model reads of it.
func (e *Effects) end(n messages.EventNumber, turn messages.TurnID, call messages.CallID, how Effect, output string) {
	c := e.call(n, turn, call)
	c.waitNoMore(how.Outcome)
	c.Kind, c.By, c.Reason = how.Kind, how.By, how.Reason
	c.decide(how.By, e.by)
	if c.By == "" && c.Outcome == CallDenied {
		c.By = c.ApprovedBy
	}
	c.Output, c.OutputBytes = beginning(output), max(how.OutputBytes, len(output))
	c.Ended, c.EndedAt = n, e.at
	e.open = slices.DeleteFunc(e.open, func(i int) bool { return &e.list[i] == c })
}

// beginning is what an Effect shows of an output.
func beginning(s string) string {
	if len(s) <= MaxPreview {
		return s
	}
	cut := MaxPreview
	for cut > MaxPreview-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
}

// giveUp ends chosen calls that have no outcome when their turn ends.
func (e *Effects) giveUp(n messages.EventNumber, chosen func(*Effect) bool) {
	rest := e.open[:0]
	for _, i := range e.open {
		c := &e.list[i]
		if !chosen(c) {
			rest = append(rest, i)
			continue
		}
		outcome := CallSkipped
		if c.Started != 0 {
			outcome = CallUnknown
		}
		c.waitNoMore(outcome)
		c.Reason, c.Ended, c.EndedAt = "its turn ended without a word of it", n, e.at
	}
	e.open = rest
}

// List is every call of agent a, as the model asked for them.
func (e *Effects) List(a messages.AgentID) []Effect {
	list := slices.Clone(e.list)
	for i := range list {
		list[i].Agent = a
	}
	return list
}

// Waits gives the call as one that waits for a person's approval; false if it
// does not.
func (c Effect) Waits() (messages.Approval, bool) {
	return messages.Approval{
		Agent: c.Agent, Turn: c.Turn, Call: c.Call, Tool: c.Tool, Arguments: c.Arguments, ArgsHash: c.ArgsHash,
		Reason: c.Reason, Flagged: c.Flagged, ExpiresAt: c.ExpiresAt, N: c.Asked, At: c.AskedAt,
	}, c.Outcome == CallWaiting
}
