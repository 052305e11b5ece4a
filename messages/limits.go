package messages

import "time"

// The limits of what may be sent. Sizes are in bytes.
const (
	// MaxInput is the largest body of an input: the largest payload of NATS. The limit of a
	// server (max_payload) is usually lower.
	MaxInput = 64 << 20
	// MaxBody is the largest body of another command, and the largest size of an input without
	// its content: it fits into a frame together with the events that it causes.
	MaxBody = 384 << 10
	// MaxID is the longest idempotency key.
	MaxID = 256
	// MaxDenial is the longest text of a denial, and maxReason the longest reason of a command
	// and the longest name of its object. Several events of one frame may each hold a copy.
	MaxDenial = 8 << 10
	maxReason = 4 << 10
	// MaxPerson is the longest name of a person. Longer ones are cut.
	MaxPerson = 200
	// maxToken is the longest token of an address.
	maxToken = 128
	// maxReply is the longest reply subject: a server closes the connection of a client that
	// publishes to a subject longer than its control line.
	maxReply = 1024
	// maxDelay is how far ahead an input may be scheduled: ten years.
	maxDelay = 3653 * 24 * time.Hour
)

// MaxMessage is the longest message of an Error, in bytes. Refuse cuts the middle out of a
// longer one, such as one that quotes what it refuses.
const MaxMessage = 1024

// The limits of children, unless a definition overrides them, and of the lists of waiting
// calls.
const (
	// MaxCallers is how many callers may be above a child.
	MaxCallers = 8
	// MaxChildren is how many children the calls of one turn may create.
	MaxChildren = 64
	// MaxWaits is how many waiting calls of its descendants an agent lists.
	MaxWaits = 32
)
