package actors

import (
	"maps"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// replies holds the subjects that inputs have named for their facts, while there may be
// something to send to them. The zero value has none.
type replies struct {
	// Subjects are by input id.
	Subjects map[string]string `json:"subjects"`
	// Ended are the inputs whose terminal event is in the newest frame: their subjects and streams are
	// still known, so that it can be sent again.
	Ended []string `json:"ended"`
	// Scheduled reports that the newest frame has a fact for the sender of an input that is to
	// come later.
	Scheduled bool `json:"scheduled"`
	// Streams are the answers that endpoints stream to callers which cannot notice by
	// themselves that the endpoint is gone, by input id.
	Streams map[string]messages.Stream `json:"streams,omitempty"`
	// streaming reports that Streams has changed since the observer was notified.
	streaming bool
}

// any reports whether there may be something in the newest frame to send again.
func (r *replies) any() bool { return len(r.Subjects) > 0 || r.Scheduled }

// fold folds the next frame. A fork owes nothing to those who asked its parent.
func (r *replies) fold(f *messages.Frame) {
	if eventlog.Forks(f) {
		*r = replies{}
	}
	for _, input := range r.Ended {
		delete(r.Subjects, input)
		delete(r.Streams, input)
	}
	r.Ended, r.Scheduled = nil, false
	for _, ev := range f.Events {
		switch subject, input := projections.ReplyOf(ev); {
		case subject == "":
		case !messages.Is(ev.EventType(), messages.Replied): // an input that is to come later
			r.Scheduled = true
		default:
			if r.Subjects == nil {
				r.Subjects = make(map[string]string)
			}
			r.Subjects[input] = subject
		}
		if s := f.Cause.Stream; s != nil && projections.AcceptedInput(ev) == f.Cause.ID {
			if r.Streams == nil {
				r.Streams = make(map[string]messages.Stream)
			}
			r.Streams[f.Cause.ID], r.streaming = *s, true
		}
		inputs, _ := messages.Ended(ev)
		for _, input := range inputs {
			_, streamed := r.Streams[input]
			r.streaming = r.streaming || streamed
			if _, ok := r.Subjects[input]; ok || streamed {
				r.Ended = append(r.Ended, input)
			}
		}
	}
}

// notifyStreams notifies the observer of the answers that are streamed, if those have changed.
func (a *agent) notifyStreams() {
	if !a.replies.streaming {
		return
	}
	a.replies.streaming = false
	streams := maps.Clone(a.replies.Streams)
	for _, input := range a.replies.Ended {
		delete(streams, input)
	}
	a.observe(func(o Observer) { o.Streaming(a.id, streams) })
}

// endedLately is how old a frame of the owner before may be for its ends to be sent again.
const endedLately = 10 * time.Second

// notifyRestored does the same for an agent that was loaded: after a takeover also of answers whose end
// its newest frame holds, for the endpoint may have gone with the owner before it sent that.
func (a *agent) notifyRestored() {
	a.replies.streaming = len(a.replies.Streams) > 0
	if a.tail.Epoch < a.epoch && time.Since(a.tail.Time) < endedLately && len(a.replies.Ended) > 0 {
		streams := maps.Clone(a.replies.Streams)
		a.observe(func(o Observer) { o.Streaming(a.id, streams) })
	}
	a.notifyStreams()
}
