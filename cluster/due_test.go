package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

func named(key string) messages.AgentID {
	return messages.AgentID{Tenant: messages.DefaultTenant, Kind: "test", Key: key}
}

// paused is the head of a paused agent with a timer; the zero time is none.
func paused(key string, due time.Time) eventlog.Head {
	return eventlog.Head{Agent: named(key), Summary: eventlog.Summary{Phase: messages.PhasePaused, Due: due}}
}

func (w *partition) saw(heads ...eventlog.Head) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, head := range heads {
		w.note(head)
	}
}

// take makes the partition ours, as [owner.Acquired] does.
func (w *partition) take(epoch messages.Epoch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.epoch = epoch
	w.timers.begin()
}

// Agents that may sleep are woken when their timers are due, those of the heads
// read before the takeover and those that came after it alike.
func TestTimersWake(t *testing.T) { // A25
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
		w := &partition{more: make(chan struct{}, 1)}
		open := paused("open", at(3))
		open.Open = true
		w.saw(paused("b", at(20)), paused("a", at(10)), paused("past", at(-5)), paused("never", time.Time{}), open,
			paused("decided", at(4)), paused("later", at(5)), paused("sooner", at(90)))
		w.saw(paused("decided", time.Time{}), paused("later", at(25)), paused("sooner", at(15)), paused("a", at(10)))
		if crowd, wait := w.next(); len(crowd) > 0 || wait != 0 {
			t.Fatalf("%v are woken, or will be in %s, where the partition is not ours", crowd, wait)
		}
		var woken []string
		ctx, cancel := context.WithCancel(t.Context())
		await := func() {
			for {
				crowd := w.await(ctx)
				if len(crowd) == 0 {
					return
				}
				for _, a := range crowd {
					woken = append(woken, fmt.Sprintf("%s at %.0f", a.agent.Key, time.Since(start).Seconds()))
				}
			}
		}
		w.take(1)
		go await()
		<-time.After(8 * time.Second)
		w.saw(paused("new", at(9)))
		<-time.After(time.Hour)
		synctest.Wait()
		want := []string{"past at 0", "new at 9", "a at 10", "sooner at 15", "b at 20", "later at 25"}
		if !slices.Equal(woken, want) {
			t.Errorf("woken: %v, want %v", woken, want)
		}

		// Lost and taken again, without a frame since: all of them once more.
		cancel()
		synctest.Wait()
		woken, start = nil, time.Now()
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		w.take(2)
		go await()
		synctest.Wait()
		slices.Sort(woken)
		if want := []string{"a at 0", "b at 0", "later at 0", "new at 0", "past at 0", "sooner at 0"}; !slices.Equal(woken, want) {
			t.Errorf("woken after the second takeover: %v, want %v", woken, want)
		}
	})
}

// An agent that was woken and reports no other timer is woken again, not at
// once; one that reports another is woken for that.
func TestTimersLookAgain(t *testing.T) {
	now := time.Unix(1_767_225_600, 0)
	var ts timers
	ts.note(paused("a", now))
	ts.note(paused("b", now.Add(time.Millisecond)))
	now = now.Add(time.Second)
	if got := ts.ripe(nil, now); len(got) != 2 {
		t.Fatalf("ripe: %v", got)
	}
	ts.note(paused("b", now.Add(time.Hour)))
	ts.woken(named("a"), now)
	ts.woken(named("b"), now)
	ts.note(paused("a", now.Add(-time.Second))) // its head, again
	for _, each := range []struct {
		after time.Duration
		want  string
	}{{0, "[]"}, {lookAgain - 1, "[]"}, {lookAgain, "[test/a]"}, {time.Hour - 1, "[]"}, {time.Hour, "[test/b]"}} {
		if got := fmt.Sprint(agentsOf(ts.ripe(nil, now.Add(each.after)))); got != each.want {
			t.Errorf("after %s %s are woken, want %s", each.after, got, each.want)
		}
	}
	ts.woken(named("a"), now)
	ts.begin() // a new takeover
	if got := fmt.Sprint(agentsOf(ts.ripe(nil, now))); got != "[test/a]" {
		t.Errorf("after a takeover %s are woken", got)
	}
}

// The clock on the wall decides, wherever it jumps: a wait is short enough to
// notice a jump forward, and after one back no agent is woken too early.
func TestTimersWhenTheClockJumps(t *testing.T) {
	now := time.Unix(1_767_225_600, 0)
	due := now.Add(24 * time.Hour)
	var ts timers
	if got := ts.wait(now); got != 0 {
		t.Errorf("without a timer it waits for %s", got)
	}
	ts.note(paused("a", due))
	for _, each := range []struct {
		now  time.Time
		wait time.Duration
	}{
		{now, lookAgain},
		{due.Add(-time.Second), time.Second},
		{now.Add(-time.Hour), lookAgain}, // back
		{due.Add(-1), 1},                 // forward
	} {
		if list := ts.ripe(nil, each.now); len(list) > 0 || ts.wait(each.now) != each.wait {
			t.Errorf("%s before it is due %v are woken, and the wait is %s, want %s", due.Sub(each.now), list, ts.wait(each.now), each.wait)
		}
	}
	if list := ts.ripe(nil, due.Add(time.Hour)); len(list) != 1 {
		t.Errorf("past due: %v", list)
	}
}

// Whatever the heads say, the earliest come first, each once, and nothing is kept of those
// without a timer.
func TestTimersKeepTheirOrder(t *testing.T) {
	const seed = 20260117
	random := rand.New(rand.NewPCG(seed, 0))
	base := time.Unix(1_767_225_600, 0)
	for round := range 200 {
		var ts timers
		want := make(map[messages.AgentID]time.Time)
		for range random.IntN(300) {
			head := paused(fmt.Sprint(random.IntN(40)), base.Add(time.Duration(random.IntN(1000))*time.Second))
			switch random.IntN(5) {
			case 0:
				head.Due = time.Time{}
			case 1:
				head.Open = true
			case 2:
				for _, a := range ts.ripe(nil, base.Add(time.Duration(random.IntN(500))*time.Second)) {
					ts.woken(a.agent, base.Add(-lookAgain))
				}
			}
			if delete(want, head.Agent); !head.Open && !head.Due.IsZero() {
				want[head.Agent] = head.Due
			}
			ts.note(head)
		}
		if len(ts.known) != len(want) || len(ts.queue) != len(want) {
			t.Fatalf("seed %d, round %d: %d known and %d queued of %d", seed, round, len(ts.known), len(ts.queue), len(want))
		}
		got := agentsOf(ts.ripe(nil, base.Add(time.Hour)))
		if sorted := slices.SortedFunc(slices.Values(got), cmpAgents); !slices.Equal(sorted, slices.SortedFunc(maps.Keys(want), cmpAgents)) {
			t.Fatalf("seed %d, round %d: woken %v, want %v", seed, round, got, want)
		}
		if !slices.IsSortedFunc(got, func(a, b messages.AgentID) int { return want[a].Compare(want[b]) }) {
			t.Fatalf("seed %d, round %d: out of order: %v of %v", seed, round, got, want)
		}
	}
}

func cmpAgents(a, b messages.AgentID) int { return cmp.Compare(a.Full(), b.Full()) }

// BenchmarkTimers notes one timer each of many agents; B/op is what an agent
// with a timer costs in memory, its name apart, and what growing has wasted.
func BenchmarkTimers(b *testing.B) {
	heads := make([]eventlog.Head, b.N)
	for i := range heads {
		heads[i] = paused(fmt.Sprint(i), time.Unix(1_767_225_600, rand.Int64N(1e15)))
	}
	b.ReportAllocs()
	b.ResetTimer()
	var ts timers
	for _, head := range heads {
		ts.note(head)
	}
}

func agentsOf(list []wakeup) []messages.AgentID {
	agents := make([]messages.AgentID, len(list))
	for i, o := range list {
		agents[i] = o.agent
	}
	return agents
}
