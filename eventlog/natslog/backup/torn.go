package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// heads gives the messages of a stream that cfg chooses, without their bodies, up
// to the newest there is now, however much comes meanwhile.
func heads(ctx context.Context, js jetstream.JetStream, name string, cfg jetstream.OrderedConsumerConfig, each func(m jetstream.Msg, seq uint64) error) error {
	cfg.HeadersOnly, cfg.InactiveThreshold = true, 30*time.Second // nothing stays for long
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return err
	}
	cfg.MaxResetAttempts = 1 // else it may wait for ever for a consumer that was given to a server that has died
	c, err := stream.OrderedConsumer(ctx, cfg)
	if err != nil {
		return err
	}
	all, err := c.Messages()
	if err != nil {
		return err
	}
	defer all.Stop()
	for left := c.CachedInfo().NumPending; left > 0; {
		m, at, err := head(ctx, all)
		if err != nil {
			return err
		}
		left = at.NumPending
		if err := each(m, at.Sequence.Stream); err != nil {
			return err
		}
		if at.Sequence.Stream >= stream.CachedInfo().State.LastSeq {
			return nil
		}
	}
	return nil
}

func head(ctx context.Context, all jetstream.MessagesContext) (jetstream.Msg, *jetstream.MsgMetadata, error) {
	within, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	m, err := all.Next(jetstream.NextContext(within))
	if err != nil {
		return nil, nil, err
	}
	at, err := m.Metadata()
	return m, at, err
}

// addGone notes the agents whose tombstones are newer than began, which has the
// streams as they were before the first was copied.
func (m *Manifest) addGone(ctx context.Context, js jetstream.JetStream, s messages.Subjects, began []*jetstream.StreamInfo) error {
	for i := range m.Streams {
		log := &m.Streams[i]
		if !isLog(natslog.NamesOf(s), log.Name) {
			continue
		}
		cfg := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: began[i].State.LastSeq + 1}
		if err := heads(ctx, js, log.Name, cfg, func(msg jetstream.Msg, _ uint64) error {
			a, err := s.ParseLog(msg.Subject())
			if err == nil && natslog.IsTombstone(msg.Headers()) && !slices.Contains(log.Gone, a.Full()) {
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
		cfg := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy}
		if err := heads(ctx, r.js, s.Name, cfg, func(m jetstream.Msg, seq uint64) error {
			if !natslog.IsTombstone(m.Headers()) {
				return nil
			}
			return r.purge(ctx, s.Name, m.Subject(), jetstream.WithPurgeSequence(seq))
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
