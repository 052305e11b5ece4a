package integrity

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/projections"
)

// scrubberOn returns the scrubber of a node that owns some partitions. It reads one message at a
// time.
func scrubberOn(w *embeddedtest.World, owned Partitions) *scrubber {
	g := New(nil, &projections.Agents{}, quiet)
	var err error
	g.log, err = natslog.Open(w.Ctx, natslog.Config{Conns: []*nats.Conn{w.Connect()}, Logger: quiet})
	w.OK(err)
	g.CheckAll(w.Ctx)
	g.Follow(owned)
	g.scrubber.limits = natslog.ScrubLimits{Bytes: 1}
	return g.scrubber
}

// TestScrubMoves has another node continue where one stopped that has lost its partition,
// and look at nothing that is another's or was read through a moment ago.
func TestScrubMoves(t *testing.T) {
	w := embeddedtest.New(t)
	now := time.Now()
	var ofOne, ofTwo leased
	one, two := scrubberOn(w, &ofOne), scrubberOn(w, &ofTwo)
	a, tail := agentOf(2), eventlog.Position{}
	write := func() {
		var err error
		tail, err = one.log.Append(w.Ctx, logtest.Entry(t, a, tail))
		w.OK(err)
	}
	write()
	write()
	write()
	says := func(s *scrubber, whole bool, parts ...string) {
		t.Helper()
		at := s.progress(w.Ctx)
		for _, part := range parts {
			if at == nil || at.Whole != whole || !strings.Contains(at.Detail, part) {
				t.Errorf("it says %+v, want %q", at, part)
			}
		}
	}

	one.round(w.Ctx, now)
	says(two, false, "16 of 16 streams of the log were not read to their end yet")
	ofOne.owned[8] = true
	if again, err := one.step(w.Ctx, 2, now); !again || err != nil || one.behind.Load() != 2 {
		t.Errorf("there is more: %v, %v; %d are left", again, err, one.behind.Load())
	}
	ofOne.owned[8], ofTwo.owned[8] = false, true
	one.round(w.Ctx, now)
	says(two, false, "REPRISE_LOG_2 is read to sequence 1 of 3; 16 of 16")
	two.round(w.Ctx, now)
	says(one, false, "15 of 16")
	if at, err := one.log.Scrubbed(w.Ctx, 2); err != nil || at.After != 3 || !at.Begun.IsZero() || two.behind.Load() != 0 {
		t.Errorf("%+v, %v", at, err)
	}

	write()
	now = now.Add(scrubAgain / 2)
	two.round(w.Ctx, now)
	if at, err := two.log.Scrubbed(w.Ctx, 2); err != nil || at.Last != 3 {
		t.Errorf("read again too early: %+v, %v", at, err)
	}
	now = now.Add(scrubAgain)
	two.Doubt(2)
	two.round(w.Ctx, now)
	if at, err := two.log.Scrubbed(w.Ctx, 2); err != nil || at.Last != 3 {
		t.Errorf("a stream in doubt is read: %+v, %v", at, err)
	}
	w.OK(two.check(w.Ctx, 2))
	ctx, cancel := context.WithCancel(w.Ctx)
	var running sync.WaitGroup
	look := make(chan time.Time)
	running.Go(func() { two.run(ctx, look) })
	w.Eventually("it is read again by itself", func() bool {
		select {
		case look <- now:
		default: // it reads
		}
		at, err := one.log.Scrubbed(w.Ctx, 2)
		return err == nil && at.Last == 4 && at.Begun.IsZero()
	})
	cancel()
	running.Wait()

	for p := range ofTwo.owned {
		ofTwo.owned[p] = true
	}
	two.round(w.Ctx, now)
	says(one, true, "each stream of the log was last read to its end on 20")
}

// TestUnreadableHasAPlace names messages whose agent is known, and others.
func TestUnreadableHasAPlace(t *testing.T) {
	a := agentOf(2)
	found := unreadable("REPRISE_LOG_2", natslog.Scrub{
		Bad:  []natslog.Unreadable{{Seq: 7, Agent: a, Detail: "spoilt"}, {Seq: 8, Agent: a, Ended: true}, {Seq: 9, Detail: "spoilt"}},
		More: 3, Hidden: 4,
	})
	if len(found) != 4 || found[0].Agent != a || found[0].Seq != 7 || found[0].Detail != "spoilt" {
		t.Fatalf("%+v", found)
	}
	for i, want := range []string{"spoilt", "stream REPRISE_LOG_2, sequence 9, of an agent that is not known: spoilt", "3 more messages of stream REPRISE_LOG_2 cannot be read than the 3 that are listed", "counts 4 messages of stream REPRISE_LOG_2"} {
		if f := found[i]; f.Status != doctor.Fail || f.Stream != "REPRISE_LOG_2" || f.Remedy == "" || !strings.Contains(f.Detail, want) {
			t.Errorf("%+v, want %q", f, want)
		}
	}
}

// TestScrubReadsNothingBroken leaves a stream alone whose file the server would cut.
func TestScrubReadsNothingBroken(t *testing.T) { // A29
	w := embeddedtest.New(t)
	mine := &leased{}
	mine.owned[8] = true
	s := scrubberOn(w, mine)
	broken := []string{"3.blk"}
	s.broken = func(context.Context, string) ([]string, error) { return broken, nil }
	read := func() bool {
		s.round(w.Ctx, time.Now())
		at, err := s.log.Scrubbed(w.Ctx, 2)
		w.OK(err)
		return !at.Whole.IsZero()
	}
	if read() {
		t.Error("a stream was read whose file the server would cut")
	}
	named := func(f doctor.Finding) bool { return f.Status == doctor.Fail && strings.Contains(f.Detail, "3.blk") }
	if found := s.find(w.Ctx); !slices.ContainsFunc(found, named) {
		t.Errorf("doctor says %+v", found)
	}
	if broken = nil; !read() || slices.ContainsFunc(s.find(w.Ctx), named) {
		t.Error("a stream is not read that is sound again")
	}
}
