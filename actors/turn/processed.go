package turn

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/reprise-dev/reprise/messages"
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

	digest uint64
}

// Same reports whether the command's content has this digest, as messages.CommandDigest
// returns it, too.
func (e *ProcessedError) Same(digest string) bool { return e.digest == digestBits(digest) }

// Error names the id and the event.
func (e *ProcessedError) Error() string {
	return fmt.Sprintf("id %q was applied before, at event %d", e.ID, e.N)
}

// Processed returns the event that records the command with this id, and reports whether it
// is in the deduplication window.
func (s *State) Processed(id string) (messages.EventNumber, bool) {
	if err := s.repeated(id); err != nil {
		return err.N, true
	}
	return 0, false
}

// repeated returns the refusal of a command whose id is in the window; nil if it is not.
func (s *State) repeated(id string) *ProcessedError {
	i := s.processed.find(id)
	if i < 0 {
		return nil
	}
	return &ProcessedError{id, s.processed.events[i], s.processed.digests[i]}
}

// Record notes the command that a frame processed, and when it deleted the agent. Apply does
// it for frames from the log, the caller of Decide for the frame that it has made.
func (s *State) Record(f *messages.Frame) {
	s.Life.Written(f.Last(), f.Time)
	if n, ok := processedBy(f); ok {
		s.processed.add(f.Cause, n, f.Time)
	}
}

// processedBy returns the event that records the command of a frame: for an input its
// input.accepted or timer.set, else the frame's first. It reports whether a command is the
// frame's cause.
func processedBy(f *messages.Frame) (messages.EventNumber, bool) {
	if f.Cause.Endpoint == "" || f.Cause.ID == "" {
		return 0, false
	}
	for i, ev := range f.Events {
		_, accepted := ev.(messages.InputAccepted)
		if set, is := ev.(messages.TimerSet); accepted || is && set.Input != nil {
			return f.First + messages.EventNumber(i), true
		}
	}
	return f.First, true
}

// window holds the commands that were processed, oldest first. Its columns are only ever
// appended to and cut at the front, so that a copy of it stays what it is. The zero value is
// empty.
type window struct {
	hashes  []uint64 // of ids
	digests []uint64 // of contents
	events  []messages.EventNumber
	times   []int64 // in seconds since 1970
}

// hashID is the first 64 bits of the SHA-256 of an id.
func hashID(id string) uint64 {
	sum := sha256.Sum256([]byte(id))
	return binary.BigEndian.Uint64(sum[:])
}

// digestBits is the number that a digest is the hex of; 0 for none.
func digestBits(digest string) uint64 {
	n, _ := strconv.ParseUint(digest, 16, 64) // 0 for what no node has written
	return n
}

// find returns where the id is in the columns; -1 if it is not.
func (w *window) find(id string) int {
	return slices.Index(w.hashes, hashID(id))
}

func (w *window) add(c messages.Cause, n messages.EventNumber, at time.Time) {
	w.hashes, w.digests = append(w.hashes, hashID(c.ID)), append(w.digests, digestBits(c.Digest))
	w.events, w.times = append(w.events, n), append(w.times, at.Unix())
	old, oldest := 0, at.Add(-windowTime).Unix()
	for len(w.hashes)-old > windowIDs && (w.times[old] < oldest || len(w.hashes)-old > windowMost) {
		old++
	}
	w.hashes, w.digests, w.events, w.times = w.hashes[old:], w.digests[old:], w.events[old:], w.times[old:]
}

// pack returns the window for a snapshot: for each command its hash and its digest, then the
// differences of event number and time to the one before.
func (w *window) pack() []byte {
	b := make([]byte, 0, 19*len(w.hashes))
	n, at := messages.EventNumber(0), int64(0)
	for i, hash := range w.hashes {
		b = binary.BigEndian.AppendUint64(b, hash)
		b = binary.BigEndian.AppendUint64(b, w.digests[i])
		b = binary.AppendUvarint(b, uint64(w.events[i]-n))
		b = binary.AppendVarint(b, w.times[i]-at)
		n, at = w.events[i], w.times[i]
	}
	return b
}

// unpackWindow reads what pack has written, and reports whether it could.
func unpackWindow(b []byte) (w window, ok bool) {
	n, at := messages.EventNumber(0), int64(0)
	for len(b) > 0 {
		if len(b) < 16 || len(w.hashes) == windowMost {
			return window{}, false
		}
		hash, digest := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
		b = b[8:]
		more, size := binary.Uvarint(b[8:])
		if size <= 0 {
			return window{}, false
		}
		b = b[8+size:]
		later, size := binary.Varint(b)
		if size <= 0 {
			return window{}, false
		}
		b = b[size:]
		n, at = n+messages.EventNumber(more), at+later
		w.hashes, w.digests = append(w.hashes, hash), append(w.digests, digest)
		w.events, w.times = append(w.events, n), append(w.times, at)
	}
	return w, true
}
