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

// Doctor gives what examines a store on which no node need run. conn is made as
// natslog.Connect makes it; streams that are missing are made, with replicas
// copies.
func Doctor(ctx context.Context, conn *nats.Conn, root string, replicas int, logger *slog.Logger) (*doctor.Doctor, error) {
	log, err := natslog.Open(ctx, natslog.Config{Conns: []*nats.Conn{conn}, Subjects: messages.Subjects{Root: root}, Replicas: replicas, Logger: logger})
	if err != nil {
		return nil, err
	}
	return doctorOf(log), nil
}

func doctorOf(log *natslog.Log) *doctor.Doctor {
	return doctor.New(doctor.Config{
		Log: log, Stream: log.ShardName, Blobs: log, BlobStored: log.BlobStored, Named: namedBy,
		Checks: []doctor.Check{actors.ExamineHeads(log)},
	})
}

// namedBy are the payloads that a frame's events name.
func namedBy(f *messages.Frame) (all []messages.Blob, readable bool) {
	for _, ev := range f.Events {
		all = append(all, messages.BlobsOf(ev)...)
	}
	return all, true
}
