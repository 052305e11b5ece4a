package natslog

import (
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// LogStreams is how many streams the partitions of the log are spread over, four to
// each, in order. It is part
// of what is stored and never changes.
const LogStreams = 16

const perStream = messages.Partitions / LogStreams

// blobStreams is how many streams hold blobs; like LogStreams it never changes.
const blobStreams = 4

// Names are the names of an installation's streams. Make them with [NamesOf].
type Names struct{ prefix string }

// NamesOf returns the stream names that belong to the subjects.
func NamesOf(s messages.Subjects) Names {
	return Names{strings.ToUpper(root(s)) + "_"}
}

func root(s messages.Subjects) string {
	if s.Root == "" {
		return messages.DefaultRoot
	}
	return s.Root
}

// Log is the stream that holds the frames of a partition.
func (n Names) Log(p messages.Partition) string {
	return n.log(Shard(p))
}

func (n Names) log(i int) string { return fmt.Sprintf("%sLOG_%d", n.prefix, i) }

// Blobs is the stream that holds the payloads of a partition's agents.
func (n Names) Blobs(p messages.Partition) string {
	return n.blob(int(p) / (messages.Partitions / blobStreams))
}

func (n Names) blob(i int) string { return fmt.Sprintf("%sBLOB_%d", n.prefix, i) }

// Snapshots is the stream that holds snapshots.
func (n Names) Snapshots() string { return n.prefix + "SNAP" }

// Definitions is the stream that holds definitions.
func (n Names) Definitions() string { return n.prefix + "DEF" }

// Inbox is the work queue of inputs and commands.
func (n Names) Inbox() string { return n.prefix + "IN" }

// DeadLetters is the stream of inputs that could never be applied.
func (n Names) DeadLetters() string { return n.prefix + "DLQ" }

// Ours reports whether a stream belongs to the installation.
func Ours(s messages.Subjects, stream string) bool {
	return strings.HasPrefix(stream, NamesOf(s).prefix) || strings.HasPrefix(stream, "KV_"+root(s)+"_")
}

// Caches returns the streams whose content nodes make again: snapshots, and who is alive
// and owns what.
func Caches(s messages.Subjects) []string {
	return []string{NamesOf(s).Snapshots(), "KV_" + root(s) + "_leases", "KV_" + root(s) + "_members"}
}

const (
	// shortest is the smallest window for duplicates that the server allows.
	shortest       = 100 * time.Millisecond
	keepDeadLetter = 30 * 24 * time.Hour
)

// streams are the streams as Open creates them.
func streams(s messages.Subjects, replicas int) []jetstream.StreamConfig {
	n := NamesOf(s)
	var all []jetstream.StreamConfig
	add := func(name, what string, retention jetstream.RetentionPolicy, subjects ...string) *jetstream.StreamConfig {
		all = append(all, jetstream.StreamConfig{
			Name: name, Description: "reprise: " + what, Subjects: subjects,
			Retention: retention, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew,
			MaxMsgs: -1, MaxBytes: -1, MaxMsgsPerSubject: -1, MaxMsgSize: -1, MaxConsumers: -1,
			Replicas: max(1, replicas), Duplicates: shortest,
		})
		return &all[len(all)-1]
	}
	for i := range LogStreams {
		add(n.log(i), "what happened to the agents", jetstream.LimitsPolicy, share(i, LogStreams, s.LogOf)...)
	}
	for i := range blobStreams {
		blob := add(n.blob(i), "payloads too large for a frame", jetstream.LimitsPolicy, share(i, blobStreams, s.BlobsOf)...)
		blob.MaxMsgsPerSubject, blob.DiscardNewPerSubject, blob.AllowDirect = 1, true, true
	}
	snap := add(n.Snapshots(), "snapshots: a cache", jetstream.LimitsPolicy, s.Any("snap"))
	snap.MaxMsgsPerSubject, snap.Discard, snap.AllowDirect = 1, jetstream.DiscardOld, true
	if snap.Replicas == 1 { // the server knows no other kind of stream that need not wait for the disk
		snap.PersistMode = jetstream.AsyncPersistMode
	}
	def := add(n.Definitions(), "definitions by hash", jetstream.LimitsPolicy, s.Any("def"))
	def.MaxMsgsPerSubject, def.DiscardNewPerSubject = 1, true
	in := add(n.Inbox(), "inputs and commands not yet applied", jetstream.WorkQueuePolicy, inboxSubjects(s)...)
	in.SubjectTransform = transform(s)
	dlq := add(n.DeadLetters(), "inputs that could never be applied", jetstream.LimitsPolicy, s.Any("dlq"))
	dlq.MaxAge = keepDeadLetter
	return all
}

// share returns the filters of the partitions that the i-th of n streams holds.
func share(i, n int, filter func(messages.Partition) string) (subjects []string) {
	per := messages.Partitions / n
	for p := i * per; p < (i+1)*per; p++ {
		subjects = append(subjects, filter(messages.Partition(p)))
	}
	return subjects
}

// transform puts the partition into the subject of an input or command.
func transform(s messages.Subjects) *jetstream.SubjectTransformConfig {
	return &jetstream.SubjectTransformConfig{
		Source: root(s) + ".*.*.*.*",
		Destination: fmt.Sprintf("%s.inq.{{partition(%d,2,3,4)}}.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}.{{wildcard(4)}}",
			root(s), messages.Partitions),
	}
}
