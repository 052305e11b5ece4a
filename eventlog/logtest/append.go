package logtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

var appending = map[string]func(*testing.T, Opened){
	"append gives the tail that the log then has": func(t *testing.T, o Opened) {
		a := Agent("ada")
		wantTail(t, o.Log, a, eventlog.Position{})
		var tail eventlog.Position
		for range 3 {
			tail = appended(t, o.Log, Entry(t, a, tail, large(10), large(20)))
			wantTail(t, o.Log, a, tail)
		}
		all, err := collect(o.Log, a, 1)
		if err != nil || len(all) != 3 || all[2].Position() != tail || tail.Last != 6 {
			t.Fatalf("read %d frames with tail %+v, %v; want %+v", len(all), all[len(all)-1].Position(), err, tail)
		}
	},
	"an append that expects an old tail is a conflict": func(t *testing.T, o Opened) {
		a := Agent("ada")
		tails := grow(t, o.Log, a, eventlog.Position{}, 3)
		for _, old := range []eventlog.Position{{}, tails[0], tails[1]} {
			wantConflict(t, o.Log, Entry(t, a, old), tails[2])
		}
		wantFrames(t, o.Log, a, tails[0].Frame, tails[1].Frame, tails[2].Frame)
	},
	"an append that expects a tail the log never had is a conflict": func(t *testing.T, o Opened) {
		a := Agent("ada")
		other := grow(t, o.Log, Agent("bob"), eventlog.Position{}, 1)[0]
		wantConflict(t, o.Log, Entry(t, a, other), eventlog.Position{})
		wantFrames(t, o.Log, a)
	},
	// A26
	"of two writers exactly one wins": func(t *testing.T, o Opened) {
		a, tail := Agent("ada"), eventlog.Position{}
		var won []messages.FrameID
		for range 50 {
			tail = race(t, o.Log, Entry(t, a, tail), Entry(t, a, tail))
			won = append(won, tail.Frame)
		}
		wantFrames(t, o.Log, a, won...)
	},
	"the identical entry again is the same frame": func(t *testing.T, o Opened) {
		a := Agent("ada")
		first := Entry(t, a, eventlog.Position{})
		tail := appended(t, o.Log, first)
		second := Entry(t, a, tail)
		for range 3 {
			tail = appended(t, o.Log, second)
			wantTail(t, o.Log, a, tail)
		}
		wantFrames(t, o.Log, a, first.Frame.ID, second.Frame.ID)
	},
	"an entry that is no longer the tail is a conflict": func(t *testing.T, o Opened) {
		a := Agent("ada")
		first := Entry(t, a, eventlog.Position{})
		tail := grow(t, o.Log, a, appended(t, o.Log, first), 1)[0]
		wantConflict(t, o.Log, first, tail)
	},
	"the same frame id with other bytes is a conflict": func(t *testing.T, o Opened) {
		a := Agent("ada")
		e := Entry(t, a, eventlog.Position{})
		tail := appended(t, o.Log, e)
		other := e
		f := *e.Frame
		f.Events = []messages.Event{large(5)}
		other.Frame = &f
		wantConflict(t, o.Log, Encode(t, other), tail)
	},
	"a frame that does not follow what it expects is refused": func(t *testing.T, o Opened) {
		a := Agent("ada")
		tail := grow(t, o.Log, a, eventlog.Position{}, 1)[0]
		for what, spoil := range map[string]func(*messages.Frame){
			"number": func(f *messages.Frame) { f.First++ },
			"chain":  func(f *messages.Frame) { f.Prev = "another" },
			"digest": func(f *messages.Frame) { f.PrevDigest = messages.DigestOf(nil) },
			"epoch":  func(f *messages.Frame) { f.Epoch = 0 },
		} {
			e := Entry(t, a, tail)
			spoil(e.Frame)
			var damage *eventlog.DamageError
			if _, err := eventlog.Commit(context.Background(), o.Log, Encode(t, e)); !errors.As(err, &damage) {
				t.Errorf("%s: %v, want a DamageError", what, err)
			}
		}
		wantFrames(t, o.Log, a, tail.Frame)
	},
	"an entry whose summary is no header is refused": func(t *testing.T, o Opened) {
		a := Agent("ada")
		tail := grow(t, o.Log, a, eventlog.Position{}, 1)[0]
		for what, spoil := range map[string]func(*eventlog.Summary){
			"failure": func(s *eventlog.Summary) { s.Failed = "rate limit" },
			"turn":    func(s *eventlog.Summary) { s.Turn = "t 1" },
			"phase":   func(s *eventlog.Summary) { s.Phase = "" },
		} {
			e := Entry(t, a, tail)
			spoil(&e.Summary)
			if _, err := eventlog.Commit(t.Context(), o.Log, e); !errors.Is(err, eventlog.ErrInvalid) {
				t.Errorf("%s: %v, want ErrInvalid", what, err)
			}
		}
		wantFrames(t, o.Log, a, tail.Frame)
	},
	"a frame that is too large is refused, now and later": func(t *testing.T, o Opened) {
		a := Agent("ada")
		tail := grow(t, o.Log, a, eventlog.Position{}, 1)[0]
		if _, err := eventlog.Commit(context.Background(), o.Log, Entry(t, a, tail, large(eventlog.MaxFrame))); !errors.Is(err, eventlog.ErrTooLarge) {
			t.Errorf("%v, want ErrTooLarge", err)
		}
		wantTail(t, o.Log, a, tail)
		after := appended(t, o.Log, Entry(t, a, tail, large(400<<10)))
		wantFrames(t, o.Log, a, tail.Frame, after.Frame)
	},
	"a frame of very many events is stored with each of its types once": func(t *testing.T, o Opened) {
		a := Agent("ada")
		many := make([]messages.Event, eventlog.MaxTypes)
		for i := range many {
			many[i] = messages.CommandNoop{Command: "x"}
		}
		many[0] = messages.AgentCreated{Agent: a.Full()}
		tail := appended(t, o.Log, Entry(t, a, eventlog.Position{}, many...))
		wantFrames(t, o.Log, a, tail.Frame)
		s := readShard(t, o.Feed, shardOf(t, o.Feed, a), tail.Seq-1)
		if past, want := s.past(t), []string{messages.AgentCreated{}.EventType(), messages.CommandNoop{}.EventType()}; len(past) != 1 || !slices.Equal(past[0].Types, want) {
			t.Errorf("its types are %v, want %v", past, want)
		}
		s.end(t)
	},
	"an ended context appends nothing that cannot be repeated": func(t *testing.T, o Opened) {
		a, e := Agent("ada"), Entry(t, Agent("ada"), eventlog.Position{})
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := o.Log.Append(ctx, e); !errors.Is(err, context.Canceled) {
			t.Fatalf("append: %v, want context.Canceled", err)
		}
		if _, err := eventlog.Commit(ctx, o.Log, e); err == nil {
			t.Fatal("commit: no error after the end of its context")
		}
		appended(t, o.Log, e)
		wantFrames(t, o.Log, a, e.Frame.ID)
	},
	"an address that may not stand in a subject is refused": func(t *testing.T, o Opened) {
		for _, key := range []string{"", "*", ">", "a.b", "a b"} {
			a := Agent(key)
			if _, err := o.Log.Append(context.Background(), Entry(t, a, eventlog.Position{})); err == nil {
				t.Errorf("key %q: appended", key)
			}
			if _, err := o.Log.Head(context.Background(), a); err == nil {
				t.Errorf("key %q: has a tail", key)
			}
			if _, err := collect(o.Log, a, 1); err == nil {
				t.Errorf("key %q: can be read", key)
			}
		}
	},
	"the caller may use its bytes again": func(t *testing.T, o Opened) {
		e := Entry(t, Agent("ada"), eventlog.Position{})
		appended(t, o.Log, e)
		clear(e.Bytes)
		wantFrames(t, o.Log, e.Agent, e.Frame.ID)
	},
	"many agents at once keep their own order": func(t *testing.T, o Opened) {
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				a, tail := Agent(fmt.Sprint("many", i)), eventlog.Position{}
				for range 10 {
					e := Entry(t, a, tail)
					var err error
					if tail, err = eventlog.Commit(context.Background(), o.Log, e); err != nil {
						t.Errorf("%s: %v", a, err)
						return
					}
				}
				if all, err := collect(o.Log, a, 1); err != nil || len(all) != 10 {
					t.Errorf("%s: read %d frames of 10, %v", a, len(all), err)
				}
			})
		}
		wg.Wait()
	},
}

func wantConflict(t *testing.T, log eventlog.Log, e eventlog.Entry, actual eventlog.Position) {
	t.Helper()
	got, err := log.Append(context.Background(), e)
	var conflict *eventlog.ConflictError
	if !errors.As(err, &conflict) {
		t.Fatalf("append gave %+v, %v; want a ConflictError", got, err)
	}
	if conflict.Agent != e.Agent || conflict.Expect != e.Expect || conflict.Actual != actual {
		t.Fatalf("conflict is %+v, want the actual tail %+v", conflict, actual)
	}
}

// race commits both entries at once; exactly one must win. It returns its tail.
func race(t *testing.T, log eventlog.Appender, entries ...eventlog.Entry) (won eventlog.Position) {
	t.Helper()
	tails, errs := make([]eventlog.Position, len(entries)), make([]error, len(entries))
	var wg sync.WaitGroup
	for i, e := range entries {
		wg.Go(func() { tails[i], errs[i] = eventlog.Commit(context.Background(), log, e) })
	}
	wg.Wait()
	winners := 0
	for i, err := range errs {
		var conflict *eventlog.ConflictError
		switch {
		case err == nil:
			winners++
			won = tails[i]
		case !errors.As(err, &conflict):
			t.Fatalf("writer %d: %v", i, err)
		}
	}
	if winners != 1 {
		t.Fatalf("%d of %d writers won: %v", winners, len(entries), errs)
	}
	return won
}
