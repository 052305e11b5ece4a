//go:build unix

package clustertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Load is publishers that send inputs to agents, each one thing after the other.
// Every other publisher asks and reads the answer to its end; the others publish and
// continue as soon as the input is stored. One that is not acknowledged is sent again
// under its id, as an honest client does. Safe for concurrent use.
type Load struct {
	w       *World
	o       loadOptions
	agents  []string
	running sync.WaitGroup
	stop    chan struct{}
	once    sync.Once

	// of w.book:
	acked   int
	entered int
	failed  []error
	slowest time.Duration // of the attempts that failed
}

type loadOptions struct {
	publishers, agents, inputs, open int
	within                           time.Duration
	names                            []string
	plans                            []string
}

// LoadOption shapes a [Load].
type LoadOption func(*loadOptions)

// Publishers is how many publishers there are. Without it: 6.
func Publishers(n int) LoadOption { return func(o *loadOptions) { o.publishers = n } }

// To names the agents that are sent to.
func To(agents ...string) LoadOption { return func(o *loadOptions) { o.names = agents } }

// Inputs is how many are sent before the load ends by itself. Without it there is no
// end but [Load.Stop].
func Inputs(n int) LoadOption { return func(o *loadOptions) { o.inputs = n } }

// Within is how long a publisher waits before it sends once more by itself. Without it:
// ten seconds.
func Within(d time.Duration) LoadOption { return func(o *loadOptions) { o.within = d } }

// Plans are what inputs want, one of them each.
func Plans(plans ...string) LoadOption { return func(o *loadOptions) { o.plans = plans } }

// Load starts publishers.
func (w *World) Load(opts ...LoadOption) *Load {
	w.t.Helper()
	o := loadOptions{publishers: 6, agents: 16, open: 48, within: 10 * time.Second, plans: []string{"", Pay, Look + "+" + Pay, Pay + " " + Look, Ask + ":" + Pay}}
	for _, opt := range opts {
		opt(&o)
	}
	l := &Load{w: w, o: o, agents: o.names, stop: make(chan struct{})}
	for len(l.agents) < o.agents && len(o.names) == 0 {
		l.agents = append(l.agents, fmt.Sprintf("%s/a%d", Worker, w.book.serial()))
	}
	w.loads = append(w.loads, l)
	for i := range o.publishers {
		name := fmt.Sprintf("p%d", w.book.serial())
		l.running.Go(func() { l.publish(name, i%2 == 0, rand.New(rand.NewPCG(uint64(i), 1))) })
	}
	return l
}

// publish is a publisher's work.
func (l *Load) publish(name string, asks bool, random *rand.Rand) {
	b := l.w.book
	for number := 1; ; number++ {
		if !b.Until(l.w.ctx, l.stop, func() bool { return b.open < l.o.open }) {
			return
		}
		s := &sent{
			id: fmt.Sprintf("%s-%d", name, number), publisher: name, number: number,
			agent: l.agents[random.IntN(len(l.agents))], plan: l.o.plans[random.IntN(len(l.o.plans))],
		}
		over := false
		b.Write(func() {
			select {
			case <-l.stop:
				over = true
			default:
				over = l.o.inputs > 0 && l.entered == l.o.inputs
			}
			if !over {
				l.entered++
				s.began = time.Now()
				b.sent[s.id] = s
			}
		})
		if over || !l.insist(s, asks) {
			return
		}
	}
}

// insist sends an input until it is acknowledged; false if the world's time is over.
func (l *Load) insist(s *sent, asks bool) bool {
	for l.w.ctx.Err() == nil {
		began := time.Now()
		err := l.send(s, asks)
		if err == nil {
			return true
		}
		took := time.Since(began)
		if l.w.ctx.Err() != nil {
			return false
		}
		l.w.note("%s to %s: %v", s.id, s.agent, err)
		l.w.book.Write(func() {
			l.failed, l.slowest = append(l.failed, fmt.Errorf("%s to %s: %w", s.id, s.agent, err)), max(l.slowest, took)
		})
		var refused *messages.Error
		if errors.As(err, &refused) && !refused.Temporary() {
			l.w.book.Write(func() { l.w.book.fault("input %s was refused permanently: %v", s.id, err) })
			return true
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-l.w.ctx.Done():
		}
	}
	return false
}

// send sends an input once and enters its acknowledgement. One who asks reads to
// the end.
func (l *Load) send(s *sent, asks bool) error {
	ctx, cancel := context.WithTimeout(l.w.ctx, l.o.within)
	defer cancel()
	in := messages.Input{ID: s.id, Content: messages.TextContent(Text(s.id, s.plan))}
	if !asks {
		if _, err := l.w.client.Send(ctx, s.agent, in); err != nil {
			return err
		}
		l.ack(s)
		return nil
	}
	for e, err := range l.w.client.AskFacts(ctx, s.agent, in) {
		switch {
		case err != nil:
			return err
		case e.N == 0:
			continue
		}
		l.ack(s)
		l.w.book.show(s.agent, e)
		if e.Terminal() {
			if want := Output(s.id, s.plan); e.Type == (messages.TurnCompleted{}).EventType() && e.Output != want {
				l.w.book.Write(func() { l.w.book.fault("input %s was answered %q, want %q", s.id, e.Output, want) })
			}
			return nil
		}
	}
	return errors.New("the stream ended without the turn's end")
}

func (l *Load) ack(s *sent) {
	if s.acked.IsZero() { // only its publisher writes it
		l.w.book.ack(s)
		l.w.book.Write(func() { l.acked++ })
	}
}

// Acked waits until so many more inputs than now have been acknowledged.
func (l *Load) Acked(n int) {
	l.w.t.Helper()
	b := l.w.book
	b.Lock()
	want := l.acked + n
	b.Unlock()
	if !b.Until(l.w.ctx, nil, func() bool { return l.acked >= want }) {
		l.w.t.Fatalf("want %d inputs acknowledged; %s\n%s", want, l, l.w.unended())
	}
	l.w.note("%s", l)
}

// Stop ends the sending, waiting until what was begun is acknowledged, and for those
// who ask until they have their answer.
func (l *Load) Stop() {
	l.w.t.Helper()
	l.once.Do(func() { close(l.stop) })
	l.Done()
}

// Done waits until the publishers have sent all of [Inputs], or until [Load.Stop].
func (l *Load) Done() {
	l.w.t.Helper()
	done := make(chan struct{})
	go func() {
		l.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-l.w.ctx.Done():
		l.w.t.Fatalf("the publishers have not come to an end; %s\n%s", l, l.w.unended())
	}
	l.w.note("no more is sent: %s", l)
}

// Failed are the errors of single attempts, each followed by another one.
func (l *Load) Failed() []error {
	b := l.w.book
	b.Lock()
	defer b.Unlock()
	return append([]error(nil), l.failed...)
}

// Slowest is how long the slowest attempt took that failed.
func (l *Load) Slowest() time.Duration {
	b := l.w.book
	b.Lock()
	defer b.Unlock()
	return l.slowest
}

// String counts.
func (l *Load) String() string {
	b := l.w.book
	b.Lock()
	defer b.Unlock()
	last := ""
	if n := len(l.failed); n > 0 {
		last = fmt.Sprintf(", the last: %v", l.failed[n-1])
	}
	return fmt.Sprintf("%d inputs acknowledged, %d of all open, %d attempts failed%s", l.acked, b.open, len(l.failed), last)
}
