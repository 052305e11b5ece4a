package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// addGone notes the agents whose tombstones are newer than began, which has the
// streams as they were before the first was copied.
func (m *Manifest) addGone(ctx context.Context, js jetstream.JetStream, s messages.Subjects, began []*jetstream.StreamInfo) error {
	for i := range m.Streams {
		log := &m.Streams[i]
		if !isLog(natslog.NamesOf(s), log.Name) {
			continue
		}
		cfg := jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: began[i].State.LastSeq + 1}
		if err := natslog.ReadHeaders(ctx, js.Conn(), log.Name, cfg, func(subject string, header nats.Header, _ uint64) error {
			a, err := s.ParseLog(subject)
			if err == nil && natslog.IsTombstone(header) && !slices.Contains(log.Gone, a.Full()) {
				log.Gone = append(log.Gone, a.Full())
			}
			return nil // what stands on no agent's subject is no tombstone
		}); err != nil {
			return err
		}
	}
	return nil
}

// finish sees deletions through that ran while the backup was taken: the file may
// have some of an agent's messages and not others.
func (r *restoring) finish(ctx context.Context) error {
	for _, s := range r.m.Streams {
		for _, name := range s.Gone {
			if err := r.remove(ctx, name); err != nil {
				return fmt.Errorf("remove %s, which was deleted while the backup was taken: %w", name, err)
			}
		}
		if !isLog(r.names, s.Name) {
			continue
		}
		cfg := jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy}
		if err := natslog.ReadHeaders(ctx, r.js.Conn(), s.Name, cfg, func(subject string, header nats.Header, seq uint64) error {
			if !natslog.IsTombstone(header) {
				return nil
			}
			return r.purge(ctx, s.Name, subject, jetstream.WithPurgeSequence(seq))
		}); err != nil {
			return fmt.Errorf("see deletions through in stream %s: %w", s.Name, err)
		}
	}
	return nil
}

// remove takes an agent out of everything that was restored.
func (r *restoring) remove(ctx context.Context, name string) error {
	a, err := messages.ParseAgentID(name)
	if err != nil {
		return err
	}
	p := a.Partition()
	return errors.Join(
		r.purge(ctx, r.names.Log(p), r.subjects.Log(a)), r.purge(ctx, r.names.Blobs(p), r.subjects.Blobs(a)+".>"),
		r.purge(ctx, r.names.Inbox(), r.subjects.InboxOfAgent(a)), r.purge(ctx, r.names.DeadLetters(), r.subjects.DeadLetter(a)),
	)
}

// purge removes messages of a stream, if it is there.
func (r *restoring) purge(ctx context.Context, name, subject string, upto ...jetstream.StreamPurgeOpt) error {
	stream, err := r.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return stream.Purge(ctx, append(upto, jetstream.WithPurgeSubject(subject))...)
}
