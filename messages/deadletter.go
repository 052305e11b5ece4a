package messages

import "time"

// DeadLetter is an input that can never be applied: a line of the view dlq.
type DeadLetter struct {
	// Seq is its number among the dead letters.
	Seq uint64 `json:"seq"`
	// Subject is the subject that it was published to.
	Subject string `json:"subject"`
	// Code is the code of the refusal.
	Code   string `json:"code"`
	Reason string `json:"reason"`
	// Received is when it was stored. Zero: unknown.
	Received time.Time `json:"received,omitzero"`
	// Size is the size of the message, in bytes.
	Size int `json:"size"`
	// Body is the message as received, if it is UTF-8.
	Body string `json:"body,omitempty"`
	// Base64 is the message as received, if it is not UTF-8.
	Base64 []byte `json:"body_base64,omitempty"`
	// Headers are the headers of the message, and those that hold the reason.
	Headers map[string][]string `json:"headers,omitempty"`
}
