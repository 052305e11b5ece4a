package logtest

import (
	"context"
	"errors"
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

var reading = map[string]func(*testing.T, Opened){
	"a missing agent is empty": func(t *testing.T, o Opened) {
		wantFrames(t, o.Log, Agent("missing"))
		wantTail(t, o.Log, Agent("missing"), eventlog.Position{})
	},
	"reading begins with the frame that holds the event": func(t *testing.T, o Opened) {
		a, tail := Agent("ada"), eventlog.Position{}
		for range 4 {
			tail = appended(t, o.Log, Entry(t, a, tail, large(1), large(2), large(3)))
		}
		for from, want := range map[messages.EventNumber]messages.EventNumber{0: 1, 1: 1, 3: 1, 4: 4, 6: 4, 12: 10, 13: 0} {
			all, err := collect(o.Log, a, from)
			first := messages.EventNumber(0)
			if len(all) > 0 {
				first = all[0].Frame.First
			}
			if err != nil || first != want {
				t.Errorf("from %d begins with %d, %v; want %d", from, first, err, want)
			}
		}
	},
	"the first frame of a fork begins behind the events of its parent": func(t *testing.T, o Opened) {
		a := Agent("fork")
		tail := appended(t, o.Log, Entry(t, a, eventlog.Position{Last: 7}, messages.AgentForked{Agent: a.Full(), At: 7}, large(9)))
		for range 3 {
			tail = appended(t, o.Log, Entry(t, a, tail, large(1)))
		}
		for from, want := range map[messages.EventNumber]messages.EventNumber{0: 8, 1: 8, 7: 8, 9: 8, 10: 10, 12: 12} {
			all, err := collect(o.Log, a, from)
			if err != nil || len(all) == 0 || all[0].Frame.First != want || all[len(all)-1].Frame.Last() != 12 {
				t.Errorf("from %d: %d frames, %v; want them from %d on", from, len(all), err, want)
			}
		}
		wantTail(t, o.Log, a, tail)
	},
	"what is read is what was written": func(t *testing.T, o Opened) {
		if o.Encrypted {
			t.Skip("other bytes are kept")
		}
		e := Entry(t, Agent("ada"), eventlog.Position{}, large(7), messages.TurnStarted{Turn: "t2"})
		tail := appended(t, o.Log, e)
		all, err := collect(o.Log, e.Agent, 1)
		if err != nil || len(all) != 1 {
			t.Fatalf("read %d frames, %v", len(all), err)
		}
		r := all[0]
		if r.Agent != e.Agent || r.Seq != tail.Seq || r.Digest != messages.DigestOf(e.Bytes) || r.Size != len(e.Bytes) || r.Frame.ID != e.Frame.ID {
			t.Errorf("recorded %+v", r)
		}
		if again, err := messages.EncodeFrame(e.Agent, r.Frame); err != nil || string(again) != string(e.Bytes) {
			t.Errorf("the frame encodes to other bytes than those stored: %v", err)
		}
	},
	"ten thousand events": func(t *testing.T, o Opened) {
		a, tail := Agent("ada"), eventlog.Position{}
		ten := make([]messages.Event, 10)
		for i := range ten {
			ten[i] = large(i)
		}
		for range 1000 {
			tail = appended(t, o.Log, Entry(t, a, tail, ten...))
		}
		all, err := collect(o.Log, a, 1)
		if err != nil || len(all) != 1000 || all[999].Position() != tail || tail.Last != 10_000 {
			t.Fatalf("read %d frames up to %d, %v", len(all), tail.Last, err)
		}
	},
	// A85
	"a reader that leaves and returns misses and repeats nothing": func(t *testing.T, o Opened) {
		a := Agent("ada")
		tails := grow(t, o.Log, a, eventlog.Position{}, 12)
		for k := range 12 {
			var got []messages.FrameID
			last := messages.EventNumber(0)
			for r, err := range o.Log.Read(context.Background(), a, eventlog.Range{}) {
				if err != nil {
					t.Fatal(err)
				}
				got, last = append(got, r.Frame.ID), r.Frame.Last()
				if len(got) == k+1 {
					break
				}
			}
			rest, err := collect(o.Log, a, last+1)
			if err != nil || len(got)+len(rest) != len(tails) {
				t.Fatalf("left after %d frames, came back for %d, %v; want %d in all", len(got), len(rest), err, len(tails))
			}
			if len(rest) > 0 && rest[0].Frame.First != last+1 {
				t.Fatalf("came back to event %d after %d", rest[0].Frame.First, last)
			}
		}
	},
	"an ended context ends a reader with its error": func(t *testing.T, o Opened) {
		a := Agent("ada")
		grow(t, o.Log, a, eventlog.Position{}, 3)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		frames, errs := 0, 0
		for _, err := range o.Log.Read(ctx, a, eventlog.Range{}) {
			cancel()
			switch {
			case errors.Is(err, context.Canceled):
				errs++
			case err != nil || errs > 0:
				t.Fatalf("after %d errors: %v", errs, err)
			default:
				frames++
			}
		}
		if errs != 1 || frames != 1 {
			t.Fatalf("%d frames and %d errors, want one of each", frames, errs)
		}
	},
	"a reader beside a writer sees a beginning of the stream": func(t *testing.T, o Opened) {
		a := Agent("ada")
		done := make(chan struct{})
		go func() {
			defer close(done)
			tail := eventlog.Position{}
			for range 60 {
				var err error
				if tail, err = o.Log.Append(context.Background(), Entry(t, a, tail)); err != nil {
					t.Error(err)
					return
				}
			}
		}()
		for seen := 0; seen < 60 && !t.Failed(); {
			all, err := collect(o.Log, a, 1)
			if err != nil || len(all) < seen {
				t.Fatalf("read %d frames after %d, %v", len(all), seen, err)
			}
			seen = len(all)
		}
		<-done
	},
}
