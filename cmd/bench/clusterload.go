package bench

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

const (
	// pace is how often each agent of a load is asked, unless the one before takes longer.
	pace = 50 * time.Millisecond
	// askWithin bounds an ask of the load; one that takes longer has failed.
	askWithin = 10 * time.Second
)

// load asks one agent of every partition, again and again.
type load struct {
	of     *trial
	agents []messages.AgentID // by partition
	stop   context.CancelFunc
	done   sync.WaitGroup

	mu   sync.Mutex
	asks []asked
}

// asked is one ask.
type asked struct {
	partition  messages.Partition
	start, end time.Time
	err        error
}

// begin lets a load begin, and returns when each agent has answered.
func (t *trial) begin(ctx context.Context) (*load, error) {
	agents, err := t.oneEach(plainKind)
	if err != nil {
		return nil, err
	}
	l := &load{of: t, agents: agents}
	err = deal(ctx, len(agents), len(agents), func(ctx context.Context, worker, i int) error {
		return ask(ctx, l.client(i), agents[i])
	})
	if err != nil {
		return nil, errors.Join(t.running(), err)
	}
	ctx, l.stop = context.WithCancel(ctx)
	for p := range agents {
		l.done.Go(func() { l.keepAsking(ctx, p) })
	}
	return l, nil
}

func (l *load) client(i int) *client.Client {
	return client.New(l.of.conns[i%len(l.of.conns)], "")
}

func (l *load) keepAsking(ctx context.Context, p int) {
	c := l.client(p)
	next := time.Now().Add(time.Duration(p) * pace / messages.Partitions) // not all at once
	for {
		if sleep(ctx, time.Until(next)); ctx.Err() != nil {
			return
		}
		one := asked{partition: messages.Partition(p), start: time.Now()}
		within, cancel := context.WithTimeout(ctx, askWithin)
		one.err = ask(within, c, l.agents[p])
		cancel()
		if ctx.Err() != nil {
			return // it was cut off by us
		}
		one.end = time.Now()
		l.mu.Lock()
		l.asks = append(l.asks, one)
		l.mu.Unlock()
		if next = next.Add(pace); next.Before(one.end) {
			next = one.end
		}
	}
}

// end lets each ask that has begun come to its end, as far as it does in time.
func (l *load) end() {
	l.stop()
	l.done.Wait()
}

// between are the asks that were under way at some time between these.
func (l *load) between(from, to time.Time) (some asks) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.asks {
		if one.end.After(from) && one.start.Before(to) {
			some = append(some, one)
		}
	}
	return some
}

// asks are some asks of a load.
type asks []asked

// failed is how many got no answer.
func (some asks) failed() (n int) {
	for _, one := range some {
		if one.err != nil {
			n++
		}
	}
	return n
}

// of are those of the partitions.
func (some asks) of(ps []messages.Partition) (theirs asks) {
	for _, one := range some {
		if slices.Contains(ps, one.partition) {
			theirs = append(theirs, one)
		}
	}
	return theirs
}

// times are how long they took, shortest first.
func (some asks) times() []time.Duration {
	times := make([]time.Duration, len(some))
	for i, one := range some {
		times[i] = one.end.Sub(one.start)
	}
	slices.Sort(times)
	return times
}

// longest are the times of the longest ask of each partition, shortest first.
func (some asks) longest() []time.Duration {
	most := make(map[messages.Partition]time.Duration)
	for _, one := range some {
		most[one.partition] = max(most[one.partition], one.end.Sub(one.start))
	}
	var times []time.Duration
	for _, t := range most {
		times = append(times, t)
	}
	slices.Sort(times)
	return times
}
