//go:build unix

package clustertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// stored is a frame as it is in its stream.
type stored struct {
	agent  messages.AgentID
	seq    uint64
	at     time.Time
	frame  *messages.Frame
	digest messages.Digest
}

// readStored reads a message of a log stream.
func readStored(msg jetstream.Msg) (s stored, err error) {
	meta, err := msg.Metadata()
	if err != nil {
		return s, err
	}
	parts := strings.Split(msg.Subject(), ".") // reprise.log.<partition>.<tenant>.<kind>.<key>
	if len(parts) != 6 {
		return s, fmt.Errorf("a message on %s", msg.Subject())
	}
	s.agent = messages.AgentID{Tenant: parts[3], Kind: parts[4], Key: parts[5]}
	s.seq, s.at, s.digest = meta.Sequence.Stream, meta.Timestamp, messages.DigestOf(msg.Data())
	if s.frame, err = messages.DecodeFrame(s.agent, msg.Data()); err != nil {
		err = fmt.Errorf("message %d on %s: %w", s.seq, msg.Subject(), err)
	}
	return s, err
}

var streamNames = natslog.NamesOf(messages.Subjects{})

// logStreams are the names of the streams that hold the log.
func logStreams() (names []string) {
	seen := make(map[string]bool)
	for p := range messages.Partitions {
		if name := streamNames.Log(messages.Partition(p)); !seen[name] {
			seen[name], names = true, append(names, name)
		}
	}
	return names
}

// readLog reads all that is stored, frame by frame in the order of each agent.
func readLog(ctx context.Context, js jetstream.JetStream) (map[messages.AgentID][]stored, error) {
	log := make(map[messages.AgentID][]stored)
	for _, name := range logStreams() {
		if err := readStream(ctx, js, name, func(s stored) { log[s.agent] = append(log[s.agent], s) }); err != nil {
			return nil, fmt.Errorf("stream %s: %w", name, err)
		}
	}
	return log, nil
}

// readStream reads a stream up to its end of now.
func readStream(ctx context.Context, js jetstream.JetStream, name string, each func(stored)) error {
	stream, err := insist(ctx, func(ctx context.Context) (jetstream.Stream, error) { return js.Stream(ctx, name) })
	if err != nil {
		return err
	}
	last := stream.CachedInfo().State.LastSeq
	if stream.CachedInfo().State.Msgs == 0 {
		return nil
	}
	messages, stop, err := follow(ctx, js, name)
	if err != nil {
		return err
	}
	defer stop()
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		s, err := readStored(msg)
		if err != nil {
			return err
		}
		each(s)
		if s.seq >= last {
			return nil
		}
	}
}

func follow(ctx context.Context, js jetstream.JetStream, name string) (jetstream.MessagesContext, func(), error) {
	consumer, err := insist(ctx, func(ctx context.Context) (jetstream.Consumer, error) {
		return js.OrderedConsumer(ctx, name, jetstream.OrderedConsumerConfig{})
	})
	if err != nil {
		return nil, nil, err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return nil, nil, err
	}
	return messages, messages.Stop, nil
}

// watchEnds tells the book of each input that ends, as the log comes to say so,
// until ctx ends.
func (w *World) watchEnds(ctx context.Context, name string) {
	next := uint64(0)
	for ctx.Err() == nil {
		messages, stop, err := follow(ctx, w.js, name)
		for err == nil {
			var msg jetstream.Msg
			if msg, err = messages.Next(jetstream.NextContext(ctx)); err != nil {
				break
			}
			s, broken := readStored(msg)
			if broken != nil {
				w.book.write(func() { w.book.fault("%v", broken) })
				continue
			}
			if s.seq <= next {
				continue // a reader that begins anew begins with the first
			}
			next = s.seq
			w.book.tell(s)
		}
		if stop != nil {
			stop()
		}
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			continue // ctx says whether it is ours
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// endedBy are the inputs that an event ends.
func endedBy(e messages.Event) []string {
	switch e := e.(type) {
	case messages.TurnCompleted:
		return e.Inputs
	case messages.TurnFailed:
		return e.Inputs
	case messages.TurnAborted:
		return e.Inputs
	case messages.InputWithdrawn:
		return []string{e.Input}
	case messages.InputDropped:
		return []string{e.Input}
	}
	return nil
}
