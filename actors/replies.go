package actors

import "github.com/reprise-dev/reprise/messages"

// replies knows the subjects that inputs have named for their facts, while there may be
// something to send to them. The zero value has none.
type replies struct {
	// subjects are by input id.
	subjects map[string]string
	// ended are the inputs whose terminal event is in the newest frame: their subjects are still
	// known, so that it can be sent again.
	ended []string
	// scheduled reports that the newest frame has a fact for the sender of an input that is to
	// come later.
	scheduled bool
}

// any reports whether there may be something in the newest frame to send again.
func (r *replies) any() bool { return len(r.subjects) > 0 || r.scheduled }

// fold folds the next frame.
func (r *replies) fold(f *messages.Frame) {
	for _, input := range r.ended {
		delete(r.subjects, input)
	}
	r.ended, r.scheduled = nil, false
	for _, ev := range f.Events {
		switch subject, input := messages.ReplyOf(ev); {
		case subject == "":
		case !messages.Is(ev.EventType(), messages.Replied): // an input that is to come later
			r.scheduled = true
		default:
			if r.subjects == nil {
				r.subjects = make(map[string]string)
			}
			r.subjects[input] = subject
		}
		inputs, _ := messages.Ended(ev)
		for _, input := range inputs {
			if _, ok := r.subjects[input]; ok {
				r.ended = append(r.ended, input)
			}
		}
	}
}
