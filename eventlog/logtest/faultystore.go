package logtest

import (
	"bytes"
	"context"
	"io"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// PlanStore makes the n-th call that puts or gets a blob or a snapshot meet the
// n-th fault of the plan; those after its end pass. Of two plans the appends'
// is not touched. Call it before the first such call. It gives f.
//
// A put that loses its request or is delayed stores nothing, one that loses its
// answer stores all, and both end with ErrLost; so does every such get. Blobs
// are never lost: they do not meet Forget, Stale and Garble.
func (f *Faulty) PlanStore(plan ...Fault) *Faulty {
	f.store, f.before = plan, make(map[kept][2][]byte)
	return f
}

// kept names a snapshot.
type kept struct {
	agent messages.AgentID
	name  string
}

func (f *Faulty) nextOfStore() (fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.store) > 0 {
		fault, f.store = f.store[0], f.store[1:]
	}
	return fault
}

// call makes one call of the store meet a fault.
func (f *Faulty) call(ctx context.Context, fault Fault, do func() error) error {
	switch fault {
	case LoseRequest, Delay:
		return ErrLost
	case Timeout, SlowDelivery:
		f.lag(ctx)
		return ErrLost
	case LoseAck, SlowLoseAck:
		_ = do() // its answer is what gets lost
		if fault == SlowLoseAck {
			f.lag(ctx)
		}
		return ErrLost
	case SlowRequest:
		if !f.lag(ctx) {
			return ErrLost
		}
	case SlowAck:
		err := do()
		if !f.lag(ctx) {
			return ErrLost
		}
		return err
	case Double:
		_ = do() // the second answer counts
	}
	return do()
}

type faultyBlobs struct {
	eventlog.Blobs
	f *Faulty
}

// PutBlob puts a blob as the next fault of the store's plan has it.
func (s faultyBlobs) PutBlob(ctx context.Context, a messages.AgentID, r io.ReadSeeker) (b messages.Blob, err error) {
	begin, err := r.Seek(0, io.SeekCurrent)
	if err != nil {
		return messages.Blob{}, err
	}
	err = s.f.call(ctx, s.f.nextOfStore(), func() error {
		if _, err := r.Seek(begin, io.SeekStart); err != nil {
			return err
		}
		b, err = s.Blobs.PutBlob(ctx, a, r)
		return err
	})
	if err != nil {
		return messages.Blob{}, err
	}
	return b, nil
}

// Blob gets a blob as the next fault of the store's plan has it.
func (s faultyBlobs) Blob(ctx context.Context, a messages.AgentID, b messages.Blob) (r io.ReadCloser, err error) {
	err = s.f.call(ctx, s.f.nextOfStore(), func() error {
		if r != nil {
			_ = r.Close()
		}
		r, err = s.Blobs.Blob(ctx, a, b)
		return err
	})
	if err != nil {
		if r != nil {
			_ = r.Close()
		}
		return nil, err
	}
	return r, nil
}

type faultySnapshots struct {
	eventlog.Snapshots
	f *Faulty
}

// PutSnapshot puts a snapshot as the next fault of the store's plan has it.
func (s faultySnapshots) PutSnapshot(ctx context.Context, a messages.AgentID, name string, snapshot []byte) error {
	fault := s.f.nextOfStore()
	if fault == Forget {
		return s.Snapshots.RemoveSnapshots(ctx, a, eventlog.All)
	}
	return s.f.call(ctx, fault, func() error {
		s.f.mu.Lock()
		if s.f.before != nil {
			if was := s.f.before[kept{a, name}]; !bytes.Equal(was[1], snapshot) {
				s.f.before[kept{a, name}] = [2][]byte{was[1], bytes.Clone(snapshot)}
			}
		}
		s.f.mu.Unlock()
		return s.Snapshots.PutSnapshot(ctx, a, name, snapshot)
	})
}

// Snapshot gets a snapshot as the next fault of the store's plan has it.
func (s faultySnapshots) Snapshot(ctx context.Context, a messages.AgentID, name string) (snapshot []byte, err error) {
	fault := s.f.nextOfStore()
	switch fault {
	case Forget:
		if err := s.Snapshots.RemoveSnapshots(ctx, a, eventlog.All); err != nil {
			return nil, err
		}
	case Stale:
		s.f.mu.Lock()
		defer s.f.mu.Unlock()
		return bytes.Clone(s.f.before[kept{a, name}][0]), nil
	}
	err = s.f.call(ctx, fault, func() error {
		snapshot, err = s.Snapshots.Snapshot(ctx, a, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	if fault == Garble && len(snapshot) > 0 {
		snapshot = bytes.Clone(snapshot)
		snapshot[len(snapshot)/2] ^= 1
	}
	return snapshot, nil
}
