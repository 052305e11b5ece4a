package messages

// A fork is an agent whose events up to a number are those of another agent, its parent: they
// are read from the parent's log and are not copied. The agents send commands to each other, at
// least once:
//
//	BeginFork   parent to fork   begin with the parent's events
//	ForkEffect  fork to parent   it has begun, or is refused
//
// Neither is accepted on an input or command subject.

// Fork makes a fork of an agent. It is answered when the agent has recorded it. A later fork.settled
// reports whether the fork has begun.
type Fork struct {
	ID string `json:"id"`
	// Fork is the full address of the new agent. It has the tenant of its parent, and no events.
	Fork string `json:"fork"`
	// At is the newest event that both have. Absent: the newest of the parent.
	At EventNumber `json:"at,omitempty"`
	// Set is what the fork has in place of its kind's definition, and of what its parent has as a
	// fork itself.
	Set    ForkChanges `json:"set,omitzero"`
	Reason string      `json:"reason,omitempty"`
}

// ForkChanges are what a fork has in place of the definition of its kind.
type ForkChanges struct {
	// Model is the model, as `provider/model`. Empty: the definition's.
	Model string `json:"model,omitempty"`
	// Instructions are the instructions. Nil: the definition's.
	Instructions *string `json:"instructions,omitempty"`
	// Tools are the names of the only tools that the fork has. Empty: all of the definition.
	Tools []string `json:"tools,omitempty"`
}

// IsZero reports whether nothing is changed.
func (c ForkChanges) IsZero() bool {
	return c.Model == "" && c.Instructions == nil && len(c.Tools) == 0
}

// Override returns the changes with those of other in their place, where it has some.
func (c ForkChanges) Override(other ForkChanges) ForkChanges {
	if other.Model != "" {
		c.Model = other.Model
	}
	if other.Instructions != nil {
		c.Instructions = other.Instructions
	}
	if len(other.Tools) > 0 {
		c.Tools = other.Tools
	}
	return c
}

// CommandType returns "fork".
func (Fork) CommandType() string { return "fork" }

func (c Fork) check() error {
	if _, err := ParseAgentID(c.Fork); err != nil {
		return Refuse(BadInput, "a fork names the new agent: %v", err)
	}
	return nil
}

// BeginFork is the command to an agent without events to begin as a fork.
type BeginFork struct {
	ID string `json:"id"`
	// Parent is the full address of the parent.
	Parent string `json:"parent"`
	// At is the newest event that both have.
	At EventNumber `json:"at"`
	// Set is what the fork has in place of its kind's definition.
	Set    ForkChanges `json:"set,omitzero"`
	Reason string      `json:"reason,omitempty"`
}

// CommandType returns "begin_fork".
func (BeginFork) CommandType() string { return "begin_fork" }

func (c BeginFork) check() error {
	if _, err := ParseAgentID(c.Parent); err != nil || c.ID == "" || c.At == 0 {
		return Refuse(BadInput, "a begin_fork names its parent and an event of it")
	}
	return nil
}

// ForkEffect is the outcome of a begin_fork, for the parent.
type ForkEffect struct {
	ID string `json:"id"`
	// Fork is the full address of the fork.
	Fork string `json:"fork"`
	// Begin is the id of the begin_fork.
	Begin string `json:"begin"`
	// N is the first event of the fork's own. 0: it has not begun.
	N EventNumber `json:"n,omitempty"`
	// Refused is why it has not begun, as a word to branch on. Empty: it has.
	Refused Code `json:"refused,omitempty"`
	// Message is the reason for a person.
	Message string `json:"message,omitempty"`
}

// CommandType returns "fork_effect".
func (ForkEffect) CommandType() string { return "fork_effect" }

func (c ForkEffect) check() error {
	if c.Fork == "" || c.Begin == "" {
		return Refuse(BadInput, "a fork_effect names its fork and the begin_fork")
	}
	return nil
}

// UseTools lets a fork or a dry import run its tools. Until then its calls have recorded results, or
// wait for a person.
type UseTools struct {
	ID     string `json:"id"`
	Reason string `json:"reason,omitempty"`
}

// CommandType returns "use_tools".
func (UseTools) CommandType() string { return "use_tools" }

// Detach copies the events of the parent into the fork. The parent can then be deleted.
type Detach struct {
	ID     string `json:"id"`
	Reason string `json:"reason,omitempty"`
}

// CommandType returns "detach".
func (Detach) CommandType() string { return "detach" }

// ForkRequested records that a fork of the agent is to begin.
type ForkRequested struct {
	// Fork is the full address of the fork.
	Fork string `json:"fork"`
	// At is the newest event that both have.
	At EventNumber `json:"at"`
	// Begin is the id of the command that begins the fork.
	Begin string `json:"begin"`
	// Set is what the fork has in place of its kind's definition.
	Set    ForkChanges `json:"set,omitzero"`
	Reason string      `json:"reason,omitempty"`
}

// EventType returns "fork.requested".
func (ForkRequested) EventType() string { return "fork.requested" }

// ForkSettled records what became of a fork that was requested.
type ForkSettled struct {
	// Fork is the full address of the fork.
	Fork string `json:"fork"`
	// Begin is the id of the command that begins the fork.
	Begin string `json:"begin"`
	// N is the first event of the fork's own. 0: it has not begun.
	N EventNumber `json:"n,omitempty"`
	// Refused is why it has not begun, as a word to branch on. Empty: it has.
	Refused Code `json:"refused,omitempty"`
	// Message is the reason for a person.
	Message string `json:"message,omitempty"`
}

// EventType returns "fork.settled".
func (ForkSettled) EventType() string { return "fork.settled" }

// AgentForked is the first event of a fork's own log. Its events up to At are those of its parent.
type AgentForked struct {
	// Agent is the full address of the fork.
	Agent string `json:"agent"`
	// Parent is the full address of the agent that it was forked from.
	Parent string `json:"parent"`
	// At is the newest event that both have.
	At EventNumber `json:"at"`
	// Digest is that of the parent's frame that holds event At.
	Digest Digest `json:"digest"`
	// Turn is the parent's turn that was running or paused at At. Empty: none was.
	Turn TurnID `json:"turn,omitempty"`
	// Set is what the fork has in place of its kind's definition.
	Set    ForkChanges `json:"set,omitzero"`
	Reason string      `json:"reason,omitempty"`
}

// EventType returns "agent.forked".
func (AgentForked) EventType() string { return "agent.forked" }

// ToolsEnabled records that a fork, or a dry import, runs its tools from this event on.
type ToolsEnabled struct {
	Reason string `json:"reason,omitempty"`
}

// EventType returns "tools.enabled".
func (ToolsEnabled) EventType() string { return "tools.enabled" }

// ForkDetached records that a fork has a copy of its parent's events. The parent can be deleted.
type ForkDetached struct {
	// Frames is the blob with the events before agent.forked, as package eventlog/prefix writes it. In
	// an export it names no blob: they are in the file.
	Frames *Blob `json:"frames,omitempty"`
	// Last is the newest event in it.
	Last EventNumber `json:"last"`
	// Digest is that of the frame that holds event Last.
	Digest Digest `json:"digest"`
	Reason string `json:"reason,omitempty"`
}

// EventType returns "fork.detached".
func (ForkDetached) EventType() string { return "fork.detached" }

func (ev ForkDetached) visited(v visit) (Event, error) {
	err := v.one(nil, &ev.Frames, BlobFrames)
	return ev, err
}

// MaxPrefixes is how many logs of others an agent's log may begin with: that of a fork of a fork begins
// with two.
const MaxPrefixes = 16

// Prefix is the part of another agent's log that an agent's log begins with.
type Prefix struct {
	// Agent is in whose log it is. Zero: it is in Frames.
	Agent AgentID
	// Frames is a blob of the agent itself that holds the prefix. Zero: it is in the log of Agent.
	Frames Blob
	// Last is the newest event of it, Digest that of the frame that holds it.
	Last   EventNumber
	Digest Digest
}

// PrefixOf returns the prefix that comes before a frame, and reports whether one does.
func PrefixOf(f *Frame) (Prefix, bool) {
	if f == nil || len(f.Events) == 0 {
		return Prefix{}, false
	}
	ev, ok := f.Events[0].(interface{ prefix() (Prefix, error) })
	if !ok {
		return Prefix{}, false
	}
	p, err := ev.prefix()
	return p, err == nil && p.Last+1 == f.First && (p.Agent != AgentID{} || p.Frames != Blob{})
}

// CopyOf returns the copy of its prefix that a fork has made with a frame, and reports whether it has.
func CopyOf(f *Frame) (Prefix, bool) {
	for _, ev := range f.Events {
		if ev, ok := ev.(interface{ copied() Prefix }); ok {
			p := ev.copied()
			return p, p.Frames != Blob{}
		}
	}
	return Prefix{}, false
}

// StoredPrefixOf returns the prefix whose frames are in a blob that a frame names, an import's or a
// copy's, and reports whether it names one.
func StoredPrefixOf(f *Frame) (Prefix, bool) {
	p, is := CopyOf(f)
	if !is {
		p, _ = PrefixOf(f)
	}
	return p, p.Frames != Blob{}
}

func (ev ForkDetached) copied() Prefix {
	p := Prefix{Last: ev.Last, Digest: ev.Digest}
	if ev.Frames != nil {
		p.Frames = *ev.Frames
	}
	return p
}

func (ev AgentForked) prefix() (Prefix, error) {
	parent, err := ParseAgentID(ev.Parent)
	return Prefix{Agent: parent, Last: ev.At, Digest: ev.Digest}, err
}
