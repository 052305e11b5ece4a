package messages

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"strings"
	"time"
)

// An agent that is another's tool is its child. Parent and child have each
// their own log and are linked both ways: child.spawned names the child, the
// child's input.accepted names the parent. They talk by commands, at least once,
// with ids that are derived from what they are about:
//
//	Task     parent to child   do this, as an input
//	Recall   parent to child   do it no more
//	Report   child to parent   it waits for a person, it goes on, it has ended
//	Settled  to whoever passed a person's decision down: what became of it
//
// None of these is accepted on an input or command subject.

// The bounds of children, where a definition does not say otherwise, and of what
// is told of calls that wait.
const (
	// MaxCallers is how many callers may be above a child.
	MaxCallers = 8
	// MaxChildren is how many children the calls of one turn may bring to life.
	MaxChildren = 64
	// MaxWaits is how many calls below an agent it lists as waiting.
	MaxWaits = 32
	// MaxWaitText is how many bytes of a waiting call's arguments, or of its
	// reason, are told above its own agent.
	MaxWaitText = 2 << 10
)

// Caller is a tool call that is another agent's task.
type Caller struct {
	Agent string `json:"agent"` // its full address
	Turn  TurnID `json:"turn"`
	Call  CallID `json:"call"`
	// Detached says that nobody waits for the answer.
	Detached bool `json:"detached,omitempty"`
}

// Hearers are those of a chain of callers who hear of what the agent below them
// says, the nearest last: nobody above a detached call does.
func Hearers(chain []Caller) []Caller {
	for i := len(chain) - 1; i >= 0; i-- {
		if chain[i].Detached {
			return chain[i+1:]
		}
	}
	return chain
}

// Parent is who an agent works for, and within what limits.
type Parent struct {
	Caller
	// Above are the callers above the parent, the root's first.
	Above []Caller `json:"above,omitempty"`
	// Limits bound the turn, beside those of the child's own definition.
	Limits Limits `json:"limits,omitzero"`
}

// Chain is all callers of the task, the root's first and the parent's last.
func (p Parent) Chain() []Caller {
	return append(p.Above[:len(p.Above):len(p.Above)], p.Caller)
}

// Wait is a call, of a child or of one below it, that a person must settle, or a
// turn there that a person must resume.
type Wait struct {
	Agent string `json:"agent"` // whose it is, by its full address
	Turn  TurnID `json:"turn"`
	Call  CallID `json:"call,omitempty"`
	Tool  string `json:"tool,omitempty"`
	// Kind is approval, unknown, or paused for a turn.
	Kind string `json:"kind"`
	// Arguments are those it would run with. Cut says that some are left out;
	// ArgsHash names them all in a decision.
	Arguments string `json:"arguments,omitempty"`
	Cut       bool   `json:"cut,omitempty"`
	ArgsHash  string `json:"args_hash,omitempty"`
	Reason    string `json:"reason,omitempty"`
	// ExpiresAt is when an approval is denied without a decision. Nil: never.
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// The kinds of a Wait.
const (
	WaitApproval = "approval"
	WaitUnknown  = "unknown"
	WaitPaused   = "paused"
)

// Spent is what a turn and all children below it have used.
type Spent struct {
	Usage Usage `json:"usage,omitzero"`
	Cost  Cost  `json:"cost_nanos,omitempty"`
	// Tokens count against limits: those of Usage, and those reserved for calls
	// whose answer was lost.
	Tokens int `json:"tokens,omitempty"`
}

// ChildSpawned says that a call is another agent's task from here on.
type ChildSpawned struct {
	Turn  TurnID `json:"turn"`
	Call  CallID `json:"call"`
	Tool  string `json:"tool"`
	Child string `json:"child"` // its full address
	Input string `json:"input"` // the id of the child's input
	// Limits are what is left to the parent, as the child's share.
	Limits Limits `json:"limits,omitzero"`
	// Detached says that the call does not wait for the child.
	Detached bool `json:"detached,omitempty"`
}

// ChildWaiting says what a child waits for, in place of what was said before.
type ChildWaiting struct {
	Turn  TurnID `json:"turn"`
	Call  CallID `json:"call"`
	Child string `json:"child"`
	// N is the child's event as of which it is told.
	N       EventNumber `json:"n"`
	Waiting []Wait      `json:"waiting"`
	// More says that more waits there than is listed.
	More bool `json:"more,omitempty"`
	// Busy says that something of its turn goes on meanwhile.
	Busy bool `json:"busy,omitempty"`
}

// ChildResumed says that a child waits no more.
type ChildResumed struct {
	Turn  TurnID      `json:"turn"`
	Call  CallID      `json:"call"`
	Child string      `json:"child"`
	N     EventNumber `json:"n"`
}

// ChildDecided carries a person's decision to a call that waits below. Whether it
// has its effect there child.settled tells.
type ChildDecided struct {
	Turn TurnID `json:"turn"` // of the call that is the child
	Call CallID `json:"call"`
	// Agent, Of and Waits name the call that waits: whose it is, in which turn.
	Agent string `json:"agent"`
	Of    TurnID `json:"of"`
	Waits CallID `json:"waits"`
	// Command is approve, deny or decide, ID that of the command which is sent
	// down; the rest is what the person has said.
	Command  string  `json:"command"`
	ID       string  `json:"id"`
	ArgsHash string  `json:"args_hash,omitempty"`
	Text     *string `json:"text,omitempty"`
	Remember bool    `json:"remember,omitempty"`
	Outcome  Outcome `json:"outcome,omitempty"`
	Result   string  `json:"result,omitempty"`
	Reason   string  `json:"reason,omitempty"`
	// Person is who decided. Nil: no one is named.
	Person *Person `json:"person,omitempty"`
}

// ChildSettled says what became of a decision that was passed down. A person may
// have decided about the call elsewhere, or it may have waited no more.
type ChildSettled struct {
	Turn TurnID `json:"turn"` // of the call that is the child, as in child.decided
	Call CallID `json:"call"`
	// Agent, Of and Waits name the call that the decision is about.
	Agent string `json:"agent"`
	Of    TurnID `json:"of"`
	Waits CallID `json:"waits"`
	// N is the event of Agent that tells of the decision. 0: it had no effect.
	N EventNumber `json:"n,omitempty"`
	// Refused is why it had none, as a word to branch on. Empty: it had its effect.
	Refused Code `json:"refused,omitempty"`
	// Message says more of that, or that the same was decided before.
	Message string `json:"message,omitempty"`
	// Command and ID are those of child.decided.
	Command string `json:"command"`
	ID      string `json:"id"`
}

// ChildCompleted says that a child has answered; the answer is the call's
// tool.completed.
type ChildCompleted struct {
	Turn  TurnID      `json:"turn"`
	Call  CallID      `json:"call"`
	Child string      `json:"child"`
	N     EventNumber `json:"n"`
	Spent
}

// ChildFailed says that a child has ended without an answer.
type ChildFailed struct {
	Turn  TurnID      `json:"turn"`
	Call  CallID      `json:"call"`
	Child string      `json:"child"`
	N     EventNumber `json:"n,omitempty"` // 0: it was never accepted
	// Reason is a word to branch on: the kind of its turn.failed, or the reason where that has
	// none, aborted, cancelled, dropped, refused, or too_large for an answer that does not fit.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Spent
}

// ChildAborted says that nobody waits for a child any more and that it is to
// stop.
type ChildAborted struct {
	Turn   TurnID `json:"turn"`
	Call   CallID `json:"call"`
	Child  string `json:"child"`
	Input  string `json:"input"`
	Reason string `json:"reason"`
}

// ChildStopped says that an aborted child has ended, and what it has used.
type ChildStopped struct {
	Turn  TurnID      `json:"turn"`
	Call  CallID      `json:"call"`
	Child string      `json:"child"`
	N     EventNumber `json:"n,omitempty"`
	// How is how it ended: completed, failed, aborted, cancelled, dropped, refused.
	How string `json:"how"`
	Spent
}

// ChildReported is a child's own: its parent will learn what was so as of event
// Upto.
type ChildReported struct {
	Input string      `json:"input"`
	Upto  EventNumber `json:"upto"`
	What  ReportWhat  `json:"what"`
}

// InputRecalled says that a parent took an input back before it came. When it
// comes it changes nothing.
type InputRecalled struct {
	Input  string `json:"input"`
	Parent Parent `json:"parent"`
	Reason string `json:"reason,omitempty"`
}

// EventType is "child.spawned".
func (ChildSpawned) EventType() string { return "child.spawned" }

// EventType is "child.waiting".
func (ChildWaiting) EventType() string { return "child.waiting" }

// EventType is "child.resumed".
func (ChildResumed) EventType() string { return "child.resumed" }

// EventType is "child.decided".
func (ChildDecided) EventType() string { return "child.decided" }

// EventType is "child.settled".
func (ChildSettled) EventType() string { return "child.settled" }

// EventType is "child.completed".
func (ChildCompleted) EventType() string { return "child.completed" }

// EventType is "child.failed".
func (ChildFailed) EventType() string { return "child.failed" }

// EventType is "child.aborted".
func (ChildAborted) EventType() string { return "child.aborted" }

// EventType is "child.stopped".
func (ChildStopped) EventType() string { return "child.stopped" }

// EventType is "child.reported".
func (ChildReported) EventType() string { return "child.reported" }

// EventType is "input.recalled".
func (InputRecalled) EventType() string { return "input.recalled" }

// Task is an input that a parent gives its child.
type Task struct {
	ID      string  `json:"id"`
	Content Content `json:"content"`
	Parent  Parent  `json:"parent"`
}

// Recall takes a task back: its turn is aborted if it runs, its input cancelled
// if it waits, and refused if it has yet to come.
type Recall struct {
	ID string `json:"id"`
	// Input is the task's id.
	Input  string `json:"input"`
	Parent Parent `json:"parent"`
	Reason string `json:"reason,omitempty"`
}

// Report tells a parent about the child that is one of its calls.
type Report struct {
	ID    string `json:"id"`
	Turn  TurnID `json:"turn"` // of the call
	Call  CallID `json:"call"`
	Child string `json:"child"`
	// N is the child's event as of which this is so; one that is not newer than
	// another changes nothing. 0: the child has refused the task.
	N    EventNumber `json:"n,omitempty"`
	What ReportWhat  `json:"what"`
	// Waiting is the list, in place of the one before; Busy says that something
	// of its turn goes on meanwhile.
	Waiting []Wait `json:"waiting,omitempty"`
	Busy    bool   `json:"busy,omitempty"`
	// More says that more waits than Waiting holds.
	More bool `json:"more,omitempty"`
	// Output is a completed child's answer, Reason and Message are why there is
	// none.
	Output  string `json:"output,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Blob holds the output where it is too large for a frame: it is the child's,
	// and the parent makes it its own. Nil: it is Output.
	Blob *Blob `json:"blob,omitempty"`
	Spent
}

// Settled tells an agent what became of a decision that it has passed down.
type Settled struct {
	ID string `json:"id"`
	// Decision is the id of the command that was passed down.
	Decision string `json:"decision"`
	// N, Refused and Message are those of ChildSettled.
	N       EventNumber `json:"n,omitempty"`
	Refused Code        `json:"refused,omitempty"`
	Message string      `json:"message,omitempty"`
}

// ReportWhat says what a Report tells.
type ReportWhat string

// What a Report tells.
const (
	ReportWaiting   ReportWhat = "waiting"
	ReportGoing     ReportWhat = "going"
	ReportCompleted ReportWhat = "completed"
	ReportFailed    ReportWhat = "failed"
	ReportAborted   ReportWhat = "aborted"
	ReportCancelled ReportWhat = "cancelled"
	ReportDropped   ReportWhat = "dropped"
	ReportRefused   ReportWhat = "refused"
)

// Ends says that nothing more is reported of the task.
func (w ReportWhat) Ends() bool { return w != ReportWaiting && w != ReportGoing }

// CommandType is "task".
func (Task) CommandType() string { return "task" }

// CommandType is "recall".
func (Recall) CommandType() string { return "recall" }

// CommandType is "report".
func (Report) CommandType() string { return "report" }

// CommandType is "settled".
func (Settled) CommandType() string { return "settled" }

// Derived is a token that is the same for the same parts and different for all
// others: 128 bits of SHA-256 in the alphabet of addresses.
func Derived(prefix string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return prefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// ChildOf is the agent of that kind that a call brings to life: the same however
// often the call is tried.
func ChildOf(parent AgentID, kind string, turn TurnID, call CallID) AgentID {
	return AgentID{Tenant: parent.Tenant, Kind: kind, Key: Derived("sub-", parent.Full(), string(turn), string(call))}
}

// TaskID is the id of the input that a call gives its child.
func TaskID(c Caller) string { return Derived("task:", c.Agent, string(c.Turn), string(c.Call)) }

// CancelID is the id of the command that cancels the task with this id.
func CancelID(input string) string { return Derived("recall:", input) }

// ReportID is the id of the report about the task with this id as of the child's event n.
func ReportID(input string, n EventNumber) string { return Derived("report:", input, number(n)) }

func number(n EventNumber) string {
	b, _ := json.Marshal(n) // a number always can be
	return string(b)
}

// Reply is what another agent is to be told of a command that it gave an agent,
// beside what the agent's log tells: that a Task or Recall is refused, and what
// became of a decision. ok is false if there is nothing to tell, or nothing yet:
// what is refused for now comes again.
func Reply(of AgentID, c Command, answer Answer) (to AgentID, reply Command, ok bool) {
	if answer.Err != nil && answer.Err.Code == Unavailable {
		return AgentID{}, nil, false
	}
	switch c := c.(type) {
	case Task:
		return untaken(of, c, c.Parent, answer.Err)
	case Recall:
		return untaken(of, c, c.Parent, answer.Err)
	}
	return settled(c, answer)
}

// untaken is what a parent is told of a Task or Recall that its child does not
// take, unless nobody waits for an answer.
func untaken(child AgentID, c Command, p Parent, why *Error) (to AgentID, reply Command, ok bool) {
	to, err := ParseAgentID(p.Agent)
	if err != nil || p.Detached || why == nil {
		return AgentID{}, nil, false
	}
	return to, Report{
		ID: Derived("report:", child.Full(), IDOf(c), "refused"), Turn: p.Turn, Call: p.Call, Child: child.Full(),
		What: ReportRefused, Reason: string(why.Code), Message: why.Message,
	}, true
}

// settled is what whoever passed a decision down is told of it. A call that may
// not run again yet may soon: then the decision comes again.
func settled(c Command, answer Answer) (to AgentID, reply Command, ok bool) {
	to, err := ParseAgentID(PassedBy(c))
	r := Settled{Decision: IDOf(c), N: answer.N, Message: answer.Noop}
	if why := answer.Err; why != nil {
		r.N, r.Refused, r.Message = 0, why.Code, why.Message
	}
	if err != nil || r.Refused == Busy {
		return AgentID{}, nil, false
	}
	r.ID = Derived("settled:", r.Decision, string(r.Refused))
	return to, r, true
}

// DecidedBy is the person whose decision an agent passes down. Nil: the command is no such,
// or no one is named. It is that agent's word, and so claimed; where it was proved, the log
// of the agent that took the decision shows it.
func DecidedBy(c Command) *Person {
	p := personOf(c)
	if p == nil {
		return nil
	}
	claimed := ClaimedBy(p.Name)
	if account := ClaimedBy(p.Account); claimed != nil && account != nil {
		claimed.Account = account.Name
	}
	return claimed
}

// Body is a command as it is published for another agent.
func Body(c Command) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(c); err != nil {
		return nil, err
	}
	return append([]byte(`{"type":"`+c.CommandType()+`",`), bytes.TrimSpace(buf.Bytes())[1:]...), nil
}

// ParsePeer reads what another agent has sent: a Task, Recall, Report or Settled, or
// a person's decision that is passed down.
func ParsePeer(a AgentID, header Header, body []byte) (Command, error) {
	return parseCommandOf(a, header, body, true)
}

func (c Task) check() error {
	if c.ID == "" || len(c.Parent.Above) >= 4*MaxCallers {
		return Refuse(BadInput, "a task has an id and at most %d callers", 4*MaxCallers)
	}
	return c.Parent.check("a task")
}

func (c Recall) check() error { return c.Parent.check("a recall") }

func (c Report) check() error {
	if c.Turn == "" || c.Call == "" || c.Child == "" || len(c.Waiting) > MaxWaits {
		return Refuse(BadInput, "a report names a turn, a call, a child, and at most %d calls that wait", MaxWaits)
	}
	return nil
}

func (c Settled) check() error {
	if c.Decision == "" {
		return Refuse(BadInput, "what settles a decision names it")
	}
	return nil
}

func (p Parent) check(what string) error {
	if _, err := ParseAgentID(p.Agent); err != nil {
		return Refuse(BadInput, "%s names its parent: %v", what, err)
	}
	return nil
}
