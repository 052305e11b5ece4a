package messages

// Import makes an agent without events one whose log begins with exported events: those that an
// export file holds of an agent, which may be of another installation. They are stored as a blob of
// the agent before the command is sent.
type Import struct {
	ID string `json:"id"`
	// Source is the full address of the agent that was exported.
	Source string `json:"source"`
	// Frames is the blob with the exported events, as package eventlog/prefix writes it.
	Frames Blob `json:"frames"`
	// Last is the newest event in it.
	Last EventNumber `json:"last"`
	// Digest is that of the frame that holds event Last.
	Digest Digest `json:"digest"`
	// File is the digest of the agent's lines in the export file.
	File Digest `json:"file"`
	// Redacted are the names of the rules by which texts in the file were replaced. Empty: none were.
	Redacted []string `json:"redacted,omitempty"`
	// Dry keeps the agent from calling tools until it gets the command use_tools, as with a fork.
	Dry bool `json:"dry,omitempty"`
	// Set is what the agent has in place of its kind's definition, and of what the exported agent had
	// as a fork.
	Set    ForkChanges `json:"set,omitzero"`
	Reason string      `json:"reason,omitempty"`
}

// maxImported is the highest number that an imported event may have. JSON holds numbers up to 1<<53
// exactly, and so those of the events that follow.
const maxImported = 1 << 52

// CommandType returns "import".
func (Import) CommandType() string { return "import" }

func (c Import) check() error {
	if _, err := ParseAgentID(c.Source); err != nil || c.Frames.SHA256 == "" || c.Last == 0 || c.Last > maxImported || c.Digest == "" {
		return Refuse(BadInput, "an import names the agent that was exported, and the blob with its frames: use `reprise import`")
	}
	return nil
}

// AgentImported is the first event of an imported agent's own log. The events before it are those of
// another agent, and are kept as a blob of this one.
type AgentImported struct {
	// Agent is the full address of this agent.
	Agent string `json:"agent"`
	// Source is the full address of the agent that was exported.
	Source string `json:"source"`
	// Frames is the blob with the events before this one, as package eventlog/prefix writes it. In an
	// export it names no blob: they are in the file.
	Frames *Blob `json:"frames,omitempty"`
	// Last is the newest event in it.
	Last EventNumber `json:"last"`
	// Digest is that of the frame that holds event Last.
	Digest Digest `json:"digest"`
	// File is the digest of the agent's lines in the export file.
	File Digest `json:"file,omitempty"`
	// Redacted are the names of the rules by which texts in the file were replaced. Empty: none were.
	Redacted []string `json:"redacted,omitempty"`
	// Dry reports whether tools are not called until tools.enabled.
	Dry bool `json:"dry,omitempty"`
	// Turn is the turn that was running or paused at Last. Empty: none was.
	Turn TurnID `json:"turn,omitempty"`
	// Set is what the agent has in place of its kind's definition.
	Set    ForkChanges `json:"set,omitzero"`
	Reason string      `json:"reason,omitempty"`
}

// EventType returns "agent.imported".
func (AgentImported) EventType() string { return "agent.imported" }

func (ev AgentImported) prefix() (Prefix, error) {
	p := Prefix{Last: ev.Last, Digest: ev.Digest}
	if ev.Frames != nil {
		p.Frames = *ev.Frames
	}
	return p, nil
}

func (ev AgentImported) visited(v visit) (Event, error) {
	err := v.one(nil, &ev.Frames, BlobFrames)
	return ev, err
}

// ImportedFile returns the digest of the lines of an export file that an agent with this first event was
// imported from. Empty: it was not imported.
func ImportedFile(ev Event) Digest {
	if from, ok := ev.(interface{ importedFile() Digest }); ok {
		return from.importedFile()
	}
	return ""
}

func (ev AgentImported) importedFile() Digest { return ev.File }
