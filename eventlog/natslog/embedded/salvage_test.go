package embedded_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/backup"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

// store is an installation with small blocks in the streams of its log.
type store struct {
	t    *testing.T
	dir  string
	srv  *embedded.Server
	js   jetstream.JetStream
	nc   *nats.Conn
	log  *natslog.Log
	tail map[messages.AgentID]eventlog.Position
	// frames are those of each agent, oldest first.
	frames map[messages.AgentID][]eventlog.Position
}

func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{t: t, dir: t.TempDir(), tail: make(map[messages.AgentID]eventlog.Position), frames: make(map[messages.AgentID][]eventlog.Position)}
	s.srv, s.nc = embeddedtest.Start(t, s.dir)
	s.js = s.jetStream(s.nc)
	for shard := range natslog.LogStreams {
		cfg := jetstream.StreamConfig{Name: logName(shard), Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, MaxBytes: 100_000, Duplicates: 100 * time.Millisecond}
		for p := shard * 4; p < shard*4+4; p++ {
			cfg.Subjects = append(cfg.Subjects, messages.Subjects{}.LogOf(messages.Partition(p)))
		}
		_, err := s.js.CreateStream(s.ctx(), cfg)
		s.ok(err)
		cfg.MaxBytes = -1 // the server keeps the size of blocks that the limit gave
		_, err = s.js.UpdateStream(s.ctx(), cfg)
		s.ok(err)
	}
	s.log = s.open(s.nc)
	for shard := range natslog.LogStreams { // as a node does: the record begins
		s.ok(s.log.Check(s.ctx(), shard, false))
	}
	return s
}

func logName(shard int) string {
	return natslog.NamesOf(messages.Subjects{}).Log(messages.Partition(shard * 4))
}

func (s *store) ctx() context.Context {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	s.t.Cleanup(cancel)
	return ctx
}

func (s *store) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *store) jetStream(nc *nats.Conn) jetstream.JetStream {
	s.t.Helper()
	js, err := jetstream.New(nc)
	s.ok(err)
	return js
}

func (s *store) open(nc *nats.Conn) *natslog.Log {
	s.t.Helper()
	log, err := natslog.Open(s.ctx(), natslog.Config{Conns: []*nats.Conn{nc}, Logger: slog.New(slog.DiscardHandler)})
	s.ok(err)
	return log
}

// add appends one frame.
func (s *store) add(a messages.AgentID, ev messages.Event) {
	s.t.Helper()
	tail, err := s.log.Append(s.ctx(), logtest.Entry(s.t, a, s.tail[a], ev))
	s.ok(err)
	s.tail[a], s.frames[a] = tail, append(s.frames[a], tail)
}

// grow appends n large frames.
func (s *store) grow(a messages.AgentID, n int) {
	s.t.Helper()
	for range n {
		s.add(a, messages.CommandNoop{Command: "abort", Reason: strings.Repeat("why ", 500)})
	}
}

// bury ends an agent as its owner does, but for the removal of what was before: a server
// that is killed may not keep that.
func (s *store) bury(a messages.AgentID) {
	s.t.Helper()
	s.add(a, messages.AgentDeleted{Reason: "test"})
}

// mark puts on record how far the log goes, as the owner of a partition does.
func (s *store) mark(agents ...messages.AgentID) {
	s.t.Helper()
	for _, a := range agents {
		s.ok(s.log.Mark(s.ctx(), a.Partition(), s.log.Position(a.Partition())))
	}
}

func (s *store) blob(a messages.AgentID, text string) {
	s.t.Helper()
	_, err := s.log.PutBlob(s.ctx(), a, strings.NewReader(text))
	s.ok(err)
}

func (s *store) publish(subject, text string) {
	s.t.Helper()
	_, err := s.js.Publish(s.ctx(), subject, []byte(text))
	s.ok(err)
}

// place is a message of a stream.
type place struct {
	stream string
	seq    uint64
}

// all returns every message of the streams that a backup holds.
func (s *store) all(js jetstream.JetStream) map[place]string {
	s.t.Helper()
	out := make(map[place]string)
	for _, name := range natslog.StreamNames(messages.Subjects{}) {
		if name == natslog.NamesOf(messages.Subjects{}).Snapshots() {
			continue
		}
		stream, err := js.Stream(s.ctx(), name)
		s.ok(err)
		state := stream.CachedInfo().State
		for seq := state.FirstSeq; seq <= state.LastSeq && state.Msgs > 0; seq++ {
			m, err := stream.GetMsg(s.ctx(), seq)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue
			}
			s.ok(err)
			out[place{name, seq}] = fmt.Sprint(m.Subject, m.Header, m.Time.UnixNano(), string(m.Data))
		}
	}
	return out
}

// copied returns what Salvage says of each stream of a folder, and a server on the copy.
func (s *store) copied(dir string) (map[string]embedded.Salvaged, *nats.Conn) {
	s.t.Helper()
	found, to := make(map[string]embedded.Salvaged), filepath.Join(s.t.TempDir(), "copy")
	shown := make(map[string]int64)
	s.ok(embedded.Salvage(s.ctx(), dir, messages.DefaultRoot, to, func(done embedded.Salvaged) { found[done.Stream] = done }, func(stream string, done, total int64) {
		if done < shown[stream] || done > total {
			s.t.Errorf("%s: %d of %d bytes after %d", stream, done, total, shown[stream])
		}
		shown[stream] = done
	}))
	_, nc := embeddedtest.Start(s.t, to)
	return found, nc
}

// salvaged is copied with the server of a store that was restored from a backup of the copy.
func (s *store) salvaged(dir string) (map[string]embedded.Salvaged, *nats.Conn) {
	s.t.Helper()
	found, copied := s.copied(dir)
	var file bytes.Buffer
	m, err := backup.Write(s.ctx(), &file, backup.Config{Conn: copied})
	s.ok(err)
	for _, of := range m.Streams {
		if got := found[of.Name]; got.Copied != of.Messages {
			s.t.Errorf("%s: %d messages are in the backup, copied are %+v", of.Name, of.Messages, got)
		}
	}
	_, restored := embeddedtest.Start(s.t, s.t.TempDir())
	_, err = backup.Restore(s.ctx(), bytes.NewReader(file.Bytes()), backup.RestoreConfig{Config: backup.Config{Conn: restored}})
	s.ok(err)
	return found, restored
}

// TestSalvage salvages a store with damage, deleted messages and deleted agents, and
// compares what is restored from it with what was stored.
func TestSalvage(t *testing.T) { // A29
	t.Parallel()
	s := newStore(t)
	near := logtest.Neighbours(6)
	flipped, short, purged, deleted, reborn, sound := near[0], near[1], near[2], near[3], near[4], near[5]
	gone := make(map[place]bool)
	name := natslog.NamesOf(messages.Subjects{}).Log(flipped.Partition())
	lose := func(tails ...eventlog.Position) {
		for _, tail := range tails {
			gone[place{name, tail.Seq}] = true
		}
	}
	for _, a := range near {
		s.grow(a, 6)
	}
	s.blob(deleted, "of the deleted")
	s.publish(messages.Subjects{}.DeadLetter(deleted), "to the deleted")
	s.blob(reborn, "of the life before")
	for place := range s.all(s.js) {
		if place.stream != name {
			gone[place] = true
		}
	}
	for _, a := range []messages.AgentID{deleted, reborn} {
		lose(s.frames[a]...)
		s.bury(a)
	}
	s.grow(reborn, 2)
	s.blob(reborn, "of the life now")
	s.blob(sound, "of the sound")
	s.publish(messages.Subjects{}.In(sound), "an input that waits")
	s.publish(messages.Subjects{}.DeadLetter(reborn), "a letter")
	_, err := s.log.PutDefinition(s.ctx(), []byte("a definition"))
	s.ok(err)
	s.grow(purged, 60) // so that the tombstones lie in another block
	lose(s.frames[purged][:65]...)
	s.ok(s.log.Purge(s.ctx(), purged, s.tail[purged].Seq))
	s.grow(sound, 2)
	s.mark(near...)
	was := s.all(s.js)
	s.ok(s.srv.Shutdown()) // a killed server may not keep a purge
	dir := embeddedtest.Crash(t, s.dir)
	if n := len(embeddedtest.Blocks(t, dir, name)); n < 2 {
		t.Fatalf("%s has %d blocks", name, n)
	}
	for _, tail := range []eventlog.Position{s.frames[flipped][2], s.frames[short][5]} {
		embeddedtest.Flip(t, dir, name, string(tail.Frame)+" ") // in its own header
		lose(tail)
	}
	before := sums(t, dir)
	found, nc := s.salvaged(dir)
	if after := sums(t, dir); after != before {
		t.Error("the folder was changed")
	}

	got := s.all(s.jetStream(nc))
	for p, m := range was {
		if now, there := got[p]; there == gone[p] || there && now != m {
			t.Errorf("%v: restored is %t, want %t: %.100q, was %.100q", p, there, !gone[p], now, m)
		}
	}
	for p := range got {
		if _, there := was[p]; !there {
			t.Errorf("%v is restored and was not there", p)
		}
	}
	for stream, of := range found {
		if of.Whole() != (stream != name) || len(of.Shortened) > 0 && stream != name {
			t.Errorf("%+v", of)
		}
	}
	var lost []string
	for _, p := range found[name].Damage {
		lost = append(lost, fmt.Sprint(p.Agent, " ", p.First, " ", p.Last))
	}
	var want []string
	for _, of := range []struct {
		a messages.AgentID
		n int
	}{{flipped, 2}, {short, 5}} {
		seq := s.frames[of.a][of.n].Seq
		want = append(want, fmt.Sprint(of.a, " ", seq, " ", seq))
	}
	if !slices.Equal(lost, want) || !slices.Equal(found[name].Shortened, []messages.AgentID{short}) {
		t.Errorf("left out are %v, shortened %v; want %v, %v", lost, found[name].Shortened, want, short)
	}

	log := s.open(nc)
	for shard := range natslog.LogStreams {
		s.ok(log.Check(s.ctx(), shard, true))
	}
	for a, n := range map[messages.AgentID]int{flipped: -1, short: 5, deleted: 1, reborn: 3, sound: 8} {
		frames, err := read(log, a)
		if damage := new(eventlog.DamageError); n < 0 && !errors.As(err, &damage) || n >= 0 && (err != nil || frames != n) {
			t.Errorf("%s: %d frames, %v; want %d", a, frames, err, n)
		}
	}
	tail, err := log.Head(s.ctx(), sound)
	s.ok(err)
	if tail, err = log.Append(s.ctx(), logtest.Entry(t, sound, tail)); err != nil || tail.Seq != s.tail[sound].Seq+1 {
		t.Errorf("the next frame has sequence %d, %v; want %d", tail.Seq, err, s.tail[sound].Seq+1)
	}
}

// read returns how many frames an agent has.
func read(log eventlog.Reader, a messages.AgentID) (n int, err error) {
	for _, err := range log.Read(context.Background(), a, eventlog.Range{}) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// sums returns a digest of all that is in a folder but its lock.
func sums(t *testing.T, dir string) (digest [32]byte) {
	t.Helper()
	sum := sha256.New()
	for _, path := range files(t, dir) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(sum, "%s %d\n%s", path, len(b), b)
	}
	return [32]byte(sum.Sum(nil))
}

// TestSalvageWhole holds that of a store without damage all is copied, killed or stopped.
func TestSalvageWhole(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	a := logtest.Agent("ada")
	s.grow(a, 5)
	s.mark(a)
	was := s.all(s.js)
	for _, dir := range []string{embeddedtest.Crash(t, s.dir), s.stopped()} {
		found, nc := s.salvaged(dir)
		for _, of := range found {
			if !of.Whole() || of.Deleted > 0 || of.Torn != nil || of.Unrecorded {
				t.Errorf("%+v", of)
			}
		}
		if got := s.all(s.jetStream(nc)); len(got) != 5 || len(was) != 5 {
			t.Errorf("%d messages, want 5 of %d", len(got), len(was))
		}
	}
}

// TestSalvageWithoutRecord holds that streams are named whose end is not known, because
// their record is damaged or missing.
func TestSalvageWithoutRecord(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	a := logtest.Agent("ada")
	s.grow(a, 3)
	s.mark(a)
	marks := natslog.MarksOf(messages.Subjects{})
	for what, spoil := range map[string]func(dir string){
		"damaged": func(dir string) { embeddedtest.Flip(t, dir, marks, `"last":0`) },
		"missing": func(dir string) { s.ok(os.RemoveAll(folderOf(dir, marks))) },
	} {
		dir := embeddedtest.Crash(t, s.dir)
		spoil(dir)
		found, _ := s.copied(dir)
		for stream, of := range found {
			if mine := stream == natslog.NamesOf(messages.Subjects{}).Log(a.Partition()); of.Unrecorded != mine || !of.Whole() {
				t.Errorf("%s: %+v", what, of)
			}
		}
	}
}

// stopped returns a copy of the folder that a server has opened and closed.
func (s *store) stopped() string {
	s.t.Helper()
	dir := embeddedtest.Crash(s.t, s.dir)
	srv, err := embedded.Start(embedded.Config{Dir: dir, DontListen: true})
	s.ok(err)
	s.ok(srv.Shutdown())
	return dir
}

// TestSalvageOfWhatIsMissing holds that files that are not there are named, and all else is
// copied.
func TestSalvageOfWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	a, n := logtest.Agent("ada"), 100
	name := natslog.NamesOf(messages.Subjects{}).Log(a.Partition())
	s.grow(a, n)
	s.mark(a)
	b := logtest.Agent("bob")
	s.grow(b, 3)
	for _, c := range []struct {
		what string
		of   func(dir string) string // to remove
		want string
		copy bool // of the other stream all is copied, of this one something
	}{
		{"the first block", func(dir string) string { return embeddedtest.Blocks(t, dir, name)[0] }, "without a trace", true},
		{"a block in the middle", func(dir string) string { return embeddedtest.Blocks(t, dir, name)[1] }, "without a trace", true},
		{"the newest block", func(dir string) string { all := embeddedtest.Blocks(t, dir, name); return all[len(all)-1] }, "ends at sequence", true},
		{"the settings", func(dir string) string { return filepath.Join(folderOf(dir, name), "meta.inf") }, "would leave out the stream", true},
		{"the folder", func(dir string) string { return folderOf(dir, name) }, "would leave out the stream", false},
	} {
		dir := embeddedtest.Crash(t, s.dir)
		s.ok(os.RemoveAll(c.of(dir)))
		found, nc := s.copied(dir)
		of := found[name]
		if of.Whole() || !strings.Contains(fmt.Sprint(of.Damage), c.want) || of.Copied > 0 != c.copy {
			t.Errorf("%s: %+v", c.what, of)
		}
		for _, p := range of.Damage {
			if p.Last > uint64(n) || p.First > p.Last {
				t.Errorf("%s: sequences %d to %d", c.what, p.First, p.Last)
			}
		}
		if other := found[natslog.NamesOf(messages.Subjects{}).Log(b.Partition())]; !other.Whole() || other.Copied != 3 {
			t.Errorf("%s: the other stream: %+v", c.what, other)
		}
		log := s.open(nc)
		tail, err := log.Append(s.ctx(), logtest.Entry(t, logtest.Agent("ada"), s.restoredTail(log, a)))
		if err != nil || tail.Seq != uint64(n)+1 {
			t.Errorf("%s: the next frame has sequence %d, %v; want %d", c.what, tail.Seq, err, n+1)
		}
	}
}

func folderOf(dir, stream string) string {
	return filepath.Join(dir, "jetstream", "$G", "streams", stream)
}

// restoredTail is the newest frame of an agent, whatever is missing before it.
func (s *store) restoredTail(log *natslog.Log, a messages.AgentID) eventlog.Position {
	s.t.Helper()
	tail, err := log.Head(s.ctx(), a)
	s.ok(err)
	return tail
}

// TestSalvageRefuses holds what no store is copied from.
func TestSalvageRefuses(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	salvage := func(ctx context.Context, dir, root string) error {
		to := filepath.Join(t.TempDir(), "copy")
		return embedded.Salvage(ctx, dir, root, to, func(embedded.Salvaged) {}, nil)
	}
	if err := salvage(s.ctx(), s.dir, messages.DefaultRoot); !errors.Is(err, embedded.ErrRunning) {
		t.Errorf("of a folder in use: %v", err)
	}
	dir := embeddedtest.Crash(t, s.dir)
	if err := salvage(s.ctx(), dir, "other"); err == nil || !strings.Contains(err.Error(), `no stream of root "other"`) {
		t.Errorf("of another root: %v", err)
	}
	if err := salvage(s.ctx(), t.TempDir(), messages.DefaultRoot); err == nil || !strings.Contains(err.Error(), "no node has used it") {
		t.Errorf("of an empty folder: %v", err)
	}
	ended, cancel := context.WithCancel(s.ctx())
	cancel()
	if err := salvage(ended, dir, messages.DefaultRoot); !errors.Is(err, context.Canceled) {
		t.Errorf("when it is given up: %v", err)
	}
	s.ok(os.WriteFile(filepath.Join(dir, "VERSION"), []byte("99 reprise v9\n"), 0o600))
	if err := salvage(s.ctx(), dir, messages.DefaultRoot); err == nil || !strings.Contains(err.Error(), "format 99") {
		t.Errorf("of a newer folder: %v", err)
	}
	_, err := s.js.CreateStream(s.ctx(), jetstream.StreamConfig{Name: natslog.NamesOf(messages.Subjects{}).Restoring(), Subjects: []string{"restore"}})
	s.ok(err)
	if err := salvage(s.ctx(), embeddedtest.Crash(t, s.dir), messages.DefaultRoot); !errors.Is(err, natslog.ErrRestoring) {
		t.Errorf("of half a store: %v", err)
	}
}
