package natslog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/reprise-dev/reprise/messages"
)

// PutSnapshot replaces a snapshot; see eventlog.Snapshots. It is not tried again,
// unless the stream was removed and is made again.
func (l *Log) PutSnapshot(ctx context.Context, a messages.AgentID, name string, snapshot []byte) error {
	c, p, err := l.snapshot(a, name)
	if err != nil {
		return err
	}
	p.digest, p.size = messages.DigestOf(snapshot), int64(len(snapshot))
	p.cut(l.chunk)
	if err = c.replace(ctx, p, snapshot, l.chunk); err != nil && l.remake(ctx, p.stream) {
		err = c.replace(ctx, p, snapshot, l.chunk)
	}
	if err != nil {
		return fmt.Errorf("store snapshot %s of %s: %w", name, a, err)
	}
	return nil
}

func (l *Log) snapshot(a messages.AgentID, name string) (*conn, parcel, error) {
	if err := a.Validate(); err != nil {
		return nil, parcel{}, err
	}
	if err := messages.ValidateToken("snapshot name", name); err != nil {
		return nil, parcel{}, err
	}
	return l.conn(a.Partition()), parcel{stream: l.names.Snapshots(), subject: l.subjects.Snapshots(a) + "." + name}, nil
}

// replace publishes the parcel's chunks, the first one when all others are
// stored, and removes those that an earlier, larger parcel has left.
func (c *conn) replace(ctx context.Context, p parcel, data []byte, each int) error {
	errs, free := make([]error, p.chunks), make(chan struct{}, chunksAtOnce)
	var sent sync.WaitGroup
	for i := p.chunks - 1; i > 0; i-- {
		free <- struct{}{}
		sent.Go(func() {
			_, errs[i] = c.publish(ctx, p.message(i, data[i*each:min(len(data), (i+1)*each)]))
			<-free
		})
	}
	sent.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if _, err := c.publish(ctx, p.message(0, data[:min(len(data), each)])); err != nil {
		return err
	}
	for i := p.chunks; ; i++ {
		m, err := c.direct(ctx, p.stream, p.place(i))
		if err != nil || m == nil || m.isRemoved() {
			return err
		}
		if err := c.blank(ctx, p.stream, p.place(i), m.seq); err != nil {
			return err
		}
	}
}

// Snapshot returns a snapshot; see eventlog.Snapshots. Most are one chunk, which is
// one request. Its chunks are those that were stored together, by the hash in their headers, and
// each is verified by its checksum; the hash, a third of the time of reading, is not taken
// again, as what is in a snapshot has a checksum, too. A server that is behind may answer: what comes may be older than
// the newest.
func (l *Log) Snapshot(ctx context.Context, a messages.AgentID, name string) ([]byte, error) {
	c, p, err := l.snapshot(a, name)
	if err != nil {
		return nil, err
	}
	first, err := c.direct(ctx, p.stream, p.place(0))
	if err != nil || first == nil {
		return nil, err
	}
	if p, err = parseParcel(p.stream, p.subject, first); err != nil {
		return nil, nil // it is a cache
	}
	r := p.open(ctx, first, func(ctx context.Context, chunk int) (*stored, error) { return c.direct(ctx, p.stream, p.place(chunk)) })
	r.skipped = true
	defer r.cancel()
	var data bytes.Buffer
	data.Grow(len(first.data) + bytes.MinRead)
	_, err = data.ReadFrom(r)
	if chunk := (*chunkError)(nil); errors.As(err, &chunk) || errors.Is(err, errMixed) {
		l.log.Debug("a snapshot is not whole", "agent", a.String(), "snapshot", name, "error", err)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read snapshot %s of %s: %w", name, a, err)
	}
	return data.Bytes(), nil
}

// ListSnapshots returns the names of snapshots; see eventlog.Snapshots.
func (l *Log) ListSnapshots(ctx context.Context, a messages.AgentID) ([]string, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	prefix, names := l.subjects.Snapshots(a)+".", make(map[string]bool)
	err := l.conn(a.Partition()).list(ctx, l.names.Snapshots(), prefix+">", func(m *delivery) {
		if m.isRemoved() {
			return
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(m.subject, prefix), ".")
		names[name] = true
	})
	if err != nil {
		return nil, fmt.Errorf("list the snapshots of %s: %w", a, err)
	}
	return slices.Sorted(maps.Keys(names)), nil
}
