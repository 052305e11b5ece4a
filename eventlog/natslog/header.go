package natslog

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// The headers of a frame; doc.go lays out their values.
const (
	headerStream = "Nats-Expected-Stream"
	headerFence  = "Nats-Expected-Last-Subject-Sequence"
	// headerFenceSubject makes the fence that of another subject. No frame of ours has it.
	headerFenceSubject = "Nats-Expected-Last-Subject-Sequence-Subject"
	headerFrame        = "Reprise-Frame"
	headerEvents       = "Reprise-Events"
	headerState        = "Reprise-State"
)

// publication is a message whose header map is used again: nats.go has
// written it out by the time a publish returns.
type publication struct {
	msg                                nats.Msg
	stream, fence, frame, types, state []string
}

var publications = sync.Pool{New: func() any {
	v := make([]string, 5)
	p := &publication{stream: v[0:1:1], fence: v[1:2:2], frame: v[2:3:3], types: v[3:4:4], state: v[4:5:5]}
	p.msg.Header = nats.Header{headerStream: p.stream, headerFence: p.fence, headerFrame: p.frame, headerEvents: p.types, headerState: p.state}
	return p
}}

// fill makes the publication that of an entry, but for its subjects and fence.
func (p *publication) fill(stream string, e eventlog.Entry) {
	p.msg.Data = e.Bytes
	p.stream[0] = stream
	p.frame[0], p.types[0], p.state[0] = frameLine(e.Frame), e.Types(), stateLine(e.Summary)
}

func (p *publication) release() {
	p.msg.Data, p.msg.Subject = nil, ""
	publications.Put(p)
}

func frameLine(f *messages.Frame) string {
	var space [128]byte
	return string(appendFrameLine(space[:0], f))
}

func appendFrameLine(b []byte, f *messages.Frame) []byte {
	b = strconv.AppendInt(b, messages.FrameFormat, 10)
	b = append(append(b, ' '), f.ID...)
	for _, n := range [...]uint64{uint64(f.Epoch), uint64(f.First), uint64(f.Last())} {
		b = strconv.AppendUint(append(b, ' '), n, 10)
	}
	return strconv.AppendInt(append(b, ' '), f.Time.UnixNano(), 10)
}

func stateLine(s eventlog.Summary) string {
	turn, owes := "-", "-"
	if s.Turn != "" {
		turn = string(s.Turn)
	}
	switch {
	case s.Open && s.Replies:
		owes = "open+replies"
	case s.Open:
		owes = "open"
	case s.Replies:
		owes = "replies"
	}
	var space [128]byte
	b := append(space[:0], s.Phase...)
	b = append(append(b, ' '), turn...)
	b = append(append(b, ' '), owes...)
	if b = append(b, ' '); s.Due.IsZero() {
		b = append(b, '-')
	} else {
		b = strconv.AppendInt(b, s.Due.UnixNano(), 10)
	}
	b = strconv.AppendInt(append(b, ' '), int64(s.Waiting), 10)
	if s.Failed != "" {
		b = append(append(append(b, ' '), failed...), s.Failed...)
	}
	return string(b)
}

// failed is the prefix of the reason of a failed turn.
const failed = "failed:"

// IsTombstone reports whether a message's headers are those of a tombstone.
func IsTombstone(h nats.Header) bool { return messages.Is(h.Get(headerEvents), messages.EndsAgent) }

// heading is what a frame's headers say.
type heading struct {
	id          messages.FrameID
	epoch       messages.Epoch
	first, last messages.EventNumber
	time        time.Time
}

// errForeign says that a message is no frame.
var errForeign = errors.New("the message has no " + headerFrame + " header")

func parseHeading(h nats.Header) (heading, error) {
	line, ok := h[headerFrame]
	if !ok || len(line) == 0 {
		return heading{}, errForeign
	}
	f := fields(line[0])
	if format := f.uint(); f.err == nil && format < 1 {
		f.err = errors.New("format 0")
	}
	got := heading{
		id:    messages.FrameID(f.next()),
		epoch: messages.Epoch(f.uint()),
		first: messages.EventNumber(f.uint()),
		last:  messages.EventNumber(f.uint()),
		time:  time.Unix(0, int64(f.uint())).UTC(),
	}
	if f.err != nil {
		return heading{}, fmt.Errorf("header %s: %q: %w", headerFrame, line[0], f.err)
	}
	return got, nil
}

func parseSummary(h nats.Header) (eventlog.Summary, error) {
	line := h.Get(headerState)
	f := fields(line)
	s := eventlog.Summary{Phase: messages.AgentPhase(f.next())}
	if turn := f.next(); turn != "-" {
		s.Turn = messages.TurnID(turn)
	}
	for owes := range strings.SplitSeq(f.next(), "+") {
		s.Open, s.Replies = s.Open || owes == "open", s.Replies || owes == "replies"
	}
	if due := f.next(); due != "-" && f.err == nil {
		ns, err := strconv.ParseInt(due, 10, 64)
		f.fail(err)
		s.Due = time.Unix(0, ns).UTC()
	}
	if f.rest != "" && f.err == nil { // v0.1.0 wrote no such field
		n := f.uint()
		if n > math.MaxInt32 {
			f.fail(errors.New("more calls wait than can be"))
		}
		s.Waiting = int(n)
	}
	if f.rest != "" && f.err == nil { // nor any version if no turn has failed
		if reason, ok := strings.CutPrefix(f.next(), failed); ok {
			s.Failed = reason
		}
	}
	if f.err != nil {
		return eventlog.Summary{}, fmt.Errorf("header %s: %q: %w", headerState, line, f.err)
	}
	return s, nil
}

// fieldReader takes a header's line apart; the first error stays.
type fieldReader struct {
	rest string
	err  error
}

func fields(line string) *fieldReader { return &fieldReader{rest: line} }

func (f *fieldReader) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

func (f *fieldReader) next() string {
	field, rest, _ := strings.Cut(f.rest, " ")
	if field == "" {
		f.fail(errors.New("a field is missing"))
	}
	f.rest = rest
	return field
}

func (f *fieldReader) uint() uint64 {
	n, err := strconv.ParseUint(f.next(), 10, 64)
	f.fail(err)
	return n
}
