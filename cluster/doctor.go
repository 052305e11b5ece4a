package cluster

import (
	"context"
	"log/slog"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// Doctor gives what examines a store on which no node need run. Of encrypted
// agents it sees what can be seen without keys. conn is made as
// natslog.Connect makes it; streams that are missing are made, with replicas
// copies.
func Doctor(ctx context.Context, conn *nats.Conn, root string, replicas int, logger *slog.Logger) (*doctor.Doctor, error) {
	log, err := natslog.Open(ctx, natslog.Config{Conns: []*nats.Conn{conn}, Subjects: messages.Subjects{Root: root}, Replicas: replicas, Logger: logger})
	if err != nil {
		return nil, err
	}
	return doctorOf(log, log, actors.ExamineHeads(log)), nil
}

// doctorOf examines the log that is stored in streams, and payloads as they are
// stored there.
func doctorOf(streams *natslog.Log, log doctor.Log, checks ...doctor.Check) *doctor.Doctor {
	return doctor.New(doctor.Config{
		Log: log, Stream: streams.ShardName, Blobs: streams, BlobStored: streams.BlobStored, BlobAgents: streams.BlobAgents, Named: namedBy,
		Checks: checks,
	})
}

// namedBy are the payloads that a frame's events name, as they are stored: what
// is sealed has another hash and size there.
func namedBy(f *messages.Frame) (all []messages.Blob, readable bool) {
	for _, ev := range f.Events {
		for _, b := range messages.BlobsOf(ev) {
			if b.Stored != "" {
				b = messages.Blob{SHA256: b.Stored, Size: -1}
			}
			all = append(all, b)
		}
	}
	return all, !f.Sealed()
}
