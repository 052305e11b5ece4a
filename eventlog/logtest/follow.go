package logtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

var following = map[string]func(*testing.T, Opened){
	"an empty partition is reported at once": func(t *testing.T, o Opened) {
		grow(t, o.Log, Agent("ada"), eventlog.Position{}, 2)
		f := follow(t, o.Feed, (Agent("ada").Partition()+1)%messages.Partitions)
		f.wantMarker(t)
		f.end(t)
	},
	"the newest of each agent, the marker, then all that comes": func(t *testing.T, o Opened) {
		agents := Neighbours(3)
		ada := grow(t, o.Log, agents[0], eventlog.Position{}, 3)
		bob := grow(t, o.Log, agents[1], eventlog.Position{}, 1)
		f, g := follow(t, o.Feed, agents[0].Partition()), follow(t, o.Feed, agents[0].Partition())
		for _, each := range []*followed{f, g} {
			each.wantHead(t, agents[0], ada[2])
			each.wantHead(t, agents[1], bob[0])
			each.wantMarker(t)
		}
		for range 5 {
			bob = grow(t, o.Log, agents[1], bob[0], 1)
			f.wantHead(t, agents[1], bob[0])
			g.wantHead(t, agents[1], bob[0])
		}
		f.end(t)
		cyd := grow(t, o.Log, agents[2], eventlog.Position{}, 4)
		for _, tail := range cyd {
			g.wantHead(t, agents[2], tail)
		}
		g.end(t)
	},
	"appends while the past is read are not missed": func(t *testing.T, o Opened) {
		agents := Neighbours(20)
		for _, a := range agents {
			grow(t, o.Log, a, eventlog.Position{}, 2)
		}
		f := follow(t, o.Feed, agents[0].Partition())
		for _, a := range agents {
			tail, err := o.Log.Head(context.Background(), a)
			if err != nil {
				t.Fatal(err)
			}
			grow(t, o.Log, a, tail, 3)
		}
		newest := make(map[messages.AgentID]messages.EventNumber)
		for complete := 0; complete < len(agents); {
			h := f.next(t)
			if h.Agent == (messages.AgentID{}) {
				continue
			}
			if h.Last <= newest[h.Agent] {
				t.Fatalf("event %d of %s after %d", h.Last, h.Agent, newest[h.Agent])
			}
			if newest[h.Agent] = h.Last; h.Last == 5 {
				complete++
			}
		}
		f.end(t)
	},
	"a head is what the headers hold": func(t *testing.T, o Opened) {
		a := Agent("ada")
		tail := grow(t, o.Log, a, eventlog.Position{Epoch: 4}, 1)[0]
		e := Entry(t, a, tail, messages.TurnStarted{Turn: "t2"}, large(3))
		e.Summary = eventlog.Summary{Phase: messages.PhasePaused, Turn: "t2", Open: true, Due: time.Unix(1_800_000_000, 5).UTC(), Waiting: 12, Failed: "max_steps", Replies: true}
		appended(t, o.Log, e)
		f := follow(t, o.Feed, a.Partition())
		h := f.next(t)
		if h.Summary != e.Summary || h.Epoch != 4 || h.First != 2 || h.Last != 3 || h.Foreign || h.Time.IsZero() {
			t.Errorf("head %+v of %+v", h, e.Summary)
		}
		f.wantMarker(t)
		f.end(t)
	},
	"a foreign message is a foreign head": func(t *testing.T, o Opened) {
		needInject(t, o)
		a := Agent("ada")
		f := follow(t, o.Feed, a.Partition())
		f.wantMarker(t)
		o.Inject(t, eventlog.Entry{Agent: a, Bytes: []byte("who am I")}, true)
		if h := f.next(t); !h.Foreign || h.Agent != a || h.Seq == 0 {
			t.Errorf("head %+v", h)
		}
		f.end(t)
	},
	"a foreign message hides no frame of the past": func(t *testing.T, o Opened) { // A29
		needInject(t, o)
		agents := Neighbours(3)
		ada := grow(t, o.Log, agents[0], eventlog.Position{}, 3)[2]
		o.Inject(t, eventlog.Entry{Agent: agents[0], Bytes: []byte("who am I")}, true)
		bob := grow(t, o.Log, agents[1], eventlog.Position{}, 1200)[1199]
		o.Inject(t, eventlog.Entry{Agent: agents[0], Bytes: []byte("and who are you")}, true)
		o.Inject(t, eventlog.Entry{Agent: agents[2], Bytes: []byte("alone")}, true)
		f := follow(t, o.Feed, agents[0].Partition())
		newest := make(map[messages.AgentID]eventlog.Head)
		for h := f.next(t); h.Agent != (messages.AgentID{}); h = f.next(t) {
			if !h.Foreign {
				newest[h.Agent] = h
			}
		}
		for a, tail := range map[messages.AgentID]eventlog.Position{agents[0]: ada, agents[1]: bob} {
			if h := newest[a]; h.Seq != tail.Seq || h.Last != tail.Last || h.Epoch != tail.Epoch {
				t.Errorf("%s: head %+v, want %+v", a, h, tail)
			}
		}
		if len(newest) != 2 {
			t.Errorf("%d agents have frames, want 2", len(newest))
		}
		f.end(t)
	},
	"a follower that breaks off leaves": func(t *testing.T, o Opened) {
		a := Agent("ada")
		grow(t, o.Log, a, eventlog.Position{}, 1)
		for h, err := range o.Feed.Follow(context.Background(), a.Partition()) {
			if err != nil || h.Agent != a {
				t.Fatalf("head %+v, %v", h, err)
			}
			break
		}
	},
}

// followed is a follower in a goroutine of its own.
type followed struct {
	heads  chan eventlog.Head
	err    chan error
	cancel context.CancelFunc
}

func follow(t *testing.T, log eventlog.Feed, p messages.Partition) *followed {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	f := &followed{heads: make(chan eventlog.Head), err: make(chan error, 1), cancel: cancel}
	go func() {
		defer close(f.heads)
		for h, err := range log.Follow(ctx, p) {
			if err != nil {
				f.err <- err
				continue
			}
			select {
			case f.heads <- h.Head:
			case <-ctx.Done():
			}
		}
	}()
	return f
}

func (f *followed) next(t *testing.T) eventlog.Head {
	t.Helper()
	h, ok := <-f.heads
	if !ok {
		t.Fatalf("the follower ended: %v", <-f.err)
	}
	return h
}

func (f *followed) wantHead(t *testing.T, a messages.AgentID, tail eventlog.Position) {
	t.Helper()
	if h := f.next(t); h.Agent != a || h.Seq != tail.Seq || h.Last != tail.Last || h.Epoch != tail.Epoch {
		t.Fatalf("head %+v, want %s at %+v", h, a, tail)
	}
}

func (f *followed) wantMarker(t *testing.T) {
	t.Helper()
	if h := f.next(t); h.Agent != (messages.AgentID{}) {
		t.Fatalf("head %+v, want the end of the past", h)
	}
}

// end cancels the follower, which must end with the context's error.
func (f *followed) end(t *testing.T) {
	t.Helper()
	f.cancel()
	for range f.heads {
	}
	if err := <-f.err; !errors.Is(err, context.Canceled) {
		t.Fatalf("the follower ended with %v, want context.Canceled", err)
	}
}
