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

// inputs measures n agents that get their inputs through the stream, between
// two windows of that stream alone.
func (l *lab) inputs(ctx context.Context, s *store, n int) error {
	l.say("sync %s, %d agents: inputs through the stream", s.sync, n)
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
		return Row{Figure: figure, Agents: n, Sync: s.sync, Value: value, Unit: unit}
	}
	alone := (before.rate() + after.rate()) / 2
	return l.out.add(
		row("input stream alone", alone, "inputs/s"),
		row("inputs, a turn each", got.rate(), "inputs/s").of(alone, "input stream alone"),
		row("input stream alone p50", (before.ms(0.5)+after.ms(0.5))/2, "ms"),
		row("input to turn started p50", got.ms(0.5), "ms"),
		row("input to turn started p99", got.ms(0.99), "ms"),
	)
}

// inputBody is an input as users publish it.
func inputBody(reply string) ([]byte, error) {
	return json.Marshal(struct {
		Type    string `json:"type"`
		Content string `json:"content"`
		Reply   string `json:"reply,omitempty"`
	}{"input", userInput, reply})
}

// inputs starts a node and publishes inputs for n agents; each gets its next
// one when its turn has ended. The latency of one is from its publishing to
// the model call of its turn, which comes after turn.started is stored.
func (s *store) inputs(ctx context.Context, n int, window time.Duration) (got tally, err error) {
	if err := s.emptied(ctx); err != nil {
		return got, err
	}
	clock := newClock(n)
	node, err := s.node(ctx, clock)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	ps, leave, err := s.publishers(n)
	if err != nil {
		return got, err
	}
	defer leave()
	told, leaveReplies, err := s.publishers(n) // answers on the reply subject come as those of a publisher
	if err != nil {
		return got, err
	}
	defer leaveReplies()
	sent := make([]int, n)
	return drive(ctx, n, window/3, window, func(ctx context.Context, w int) (time.Duration, error) {
		body, err := inputBody(told[w].reply)
		if err != nil {
			return 0, err
		}
		m := nats.Msg{Subject: messages.Subjects{}.In(agentID(w, sent[w]/turnsEach)), Data: body}
		sent[w]++
		start := time.Now()
		if _, err := ps[w].publish(ctx, &m); err != nil {
			return 0, err
		}
		if err := ended(ctx, told[w].answer); err != nil {
			return 0, err
		}
		return clock.since(w, start), nil
	})
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
func (s *store) inboxAlone(ctx context.Context, n int, window time.Duration) (got tally, err error) {
	if err := s.emptied(ctx); err != nil {
		return got, err
	}
	ps, leave, err := s.publishers(n)
	if err != nil {
		return got, err
	}
	defer leave()
	taken := make(arrivals, n)
	for i := range taken {
		taken[i] = make(chan struct{}, 1)
	}
	stop, err := s.consume(ctx, taken.take)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	body, err := inputBody("_INBOX.0123456789012345678901.0")
	if err != nil {
		return got, err
	}
	return drive(ctx, n, window/3, window, func(ctx context.Context, w int) (time.Duration, error) {
		start := time.Now()
		if _, err := ps[w].publish(ctx, &nats.Msg{Subject: messages.Subjects{}.In(agentID(w, 0)), Data: body}); err != nil {
			return 0, err
		}
		select {
		case <-taken[w]:
			return time.Since(start), nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	})
}

// arrivals tell each worker that its input was taken out of the stream.
type arrivals []chan struct{}

func (a arrivals) take(m jetstream.Msg) error {
	_, agent, err := messages.Subjects{}.ParseInbox(m.Subject())
	if err != nil {
		return err
	}
	if err := m.Ack(); err != nil {
		return err
	}
	select {
	case a[workerOf(agent.Key)] <- struct{}{}:
	default: // a message that came twice
	}
	return nil
}

// consume gives every input to f, until stop, which tells f's first error.
func (s *store) consume(ctx context.Context, f func(jetstream.Msg) error) (stop func() error, err error) {
	var contexts []jetstream.ConsumeContext
	failed := make(chan error, 1)
	stop = func() error {
		for p, c := range contexts {
			c.Stop()
			<-c.Closed()
			// Nothing is left of it for the node, which makes its own anyway.
			_ = s.js.DeleteConsumer(context.WithoutCancel(ctx), s.names.Inbox(), consumerName(p))
		}
		select {
		case err := <-failed:
			return err
		default:
			return nil
		}
	}
	for p := range messages.Partitions {
		c, err := s.consumer(ctx, p)
		if err == nil {
			var cc jetstream.ConsumeContext
			if cc, err = c.Consume(func(m jetstream.Msg) {
				if err := f(m); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}, jetstream.PullMaxMessages(256)); err == nil {
				contexts = append(contexts, cc)
			}
		}
		if err != nil {
			return nil, errors.Join(err, stop())
		}
	}
	return stop, nil
}

// consumerName is ours for a partition, named as the node's are.
func consumerName(p int) string { return fmt.Sprintf("p%d-bench", p) }

// makeRoom deletes the consumers that a node has left for a partition: a work
// queue lets one consumer have a subject.
func (s *store) makeRoom(ctx context.Context, p int) error {
	stream, err := s.js.Stream(ctx, s.names.Inbox())
	if err != nil {
		return err
	}
	names := stream.ConsumerNames(ctx)
	for name := range names.Name() {
		if !strings.HasPrefix(name, fmt.Sprintf("p%d-", p)) {
			continue
		}
		if err := stream.DeleteConsumer(ctx, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return err
		}
	}
	return names.Err()
}

func (s *store) consumer(ctx context.Context, p int) (jetstream.Consumer, error) {
	js, err := jetstream.New(s.conns[p%len(s.conns)], jetstream.WithDefaultTimeout(patience))
	if err != nil {
		return nil, err
	}
	if err := s.makeRoom(ctx, p); err != nil {
		return nil, err
	}
	return js.CreateConsumer(ctx, s.names.Inbox(), jetstream.ConsumerConfig{
		Durable: consumerName(p), FilterSubject: messages.Subjects{}.InboxOf(messages.Partition(p)),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute, MaxDeliver: -1, MaxAckPending: 1000, MemoryStorage: true,
	})
}
