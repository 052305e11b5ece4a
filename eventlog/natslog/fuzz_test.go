package natslog

import (
	"testing"

	"github.com/nats-io/nats.go"
)

// FuzzHeaders reads a message's headers, by any writer: a line is read whole or
// refused, and a summary that was read is written again as one that reads the same.
func FuzzHeaders(f *testing.F) {
	f.Add("1 01J 3 7 9 1767225700000000000", "paused t5 - 1767225700000000000 2")
	f.Add("0 x 1 1 1 1", "idle - - -")
	f.Add("", "running t1 open")
	f.Fuzz(func(t *testing.T, frame, state string) {
		h := nats.Header{headerFrame: {frame}, headerState: {state}}
		if got, err := parseHeading(h); err == nil && got.id == "" {
			t.Fatalf("%q names no frame", frame)
		}
		s, err := parseSummary(h)
		if err != nil {
			return
		}
		again, err := parseSummary(nats.Header{headerState: {stateLine(s)}})
		if err != nil || !again.Due.Equal(s.Due) || again.Phase != s.Phase || again.Turn != s.Turn || again.Open != s.Open || again.Waiting != s.Waiting {
			t.Fatalf("%q was read as %+v, and what that writes as %+v, %v", state, s, again, err)
		}
	})
}
