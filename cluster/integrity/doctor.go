package integrity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/prefix"
	"github.com/reprise-dev/reprise/messages"
)

// Doctor returns a doctor of a store on which no node need run. Of encrypted agents it sees what
// can be seen without keys. conn is made as natslog.Connect makes it; streams that are missing
// are made, with replicas copies.
func Doctor(ctx context.Context, conn *nats.Conn, root string, replicas int, logger *slog.Logger) (*doctor.Doctor, error) {
	log, err := natslog.Open(ctx, natslog.Config{Conns: []*nats.Conn{conn}, Subjects: messages.Subjects{Root: root}, Replicas: replicas, Logger: logger})
	if err != nil {
		return nil, err
	}
	return DoctorOf(log, log, nil, actors.CheckHeads(prefix.New(log.Store())), CheckPrefixes(log.Store())), nil
}

// DoctorOf examines the log that is stored in streams, payloads as they are
// stored there, and keys, which it tries if wrapping keys are given.
func DoctorOf(streams *natslog.Log, log doctor.Log, ring []encrypted.Key, checks ...doctor.Check) *doctor.Doctor {
	return doctor.New(doctor.Config{
		Log: log, Stream: streams.ShardName, Blobs: streams, BlobStored: streams.BlobStored, BlobAgents: streams.BlobAgents, Named: namedBy,
		Parent: func(ctx context.Context, a messages.AgentID) (messages.AgentID, bool, error) {
			return parentOf(ctx, log, a)
		},
		Checks: checks, Keys: func(ctx context.Context) (doctor.Keys, error) {
			bucket, err := streams.FindKeys(ctx)
			if err != nil || bucket == nil {
				return nil, err
			}
			return keysOf{streams, bucket, ring}, nil
		},
	})
}

// parentOf returns the parent of a fork; see doctor.Config.
func parentOf(ctx context.Context, log eventlog.Reader, a messages.AgentID) (parent messages.AgentID, forked bool, err error) {
	first, err := eventlog.First(log.Read(ctx, a, eventlog.Range{}))
	if damage := new(eventlog.DamageError); errors.As(err, &damage) {
		return parent, true, nil
	}
	if err != nil || first.Frame == nil || !eventlog.Forks(first.Frame) {
		return parent, false, err
	}
	p, _ := messages.PrefixOf(first.Frame) // zero where it is encrypted
	return p.Agent, true, nil
}

// keysOf are the keys in a bucket, for a doctor.
type keysOf struct {
	streams *natslog.Log
	bucket  *natslog.Bucket
	ring    []encrypted.Key // nil: none is tried
}

// Key looks at one; see doctor.Keys.
func (k keysOf) Key(ctx context.Context, a messages.AgentID) (id string, closed, err error) {
	c, revision, err := encrypted.Copy(ctx, k.bucket, a)
	switch {
	case err != nil && revision != 0: // what is there is no key
		return "", err, nil
	case err != nil || revision == 0:
		return "", nil, err
	case len(k.ring) > 0:
		closed = c.Unwraps(k.ring...)
	}
	return c.ID, closed, nil
}

// Agents are those of a shard; see doctor.Keys.
func (k keysOf) Agents(ctx context.Context, shard int) (list []messages.AgentID, err error) {
	all, err := encrypted.Agents(ctx, k.bucket)
	for _, a := range all {
		if k.streams.ShardOf(a) == shard {
			list = append(list, a)
		}
	}
	return list, err
}

// Erase returns how to erase one; see doctor.Keys.
func (k keysOf) Erase(a messages.AgentID) string {
	return fmt.Sprintf("stop the nodes, so that none has it in memory, and erase it: nats kv purge %s %s.%s.%s", k.bucket.Name(), a.Tenant, a.Kind, a.Key)
}

// namedBy are the payloads that a frame's events name, as they are stored: what
// is encrypted has another hash and size there. readable reports whether these are all: those of an
// imported agent, or of a detached fork, are named in a blob, too.
func namedBy(f *messages.Frame) (all []messages.Blob, readable bool) {
	for _, ev := range f.Events {
		for _, b := range messages.BlobsOf(ev) {
			if b.Stored != "" {
				b = messages.Blob{SHA256: b.Stored, Size: -1}
			}
			all = append(all, b)
		}
	}
	p, _ := messages.PrefixOf(f)
	_, copied := messages.CopyOf(f)
	return all, !f.Encrypted() && !copied && p.Frames == messages.Blob{} // its frames name others
}
