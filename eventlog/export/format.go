package export

import (
	"encoding/json"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Format is the format of the files that this version writes and reads.
const Format = 1

// magic is the value of the field by which a Head is recognized.
const magic = "export"

// MaxLine is the longest line that is read or written, in bytes: several times that of the largest
// frame.
const MaxLine = 32 << 20

// pieceSize is how many bytes of a blob stand in one line.
const pieceSize = 192 << 10

// Head begins an agent.
type Head struct {
	// Reprise is "export", Format the format of the file. A Writer sets both.
	Reprise string `json:"reprise"`
	Format  int    `json:"format"`
	// Program is the version of the program that has written the file.
	Program string `json:"program,omitempty"`
	// Agent is the full address.
	Agent string `json:"agent"`
	// At is when it was written.
	At time.Time `json:"at"`
	// Blobs reports whether the payloads that events refer to are in the file.
	Blobs bool `json:"blobs"`
	// Redacted are the names of the rules by which texts were replaced. Empty: none were.
	Redacted []string `json:"redacted,omitempty"`
}

// Definition is what an agent follows, as it is stored under its hash.
type Definition struct {
	Hash messages.Digest `json:"definition"` // SHA-256 of Data
	Data json.RawMessage `json:"data"`
}

// Piece is a part of a blob. Pieces of a blob follow one another.
type Piece struct {
	Blob   messages.Digest `json:"blob"` // SHA-256 of the whole
	Size   int64           `json:"size"` // of the whole
	Offset int64           `json:"offset"`
	Data   []byte          `json:"data"`
}

// End ends an agent.
type End struct {
	Frames int                  `json:"frames"`
	Events int                  `json:"events"`
	Last   messages.EventNumber `json:"last"` // number of the newest event
	// Definitions and Blobs are how many are in the file.
	Definitions int `json:"definitions"`
	Blobs       int `json:"blobs"`
	// Missing are definitions and blobs that events name and that were not stored any more.
	Missing []messages.Digest `json:"missing,omitempty"`
	// Redactions are how many texts each rule has replaced.
	Redactions map[string]int `json:"redactions,omitempty"`
	// SHA256 is of all lines of the agent before this one, with their line ends, in hex.
	SHA256 messages.Digest `json:"sha256"`
}

// Add counts a frame of the agent.
func (e *End) Add(f *messages.Frame) {
	e.Frames, e.Events, e.Last = e.Frames+1, e.Events+len(f.Events), f.Last()
}

// frameLine is the line of a frame. Only Frame is read back; all else is for other programs.
type frameLine struct {
	ID     messages.FrameID      `json:"id"`
	Epoch  messages.Epoch        `json:"epoch"`
	First  messages.EventNumber  `json:"first"`
	Last   messages.EventNumber  `json:"last"`
	Time   time.Time             `json:"time"`
	Cause  messages.Cause        `json:"cause"`
	Trace  messages.TraceContext `json:"trace,omitempty"`
	Events []eventLine           `json:"events"`
	// Frame is the frame as messages.EncodeFrame writes it.
	Frame []byte `json:"frame"`
}

// eventLine is an event for other programs.
type eventLine struct {
	N       messages.EventNumber `json:"n"`
	Type    string               `json:"type"`
	Version int                  `json:"version"` // of the schema of Data
	Data    json.RawMessage      `json:"data"`
}

// newFrameLine describes a frame that is encoded as stored. Data that JSON cannot hold is replaced
// by {"unreadable": why}.
func newFrameLine(f *messages.Frame, stored []byte) frameLine {
	line := frameLine{ID: f.ID, Epoch: f.Epoch, First: f.First, Last: f.Last(), Time: f.Time.UTC(), Cause: f.Cause, Trace: f.Trace, Frame: stored}
	for i, ev := range f.Events {
		data, err := json.Marshal(ev)
		if err != nil {
			data, _ = json.Marshal(map[string]string{"unreadable": err.Error()}) // a string encodes
		}
		line.Events = append(line.Events, eventLine{f.First + messages.EventNumber(i), ev.EventType(), messages.VersionOf(ev.EventType()), data})
	}
	return line
}
