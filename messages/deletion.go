package messages

// Delete deletes an agent: its turn is aborted, its queue dropped, and everything stored of
// it except a tombstone is removed. It is answered when that is done. A later input creates
// the agent again, without its past.
type Delete struct {
	ID string `json:"id"`
	// Last is the number of the newest event that the caller has seen: an agent with a
	// newer one is not deleted. 0: it is deleted in any case.
	Last   EventNumber `json:"last,omitempty"`
	Reason string      `json:"reason,omitempty"`
}

// CommandType returns "delete".
func (Delete) CommandType() string { return "delete" }

// AgentDeleted is an agent's tombstone, in a frame of its own. Everything stored
// before it is removed, numbering continues after it, and ids used before are free again.
type AgentDeleted struct {
	Reason string `json:"reason,omitempty"`
	// Upto is how far the removal goes in the streams beside the log.
	Upto Extent `json:"upto,omitzero"`
}

// EventType returns "agent.deleted".
func (AgentDeleted) EventType() string { return "agent.deleted" }

// Extent is a position in each stream besides the log that stores data of agents. Data at
// or below it was stored before the tombstone that records it; what the agent stores when
// it is created again lies above.
type Extent struct {
	// Blobs is a sequence of the stream of blobs.
	Blobs uint64 `json:"blobs,omitempty"`
	// Snapshots is a sequence of the stream of snapshots.
	Snapshots uint64 `json:"snapshots,omitempty"`
	// DeadLetters is a sequence of the stream of dead letters.
	DeadLetters uint64 `json:"dead_letters,omitempty"`
}

// Inventory is what is stored of an agent now, without the definitions that it shares with
// others: the line of the view inventory.
type Inventory struct {
	Agent AgentID `json:"agent"`
	// Last is the number of the newest event.
	Last EventNumber `json:"last"`
	// Deleted reports whether the agent is deleted, and this is what is left of it.
	Deleted bool `json:"deleted,omitempty"`
	// Damaged is why its log cannot be read to the end. The numbers below count what is
	// before the damage.
	Damaged string `json:"damaged,omitempty"`
	// Children is how many agents it has created. They are not deleted with it.
	Children int `json:"children,omitempty"`
	// ChildAgents are the addresses of the first of them.
	ChildAgents []AgentID `json:"child_agents,omitempty"`
	// Frames is how many frames its log has.
	Frames int `json:"frames"`
	// Events is how many events these frames hold.
	Events int `json:"events"`
	// Bytes is the size of these frames together.
	Bytes int64 `json:"bytes"`
	// Blobs is how many large payloads of it are stored.
	Blobs int `json:"blobs"`
	// BlobBytes is the size of these payloads together.
	BlobBytes int64 `json:"blob_bytes"`
	// Snapshots is how many snapshots of it are stored.
	Snapshots int `json:"snapshots"`
	// DeadLetters is how many dead letters of it are stored.
	DeadLetters int `json:"dead_letters"`
	// Encrypted reports whether a key of the agent is stored. Without it the agent's encrypted
	// data cannot be read.
	Encrypted bool `json:"encrypted"`
	// Waiting is how many inputs and commands are not applied yet. A delete is applied after
	// them.
	Waiting int `json:"waiting"`
}
