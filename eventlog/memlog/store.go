package memlog

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// PutBlob stores what r holds; see eventlog.Blobs.
func (l *Log) PutBlob(ctx context.Context, a messages.AgentID, r io.ReadSeeker) (messages.Blob, error) {
	if err := a.Validate(); err != nil {
		return messages.Blob{}, err
	}
	size, err := io.Copy(io.Discard, r) // as a log does that must know the hash first
	if err == nil {
		_, err = r.Seek(-size, io.SeekCurrent)
	}
	payload := make([]byte, size)
	if err == nil {
		_, err = io.ReadFull(r, payload)
	}
	if err != nil {
		return messages.Blob{}, fmt.Errorf("read a blob of %s: %w", a, err)
	}
	if err := ctx.Err(); err != nil {
		return messages.Blob{}, err
	}
	b := messages.Blob{SHA256: messages.DigestOf(payload), Size: int64(len(payload))}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.blobs[a] == nil {
		l.blobs[a] = make(map[messages.Digest][]byte)
	}
	if _, there := l.blobs[a][b.SHA256]; !there {
		l.blobs[a][b.SHA256] = payload
		l.put(place{a, string(b.SHA256)})
	}
	return b, nil
}

// Blob streams a blob; see eventlog.Blobs.
func (l *Log) Blob(ctx context.Context, a messages.AgentID, b messages.Blob) (io.ReadCloser, error) {
	if err := usable[string](ctx, a); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	payload, ok := l.blobs[a][b.SHA256]
	if !ok {
		return nil, messages.Refuse(messages.NotFound, "blob %s of %s is not stored here", b.SHA256, a)
	}
	return &blobReader{ctx: ctx, agent: a, want: b, rest: payload, got: messages.DigestOf(payload), size: int64(len(payload))}, nil
}

// blobReader streams one blob's bytes.
type blobReader struct {
	ctx   context.Context
	agent messages.AgentID
	want  messages.Blob
	rest  []byte
	got   messages.Digest
	size  int64
}

// Read reads what is next; behind the last byte it reports what does not match.
func (r *blobReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if len(r.rest) > 0 {
		n := copy(p, r.rest)
		r.rest = r.rest[n:]
		return n, nil
	}
	if r.size != r.want.Size || r.got != r.want.SHA256 {
		return 0, messages.Refuse(messages.Damaged, "blob %s of %s should have %d bytes; what is stored has %d with hash %s: restore it from a backup", r.want.SHA256, r.agent, r.want.Size, r.size, r.got)
	}
	return 0, io.EOF
}

// Close ends the reader.
func (r *blobReader) Close() error { return nil }

// ListBlobs yields the agent's blobs; see eventlog.Blobs.
func (l *Log) ListBlobs(ctx context.Context, a messages.AgentID) iter.Seq2[messages.Blob, error] {
	return func(yield func(messages.Blob, error) bool) {
		if err := usable[string](ctx, a); err != nil {
			yield(messages.Blob{}, err)
			return
		}
		l.mu.Lock()
		all := maps.Clone(l.blobs[a])
		l.mu.Unlock()
		for hash, payload := range all {
			if !yield(messages.Blob{SHA256: hash, Size: int64(len(payload))}, nil) {
				return
			}
		}
	}
}

// RemoveBlobs removes blobs; see eventlog.Blobs.
func (l *Log) RemoveBlobs(ctx context.Context, a messages.AgentID, upto uint64, hashes ...messages.Digest) error {
	if err := usable(ctx, a, hashes...); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.blobs[a], func(d messages.Digest, _ []byte) bool {
		return l.places[place{a, string(d)}] <= upto && (len(hashes) == 0 || slices.Contains(hashes, d))
	})
	return nil
}

// LastBlob returns the last sequence; see eventlog.Blobs. Blobs and snapshots share one count.
func (l *Log) LastBlob(ctx context.Context, a messages.AgentID) (uint64, error) {
	if err := usable[string](ctx, a); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.beside, nil
}

// Tamper replaces the bytes of a stored blob, for tests of damage. It reports
// whether there was one.
func (l *Log) Tamper(a messages.AgentID, hash messages.Digest, change func([]byte) []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	payload, ok := l.blobs[a][hash]
	if ok {
		l.blobs[a][hash] = change(bytes.Clone(payload))
	}
	return ok
}

// PutSnapshot replaces a snapshot; see eventlog.Snapshots.
func (l *Log) PutSnapshot(ctx context.Context, a messages.AgentID, name string, snapshot []byte) error {
	if err := usable(ctx, a, name); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.snapshots[a] == nil {
		l.snapshots[a] = make(map[string][]byte)
	}
	l.snapshots[a][name] = append([]byte{}, snapshot...)
	l.put(place{a, name})
	return nil
}

// Snapshot returns a snapshot; see eventlog.Snapshots.
func (l *Log) Snapshot(ctx context.Context, a messages.AgentID, name string) ([]byte, error) {
	if err := usable(ctx, a, name); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.snapshots[a][name]), nil
}

// ListSnapshots returns the names of snapshots; see eventlog.Snapshots.
func (l *Log) ListSnapshots(ctx context.Context, a messages.AgentID) ([]string, error) {
	if err := usable[string](ctx, a); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.snapshots[a])), nil
}

// RemoveSnapshots removes snapshots; see eventlog.Snapshots.
func (l *Log) RemoveSnapshots(ctx context.Context, a messages.AgentID, upto uint64) error {
	if err := usable[string](ctx, a); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.snapshots[a], func(name string, _ []byte) bool { return l.places[place{a, name}] <= upto })
	return nil
}

// LastSnapshot returns the last sequence; see eventlog.Snapshots.
func (l *Log) LastSnapshot(ctx context.Context, a messages.AgentID) (uint64, error) {
	return l.LastBlob(ctx, a)
}

// usable returns an error unless the call may continue and the names fit a subject.
func usable[N ~string](ctx context.Context, a messages.AgentID, names ...N) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, name := range names {
		if err := messages.ValidateToken("name", string(name)); err != nil {
			return err
		}
	}
	return a.Validate()
}

// put counts what is stored beside the log. l.mu is held.
func (l *Log) put(p place) {
	l.beside++
	l.places[p] = l.beside
}
