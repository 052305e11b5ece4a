package natslog

import (
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// inboxSubjects returns what the work queue takes: what is published to agents, and what is
// stored for each partition. It takes nothing for other partitions, as no node reads those.
func inboxSubjects(s messages.Subjects) []string {
	subjects := []string{s.Any("in"), s.Any("ctl")}
	for p := range messages.Partitions {
		subjects = append(subjects, s.InboxOf(messages.Partition(p)))
	}
	return subjects
}

// isWide reports whether a work queue has the subjects that it had at first: they take messages
// for any partition.
func isWide(want, have jetstream.StreamConfig) bool {
	return want.Retention == jetstream.WorkQueuePolicy && sameSet(have.Subjects, append(slices.Clone(want.Subjects[:2]), strings.TrimSuffix(want.Subjects[2], "0.>")+">"))
}
