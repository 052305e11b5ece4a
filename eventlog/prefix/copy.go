package prefix

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// A fork that was detached has a copy of its prefix as a blob of its own, which an event of its log
// names. It is looked for only where the parent has not what the fork begins with: a fork whose parent
// exists is read as before.

// copied yields the frames of a fork's copy of its prefix from the one that holds event from on. If it
// has none, it yields why it is needed. first is the first frame of the fork's own.
func (s *store) copied(ctx context.Context, first eventlog.Recorded, from messages.EventNumber, why error) iter.Seq2[eventlog.Recorded, error] {
	p, err := s.copyOf(ctx, first)
	switch {
	case err != nil:
		why = err
	case p != nil:
		return Frames(ctx, s.inner.Blobs, first.Agent, *p, from)
	}
	return func(yield func(eventlog.Recorded, error) bool) { yield(eventlog.Recorded{}, why) }
}

// copyOf returns a fork's copy of its prefix; nil if it has made none, or none that can be found because
// its log is damaged before that.
func (s *store) copyOf(ctx context.Context, first eventlog.Recorded) (*messages.Prefix, error) {
	for rec, err := range s.inner.Read(ctx, first.Agent, eventlog.From(first.Frame.First)) {
		if damage := new(eventlog.DamageError); errors.As(err, &damage) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if p, is := messages.CopyOf(rec.Frame); is {
			return &p, nil
		}
	}
	return nil, nil
}

// Blob streams a blob of the agent, or of its prefix; see eventlog.Blobs.
func (s *store) Blob(ctx context.Context, a messages.AgentID, b messages.Blob) (io.ReadCloser, error) {
	var forks []eventlog.Recorded // by their first frames
	for range messages.MaxPrefixes + 1 {
		r, err := s.inner.Blob(ctx, a, b)
		if err == nil || messages.AsError(err).Code != messages.NotFound {
			return r, err
		}
		first, unread := eventlog.First(s.inner.Read(ctx, a, eventlog.Range{}))
		if damage := new(eventlog.DamageError); unread != nil && !errors.As(unread, &damage) {
			return nil, unread
		}
		p, forked := messages.PrefixOf(first.Frame)
		if !forked || p.Agent.Tenant != a.Tenant { // of no agent, or of another tenant's
			return s.renamed(ctx, forks, b, err)
		}
		forks, a = append(forks, first), p.Agent
	}
	return s.renamed(ctx, forks, b, ErrDeep)
}

// renamed streams a blob that a fork's copy of its prefix names otherwise than the parent did: what is
// encrypted has another name under another key. An error other than missing is one of reading.
func (s *store) renamed(ctx context.Context, forks []eventlog.Recorded, b messages.Blob, missing error) (io.ReadCloser, error) {
	if b.Stored == "" { // its name is the same in every store
		return nil, missing
	}
	for _, first := range forks {
		p, err := s.copyOf(ctx, first)
		if err != nil {
			return nil, err
		}
		if p == nil {
			continue
		}
		named, err := s.named(ctx, first.Agent, *p, b.SHA256)
		if err != nil {
			return nil, err
		}
		if named != nil {
			return s.inner.Blob(ctx, first.Agent, *named)
		}
	}
	return nil, missing
}

// named returns the blob with this content that the frames of a copy name; nil if they name none.
func (s *store) named(ctx context.Context, a messages.AgentID, p messages.Prefix, content messages.Digest) (*messages.Blob, error) {
	for rec, err := range Frames(ctx, s.inner.Blobs, a, p, 0) {
		if err != nil {
			return nil, err
		}
		for _, ev := range rec.Frame.Events {
			for _, b := range messages.BlobsOf(ev) {
				if b.SHA256 == content {
					return &b, nil
				}
			}
		}
	}
	return nil, nil
}
