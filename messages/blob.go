package messages

// Blob names a payload that is kept beside the log, because it is too large for
// a frame. It belongs to one agent.
type Blob struct {
	SHA256 Digest `json:"sha256"` // of its bytes, in hex
	Size   int64  `json:"size"`   // in bytes
	// Stored is the SHA-256 of what is kept, if that is sealed. Empty: it is kept
	// as it is, under SHA256.
	Stored Digest `json:"stored,omitempty"`
}

// Kept is the hash under which a store lists and removes the blob.
func (b Blob) Kept() Digest {
	if b.Stored != "" {
		return b.Stored
	}
	return b.SHA256
}
