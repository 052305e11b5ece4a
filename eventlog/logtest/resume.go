package logtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

var resuming = map[string]func(*testing.T, Opened){
	"reading on begins behind the place that is known": func(t *testing.T, o Opened) {
		agents := Neighbours(2)
		tails := make([][]eventlog.Position, 2)
		for n := range 20 {
			for i, a := range agents {
				tails[i] = append(tails[i], appended(t, o.Log, Entry(t, a, behindLast(tails[i]), large(n), large(1))))
			}
		}
		for n, tail := range tails[0] {
			wantFrom(t, o.Log, agents[0], tail, tails[0][n+1:]...)
		}
		wantFrom(t, o.Log, agents[0], eventlog.Position{}, tails[0]...)
	},
	"reading on from a place that the log does not hold": func(t *testing.T, o Opened) {
		a := Agent("ada")
		for _, tail := range []eventlog.Position{{Seq: 1, Frame: "x", Last: 1}, {Seq: 1 << 40, Frame: "x", Last: 9}} {
			wantElsewhere(t, o.Log, a, tail) // a missing agent
		}
		other := grow(t, o.Log, Agent("bob"), eventlog.Position{}, 3)
		tails := grow(t, o.Log, a, eventlog.Position{}, 6)
		for _, of := range tails {
			for what, spoil := range map[string]func(*eventlog.Position){
				"sequence": func(t *eventlog.Position) { t.Seq++ },
				"frame":    func(t *eventlog.Position) { t.Frame = "another" },
				"digest":   func(t *eventlog.Position) { t.Digest = messages.DigestOf(nil) },
				"number":   func(t *eventlog.Position) { t.Last++ },
				"epoch":    func(t *eventlog.Position) { t.Epoch++ },
				"zero":     func(t *eventlog.Position) { t.Seq = 0 },
				"end":      func(t *eventlog.Position) { t.Seq = 1 << 40 },
			} {
				tail := of
				spoil(&tail)
				if got, err := tailsOf(o.Log.Read(context.Background(), a, eventlog.Behind(tail))); !errors.Is(err, eventlog.ErrElsewhere) || len(got) != 0 {
					t.Errorf("another %s: %d frames, %v; want ErrElsewhere alone", what, len(got), err)
				}
			}
		}
		wantElsewhere(t, o.Log, a, other[1])
	},
	"reading on from what was seen": func(t *testing.T, o Opened) {
		a := Agent("ada")
		tails := grow(t, o.Log, a, eventlog.Position{}, 6)
		for n, tail := range tails {
			got, err := tailsOf(o.Log.Read(context.Background(), a, eventlog.Range{After: tail, Seen: true}))
			if err != nil || !slices.Equal(got, tails[n+1:]) {
				t.Errorf("behind frame %d: %v, %v; want %v", n+1, got, err, tails[n+1:])
			}
			for what, spoil := range map[string]func(*eventlog.Position){
				"frame":  func(t *eventlog.Position) { t.Frame = "another" },
				"digest": func(t *eventlog.Position) { t.Digest = messages.DigestOf(nil) },
				"number": func(t *eventlog.Position) { t.Last++ },
			} {
				wrong := tail
				spoil(&wrong)
				if got, err := tailsOf(o.Log.Read(context.Background(), a, eventlog.Range{After: wrong, Seen: true})); !errors.Is(err, eventlog.ErrElsewhere) || len(got) != 0 {
					t.Errorf("behind another %s: %d frames, %v; want ErrElsewhere alone", what, len(got), err)
				}
			}
		}
	},
	"reading on passes foreign messages": func(t *testing.T, o Opened) {
		needInject(t, o)
		a := Agent("ada")
		foreign := eventlog.Entry{Agent: a, Bytes: []byte("who am I")}
		var tails []eventlog.Position
		for range 6 {
			tails = append(tails, appended(t, o.Log, Entry(t, a, behindLast(tails))))
			o.Inject(t, foreign, true)
		}
		for n, tail := range tails {
			wantFrom(t, o.Log, a, tail, tails[n+1:]...)
		}
	},
	// A29
	"reading on into damage": func(t *testing.T, o Opened) {
		needInject(t, o)
		a := Agent("ada")
		tails := grow(t, o.Log, a, eventlog.Position{}, 3)
		spoilt := Entry(t, a, tails[2])
		spoilt.Bytes[len(spoilt.Bytes)/2] ^= 1
		o.Inject(t, spoilt, false)
		for n, tail := range tails {
			all, err := tailsOf(o.Log.Read(context.Background(), a, eventlog.Behind(tail)))
			var damaged *eventlog.DamageError
			if !errors.As(err, &damaged) || damaged.Event != 4 || len(all) != 2-n {
				t.Errorf("from frame %d: %d frames, then %v; want damage at event 4", n+1, len(all), err)
			}
		}
	},
	"reading on far from the end": func(t *testing.T, o Opened) {
		a := Agent("ada")
		tails := grow(t, o.Log, a, eventlog.Position{}, 600)
		for _, n := range []int{0, 1, 80, 100, 340, 598, 599} {
			wantFrom(t, o.Log, a, tails[n], tails[n+1:]...)
			all, err := collect(o.Log, a, tails[n].Last)
			if err != nil || len(all) != 600-n || all[0].Position() != tails[n] {
				t.Errorf("read %d frames from event %d, %v; want %d", len(all), tails[n].Last, err, 600-n)
			}
		}
	},
	"a reader that reads on may leave early": func(t *testing.T, o Opened) {
		a := Agent("ada")
		tails := grow(t, o.Log, a, eventlog.Position{}, 3)
		n := 0
		for range o.Log.Read(context.Background(), a, eventlog.Behind(tails[0])) {
			n++
			break
		}
		if n != 1 {
			t.Errorf("%d frames", n)
		}
	},
}

var purging = map[string]func(*testing.T, Opened){
	"a purge takes away what is before": func(t *testing.T, o Opened) {
		agents := Neighbours(2)
		var tails, other []eventlog.Position
		for range 5 {
			tails = append(tails, appended(t, o.Log, Entry(t, agents[0], behindLast(tails))))
			other = append(other, appended(t, o.Log, Entry(t, agents[1], behindLast(other))))
		}
		purge(t, o.Log, agents[0], tails[0].Seq) // nothing
		wantFrom(t, o.Log, agents[0], tails[0], tails[1:]...)
		purge(t, o.Log, agents[0], tails[3].Seq)
		wantTail(t, o.Log, agents[0], tails[4])
		wantElsewhere(t, o.Log, agents[0], tails[2])
		wantFrom(t, o.Log, agents[0], tails[3], tails[4])
		wantFrom(t, o.Log, agents[1], eventlog.Position{}, other...)
		// What is left begins neither with event 1 nor with a tombstone.
		_, err := collect(o.Log, agents[0], 1)
		var damaged *eventlog.DamageError
		if !errors.As(err, &damaged) || damaged.Seq != tails[3].Seq {
			t.Errorf("%v, want damage at sequence %d", err, tails[3].Seq)
		}
		// The fence holds, and writing continues.
		wantConflict(t, o.Log, Entry(t, agents[0], eventlog.Position{}), tails[4])
		wantConflict(t, o.Log, Entry(t, agents[0], tails[3]), tails[4])
		next := appended(t, o.Log, Entry(t, agents[0], tails[4]))
		wantFrom(t, o.Log, agents[0], tails[3], tails[4], next)
	},
	"a purge that would take the newest message takes nothing": func(t *testing.T, o Opened) {
		a := Agent("ada")
		purge(t, o.Log, a, 7) // nothing is there
		tails := grow(t, o.Log, a, eventlog.Position{}, 3)
		for _, before := range []uint64{tails[2].Seq + 1, 1 << 40} {
			if err := o.Log.Purge(context.Background(), a, before); err == nil {
				t.Errorf("purged below %d, the newest is at %d", before, tails[2].Seq)
			}
		}
		wantFrom(t, o.Log, a, eventlog.Position{}, tails...)
		purge(t, o.Log, a, tails[2].Seq)
		purge(t, o.Log, a, tails[2].Seq) // again
		wantTail(t, o.Log, a, tails[2])
	},
	// A108
	"an agent begins again behind its tombstone": func(t *testing.T, o Opened) {
		a := Agent("ada")
		tails := grow(t, o.Log, a, eventlog.Position{Epoch: 3}, 4)
		stone := appended(t, o.Log, tombstone(t, a, tails[3]))
		stale := Entry(t, a, tails[3])
		purge(t, o.Log, a, stone.Seq)
		wantTail(t, o.Log, a, stone)
		wantFrom(t, o.Log, a, eventlog.Position{}, stone)
		wantFrom(t, o.Log, a, stone)
		wantElsewhere(t, o.Log, a, tails[3])
		wantConflict(t, o.Log, stale, stone)
		wantConflict(t, o.Log, Entry(t, a, eventlog.Position{}), stone)
		again := grow(t, o.Log, a, stone, 3)
		if again[0].Last != 6 {
			t.Errorf("numbering continues with event %d, want 6", again[0].Last)
		}
		wantConflict(t, o.Log, stale, again[2])
		wantFrom(t, o.Log, a, eventlog.Position{}, append([]eventlog.Position{stone}, again...)...)
		for n, tail := range again {
			wantFrom(t, o.Log, a, tail, again[n+1:]...)
			all, err := collect(o.Log, a, tail.Last)
			if err != nil || len(all) != 3-n {
				t.Errorf("read %d frames from event %d, %v; want %d", len(all), tail.Last, err, 3-n)
			}
		}
	},
	// A108
	"a tombstone is read though what is before it is damaged": func(t *testing.T, o Opened) {
		needInject(t, o)
		a := Agent("ada")
		spoilt := Entry(t, a, grow(t, o.Log, a, eventlog.Position{}, 2)[1])
		spoilt.Bytes[len(spoilt.Bytes)/2] ^= 1
		o.Inject(t, spoilt, false)
		tail, err := o.Log.Head(context.Background(), a)
		if err != nil || tail.Last != 3 || tail.Digest != messages.DigestOf(spoilt.Bytes) {
			t.Fatalf("the head of a damaged frame is %+v, %v", tail, err)
		}
		stone := appended(t, o.Log, tombstone(t, a, tail))
		all, err := collect(o.Log, a, stone.Last)
		if err != nil || len(all) != 1 || all[0].Position() != stone {
			t.Errorf("%d frames, %v; want the tombstone", len(all), err)
		}
	},
	"a tombstone may stand in the middle": func(t *testing.T, o Opened) {
		a := Agent("ada")
		tails := grow(t, o.Log, a, eventlog.Position{}, 2)
		tails = append(tails, appended(t, o.Log, tombstone(t, a, tails[1])))
		tails = append(tails, grow(t, o.Log, a, tails[2], 2)...)
		wantFrom(t, o.Log, a, eventlog.Position{}, tails...)
	},
}

func tombstone(t *testing.T, a messages.AgentID, tail eventlog.Position) eventlog.Entry {
	t.Helper()
	return Entry(t, a, tail, messages.AgentDeleted{})
}

// behindLast is the last of the tails, or that of a new agent.
func behindLast(tails []eventlog.Position) eventlog.Position {
	if len(tails) == 0 {
		return eventlog.Position{}
	}
	return tails[len(tails)-1]
}

func purge(t testing.TB, log eventlog.Log, a messages.AgentID, before uint64) {
	t.Helper()
	if err := log.Purge(context.Background(), a, before); err != nil {
		t.Fatalf("purge %s below %d: %v", a, before, err)
	}
}

// tailsOf reads to the end or the first error, and returns the tail behind each frame.
func tailsOf(frames iter.Seq2[eventlog.Recorded, error]) (all []eventlog.Position, err error) {
	for r, err := range frames {
		if err != nil {
			return all, err
		}
		all = append(all, r.Position())
	}
	return all, nil
}

func wantFrom(t testing.TB, log eventlog.Reader, a messages.AgentID, after eventlog.Position, want ...eventlog.Position) {
	t.Helper()
	got, err := tailsOf(log.Read(context.Background(), a, eventlog.Behind(after)))
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%s behind event %d: %d frames, %v; want %d\n%v\n%v", a, after.Last, len(got), err, len(want), got, want)
	}
}

func wantElsewhere(t testing.TB, log eventlog.Reader, a messages.AgentID, after eventlog.Position) {
	t.Helper()
	got, err := tailsOf(log.Read(context.Background(), a, eventlog.Behind(after)))
	if !errors.Is(err, eventlog.ErrElsewhere) || len(got) != 0 {
		t.Errorf("%s behind %+v: %d frames, %v; want ErrElsewhere alone", a, after, len(got), err)
	}
}
