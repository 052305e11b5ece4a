package verify

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/reprise-dev/reprise/projections"
)

// shownValue is how many bytes of a value of an event are shown.
const shownValue = 400

// Text describes the result for a person, in lines of printable text.
func (v Result) Text() string {
	var b strings.Builder
	switch v.Result {
	case Differs:
		v.differenceText(&b)
	case Unreadable:
		fmt.Fprintf(&b, "%s: cannot be read: %s\n", v.Agent, projections.Printable(v.Why, shownValue))
	default:
		fmt.Fprintf(&b, "%s: equal, %d events\n", v.Agent, v.Events)
	}
	if v.Difference == nil || v.Difference.Why == "" {
		for _, c := range v.Changes {
			fmt.Fprintf(&b, "  its definition has changed, with no difference so far: %s\n", projections.Printable(c.String(), shownValue))
		}
	}
	for _, u := range v.Unchecked {
		fmt.Fprintf(&b, "  not checked: %s (%d)\n", u.What, u.Count)
	}
	return b.String()
}

// differenceText writes both sides of a difference and where it comes from.
func (v Result) differenceText(b *strings.Builder) {
	d := v.Difference
	fmt.Fprintf(b, "%s: differs at event %d, after %d that are equal; it came of %s\n", v.Agent, d.N, v.Events, projections.Printable(d.Cause, shownValue))
	switch {
	case d.Refused != "":
		fmt.Fprintf(b, "  recorded: %s %s\n  now:      refused: %s\n", d.Type, value(d.Recorded), projections.Printable(d.Refused, shownValue))
	case len(d.Fields) > 0:
		fmt.Fprintf(b, "  %s\n", d.Type)
		for _, f := range d.Fields {
			fmt.Fprintf(b, "  %s\n    recorded: %s\n    now:      %s\n", projections.Printable(f.Path, shownValue), value(f.Recorded), value(f.Now))
		}
	default:
		fmt.Fprintf(b, "  recorded: %s\n  now:      %s\n", sideText(d.Type, d.Recorded), sideText(d.NowType, d.Now))
	}
	if d.Why != "" {
		fmt.Fprintf(b, "  why: %s\n", projections.Printable(d.Why, 4*shownValue))
	}
}

func sideText(name string, event json.RawMessage) string {
	if name == "" {
		return "no event"
	}
	return name + " " + value(event)
}

// value returns a JSON value as a line; one that is not there is named.
func value(v json.RawMessage) string {
	if v == nil {
		return "none"
	}
	return projections.Printable(string(v), shownValue)
}
