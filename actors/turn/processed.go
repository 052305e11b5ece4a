package turn

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// The deduplication window: within it the same command id has its effect once.
const (
	windowIDs  = 4096             // the newest commands
	windowTime = 15 * time.Minute // and all that are no older than the newest by this
	windowMost = 4 * windowIDs    // but no more than this
)

// ProcessedError reports that a command with this id was processed before, at event N: it
// has no second effect, and its first answer stands. Ids are compared by 64 bits of their
// hash: a caller that is to answer confirms it in the log.
type ProcessedError struct {
	ID string
	N  messages.EventNumber

	digest uint32
}

// Same reports whether the first command with the id had this digest, which is that of
// messages.CommandDigest. It compares 32 bits.
func (e *ProcessedError) Same(digest string) bool { return e.digest == digestBits(digest) }

// Error names the id and the event.
func (e *ProcessedError) Error() string {
	return fmt.Sprintf("id %q was applied before, at event %d", e.ID, e.N)
}

// Processed returns the event that records the command with this id, and reports whether it
// is in the deduplication window.
func (s *State) Processed(id string) (messages.EventNumber, bool) {
	n, _, ok := s.processed.find(id)
	return n, ok
}

// repeated returns the refusal of a command whose id is in the window, or is that of an input
// that has left the window and still waits. Nil: it is neither.
func (s *State) repeated(id string) *ProcessedError {
	n, digest, ok := s.processed.find(id)
	if !ok {
		n = s.Inputs.Accepted(id)
	}
	if n == 0 {
		return nil
	}
	return &ProcessedError{id, n, digest}
}

// Record notes the command that a frame processed, and when it deleted the agent. Apply does
// it for frames from the log, the caller of Decide for the frame that it has made.
func (s *State) Record(f *messages.Frame) {
	s.Life.Written(f.Last(), f.Time)
	if f.Cause.Endpoint != "" && f.Cause.ID != "" { // a command is its cause
		s.processed.add(f.Cause, projections.AnswerOf(f).N, f.Time)
	}
}

// window holds the commands that were processed, oldest first, in the form in which a snapshot
// holds them. Its columns are only ever appended to and cut at the front, so that a copy of it
// stays what it is. The zero value is empty.
type window struct {
	// IDs holds for each command 64 bits of the hash of its id and 32 bits of its digest.
	IDs []byte `json:"ids"`
	// Steps holds for each command how far its event and its time are behind those of the one
	// before: a uvarint of twice the first, with bit 0 set if a varint of the seconds follows.
	Steps []byte `json:"steps"`
	// Cut is the newest command that was cut off, Newest that of all. Zero: there is none.
	Cut    moment `json:"cut"`
	Newest moment `json:"newest"`
}

// moment is where and when a command was processed.
type moment struct {
	N    messages.EventNumber `json:"n"`
	Time int64                `json:"time"` // in seconds since 1970
}

// idSize is how many bytes a command has in window.IDs.
const idSize = 8 + 4

// hashID is the first 64 bits of the SHA-256 of an id.
func hashID(id string) uint64 {
	sum := sha256.Sum256([]byte(id))
	return binary.BigEndian.Uint64(sum[:])
}

// digestBits are the first 32 bits of a digest, which is 16 digits of hex; 0 for none.
func digestBits(digest string) uint32 {
	n, _ := strconv.ParseUint(digest, 16, 64) // 0 for what no node has written
	return uint32(n >> 32)
}

// find returns the event and the digest of the command with this id, and reports whether there
// is one.
func (w *window) find(id string) (n messages.EventNumber, digest uint32, ok bool) {
	hash := hashID(id)
	for i := 0; i < len(w.IDs); i += idSize {
		if binary.BigEndian.Uint64(w.IDs[i:]) == hash {
			return w.at(i / idSize).N, binary.BigEndian.Uint32(w.IDs[i+8:]), true
		}
	}
	return 0, 0, false
}

// at returns when the command with this index was processed.
func (w *window) at(index int) moment {
	m, steps := w.Cut, w.Steps
	for range index + 1 {
		m, steps = m.step(steps)
	}
	return m
}

func (w *window) add(c messages.Cause, n messages.EventNumber, at time.Time) {
	w.IDs = binary.BigEndian.AppendUint64(w.IDs, hashID(c.ID))
	w.IDs = binary.BigEndian.AppendUint32(w.IDs, digestBits(c.Digest))
	last := w.Newest
	w.Newest = moment{n, at.Unix()}
	w.Steps = last.appendStep(w.Steps, w.Newest)
	for oldest := at.Add(-windowTime).Unix(); len(w.IDs) > windowIDs*idSize; w.IDs = w.IDs[idSize:] {
		first, steps := w.Cut.step(w.Steps)
		if first.Time >= oldest && len(w.IDs) <= windowMost*idSize {
			return
		}
		w.Cut, w.Steps = first, steps
	}
}

// appendStep appends the step from m to the next command.
func (m moment) appendStep(steps []byte, next moment) []byte {
	more, later := uint64(next.N-m.N)<<1, next.Time-m.Time
	if later == 0 {
		return binary.AppendUvarint(steps, more)
	}
	return binary.AppendVarint(binary.AppendUvarint(steps, more|1), later)
}

// step returns the command behind m by the first of the steps, and the steps behind it. Bytes that
// are no step lead to m and none.
func (m moment) step(steps []byte) (next moment, rest []byte) {
	more, size := binary.Uvarint(steps)
	if size <= 0 {
		return m, nil
	}
	next, rest = moment{m.N + messages.EventNumber(more>>1), m.Time}, steps[size:]
	if more&1 == 0 {
		return next, rest
	}
	later, size := binary.Varint(rest)
	if size <= 0 {
		return m, nil
	}
	next.Time += later
	return next, rest[size:]
}

// copy returns a copy for a snapshot.
func (w *window) copy() window {
	return window{slices.Clip(w.IDs), slices.Clip(w.Steps), w.Cut, w.Newest}
}

// valid reports whether a window that was decoded can be used.
func (w *window) valid() bool { return len(w.IDs)%idSize == 0 && len(w.IDs) <= windowMost*idSize }
