package integrity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

const (
	// scrubRate is how much of the log a node reads in a second for this alone, in bytes:
	// 21 GiB in a day.
	scrubRate = 256 << 10
	// scrubStep is how much is read between two records of how far it is: a minute's.
	scrubStep = 60 * scrubRate
	// scrubAgain is how long after a stream was read to its end it is read again.
	scrubAgain = 24 * time.Hour
)

// scrubber reads the streams of the log through, one after the other, those of which this
// node owns the first partition. What it finds stops no one: an agent works on where the
// damage lies below its snapshot.
type scrubber struct {
	*Monitor
	limits natslog.ScrubLimits
	// broken returns the files of a stream that this node's own server would cut when it
	// reads them. Nil: there is no such server.
	broken func(ctx context.Context, stream string) ([]string, error)
	// unread are the files of streams that are not read, because of those.
	unread sync.Map // shard → []string
	// behind is how many sequences of the stream under way are still to be read.
	behind atomic.Uint64
}

// Scrub reads each stream of this node to its end that is due at a time, as it is done by itself
// now and then.
func (g *Monitor) Scrub(ctx context.Context, now time.Time) { g.scrubber.round(ctx, now) }

// ScrubBehind returns how many sequences of the stream that is read through are still to be read.
func (g *Monitor) ScrubBehind() uint64 { return g.scrubber.behind.Load() }

// Scrubbed returns how far the streams were read through.
func (g *Monitor) Scrubbed(ctx context.Context) *doctor.Scrubbed { return g.scrubber.progress(ctx) }

// run reads on at each tick whatever there is to read, until ctx ends.
func (s *scrubber) run(ctx context.Context, look <-chan time.Time) {
	for {
		select {
		case now := <-look:
			s.round(ctx, now)
		case <-ctx.Done():
			return
		}
	}
}

// round reads each stream of this node to its end that is due.
func (s *scrubber) round(ctx context.Context, now time.Time) {
	for shard := range natslog.LogStreams {
		for again := true; again && s.mine(shard); {
			var err error
			if again, err = s.step(ctx, shard, now); err != nil && ctx.Err() == nil {
				s.failed(shard, err)
			}
		}
		s.behind.Store(0)
	}
}

// failed logs why a stream cannot be read through now.
func (s *scrubber) failed(shard int, err error) {
	level := slog.LevelWarn
	if errors.Is(err, eventlog.ErrUnavailable) {
		level = slog.LevelDebug // it is reported elsewhere
	}
	s.logger.Log(context.Background(), level, "a stream of the log cannot be read through now; it is tried again", "stream", s.log.ShardName(shard), "error", err)
}

// mine reports whether this node is to read a stream through. One that has lost messages
// is left to those who see to that.
func (s *scrubber) mine(shard int) bool {
	s.mu.Lock()
	partitions := s.partitions
	s.mu.Unlock()
	if partitions == nil || s.Relied(shard) != nil {
		return false
	}
	owned, _ := partitions.Owns(messages.Partition(shard * messages.Partitions / natslog.LogStreams))
	return owned
}

// step reads a stream on if it is due, records how far it is, and reports whether it is
// to be read on at once.
func (s *scrubber) step(ctx context.Context, shard int, now time.Time) (again bool, err error) {
	was, err := s.log.Scrubbed(ctx, shard)
	if err != nil {
		return false, err
	}
	if was.Begun.IsZero() && now.Sub(was.Whole) < scrubAgain {
		return false, s.lookAgain(ctx, shard, was)
	}
	if was.Begun.IsZero() {
		if whole, err := s.walk(ctx, shard); err != nil || !whole {
			return false, err
		}
	}
	next, found, err := s.log.Scrub(ctx, shard, was, s.limits)
	if err != nil {
		return false, err
	}
	if err := s.log.SaveScrub(ctx, shard, next); err != nil {
		return false, err
	}
	s.say(shard, was, next, found)
	s.behind.Store(next.Last - next.After)
	return !next.Begun.IsZero(), nil
}

// walk reports whether a stream may be read through: its server would cut a file in which a
// length or a sequence is wrong.
func (s *scrubber) walk(ctx context.Context, shard int) (whole bool, err error) {
	if s.broken == nil {
		return true, nil
	}
	files, err := s.broken(ctx, s.log.ShardName(shard))
	if err != nil || len(files) == 0 {
		s.unread.Delete(shard)
		return err == nil, err
	}
	if _, known := s.unread.Swap(shard, files); !known {
		s.logger.Error("a file of the log is damaged so that the NATS server will cut it when a message in it is read; stop the node soon", "stream", s.log.ShardName(shard), "file", files[0], "files", len(files), "do", scrubRemedy)
	}
	return false, nil
}

// say logs what was found that was not known.
func (s *scrubber) say(shard int, was, next natslog.Scrub, found []natslog.Unreadable) {
	stream := s.log.ShardName(shard)
	for _, u := range found {
		s.logger.Error("a message of the log cannot be read; its agent works on if it has a snapshot of what is behind, and else answers that it is damaged",
			"stream", stream, "sequence", u.Seq, "agent", whose(u), "error", u.Detail, "do", scrubRemedy)
	}
	if next.More > was.More {
		s.logger.Error("more messages of the log cannot be read than are listed", "stream", stream, "more", next.More, "do", scrubRemedy)
	}
	if next.Hidden > was.Hidden {
		s.logger.Error("the NATS server hides messages of the log that it counts", "stream", stream, "messages", next.Hidden, "do", scrubRemedy)
	}
}

// lookAgain looks whether what could not be read can be read now, or is not needed.
func (s *scrubber) lookAgain(ctx context.Context, shard int, was natslog.Scrub) error {
	if len(was.Bad) == 0 {
		return nil
	}
	next, err := s.log.Rescrub(ctx, shard, was)
	if err != nil || slices.Equal(next.Bad, was.Bad) {
		return err
	}
	return s.log.SaveScrub(ctx, shard, next)
}

// whose says whose a message is.
func whose(u natslog.Unreadable) string {
	if u.Agent == (messages.AgentID{}) {
		return "unknown"
	}
	return u.Agent.String()
}

// scrubRemedy is what to do about a message that cannot be read. nats-server 2.15.2 hides
// others when a purge makes it the first of its block.
const scrubRemedy = "stop the server and, if it is a node's own, run `reprise doctor --data DIR --quarantine`; or restore a backup. Nothing is purged from this stream until then, for the NATS server might drop messages of others"

// all returns how far each stream was read through, by any node.
func (s *scrubber) all(ctx context.Context) (all [natslog.LogStreams]natslog.Scrub, err error) {
	for shard := range all {
		if all[shard], err = s.log.Scrubbed(ctx, shard); err != nil {
			break
		}
	}
	return all, err
}

// find returns doctor's findings: each message that cannot be read.
func (s *scrubber) find(ctx context.Context) (found []doctor.Finding) {
	all, err := s.all(ctx)
	if err != nil {
		return []doctor.Finding{{Check: "scrub", Status: doctor.Warn, Detail: err.Error()}}
	}
	for shard, at := range all {
		found = append(found, unreadable(s.log.ShardName(shard), at)...)
		if files, ok := s.unread.Load(shard); ok {
			found = append(found, doctor.Finding{Check: "scrub", Status: doctor.Fail, Stream: s.log.ShardName(shard), Detail: fmt.Sprintf("the NATS server will cut these files when a message in them is read, because they are damaged: %v", files), Remedy: scrubRemedy})
		}
	}
	return found
}

// unreadable returns the findings about a stream.
func unreadable(stream string, at natslog.Scrub) (found []doctor.Finding) {
	add := func(u natslog.Unreadable, detail string) {
		found = append(found, doctor.Finding{Check: "scrub", Status: doctor.Fail, Agent: u.Agent, Stream: stream, Seq: u.Seq, Detail: detail, Remedy: scrubRemedy})
	}
	for _, u := range at.Bad {
		switch {
		case u.Ended:
		case u.Agent == (messages.AgentID{}):
			add(u, fmt.Sprintf("stream %s, sequence %d, of an agent that is not known: %s", stream, u.Seq, u.Detail))
		default:
			add(u, u.Detail) // the finding names the place with the agent
		}
	}
	if at.More > 0 {
		add(natslog.Unreadable{}, fmt.Sprintf("%d more messages of stream %s cannot be read than the %d that are listed", at.More, stream, len(at.Bad)))
	}
	if at.Hidden > 0 {
		add(natslog.Unreadable{}, fmt.Sprintf("the NATS server counts %d messages of stream %s that it neither gives nor calls deleted", at.Hidden, stream))
	}
	return found
}

// progress returns how far the streams were read through.
func (s *scrubber) progress(ctx context.Context) *doctor.Scrubbed {
	all, err := s.all(ctx)
	if err != nil {
		return nil // find reports it
	}
	var parts []string
	oldest := all[0].Whole
	unread, unjudged := 0, uint64(0)
	for shard, at := range all {
		if !at.Begun.IsZero() {
			parts = append(parts, fmt.Sprintf("%s is read to sequence %d of %d", s.log.ShardName(shard), at.After, at.Last))
		}
		if at.Whole.IsZero() {
			unread++
		}
		if at.Whole.Before(oldest) {
			oldest = at.Whole
		}
		unjudged += at.Unjudged
	}
	if unread > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d streams of the log were not read to their end yet", unread, len(all)))
	} else {
		parts = append(parts, fmt.Sprintf("each stream of the log was last read to its end on %s or later", oldest.UTC().Format(time.DateTime)))
	}
	if unjudged > 0 {
		parts = append(parts, fmt.Sprintf("of %d sequences it is not known whether they were purged: a stream has too many that were", unjudged))
	}
	return &doctor.Scrubbed{Detail: strings.Join(parts, "; "), Whole: unread == 0}
}
