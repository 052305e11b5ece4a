package cluster

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
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// scrubberOn is the scrubber of a node of its own, which owns the partitions that mine
// reports. It reads one message at a time.
func scrubberOn(w *embeddedtest.World, mine func(messages.Partition) bool, now func() time.Time) *scrubber {
	g := newIntegrity(natslog.LogStreams, &projections.Agents{}, quiet)
	var err error
	g.log, err = natslog.Open(w.Ctx, natslog.Config{Conns: []*nats.Conn{w.Connect()}, Logger: quiet})
	w.OK(err)
	g.checkEach(w.Ctx, func(*shardState) bool { return true })
	return &scrubber{log: g.log, integrity: g, logger: quiet, now: now, owns: mine, limits: natslog.ScrubLimits{Bytes: 1}}
}

// TestScrubMoves has another node continue where one stopped that has lost its partition,
// and look at nothing that is another's or was read through a moment ago.
func TestScrubMoves(t *testing.T) {
	w := embeddedtest.New(t)
	now := time.Now()
	var owner int
	owned := func(node int) func(messages.Partition) bool {
		return func(p messages.Partition) bool { return owner == node && p == 8 }
	}
	clock := func() time.Time { return now }
	one, two := scrubberOn(w, owned(1), clock), scrubberOn(w, owned(2), clock)
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

	one.round(w.Ctx)
	says(two, false, "16 of 16 streams of the log were not read to their end yet")
	owner = 1
	if again, err := one.step(w.Ctx, 2); !again || err != nil || one.behind.Load() != 2 {
		t.Errorf("there is more: %v, %v; %d are left", again, err, one.behind.Load())
	}
	owner = 2
	one.round(w.Ctx)
	says(two, false, "REPRISE_LOG_2 is read to sequence 1 of 3; 16 of 16")
	two.round(w.Ctx)
	says(one, false, "15 of 16")
	if at, err := one.log.Scrubbed(w.Ctx, 2); err != nil || at.After != 3 || !at.Begun.IsZero() || two.behind.Load() != 0 {
		t.Errorf("%+v, %v", at, err)
	}

	write()
	now = now.Add(scrubAgain / 2)
	two.round(w.Ctx)
	if at, err := two.log.Scrubbed(w.Ctx, 2); err != nil || at.Last != 3 {
		t.Errorf("read again too early: %+v, %v", at, err)
	}
	now = now.Add(scrubAgain)
	two.integrity.doubt(2)
	two.round(w.Ctx)
	if at, err := two.log.Scrubbed(w.Ctx, 2); err != nil || at.Last != 3 {
		t.Errorf("a stream in doubt is read: %+v, %v", at, err)
	}
	w.OK(two.integrity.check(w.Ctx, 2))
	ctx, cancel := context.WithCancel(w.Ctx)
	var running sync.WaitGroup
	running.Go(func() { two.run(ctx, time.Millisecond) })
	w.Eventually("it is read again by itself", func() bool {
		at, err := one.log.Scrubbed(w.Ctx, 2)
		return err == nil && at.Last == 4 && at.Begun.IsZero()
	})
	cancel()
	running.Wait()

	two.owns = func(messages.Partition) bool { return true }
	two.round(w.Ctx)
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
	s := scrubberOn(w, func(p messages.Partition) bool { return p == 8 }, time.Now)
	broken := []string{"3.blk"}
	s.broken = func(context.Context, string) ([]string, error) { return broken, nil }
	read := func() bool {
		s.round(w.Ctx)
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
