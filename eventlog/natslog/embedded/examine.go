package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/blocks"
	"github.com/reprise-dev/reprise/messages"
)

// Examined is what Examine found in one stream.
type Examined struct {
	Stream   string `json:"stream"`
	Messages uint64 `json:"messages"`
	Last     uint64 `json:"last"`
	// Known is how far a stream of the log is known to go. Zero: it is not known.
	Known uint64 `json:"known,omitempty"`
	Bytes int64  `json:"bytes"`
	// Damage is every bad place. Only what is not damage can be read.
	Damage []Place `json:"damage,omitempty"`
	// Torn is the end of a write that a crash cut off, as far as is known before it was
	// acknowledged. The server removes it. Nil: there is none.
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
	// Subject is what can be read of the message's subject, Agent the one whose frame it
	// is, if that can be read.
	Subject string           `json:"subject,omitempty"`
	Agent   messages.AgentID `json:"agent,omitzero"`
	Detail  string           `json:"detail"`
}

// String names the place and what is wrong there.
func (p Place) String() string {
	text := fmt.Sprintf("%s at byte %d", p.File, p.Offset)
	switch {
	case p.Last > 0 && p.First == p.Last:
		text += fmt.Sprintf(", sequence %d", p.Last)
	case p.Last > 0 && p.First > 0:
		text += fmt.Sprintf(", within sequences %d to %d", p.First, p.Last)
	case p.Last > 0:
		text += fmt.Sprintf(", up to sequence %d", p.Last)
	}
	switch {
	case p.Agent != messages.AgentID{}:
		text += ", agent " + p.Agent.String()
	case p.Subject != "":
		text += ", subject " + p.Subject
	}
	return text + ": " + p.Detail
}

// InBlock reports whether the place is in a block of messages, so that Quarantine can take
// out what is there.
func (p Place) InBlock() bool { return filepath.Ext(p.File) == ".blk" }

// ErrRunning is wrapped by Examine's error if a process uses the folder.
var ErrRunning = errors.New("a node runs on it")

// Examine reads the files of a server that does not run, and changes nothing. each
// receives every stream of the root, in order; progress, unless it is nil, how many of
// its bytes are read.
func Examine(ctx context.Context, dir, root string, each func(Examined), progress func(stream string, done, total int64)) error {
	streams, lock, err := openIdle(dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	x := examination{subjects: messages.Subjects{Root: root}, progress: progress, frames: true}
	_, x.killed = wasOpen(dir)
	err = x.each(ctx, streams, func(s blocks.Stream) error {
		if !natslog.Ours(x.subjects, s.Name) {
			return nil
		}
		report, err := x.verify(ctx, s)
		if err != nil {
			return err
		}
		each(x.examined(s, report))
		return nil
	})
	if err != nil {
		return err
	}
	return x.missing(dir, streams, each)
}

// missing reports the streams of an installation that are not there, which a node makes
// again, empty.
func (x *examination) missing(dir string, streams []blocks.Stream, each func(Examined)) error {
	there := func(name string) bool {
		return slices.ContainsFunc(streams, func(s blocks.Stream) bool { return s.Name == name })
	}
	names := natslog.StreamNames(x.subjects)
	if !slices.ContainsFunc(names, there) {
		return fmt.Errorf("data folder %s holds no stream of root %q", dir, x.subjects.Root)
	}
	for _, name := range names {
		if there(name) || slices.Contains(natslog.Caches(x.subjects), name) {
			continue
		}
		p := Place{File: home(dir, name), Detail: "the stream is missing"}
		if known := x.known[name]; known > 0 {
			p.Last, p.Detail = known, fmt.Sprintf("the stream is missing, and was known to reach sequence %d", known)
		}
		each(Examined{Stream: name, Known: x.known[name], Damage: []Place{p}})
	}
	return nil
}

// openIdle locks a data folder that a node has used and no process uses, and lists its
// streams, with those that were set aside.
func openIdle(dir string) ([]blocks.Stream, *flock.Flock, error) {
	if _, err := os.Stat(filepath.Join(dir, "VERSION")); err != nil {
		return nil, nil, fmt.Errorf("data folder %s: no node has used it: %w", dir, err)
	}
	lock, err := lockNow(dir)
	if err != nil {
		return nil, nil, err
	}
	err = checkVersion(dir)
	streams, listing := streamsIn(dir)
	if err = errors.Join(err, listing); err != nil {
		return nil, nil, errors.Join(err, lock.Unlock())
	}
	return streams, lock, nil
}

// examination verifies the streams of a folder.
type examination struct {
	subjects messages.Subjects
	which    blocks.Which
	progress func(stream string, done, total int64)
	// known is how far each stream of the log is known to go, removed how many of its
	// messages were purged.
	known, removed map[string]uint64
	// frames reports whether frames are checked as well, which the server knows nothing of.
	frames bool
	// killed reports that the last server was killed, and the machine was not.
	killed bool
	// taken is what was taken out of the streams of the log before.
	taken natslog.Recorded
	// doubtful reports whether the marks that both are from are damaged.
	doubtful bool
}

// each calls do with each stream, after it has read how far they are known to go.
func (x *examination) each(ctx context.Context, streams []blocks.Stream, do func(blocks.Stream) error) error {
	if err := x.readMarks(ctx, streams); err != nil {
		return err
	}
	for _, s := range streams {
		if err := do(s); err != nil {
			return err
		}
	}
	return nil
}

// readMarks reads how far the streams of the log are known to go.
func (x *examination) readMarks(ctx context.Context, streams []blocks.Stream) error {
	newest := make(map[string][]byte)
	for _, s := range streams {
		if s.Name != natslog.MarksOf(x.subjects) {
			continue
		}
		stored := make(map[string]blocks.Record)
		report, err := blocks.Verify(ctx, s, blocks.Options{Record: func(r blocks.Record) error {
			if r.Kind == blocks.Message {
				r.Body = bytes.Clone(r.Body)
				stored[r.Subject] = r
			}
			return nil
		}})
		if err != nil {
			return err
		}
		x.doubtful = len(report.Damage)+len(report.Unverified) > 0
		for subject, r := range stored {
			if !blocks.Contains(report.Deleted, r.Seq) {
				newest[subject] = r.Body
			}
		}
	}
	x.known, x.removed, x.taken = natslog.Known(x.subjects, newest), natslog.Removed(x.subjects, newest), natslog.Taken(x.subjects, newest)
	return nil
}

func (x *examination) verify(ctx context.Context, s blocks.Stream) (blocks.Report, error) {
	o := x.options(s)
	if x.progress != nil {
		o.Progress = func(done, total int64) { x.progress(s.Name, done, total) }
	}
	return blocks.Verify(ctx, s, o)
}

// options are those that a stream is verified with.
func (x *examination) options(s blocks.Stream) blocks.Options {
	o := blocks.Options{Blocks: x.which, Mark: x.known[s.Name], Killed: x.killed}
	if x.frames {
		o.Check = func(r blocks.Record) error { return natslog.CheckStored(x.subjects, r.Subject, r.Header, r.Body) }
	}
	return o
}

// examined says what a report on a stream holds.
func (x *examination) examined(s blocks.Stream, report blocks.Report) Examined {
	found := Examined{Stream: s.Name, Messages: report.Messages, Last: report.Last, Known: x.known[s.Name], Bytes: report.Bytes, Damage: x.places(report.Damage)}
	if t := report.Torn; t != nil {
		found.Torn = &Place{File: t.File, Offset: t.Offset, Length: t.Length, Detail: t.Err.Error()}
	}
	for _, u := range report.Unverified {
		found.Unverified = append(found.Unverified, fmt.Sprintf("%s: %s", u.File, u.Reason))
	}
	return found
}

func (x *examination) places(damage []blocks.Damage) (places []Place) {
	for _, d := range damage {
		p := Place{File: d.File, Offset: d.Offset, Length: d.Length, First: d.First, Last: d.Last, Subject: d.Subject, Detail: d.Err.Error()}
		p.Agent = x.agentOf(d.Subject)
		places = append(places, p)
	}
	return places
}

// agentOf returns the agent that a frame or a stored input on a subject belongs to; zero if
// it is of neither kind.
func (x *examination) agentOf(subject string) messages.AgentID {
	a, err := x.subjects.ParseLog(subject)
	if err != nil {
		_, a, err = x.subjects.ParseInbox(subject)
	}
	if err != nil {
		return messages.AgentID{}
	}
	return a
}
