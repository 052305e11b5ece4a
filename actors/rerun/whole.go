package rerun

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/messages"
)

// Exported returns an agent of a file that `reprise export` has written. Its error is that of an address.
func Exported(a *export.Agent) (Recorded, error) {
	id, err := messages.ParseAgentID(a.Head.Agent)
	if err != nil {
		return Recorded{}, err
	}
	rec := Recorded{Agent: id}
	if rules := a.Head.Redacted; len(rules) > 0 {
		rec.Incomplete = fmt.Sprintf("texts were replaced when it was exported (%s), so its inputs are not what was asked: export it without --redact", strings.Join(rules, ", "))
		return rec, nil
	}
	rec.Frames, err = whole(a.Frames, func(b messages.Blob, _ messages.BlobForm) (string, error) {
		data, ok := a.Blobs[b.SHA256]
		if !ok {
			return "", fmt.Errorf("payload %s is not in the file: export it without --no-blobs", b.SHA256)
		}
		return string(data), nil
	})
	if err != nil {
		rec.Incomplete = err.Error()
	}
	return rec, nil
}

// Stored returns frames of an agent with the payloads in their events that a store keeps as blobs.
func Stored(ctx context.Context, from eventlog.Blobs, agent messages.AgentID, frames []*messages.Frame) ([]*messages.Frame, error) {
	return whole(frames, func(b messages.Blob, _ messages.BlobForm) (string, error) {
		r, err := from.Blob(ctx, agent, b)
		if err != nil {
			return "", err
		}
		defer func() { _ = r.Close() }()
		data, err := io.ReadAll(r)
		return string(data), err
	})
}

// whole returns frames with the payloads in their events that are kept as blobs.
func whole(frames []*messages.Frame, fill messages.BlobFill) ([]*messages.Frame, error) {
	list := make([]*messages.Frame, len(frames))
	for i, f := range frames {
		var err error
		if list[i], err = f.Whole(fill); err != nil {
			return nil, err
		}
	}
	return list, nil
}
