package actors

import (
	"log/slog"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// Deliver asks a partition to pass a command to one of its agents. It is
// answered by a messages.Answer once the command's events are in the log, or refused.
type Deliver struct {
	Agent   messages.AgentID
	Command messages.Command
	// Cause is who asks, and through which endpoint; its Type and ID are taken
	// from Command.
	Cause messages.Cause
	// Deadline is when the endpoint gives the command up, by its clock: an owner that
	// comes to the command later refuses it. So an endpoint that was frozen sends no
	// command to an agent that was deleted meanwhile, whose window of ids is empty. Nodes'
	// clocks may differ by a second or two; a limit is many times that. If a clock is
	// further off, prompts sent by that node are refused too early (they are asked again,
	// in vain), or a command is taken late by as much. Zero: there is none.
	Deadline time.Time
	// Sent is when the endpoint had the command at the earliest, by its clock: one that it had
	// before the agent was deleted is not for the agent's next life. Zero: it is not known.
	Sent time.Time
	// Received is when this process got the command. An interrupt or abort that names no
	// turn stops the one that ran then. Zero: the one that runs when its agent gets it.
	Received time.Time

	// Unasked reports that the sender needs to know that the command was answered, and not the
	// answer: for a repeated command the first answer is then not read from the log.
	Unasked bool

	// Trace is the trace context that the command came with. Empty: none.
	Trace messages.TraceContext

	// digest is that of the command before its content was offloaded. Empty: it was not.
	digest string
}

// cause returns Cause with the command's own type, id and digest, whatever the sender has
// set.
func (d *Deliver) cause() messages.Cause {
	c := d.Cause
	c.Type, c.ID, c.Digest = d.Command.CommandType(), messages.IDOf(d.Command), d.digest
	if c.Digest == "" {
		c.Digest = messages.CommandDigest(d.Command)
	}
	if c.Endpoint == "" {
		c.Endpoint = messages.EndpointClient
	}
	return c
}

// LogValue keeps what users wrote out of logs.
func (d *Deliver) LogValue() slog.Value {
	return slog.StringValue("deliver " + d.Cause.Type + " " + d.Cause.ID + " to " + d.Agent.String())
}

// Activate asks a partition to activate an agent that owes work, or whose newest frame has
// replies that must be sent again. It is answered by a messages.Answer once the agent has
// continued.
type Activate struct {
	Agent messages.AgentID
	// Deletes reports whether the agent is to be deleted next: it is refused if it has forks.
	Deletes bool
	// Ahead is the agent's newest frame, if it has been read ahead: an agent that is not in memory
	// begins with it. Nil: it reads its log itself.
	Ahead *eventlog.Newest
}

// Commit is a frame that is now in the log.
type Commit struct {
	Agent messages.AgentID
	Seq   uint64
	Frame *messages.Frame
	// Phase and Turn are the agent's, as of the frame; Turn is empty when idle.
	Phase messages.AgentPhase
	Turn  messages.TurnID
	// Waiting is how many of its calls wait for a person.
	Waiting int
	// Failed is why the newest turn that ended has failed; empty: it has not. It is not
	// sent to followers on other nodes.
	Failed string
}

// Reply is a fact for the subject that an input's sender named.
type Reply struct {
	Agent   messages.AgentID
	Subject string
	Input   string
	N       messages.EventNumber
	At      time.Time
	Event   messages.Event
}

// Delta is a piece of a model's answer on its way, or the progress of a tool. It is not kept.
type Delta struct {
	Agent messages.AgentID `json:"-"`
	Turn  messages.TurnID  `json:"turn"`
	Call  messages.CallID  `json:"call"`
	// Kind is text, reasoning, or progress: Call is then the tool's.
	Kind string `json:"type"`
	Text string `json:"text"`
	// Child is the agent whose answer it is, where Agent is one above it: Turn and
	// Call are then Agent's, and Kind is child.text or child.reasoning.
	Child string `json:"child,omitempty"`
	// Above are the callers that get it, too, the nearest last. Nil: only the
	// agent's own followers do.
	Above []messages.Caller `json:"-"`
}

// Observer is notified of what agents do. Its methods are called from many
// goroutines, those for one agent's commits in order; they must not block. A
// panic in one is logged and changes nothing.
type Observer interface {
	Committed(Commit)
	// Owed hands over replies to send. After a takeover the newest ones are
	// handed over again.
	Owed([]Reply)
	Delta(Delta)
	// Streaming notifies of the answers that endpoints stream to callers, by input, when these
	// have changed, and when the agent is activated: then also of those whose end is in its newest
	// frame. It may keep the map.
	Streaming(a messages.AgentID, streams map[string]messages.Stream)
	// Fenced reports that an agent met a newer owner than this node.
	Fenced(a messages.AgentID, newer messages.Epoch)
}
