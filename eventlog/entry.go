package eventlog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// MaxFrame is the largest frame that any log takes, in bytes. A log may take
// less: natslog stays below half of what its server lets through.
const MaxFrame = 512 << 10

// MaxTypes is how many bytes the types of a frame's events may take as a header,
// which is small. A frame with more events lists each type once.
const MaxTypes = 4 << 10

// Validate reports whether a log may try to store the entry at all. It wraps
// [ErrTooLarge] for what is too large for any log, is a *DamageError for a frame
// that does not follow Expect, and wraps [ErrInvalid] for what else no log takes.
// Every log calls it first.
func (e Entry) Validate() error {
	if err := e.complete(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := follows(e.Expect, Recorded{Agent: e.Agent, Frame: e.Frame}); err != nil {
		return err
	}
	if len(e.Bytes) > MaxFrame {
		return fmt.Errorf("frame %s of %s has %d bytes, the limit is %d: %w", e.Frame.ID, e.Agent, len(e.Bytes), MaxFrame, ErrTooLarge)
	}
	return nil
}

// complete reports what the entry lacks, or what no header can carry.
func (e Entry) complete() error {
	if e.Frame == nil || len(e.Bytes) == 0 {
		return errors.New("an entry needs a frame and its bytes")
	}
	if err := e.Agent.Validate(); err != nil {
		return err
	}
	for _, t := range [...]struct{ what, token string }{{"frame id", string(e.Frame.ID)}, {"phase", string(e.Summary.Phase)}, {"turn", string(e.Summary.Turn)}, {"failure", e.Summary.Failed}} {
		if t.token == "" && (t.what == "turn" || t.what == "failure") {
			continue
		}
		if err := messages.ValidateToken(t.what, t.token); err != nil {
			return err
		}
	}
	return nil
}

// Position returns the position of the entry's frame once it is stored at seq.
func (e Entry) Position(seq uint64) Position {
	f := e.Frame
	return Position{Seq: seq, Frame: f.ID, Digest: messages.DigestOf(e.Bytes), Last: f.Last(), Epoch: f.Epoch,
		Time: time.Unix(0, f.Time.UnixNano()).UTC()}
}

// Types are the types of the frame's events with blanks between: in order, or,
// where that would take more than MaxTypes, each once, as it first appears.
func (e Entry) Types() string {
	names := make([]string, 0, 16)
	for _, ev := range e.Frame.Events {
		names = append(names, ev.EventType())
	}
	if all := strings.Join(names, " "); len(all) <= MaxTypes {
		return all
	}
	var once []string
	for _, name := range names {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	return strings.Join(once, " ")
}
