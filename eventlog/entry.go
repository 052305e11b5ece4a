package eventlog

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// MaxFrame is the largest frame that any log takes, in bytes. A log may take
// less: natslog stays below half of what its server lets through.
const MaxFrame = 512 << 10

// MaxTypes bounds a frame's event types, written one after the other: they
// travel as a header, and headers are small.
const MaxTypes = 16 << 10

// Validate says whether a log may try to store the entry at all. It wraps
// [ErrTooLarge] for what no log takes, and is a *DamageError for a frame that
// does not follow Expect. Every log calls it first.
func (e Entry) Validate() error {
	if e.Frame == nil || len(e.Bytes) == 0 {
		return errors.New("an entry needs a frame and its bytes")
	}
	if err := e.Agent.Validate(); err != nil {
		return err
	}
	for _, t := range [...]struct{ what, token string }{{"frame id", string(e.Frame.ID)}, {"phase", string(e.Summary.Phase)}, {"turn", string(e.Summary.Turn)}} {
		if t.token == "" && t.what == "turn" {
			continue
		}
		if err := messages.ValidateToken(t.what, t.token); err != nil {
			return err
		}
	}
	if err := Check(e.Expect, Recorded{Agent: e.Agent, Frame: e.Frame}); err != nil {
		return err
	}
	if len(e.Bytes) > MaxFrame {
		return fmt.Errorf("frame %s of %s has %d bytes, the limit is %d: %w", e.Frame.ID, e.Agent, len(e.Bytes), MaxFrame, ErrTooLarge)
	}
	return e.checkTypes()
}

func (e Entry) checkTypes() error {
	size := 0
	for _, ev := range e.Frame.Events {
		size += len(ev.EventType()) + 1
	}
	if size > MaxTypes {
		return fmt.Errorf("frame %s of %s has %d events, their types alone take %d bytes and the limit is %d: %w",
			e.Frame.ID, e.Agent, len(e.Frame.Events), size, MaxTypes, ErrTooLarge)
	}
	return nil
}

// Tail is the agent's tail once the entry is stored at seq.
func (e Entry) Tail(seq uint64) Tail {
	f := e.Frame
	return Tail{Seq: seq, Frame: f.ID, Digest: messages.DigestOf(e.Bytes), Last: f.Last(), Epoch: f.Epoch,
		Time: time.Unix(0, f.Time.UnixNano()).UTC()}
}

// Types are the types of the frame's events, in order, with blanks between.
func (e Entry) Types() string {
	if len(e.Frame.Events) == 1 {
		return e.Frame.Events[0].EventType()
	}
	var b strings.Builder
	for i, ev := range e.Frame.Events {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(ev.EventType())
	}
	return b.String()
}
