//go:build unix

package clustertest

import (
	"context"
	"fmt"
	"iter"
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
	for s, err := range frames(ctx, js, name) {
		if err != nil {
			return err
		}
		each(s)
		if s.seq >= last {
			return nil
		}
	}
	return ctx.Err()
}

// frames are those of a stream as they are stored, until ctx ends, which is the last error; one
// that cannot be read is another. Where a server has died the library's reader may wait forever,
// even when ctx ends: the consumer that it makes again was assigned to that server. So it may try
// once, and another reader continues where it was.
func frames(ctx context.Context, js jetstream.JetStream, name string, filters ...string) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		for next := uint64(1); ctx.Err() == nil; {
			consumer, err := insist(ctx, func(ctx context.Context) (jetstream.Consumer, error) {
				return js.OrderedConsumer(ctx, name, jetstream.OrderedConsumerConfig{
					FilterSubjects: filters, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: next, MaxResetAttempts: 1,
				})
			})
			var all jetstream.MessagesContext
			if err == nil {
				all, err = consumer.Messages()
			}
			if err != nil { // such as that JetStream has no leader now, or none that knows the stream
				select {
				case <-time.After(100 * time.Millisecond):
				case <-ctx.Done():
				}
				continue
			}
			for {
				msg, err := all.Next(jetstream.NextContext(ctx))
				if err != nil {
					break
				}
				s, err := readStored(msg)
				next = max(next, s.seq+1)
				if !yield(s, err) {
					all.Stop()
					return
				}
			}
			all.Stop()
		}
		yield(stored{}, ctx.Err())
	}
}

// watchEnds records in the book each input that ends, as the log says so, until ctx ends.
func (w *World) watchEnds(ctx context.Context, name string) {
	for s, err := range frames(ctx, w.js, name) {
		switch {
		case err == nil:
			w.book.tell(s)
		case ctx.Err() == nil:
			w.book.Write(func() { w.book.fault("%v", err) })
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
	case messages.InputCancelled:
		return []string{e.Input}
	case messages.InputDropped:
		return []string{e.Input}
	}
	return nil
}
