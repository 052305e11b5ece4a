package natslog

import (
	"context"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// ReadAhead yields the newest frames of agents; see eventlog.Log. One consumer brings
// them: requests of JetStream's API wait in one queue of the server, where each may
// wait for the disk.
func (l *Log) ReadAhead(ctx context.Context, p messages.Partition, agents []messages.AgentID) iter.Seq2[eventlog.Newest, error] {
	return func(yield func(eventlog.Newest, error) bool) {
		if err := l.readAhead(ctx, p, agents, yield); err != nil {
			yield(eventlog.Newest{}, fmt.Errorf("read %d agents of partition %v ahead: %w", len(agents), p, err))
		}
	}
}

func (l *Log) readAhead(ctx context.Context, p messages.Partition, agents []messages.AgentID, yield func(eventlog.Newest, error) bool) error {
	missing := make(map[string]messages.AgentID, len(agents))
	cfg := jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy}
	for _, a := range agents {
		if err := a.Validate(); err != nil {
			return err
		}
		if a.Partition() != p {
			return fmt.Errorf("agent %s belongs to partition %v", a, a.Partition())
		}
		if subject := l.subject(a, p); missing[subject] != a {
			missing[subject] = a
			cfg.FilterSubjects = append(cfg.FilterSubjects, subject)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	f, err := l.conn(p).feed(ctx, l.stream[p], cfg)
	if err != nil {
		return err
	}
	defer f.close()
	if f.pending == 0 {
		return nil
	}
	none := func() (more bool, err error) { return false, nil } // what has not come by now is not waited for
	return f.all(ctx, func(m *delivery) bool {
		a := missing[m.subject]
		delete(missing, m.subject)
		h, err := parseHeading(m.header)
		if a != (messages.AgentID{}) && err == nil && !yield(eventlog.Newest{Agent: a, Seq: m.seq, Last: h.last, Size: len(m.data), Source: &m.stored}, nil) {
			return false
		}
		return len(missing) > 0 && f.pending > 0
	}, none)
}
