package messages

// Blob names a payload that is kept beside the log, because it is too large for
// a frame. It belongs to one agent.
type Blob struct {
	SHA256 Digest `json:"sha256"` // of its bytes, in hex
	Size   int64  `json:"size"`   // in bytes
}
