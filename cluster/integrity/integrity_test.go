package integrity

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

var quiet = slog.New(slog.DiscardHandler)

// leased are a node's partitions.
type leased struct {
	owned, damaged [messages.Partitions]bool
	given          []messages.Partition
}

func (e *leased) Owns(p messages.Partition) (owned, damaged bool) { return e.owned[p], e.damaged[p] }

func (e *leased) GiveUp(p messages.Partition) {
	e.owned[p] = false
	e.given = append(e.given, p)
}

// TestLossIsConfirmed has a deposed leader answer first: what it seems to have lost is
// not believed at once, and its partitions are not owned meanwhile.
func TestLossIsConfirmed(t *testing.T) {
	g := New(nil, &projections.Agents{}, quiet)
	mine := &leased{}
	mine.owned[8], mine.owned[9], mine.owned[12] = true, true, true
	g.Follow(mine)
	now := time.Now()
	agent := agentOf(2)
	loss := &natslog.LossError{Stream: "REPRISE_LOG_2", Known: 9, Found: 7, Detail: "lost"}

	if err := g.assess(2, loss, 0, now); err == nil {
		t.Error("a suspected stream may be owned")
	}
	if want := []messages.Partition{8, 9}; !slices.Equal(mine.given, want) || g.Damaged(8) != nil {
		t.Errorf("given up %v, want %v; damaged: %v", mine.given, want, g.Damaged(8))
	}
	if err := g.Whole(agent, 1); messages.AsError(err).Code != messages.Unavailable {
		t.Errorf("an agent of a suspected stream: %v", err)
	}
	if err := g.assess(2, loss, 0, now.Add(deposed/2)); err == nil {
		t.Error("confirmed too early")
	}
	if err := g.assess(2, nil, 0, now.Add(deposed)); err != nil || g.Whole(agent, 1) != nil {
		t.Errorf("a stream that is whole after all: %v, %v", err, g.Whole(agent, 1))
	}
	_ = g.assess(2, loss, 0, now)
	if err := g.assess(2, loss, 0, now.Add(deposed)); err != nil {
		t.Errorf("a lost stream must be owned, to answer: %v", err)
	}
	damage := new(eventlog.DamageError)
	if why := g.Damaged(8); why == nil || why.Code != messages.Damaged || g.Damaged(12) != nil || !errors.As(g.Whole(agent, 1), &damage) {
		t.Errorf("damaged: %v, and elsewhere %v; %v", why, g.Damaged(12), g.Whole(agent, 1))
	}

	mine.given, mine.owned[8], mine.damaged[8] = nil, true, true
	g.align()
	if len(mine.given) != 0 {
		t.Errorf("given up %v", mine.given)
	}
	_ = g.assess(2, nil, 0, now) // it was accepted
	if want := []messages.Partition{8}; !slices.Equal(mine.given, want) {
		t.Errorf("given up %v, want %v", mine.given, want)
	}
	settled := *loss
	settled.Settled = true
	if err := g.assess(3, &settled, 0, now); err != nil || g.Damaged(12) == nil {
		t.Errorf("the answer of the only server is not believed: %v", err)
	}
	g.Doubt(5)
	if err := g.Relied(5); !errors.Is(err, errChecked) {
		t.Errorf("a stream in doubt is relied on: %v", err)
	}
	_ = g.assess(5, nil, 0, now) // by a check that began before the doubt
	if err := g.Relied(5); !errors.Is(err, errChecked) {
		t.Errorf("a doubt was settled by what was checked before: %v", err)
	}
	if _ = g.assess(5, nil, 1, now); g.Relied(5) != nil {
		t.Errorf("a stream that was checked is in doubt: %v", g.Relied(5))
	}
}

// TestMarksLagBehind has servers that force to disk what they acknowledged only now and
// then: what their power may take is not recorded yet.
func TestMarksLagBehind(t *testing.T) {
	g := New(nil, &projections.Agents{}, quiet)
	g.lag = 5 * time.Second
	at := time.Now()
	var got []uint64
	for i := range uint64(6) {
		s := sample{at: at.Add(time.Duration(i) * markEvery)}
		s.positions[7].Last = i + 1
		got = append(got, g.onDisk(s).positions[7].Last)
	}
	if want := []uint64{0, 0, 0, 1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("recorded %v, want %v", got, want)
	}
}

// TestLostConnectionIsDoubted loses the connection to the server: what it comes back with
// is checked before anything is appended.
func TestLostConnectionIsDoubted(t *testing.T) {
	w := embeddedtest.New(t)
	nc := w.Connect()
	g := New(nil, &projections.Agents{}, quiet)
	var err error
	g.log, err = natslog.Open(w.Ctx, natslog.Config{Conns: []*nats.Conn{nc}, Logger: g.logger})
	w.OK(err)
	if err := g.check(w.Ctx, 5); err != nil || g.Relied(5) != nil {
		t.Fatalf("%v, %v", err, g.Relied(5))
	}
	ctx, cancel := context.WithCancel(w.Ctx)
	var watching sync.WaitGroup
	changed := nc.StatusChanged(nats.RECONNECTING, nats.CONNECTED)
	watching.Go(func() { g.watch(ctx, nc, changed) })
	w.OK(w.Srv.Shutdown())
	w.Eventually("the stream is in doubt", func() bool { return g.Relied(5) != nil })
	if _, err := g.log.Append(ctx, logtest.Entry(t, agentOf(5), eventlog.Position{})); err == nil || !strings.Contains(err.Error(), "must be checked for losses") {
		t.Errorf("appended: %v", err)
	}
	cancel()
	watching.Wait()
}

// agentOf is an agent of a shard.
func agentOf(shard int) messages.AgentID {
	a := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}
	for natslog.Shard(a.Partition()) != shard {
		a.Key += "a"
	}
	return a
}
