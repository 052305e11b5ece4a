package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/blocks"
	"github.com/reprise-dev/reprise/messages"
)

// Examined is what Examine found in one stream.
type Examined struct {
	Stream   string `json:"stream"`
	Messages uint64 `json:"messages"`
	Last     uint64 `json:"last"`
	Bytes    int64  `json:"bytes"`
	// Damage is every bad place. Only what is not damage can be read.
	Damage []Place `json:"damage,omitempty"`
	// Torn is the end of a write that a crash cut off. It was never acknowledged, and the
	// server removes it. Nil: there is none.
	Torn *Place `json:"torn,omitempty"`
	// Unverified says of files that could not be examined why.
	Unverified []string `json:"unverified,omitempty"`
}

// Place is a bad place in a file.
type Place struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
	// First and Last are the sequences of the messages concerned, or a range in which they
	// lie. Zero: not known.
	First uint64 `json:"first,omitempty"`
	Last  uint64 `json:"last,omitempty"`
	// Agent is the one whose frame it is, if that can be read.
	Agent  messages.AgentID `json:"agent,omitzero"`
	Detail string           `json:"detail"`
}

// ErrRunning is wrapped by Examine's error if a process uses the folder.
var ErrRunning = errors.New("a node runs on it")

// Examine reads the files of a server that does not run, and changes nothing. each
// receives every stream of the root, in order; progress, unless it is nil, how many of
// its bytes are read.
func Examine(ctx context.Context, dir, root string, each func(Examined), progress func(stream string, done, total int64)) error {
	if _, err := os.Stat(filepath.Join(dir, "VERSION")); err != nil {
		return fmt.Errorf("data folder %s: no node has used it: %w", dir, err)
	}
	lock, err := lockNow(dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	streams, err := blocks.Streams(dir)
	if err != nil {
		return err
	}
	x := examination{subjects: messages.Subjects{Root: root}, progress: progress}
	if err := x.readMarks(ctx, streams); err != nil {
		return err
	}
	for _, s := range streams {
		if !x.ours(s.Name) {
			continue
		}
		found, err := x.stream(ctx, s)
		if err != nil {
			return err
		}
		each(found)
	}
	return nil
}

type examination struct {
	subjects messages.Subjects
	progress func(stream string, done, total int64)
	known    map[string]uint64
}

// ours reports whether a stream belongs to the root.
func (x *examination) ours(name string) bool {
	root := strings.TrimSuffix(natslog.NamesOf(x.subjects).Inbox(), "IN")
	bucket := strings.TrimSuffix(natslog.MarksOf(x.subjects), "marks")
	return strings.HasPrefix(name, root) || strings.HasPrefix(name, bucket)
}

// readMarks reads how far the streams of the log are known to go.
func (x *examination) readMarks(ctx context.Context, streams []blocks.Stream) error {
	newest := make(map[string][]byte)
	for _, s := range streams {
		if s.Name != natslog.MarksOf(x.subjects) {
			continue
		}
		_, err := blocks.Verify(ctx, s, blocks.Options{Record: func(r blocks.Record) error {
			if r.Kind == blocks.Message {
				newest[r.Subject] = append([]byte(nil), r.Body...)
			}
			return nil
		}})
		if err != nil {
			return err
		}
	}
	x.known = natslog.Known(x.subjects, newest)
	return nil
}

func (x *examination) stream(ctx context.Context, s blocks.Stream) (Examined, error) {
	o := blocks.Options{Mark: x.known[s.Name], Check: func(r blocks.Record) error {
		return natslog.CheckStored(x.subjects, r.Subject, r.Header, r.Body)
	}}
	if x.progress != nil {
		o.Progress = func(done, total int64) { x.progress(s.Name, done, total) }
	}
	report, err := blocks.Verify(ctx, s, o)
	if err != nil {
		return Examined{}, err
	}
	found := Examined{Stream: s.Name, Messages: report.Messages, Last: report.Last, Bytes: report.Bytes}
	for _, d := range report.Damage {
		p := Place{File: d.File, Offset: d.Offset, Length: d.Length, First: d.First, Last: d.Last, Detail: d.Err.Error()}
		p.Agent, _ = x.subjects.ParseLog(d.Subject)
		found.Damage = append(found.Damage, p)
	}
	if t := report.Torn; t != nil {
		found.Torn = &Place{File: t.File, Offset: t.Offset, Length: t.Length, Detail: t.Err.Error()}
	}
	for _, u := range report.Unverified {
		found.Unverified = append(found.Unverified, fmt.Sprintf("%s: %s", u.File, u.Reason))
	}
	return found, nil
}
