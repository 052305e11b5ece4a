package messages

// Delete ends an agent for good: its turn is aborted, its queue dropped, and
// everything that was ever stored of it is removed but for a tombstone. An input
// that comes later makes the agent anew and meets nothing of what was.
type Delete struct {
	ID string `json:"id"`
	// Last is the number of the newest event that whoever asks knows of: an agent
	// that has gone on since is left alone. Zero: it is deleted whatever it does.
	Last   EventNumber `json:"last,omitempty"`
	Reason string      `json:"reason,omitempty"`
}

// CommandType is "delete".
func (Delete) CommandType() string { return "delete" }

// CommandID is the command's idempotency key.
func (c Delete) CommandID() string { return c.ID }

// AgentClosed says that an agent that had something to do is to be deleted: it
// takes nothing any more, and its tombstone follows.
type AgentClosed struct {
	// Command is the id of the delete.
	Command string `json:"command"`
	Reason  string `json:"reason,omitempty"`
	// Person is who gave it. Nil: no one is named.
	Person *Person `json:"person,omitempty"`
}

// AgentDeleted is an agent's tombstone. It is a frame of its own: whatever was
// stored before it is removed, and numbering goes on behind it. All ids that
// were spent before are free again.
type AgentDeleted struct {
	Reason string `json:"reason,omitempty"`
}

// AgentPurged says that nothing is stored any more of what was before the
// tombstone. It counts what the owner removed who came to the end of it; an
// earlier one may have removed a part before its process died.
type AgentPurged struct {
	// Deleted is the number of the tombstone.
	Deleted EventNumber `json:"deleted"`
	Holdings
}

// Holdings is what is stored of an agent, beside the definitions it shares with
// others.
type Holdings struct {
	// Frames and their Events and Bytes are in the log.
	Frames int   `json:"frames"`
	Events int   `json:"events"`
	Bytes  int64 `json:"bytes"`
	// Blobs are large payloads, BlobBytes their sizes together.
	Blobs     int   `json:"blobs"`
	BlobBytes int64 `json:"blob_bytes"`
	Snapshots int   `json:"snapshots"`
	// Letters are dead letters.
	Letters int `json:"letters"`
	// Sealed says that a key was kept, without which what was sealed with it
	// cannot be read.
	Sealed bool `json:"sealed"`
}

// AgentHoldings is what is stored of an agent now: the line of the view holdings.
type AgentHoldings struct {
	Agent AgentID `json:"agent"`
	// Last is the number of the newest event.
	Last EventNumber `json:"last"`
	// Deleted says that this is what is left of a deleted agent.
	Deleted bool `json:"deleted,omitempty"`
	// Damaged is why its log cannot be read to the end; Holdings counts what is
	// before that.
	Damaged string `json:"damaged,omitempty"`
	// Children is how many agents it has called to life. They are agents of their
	// own, and stay. ChildAgents are the first of them.
	Children    int       `json:"children,omitempty"`
	ChildAgents []AgentID `json:"child_agents,omitempty"`
	Holdings
	// Waiting is how many inputs and commands are not applied yet. A delete comes
	// behind them.
	Waiting int `json:"waiting"`
}

// EventType is "agent.closed".
func (AgentClosed) EventType() string { return "agent.closed" }

// EventType is "agent.deleted".
func (AgentDeleted) EventType() string { return "agent.deleted" }

// EventType is "agent.purged".
func (AgentPurged) EventType() string { return "agent.purged" }
