package actors

import (
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// replies holds the subjects that inputs have named for their facts, while there may be
// something to send to them. The zero value has none.
type replies struct {
	// Subjects are by input id.
	Subjects map[string]string `json:"subjects"`
	// Ended are the inputs whose terminal event is in the newest frame: their subjects are still
	// known, so that it can be sent again.
	Ended []string `json:"ended"`
	// Scheduled reports that the newest frame has a fact for the sender of an input that is to
	// come later.
	Scheduled bool `json:"scheduled"`
}

// any reports whether there may be something in the newest frame to send again.
func (r *replies) any() bool { return len(r.Subjects) > 0 || r.Scheduled }

// fold folds the next frame.
func (r *replies) fold(f *messages.Frame) {
	for _, input := range r.Ended {
		delete(r.Subjects, input)
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
		inputs, _ := messages.Ended(ev)
		for _, input := range inputs {
			if _, ok := r.Subjects[input]; ok {
				r.Ended = append(r.Ended, input)
			}
		}
	}
}
