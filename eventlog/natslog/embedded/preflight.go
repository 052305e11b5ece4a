package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/blocks"
	"github.com/reprise-dev/reprise/messages"
)

// preflight verifies the files before the server opens them, for it cuts each block at the
// first record that it cannot read. Of streams that may be large, in a folder that was
// closed in order, it reads what the server reads to open them, which is little. A damaged stream of the
// log is set aside and returned: the others work without it. One that is made again from
// the others, or from what nodes live, is removed. Any other damaged stream is an error. A
// stream that was set aside before is put back and verified again. One of several servers
// is not examined: its peers have copies.
//
// Streams that may be large are those of the log, of payloads and of snapshots.
func preflight(ctx context.Context, c Config) ([]Examined, error) {
	if c.Peers != nil {
		return nil, nil
	}
	doubtful, err := putBack(ctx, c.Dir)
	if err != nil {
		return nil, err
	}
	logs, caches := logStreams(c.Subjects), natslog.Caches(c.Subjects)
	x := examination{subjects: c.Subjects, which: blocks.Rebuilt, progress: progress(c.Logger)}
	killed, powered := wasOpen(c.Dir)
	large := large(c.Subjects)
	x.killed = killed && powered
	var aside []Examined
	streams, err := streamsIn(c.Dir)
	if err != nil {
		return nil, err
	}
	err = x.each(ctx, streams, func(s blocks.Stream) error {
		if x.which = blocks.All; !killed && large[s.Name] && !doubtful[s.Name] {
			x.which = blocks.Rebuilt
		}
		report, err := x.verify(ctx, s)
		if err != nil {
			return err
		}
		for _, u := range report.Unverified {
			c.Logger.Warn("a file of the store cannot be verified", "stream", s.Name, "file", u.File, "reason", u.Reason)
		}
		if t := report.Torn; t != nil {
			c.Logger.Warn("a crash cut a write off, as far as is known before it was acknowledged; the server drops what is there of it", "stream", s.Name, "file", t.File, "byte", t.Offset, "bytes", t.Length)
		}
		if c.Sync == SyncRelaxed {
			report.Damage = onDisk(c, s, report.Damage, x.known[s.Name])
		}
		if len(report.Damage) == 0 {
			return nil
		}
		found := x.examined(s, report)
		if slices.Contains(caches, s.Name) {
			c.Logger.Warn("a stream is damaged; it is removed, for what it holds is made again", "stream", s.Name, "place", found.Damage[0].String())
			return os.RemoveAll(s.Dir)
		}
		if !logs[s.Name] {
			return refuse(c.Dir, found)
		}
		aside = append(aside, found)
		return setAside(c.Dir, s)
	})
	return aside, err
}

// logStreams returns the names of the streams that can be set aside.
func logStreams(s messages.Subjects) map[string]bool {
	names := make(map[string]bool)
	for p := range messages.Partition(messages.Partitions) {
		names[natslog.NamesOf(s).Log(p)] = true
	}
	return names
}

// large returns the streams that grow with what agents do.
func large(s messages.Subjects) map[string]bool {
	names := logStreams(s)
	for p := range messages.Partition(messages.Partitions) {
		names[natslog.NamesOf(s).Blobs(p)] = true
	}
	names[natslog.NamesOf(s).Snapshots()] = true
	return names
}

// onDisk returns the damage that a loss of power does not explain where messages are
// acknowledged before they are on disk. It explains an end of a block, or of the stream, that
// lies above what is known to be on disk.
func onDisk(c Config, s blocks.Stream, damage []blocks.Damage, known uint64) (out []blocks.Damage) {
	for _, d := range damage {
		if d.First <= known || !atEnd(d) {
			out = append(out, d)
			continue
		}
		c.Logger.Warn("the end of a file is not on disk, as after a loss of power with relaxed sync; the server drops what is there of it", "stream", s.Name, "file", d.File, "byte", d.Offset, "first", d.First, "last", d.Last)
	}
	return out
}

// atEnd reports whether damage reaches the end of its file.
func atEnd(d blocks.Damage) bool {
	info, err := os.Stat(d.File)
	return d.Block > 0 && (d.Length == 0 || err == nil && d.Offset+d.Length >= info.Size())
}

// refuse returns why the server is not started.
func refuse(dir string, found Examined) error {
	more := ""
	if n := len(found.Damage) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Errorf("stream %s is damaged, and the NATS server would drop what it cannot read: %v%s; nothing was changed. `reprise doctor --data %s` names all of it; with --quarantine it takes the damaged messages out and keeps a copy, so that a node can start",
		found.Stream, found.Damage[0], more, dir)
}

// progressEvery is how often is said how far the verification is.
const progressEvery = 5 * time.Second

// progress returns a function that logs how far a verification is, if it takes long.
func progress(logger *slog.Logger) func(stream string, done, total int64) {
	last := time.Now()
	return func(stream string, done, total int64) {
		if now := time.Now(); now.Sub(last) >= progressEvery {
			last = now
			logger.Info("the files of the store are verified before the server opens them", "stream", stream, "megabytes", done>>20, "of", total>>20)
		}
	}
}

// Broken returns the files of a stream that the server would cut when it reads a message in
// them, because it cannot walk their records.
func (s *Server) Broken(ctx context.Context, stream string) ([]string, error) {
	at := blocks.Stream{Account: globalAccount, Name: stream, Dir: home(s.cfg.Dir, stream)}
	broken, err := blocks.Walk(ctx, at)
	if err != nil || len(broken) == 0 {
		return nil, err
	}
	again, err := blocks.Walk(ctx, at) // one may have been rewritten
	return slices.DeleteFunc(again, func(path string) bool { return !slices.Contains(broken, path) }), err
}

// Damaged returns the streams of the log that are not opened because their files are
// damaged. Empty streams take their place, to which nothing must be written.
func (s *Server) Damaged() []Examined {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.damaged
}
