package messages

import "time"

// DeadLetter is an input that could never be applied, as the view dlq gives it.
type DeadLetter struct {
	// Seq is its number among the dead letters.
	Seq uint64 `json:"seq"`
	// Subject is what it was published to.
	Subject string `json:"subject"`
	Code    string `json:"code"`
	Reason  string `json:"reason"`
	// Received is when it was stored; zero if that is not known.
	Received time.Time `json:"received,omitzero"`
	// Size is that of the message that came, in bytes.
	Size int `json:"size"`
	// Body is the message as it came; Base64 has it instead if it is not UTF-8.
	Body    string              `json:"body,omitempty"`
	Base64  []byte              `json:"body_base64,omitempty"`
	Headers map[string][]string `json:"headers,omitempty"`
}
