package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/blocks"
	"github.com/reprise-dev/reprise/messages"
)

// Salvaged is what Salvage copied of one stream.
type Salvaged struct {
	// Examined lists as Damage also what is missing without a trace.
	Examined
	// Copied is how many messages are in the copy, Deleted how many can be read and are
	// not, because they were deleted or belong to an agent that was.
	Copied  uint64 `json:"copied"`
	Deleted uint64 `json:"deleted,omitempty"`
	// Shortened are agents of the damage of whom no later frame was copied: the copy does
	// not show that they had more.
	Shortened []messages.AgentID `json:"shortened,omitempty"`
	// Taken is what a restored store must know that the agents of the log have lost: in this
	// copy, and before.
	Taken []natslog.Quarantined `json:"-"`
	// Before is how many places of that were taken out before.
	Before int `json:"before,omitempty"`
	// Unrecorded reports that it is a stream of the log, and that it is not on record how far
	// it went, or that the record is damaged: what is missing at its end is not seen.
	Unrecorded bool `json:"unrecorded,omitempty"`
}

// Whole reports whether all that was stored and not deleted is in the copy, as far as is
// known.
func (s Salvaged) Whole() bool { return len(s.Damage) == 0 && len(s.Unverified) == 0 }

// Salvage copies every message that can be read from a data folder on which no server runs
// to a new one, with its sequence: of all streams of the root that a backup holds. It
// changes nothing in dir. to must be missing or empty; after an error it is of no use.
// each receives what became of every stream; progress, unless it is nil, how far the work
// on one is.
//
// A message that a tombstone in any block names is not copied. Of an agent that was
// deleted its tombstone is copied, and what came after it. Inputs that wait are all
// copied: one that was sent after the deletion calls the agent to life again.
func Salvage(ctx context.Context, dir, root, to string, each func(Salvaged), progress func(stream string, done, total int64)) error {
	streams, lock, err := openIdle(dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	if progress == nil {
		progress = func(string, int64, int64) {}
	}
	v := &salvage{ended: make(map[string]*ending), beside: make(map[string]*ending)}
	_, v.killed = wasOpen(dir)
	v.frames = true
	v.subjects, v.progress = messages.Subjects{Root: root}, progress
	work, err := v.plan(dir, streams)
	if err != nil {
		return fmt.Errorf("data folder %s: %w", dir, err)
	}
	if err := v.readMarks(ctx, streams); err != nil {
		return err
	}
	reports, err := unrecorded(dir)
	if err != nil {
		return err
	}
	for _, q := range reports {
		v.taken[q.Stream] = append(v.taken[q.Stream], q.Record()...)
	}
	made, err := makeStreams(ctx, to, v.subjects)
	if err != nil {
		return fmt.Errorf("make the streams of the copy: %w", err)
	}
	for _, from := range work {
		i := slices.IndexFunc(made, func(s blocks.Stream) bool { return s.Name == from.Name })
		done, err := v.copy(ctx, from, made[i])
		if err != nil {
			return err
		}
		each(done)
	}
	return nil
}

// salvage is the state of one Salvage.
type salvage struct {
	examination
	// ended are the agents that were deleted, by the subjects of their frames; beside are the
	// same by those of their dead letters, and by what those of their payloads begin with.
	ended, beside map[string]*ending
}

// ending is the newest deletion of an agent.
type ending struct {
	seq  uint64 // of the tombstone
	time time.Time
}

// plan returns the streams to copy, those of the log first, for they say which agents were
// deleted. One whose folder is missing is in it as well.
func (v *salvage) plan(dir string, streams []blocks.Stream) (work []blocks.Stream, err error) {
	there := make(map[string]blocks.Stream)
	for _, s := range streams {
		there[s.Name] = s
	}
	names := natslog.NamesOf(v.subjects)
	if _, halved := there[names.Restoring()]; halved {
		return nil, natslog.ErrRestoring
	}
	none := true
	for _, name := range natslog.StreamNames(v.subjects) {
		s, ok := there[name]
		if none = none && !ok; !ok {
			s = blocks.Stream{Account: globalAccount, Name: name, Dir: home(dir, name)}
		}
		if name != names.Snapshots() {
			work = append(work, s)
		}
	}
	if none {
		return nil, fmt.Errorf("it holds no stream of root %q", v.subjects.Root)
	}
	return work, nil
}

// makeStreams has a server make the streams of an installation in a new folder.
func makeStreams(ctx context.Context, dir string, s messages.Subjects) ([]blocks.Stream, error) {
	quiet := slog.New(slog.DiscardHandler)
	srv, err := Start(Config{Dir: dir, DontListen: true, Sync: SyncRelaxed, Logger: quiet})
	if err != nil {
		return nil, err
	}
	nc, err := srv.Connect()
	if err == nil {
		_, err = natslog.Open(ctx, natslog.Config{Conns: []*nats.Conn{nc}, Subjects: s, Logger: quiet})
		nc.Close()
	}
	if err := errors.Join(err, srv.Shutdown()); err != nil {
		return nil, err
	}
	return blocks.Streams(dir)
}

// copy copies one stream. It reads it twice: what a tombstone at its end names may lie at
// its beginning.
func (v *salvage) copy(ctx context.Context, from, to blocks.Stream) (Salvaged, error) {
	var size int64
	o := v.options(from)
	o.Record = func(r blocks.Record) error { v.note(r); return nil }
	o.Progress = func(done, total int64) { size = total; v.progress(from.Name, done, 2*total) }
	report, err := blocks.Verify(ctx, from, o)
	if err != nil {
		return Salvaged{}, err
	}
	s := Salvaged{Examined: v.examined(from, report)}
	newest := make(map[string]uint64) // of the agents that lost a frame
	for _, p := range s.Damage {
		if p.Agent != (messages.AgentID{}) && natslog.NamesOf(v.subjects).Log(p.Agent.Partition()) == from.Name {
			newest[v.subjects.Log(p.Agent)] = 0
		}
	}
	erased := uint64(0)
	o.Progress = func(done, total int64) { v.progress(from.Name, size+done, 2*total) }
	s.Copied, err = blocks.Copy(ctx, from, to, o, func(r blocks.Record) bool {
		gone := blocks.Contains(report.Deleted, r.Seq)
		if gone {
			erased++
		}
		if gone || v.ends(r) {
			s.Deleted++
			return false
		}
		if _, lost := newest[r.Subject]; lost {
			newest[r.Subject] = r.Seq
		}
		return true
	})
	if p, lost := v.untraced(from, report, report.Messages-erased); lost {
		s.Damage = append(s.Damage, p)
	}
	s.Shortened, s.Unrecorded = v.shortened(s, newest), v.unrecorded(from, report)
	s.Taken, s.Before = v.lost(s), len(v.taken[from.Name])
	return s, err
}

// lost returns what the agents of a stream of the log have lost that a copy of it does not
// show: agents that have later frames are damaged by themselves.
func (v *salvage) lost(s Salvaged) []natslog.Quarantined {
	all := slices.Clone(v.taken[s.Stream])
	if !logStreams(v.subjects)[s.Stream] {
		return nil
	}
	for _, q := range (Quarantined{ID: "salvaged", Places: s.Damage}).Record() {
		if q.Agent == (messages.AgentID{}) || slices.Contains(s.Shortened, q.Agent) {
			all = append(all, q)
		}
	}
	return all
}

// note remembers a tombstone. It may be damaged.
func (v *salvage) note(r blocks.Record) {
	e := v.ended[r.Subject]
	if r.Kind != blocks.Message || !natslog.EndsStored(r.Header) {
		return
	}
	if e == nil {
		a, err := v.subjects.ParseLog(r.Subject)
		if err != nil {
			return
		}
		e = new(ending)
		v.ended[r.Subject], v.beside[v.subjects.Blobs(a)], v.beside[v.subjects.DeadLetter(a)] = e, e, e
	}
	e.seq, e.time = r.Seq, r.Time
}

// ends reports whether a message belongs to what an agent had before it was deleted.
func (v *salvage) ends(r blocks.Record) bool {
	if e := v.ended[r.Subject]; e != nil {
		return r.Seq < e.seq
	}
	e := v.beside[r.Subject]
	if e == nil {
		e = v.beside[payloadsOf(r.Subject)]
	}
	return e != nil && r.Time.Before(e.time)
}

// payloadsOf returns a subject without its last two tokens: of a payload, what those of its
// agent begin with.
func payloadsOf(subject string) string {
	for range 2 {
		subject = subject[:max(0, strings.LastIndexByte(subject, '.'))]
	}
	return subject
}

// untraced returns where messages are missing from a stream of the log that neither damage
// nor a recorded purge explains: a block file is gone. live is how many messages the stream
// has.
func (v *salvage) untraced(from blocks.Stream, r blocks.Report, live uint64) (p Place, lost bool) {
	removed, recorded := v.removed[from.Name]
	if !recorded || len(r.Unverified) > 0 {
		return p, false
	}
	explained := live + removed
	for _, d := range r.Damage {
		if d.Last > 0 {
			explained += d.Last - max(1, d.First) + 1
		}
	}
	if explained >= r.Reached() {
		return p, false
	}
	var missing []blocks.Span
	if r.First > 1 {
		missing = append(missing, blocks.Span{First: 1, Last: r.First - 1})
	}
	for _, g := range r.Gaps {
		missing = append(missing, g.Span)
	}
	if n := len(missing); n > 0 {
		p.First, p.Last = missing[0].First, missing[n-1].Last
	}
	p.Detail = fmt.Sprintf("messages missing without a trace: %d; no purge that would have removed them is on record", r.Reached()-explained)
	return p, true
}

// unrecorded reports whether loss at the end of a stream of the log would not be seen.
func (v *salvage) unrecorded(from blocks.Stream, r blocks.Report) bool {
	_, recorded := v.removed[from.Name]
	names := natslog.NamesOf(v.subjects)
	for p := range messages.Partitions {
		if names.Log(messages.Partition(p)) == from.Name {
			return r.Messages > 0 && (!recorded || v.doubtful)
		}
	}
	return false
}

// shortened returns the agents that lost frames and have none behind them. newest has the
// sequence of the newest frame that was copied of each, by subject.
func (v *salvage) shortened(s Salvaged, newest map[string]uint64) (out []messages.AgentID) {
	for _, p := range s.Damage {
		if last, ok := newest[v.subjects.Log(p.Agent)]; ok && last <= p.Last && !slices.Contains(out, p.Agent) {
			out = append(out, p.Agent)
		}
	}
	return out
}
