package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// Inputs is the figure of agents that get their inputs through the stream.
var Inputs = Figure{
	"inputs", "inputs through the stream REPRISE_IN beside that stream alone",
	func(l *Lab, ctx context.Context) error { return l.Cells(ctx, l.inputs) },
}

// inputs measures n agents that get their inputs through the stream, between
// two windows of that stream alone.
func (l *Lab) inputs(ctx context.Context, s *Store, n int) error {
	l.Say("sync %s, %d agents: inputs through the stream", s.Sync, n)
	before, err := s.inboxAlone(ctx, n, l.Window/3)
	if err != nil {
		return err
	}
	got, err := s.inputs(ctx, n, l.Window*2/3)
	if err != nil {
		return err
	}
	after, err := s.inboxAlone(ctx, n, l.Window/3)
	if err != nil {
		return err
	}
	row := func(figure string, value float64, unit string) Row {
		return Row{Figure: figure, Agents: n, Sync: s.Sync, Value: value, Unit: unit}
	}
	alone := (before.Rate() + after.Rate()) / 2
	return l.Add(
		row("input stream alone", alone, "inputs/s"),
		row("inputs, a turn each", got.Rate(), "inputs/s").Of(alone, "input stream alone"),
		row("input stream alone p50", (before.MS(0.5)+after.MS(0.5))/2, "ms"),
		row("input to turn started p50", got.MS(0.5), "ms"),
		row("input to turn started p99", got.MS(0.99), "ms"),
	)
}

// input is an input of an agent as users publish it.
func input(a messages.AgentID, reply string) (*nats.Msg, error) {
	body, err := json.Marshal(struct {
		Type    string `json:"type"`
		Content string `json:"content"`
		Reply   string `json:"reply,omitempty"`
	}{"input", UserInput, reply})
	return &nats.Msg{Subject: messages.Subjects{}.In(a), Data: body}, err
}

// inputs starts a node and publishes inputs for n agents; each gets its next
// one when its turn has ended. The latency of one is from its publishing to
// the model call of its turn, which comes after turn.started is stored.
func (s *Store) inputs(ctx context.Context, n int, window time.Duration) (got Tally, err error) {
	err = s.appending(ctx, n, func(ps []publisher) (err error) {
		clock := NewClock(n)
		node, err := s.Node(ctx, clock)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, node.Close()) }()
		told, leave, err := s.publishers(n) // answers on the reply subject come as those of a publisher
		if err != nil {
			return err
		}
		defer leave()
		sent := make([]int, n)
		got, err = Drive(ctx, n, window/3, window, func(ctx context.Context, w int) (time.Duration, error) {
			m, err := input(AgentID(w, sent[w]/TurnsEach), told[w].reply)
			if err != nil {
				return 0, err
			}
			sent[w]++
			start := time.Now()
			if _, err := ps[w].publish(ctx, m); err != nil {
				return 0, err
			}
			err = ended(ctx, told[w].answer)
			return clock.Since(w, start), err
		})
		return err
	})
	return got, err
}

// ended waits for the end of a turn among the facts sent to a reply subject.
func ended(ctx context.Context, facts <-chan *nats.Msg) error {
	for {
		select {
		case m := <-facts:
			switch {
			case isFact(m.Data, messages.TurnCompleted{}):
				return nil
			case !isFact(m.Data, messages.InputAccepted{}):
				return fmt.Errorf("an input was answered with %s", m.Data)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// isFact reports whether data is a fact of the type of ev, in JSON.
func isFact(data []byte, ev messages.Event) bool {
	return bytes.Contains(data, []byte(`"type":"`+ev.EventType()+`"`))
}

// inboxAlone publishes inputs for n agents and takes them out of the stream
// again, through as many consumers as a node has, with the same settings. Each
// agent gets its next input when the one before was received and its removal
// asked for.
func (s *Store) inboxAlone(ctx context.Context, n int, window time.Duration) (got Tally, err error) {
	err = s.appending(ctx, n, func(ps []publisher) error {
		taken := make([]chan struct{}, n)
		for i := range taken {
			taken[i] = make(chan struct{}, 1)
		}
		stop, err := s.consume(ctx, taken)
		defer stop()
		if err != nil {
			return err
		}
		got, err = Drive(ctx, n, window/3, window, func(ctx context.Context, w int) (time.Duration, error) {
			start := time.Now()
			m, err := input(AgentID(w, 0), "_INBOX.0123456789012345678901.0")
			if err == nil {
				_, err = ps[w].publish(ctx, m)
			}
			if err != nil {
				return 0, err
			}
			select {
			case <-taken[w]:
				return time.Since(start), nil
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		})
		return err
	})
	return got, err
}

// consume takes inputs out of the stream and reports each to its worker, until stop.
func (s *Store) consume(ctx context.Context, taken []chan struct{}) (stop func(), err error) {
	stream, err := s.JS.Stream(ctx, s.Names.Inbox())
	if err != nil {
		return func() {}, err
	}
	var consuming []jetstream.ConsumeContext
	stop = func() {
		for _, c := range consuming {
			c.Stop()
			<-c.Closed()
		}
		_ = s.removeConsumers(context.WithoutCancel(ctx), stream, "-bench") // a node makes its own anyway
	}
	if err := s.removeConsumers(ctx, stream, ""); err != nil { // a work queue lets one consumer have a subject
		return stop, err
	}
	take := func(m jetstream.Msg) {
		_, agent, err := messages.Subjects{}.ParseInbox(m.Subject())
		if err != nil || m.Ack() != nil {
			return // its worker misses it
		}
		select {
		case taken[workerOf(agent.Key)] <- struct{}{}:
		default: // a message that came twice
		}
	}
	for p := range messages.Partitions {
		js, err := jetstream.New(s.Conns[p%len(s.Conns)], jetstream.WithDefaultTimeout(Patience))
		if err != nil {
			return stop, err
		}
		c, err := js.CreateConsumer(ctx, s.Names.Inbox(), jetstream.ConsumerConfig{
			Durable: fmt.Sprintf("p%d-bench", p), FilterSubject: messages.Subjects{}.InboxOf(messages.Partition(p)),
			AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute, MaxDeliver: -1, MaxAckPending: 1000, MemoryStorage: true,
		})
		if err != nil {
			return stop, err
		}
		cc, err := c.Consume(take, jetstream.PullMaxMessages(256))
		if err != nil {
			return stop, err
		}
		consuming = append(consuming, cc)
	}
	return stop, nil
}

// removeConsumers removes the consumers of partitions whose names end so.
func (s *Store) removeConsumers(ctx context.Context, stream jetstream.Stream, suffix string) error {
	names := stream.ConsumerNames(ctx)
	for name := range names.Name() {
		if !strings.HasPrefix(name, "p") || !strings.HasSuffix(name, suffix) {
			continue
		}
		if err := stream.DeleteConsumer(ctx, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return err
		}
	}
	return names.Err()
}
