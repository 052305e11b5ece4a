package turn

import (
	"fmt"
	"strings"

	"github.com/reprise-dev/reprise/messages"
)

// withhold adds to a failed turn's event from where on the history is withheld, because a model's
// server refused what was new in it, and the note in its place. A resume shows it again.
func (d *decision) withhold(ev *messages.TurnFailed) {
	m := d.s.Turn.Model
	if m == nil || m.Refused.Kind == "" {
		return
	}
	h := &d.s.History
	since, items, calls := h.Refused(d.s.Turn.ID)
	if ev.Withheld = since; since != 0 {
		ev.Note = withheldNote(m.Refused.Kind, h.Refusing(), items, calls)
	}
}

// The bounds of a note about withheld calls.
const (
	noteCalls = 20
	noteText  = 200 // bytes of the arguments and of the result of each
)

// withheldNote returns what a model reads in place of items that its server refused. It names the
// calls among them and those before, so that they are not made twice. Their texts are left out if a
// filter would refuse them again, or a note with them was refused.
func withheldNote(kind messages.ModelFailure, again bool, items []messages.Item, calls []string) string {
	results := make(map[messages.CallID]string)
	for _, item := range items {
		if item.Type == messages.ItemCallOutput {
			if results[item.CallID] = item.Output; item.Blob != nil {
				results[item.CallID] = fmt.Sprintf("(%d bytes)", item.Blob.Size)
			}
		}
	}
	for _, item := range items {
		switch {
		case item.Type != messages.ItemCall:
		case again || kind == messages.ModelFailureContentFilter:
			calls = append(calls, item.Name)
		default:
			calls = append(calls, fmt.Sprintf("%s(%s) = %s", item.Name, shorten(item.Arguments, noteText), shorten(results[item.CallID], noteText)))
		}
	}
	what := "A turn failed here: the model's server refused the request (%s). What was new in it is left out."
	if again {
		what = "Turns failed here: the model's server refused the requests (%s). What was new in them is left out."
	}
	note := "[" + fmt.Sprintf(what, kind)
	if len(calls) > 0 {
		more := ""
		if n := len(calls) - noteCalls; n > 0 {
			calls, more = calls[:noteCalls], fmt.Sprintf("\nand %d more", n)
		}
		note += " These tool calls were made:\n" + strings.Join(calls, "\n") + more
	}
	return note + "]"
}
