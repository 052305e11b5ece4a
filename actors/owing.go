package actors

import "github.com/reprise-dev/reprise/messages"

// owing knows the subjects that inputs have named for their facts, while there may
// be something to send there. The zero value owes nothing.
type owing struct {
	// subjects are by input id.
	subjects map[string]string
	// ended are the inputs whose terminal event is in the newest frame: their
	// subjects are still known, so that it can be sent again.
	ended []string
	// scheduled says that the newest frame owes somebody word of an input that is to
	// come later.
	scheduled bool
}

// any says that there may be something in the newest frame to send again.
func (o *owing) any() bool { return len(o.subjects) > 0 || o.scheduled }

// fold folds the next frame.
func (o *owing) fold(f *messages.Frame) {
	for _, input := range o.ended {
		delete(o.subjects, input)
	}
	o.ended, o.scheduled = nil, false
	for _, ev := range f.Events {
		switch subject, input := messages.ReplyOf(ev); {
		case subject == "":
		case !messages.Is(ev.EventType(), messages.Replied): // an input that is to come later
			o.scheduled = true
		default:
			if o.subjects == nil {
				o.subjects = make(map[string]string)
			}
			o.subjects[input] = subject
		}
		inputs, _ := messages.Ended(ev)
		for _, input := range inputs {
			if _, ok := o.subjects[input]; ok {
				o.ended = append(o.ended, input)
			}
		}
	}
}
