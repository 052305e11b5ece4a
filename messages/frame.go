package messages

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// FrameFormat is the format of the frames that this version writes and reads.
const FrameFormat = 1

// FrameID names a frame: a ULID.
type FrameID string

// Digest is the SHA-256 of a frame's bytes, in hex. It chains an agent's
// frames: each names the one before it.
type Digest string

// DigestOf returns the digest of a frame's bytes, or of any others.
func DigestOf(b []byte) Digest {
	sum := sha256.Sum256(b)
	return digestText(sum[:])
}

// digestText returns a digest in hex.
func digestText(sum []byte) Digest {
	var space [2 * sha256.Size]byte
	return Digest(hex.AppendEncode(space[:0], sum))
}

// Endpoint is where a command was received.
type Endpoint string

// The endpoints.
const (
	EndpointIn     Endpoint = "in"     // the agent's input subject
	EndpointCtl    Endpoint = "ctl"    // the agent's command subject
	EndpointPrompt Endpoint = "prompt" // the prompt subject of the agent protocol
	EndpointClient Endpoint = "client" // a client in the process of the node
	EndpointPeer   Endpoint = "peer"   // another agent
)

// The types of a Cause that is no command.
const (
	CauseEffect   = "effect"   // what came of an effect
	CauseTakeover = "takeover" // the agent has a new owner
)

// Cause is the command or effect that a frame is the result of.
type Cause struct {
	// Type is a command's type, CauseEffect or CauseTakeover.
	Type string `json:"type"`
	// ID is the command's id, or the call's.
	ID string `json:"id,omitempty"`
	// Digest is that of the command's content, as [CommandDigest] returns it. Empty for
	// effects.
	Digest string `json:"digest,omitempty"`
	// By is the person who asked. Empty: no person is named.
	By string `json:"by,omitempty"`
	// Endpoint is where it was received. Empty for effects.
	Endpoint Endpoint `json:"endpoint,omitempty"`
	// Authenticated reports whether a login proves By. Otherwise the sender claims it.
	Authenticated bool `json:"authenticated,omitempty"`
	// Account is the NATS account of the sender, as its server reports it. Empty: unknown.
	Account string `json:"account,omitempty"`
	// Reason is the reason that the person gave.
	Reason string `json:"reason,omitempty"`
	// Stream is where the answer to an input is streamed to, for a caller that cannot find out by itself
	// that the node which does so is gone. Nil: none is.
	Stream *Stream `json:"stream,omitempty"`
}

// Stream is an answer that a node streams to a caller.
type Stream struct {
	// Node is the member whose endpoint does so, Reply the caller's subject.
	Node  string `json:"node"`
	Reply string `json:"reply"`
}

// Frame is one commit: events of one agent that are seen together or not at
// all. Package messages stores it as one msgpack map, see storedFrame.
type Frame struct {
	ID    FrameID
	Epoch Epoch
	First EventNumber // number of Events[0]
	// Prev and PrevDigest name the agent's frame before this one; empty for
	// its first.
	Prev       FrameID
	PrevDigest Digest
	Time       time.Time
	Cause      Cause
	// Trace is the trace context that the command came with. Empty: none, or no command is the
	// cause.
	Trace  TraceContext
	KeyID  string
	Events []Event

	encryptedOrigin []byte // nil: Cause and Trace are complete
}

// Last returns the number of the frame's last event.
func (f *Frame) Last() EventNumber { return f.First + EventNumber(len(f.Events)) - 1 }
