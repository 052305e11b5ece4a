package messages

// Delete ends an agent: its turn is aborted, its queue dropped, and everything stored
// of it is removed but for a tombstone. It is answered when that is done. An input
// that comes later creates the agent again, without anything of before.
type Delete struct {
	ID string `json:"id"`
	// Last is the number of the newest event that the caller knows of: an agent with a
	// newer one is left alone. Zero: it is deleted whatever it does.
	Last   EventNumber `json:"last,omitempty"`
	Reason string      `json:"reason,omitempty"`
}

// AgentDeleted is an agent's tombstone, in a frame of its own. Everything stored
// before it is removed, numbering continues after it, and ids used before are free again.
type AgentDeleted struct {
	Reason string `json:"reason,omitempty"`
	// Upto is how far the removal goes in the streams beside the log.
	Upto Extent `json:"upto,omitzero"`
}

// Extent is a position in each stream that keeps something of agents beside the log.
// What lies at or below it was stored before the tombstone that records it; what a later
// life of the agent stores lies above.
type Extent struct {
	Blobs     uint64 `json:"blobs,omitempty"`
	Snapshots uint64 `json:"snapshots,omitempty"`
	Letters   uint64 `json:"letters,omitempty"` // dead letters
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
