package backup_test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
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

var quiet = slog.New(slog.DiscardHandler)

// site is an installation on a server of its own.
type site struct {
	t   *testing.T
	srv *embedded.Server
	nc  *nats.Conn
	js  jetstream.JetStream
}

// within is the test's context with a deadline of three minutes; without one the library
// gives up on the server after five seconds.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func newSite(t *testing.T) *site { return newSiteIn(t, t.TempDir()) }

func newSiteIn(t *testing.T, dir string) *site {
	t.Helper()
	srv, nc := embeddedtest.Start(t, dir)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return &site{t, srv, nc, js}
}

func (s *site) open() *natslog.Log {
	s.t.Helper()
	l, err := natslog.Open(within(s.t), natslog.Config{Conns: []*nats.Conn{s.nc}, Logger: quiet})
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

func (s *site) config() backup.Config { return backup.Config{Conn: s.nc, Version: "v0"} }

func (s *site) backup() []byte {
	s.t.Helper()
	var file bytes.Buffer
	if _, err := backup.Write(within(s.t), &file, s.config()); err != nil {
		s.t.Fatal(err)
	}
	return file.Bytes()
}

func (s *site) restore(file []byte, again bool) error {
	_, err := backup.Restore(within(s.t), bytes.NewReader(file), backup.RestoreConfig{Config: s.config(), Again: again})
	return err
}

// publish stores an input and returns its sequence.
func (s *site) publish(a messages.AgentID, text string) uint64 {
	s.t.Helper()
	ack, err := s.js.Publish(within(s.t), messages.Subjects{}.In(a), []byte(text))
	if err != nil {
		s.t.Fatal(err)
	}
	return ack.Sequence
}

// grow appends n frames of one event.
func grow(t *testing.T, l eventlog.Log, a messages.AgentID, tail eventlog.Position, n int) eventlog.Position {
	t.Helper()
	for range n {
		var err error
		if tail, err = eventlog.Commit(within(t), l, logtest.Entry(t, a, tail)); err != nil {
			t.Fatal(err)
		}
	}
	return tail
}

// inputID is the id that an input without one has in the queue as it is. One that is not there
// yet counts as stored at the zero time.
func (s *site) inputID(seq uint64) string {
	s.t.Helper()
	stream, err := s.js.Stream(within(s.t), natslog.NamesOf(messages.Subjects{}).Inbox())
	if err != nil {
		s.t.Fatal(err)
	}
	origins, err := natslog.OriginsOf(stream.CachedInfo().Created, stream.CachedInfo().Config)
	if err != nil {
		s.t.Fatal(err)
	}
	var stored time.Time
	switch msg, err := stream.GetMsg(within(s.t), seq); {
	case err == nil:
		stored = msg.Time
	case !errors.Is(err, jetstream.ErrMsgNotFound):
		s.t.Fatal(err)
	}
	return messages.StreamInputID(origins.Of(seq), seq, stored)
}

func TestRestored(t *testing.T) {
	t.Parallel()
	one := newSite(t)
	l := one.open()
	agents := logtest.Neighbours(5)
	tails := make(map[messages.AgentID]eventlog.Position)
	for i, a := range agents {
		tails[a] = grow(t, l, a, eventlog.Position{}, 10+i)
	}
	hash, err := l.PutDefinition(within(t), []byte("a definition"))
	if err != nil {
		t.Fatal(err)
	}
	one.publish(agents[0], "first")
	seq := one.publish(agents[1], "second")
	file := one.backup()

	two := newSite(t)
	if err := two.restore(file, false); err != nil {
		t.Fatal(err)
	}
	r := two.open()
	for a, tail := range tails {
		got, err := r.Head(within(t), a)
		if err != nil || got != tail {
			t.Errorf("%s: tail %+v, %v; want %+v", a, got, err, tail)
		}
		var last messages.EventNumber
		for rec, err := range r.Read(within(t), a, eventlog.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			last = rec.Frame.Last()
		}
		if last != tail.Last {
			t.Errorf("%s: %d events, want %d", a, last, tail.Last)
		}
		grow(t, r, a, got, 1) // the fence holds
	}
	if b, err := r.Definition(within(t), hash); err != nil || string(b) != "a definition" {
		t.Errorf("definition %q, %v", b, err)
	}
	if got, want := two.inputID(seq), one.inputID(seq); got != want {
		t.Errorf("the id of input %d is %s, was %s: it would run twice", seq, got, want)
	}
	// What came after the backup is not in it, but its id may be spent in a log
	// that was copied later: the next input of that number is another.
	lost, next := one.publish(agents[0], "lost"), two.publish(agents[0], "next")
	if lost != next || one.inputID(lost) == two.inputID(next) {
		t.Errorf("inputs %d and %d after the backup have the ids %s and %s", lost, next, one.inputID(lost), two.inputID(next))
	}

	three := newSite(t)
	if err := three.restore(two.backup(), false); err != nil {
		t.Fatal(err)
	}
	if three.inputID(seq) != one.inputID(seq) || three.inputID(next) != two.inputID(next) || three.inputID(next+1) == two.inputID(next+1) {
		t.Errorf("ids after a second restore: %s %s %s", three.inputID(seq), three.inputID(next), three.inputID(next+1))
	}
}

// The server cannot make the first stream's folder for a moment, as when it still removes
// that of all streams behind the last one. (A file is in its way, which it removes when it
// has failed.)
func TestNoFolderForAMoment(t *testing.T) {
	t.Parallel()
	one := newSite(t)
	grow(t, one.open(), logtest.Agent("ada"), eventlog.Position{}, 3)
	file := one.backup()
	dir := t.TempDir()
	two := newSiteIn(t, dir)
	streams := filepath.Join(dir, "jetstream", "$G", "streams")
	if err := errors.Join(os.MkdirAll(filepath.Dir(streams), 0o700), os.WriteFile(streams, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := two.restore(file, false); err != nil {
		t.Error(err)
	}
}

func TestOccupied(t *testing.T) {
	t.Parallel()
	one := newSite(t)
	l := one.open()
	grow(t, l, logtest.Agent("ada"), eventlog.Position{}, 3)
	file := one.backup()
	if err := one.restore(file, true); !errors.Is(err, backup.ErrOccupied) || !strings.Contains(err.Error(), "LOG_") {
		t.Errorf("restored over an installation: %v", err)
	}
	wantTail := logtest.Agent("ada")
	if tail, err := l.Head(within(t), wantTail); err != nil || tail.Last != 3 {
		t.Errorf("the installation was touched: %+v, %v", tail, err)
	}
	two := newSite(t)
	two.open() // its streams are there, and empty
	if err := two.restore(file, false); err != nil {
		t.Errorf("restore over empty streams: %v", err)
	}
	three := newSite(t)
	kv, err := three.js.CreateKeyValue(within(t), jetstream.KeyValueConfig{Bucket: "reprise_members", Storage: jetstream.MemoryStorage})
	if err == nil {
		_, err = kv.Put(within(t), "node", nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := three.restore(file, false); !errors.Is(err, backup.ErrOccupied) || !strings.Contains(err.Error(), "alive") {
		t.Errorf("restored under a living node: %v", err)
	}
	other := backup.RestoreConfig{Config: newSite(t).config()}
	other.Root = "other"
	if _, err := backup.Restore(within(t), bytes.NewReader(file), other); err == nil || !strings.Contains(err.Error(), "--root reprise") {
		t.Errorf("restored under another root: %v", err)
	}
}

func TestCutShort(t *testing.T) {
	t.Parallel()
	one := newSite(t)
	tail := grow(t, one.open(), logtest.Agent("ada"), eventlog.Position{}, 3)
	file := one.backup()
	two := newSite(t)
	ctx, cancel := context.WithCancel(within(t))
	cfg := backup.RestoreConfig{Config: two.config()}
	cfg.Progress = func(p backup.Progress) {
		if p.Number == 10 {
			cancel()
		}
	}
	if _, err := backup.Restore(ctx, bytes.NewReader(file), cfg); err == nil || !strings.Contains(err.Error(), "--again") {
		t.Fatalf("restore: %v", err)
	}
	if _, err := natslog.Open(within(t), natslog.Config{Conns: []*nats.Conn{two.nc}, Logger: quiet}); !errors.Is(err, natslog.ErrRestoring) {
		t.Errorf("half an installation was opened: %v", err)
	}
	if _, err := backup.Write(within(t), io.Discard, two.config()); !errors.Is(err, natslog.ErrRestoring) {
		t.Errorf("half an installation was backed up: %v", err)
	}
	if err := two.restore(file, false); err == nil || !strings.Contains(err.Error(), "--again") {
		t.Errorf("a second restore: %v", err)
	}
	if err := two.restore(file, true); err != nil {
		t.Fatalf("a second restore, from the start: %v", err)
	}
	if got, err := two.open().Head(within(t), logtest.Agent("ada")); err != nil || got != tail {
		t.Errorf("tail %+v, %v", got, err)
	}
}

// A server that goes away ends a backup and a restore at once, with words.
func TestServerGoes(t *testing.T) {
	t.Parallel()
	one := newSite(t)
	grow(t, one.open(), logtest.Agent("ada"), eventlog.Position{}, 3)
	file := one.backup()
	goes := func(s *site) func(backup.Progress) {
		return func(p backup.Progress) {
			if p.Number == 3 {
				_ = s.srv.Shutdown()
			}
		}
	}
	cfg := one.config()
	cfg.Progress = goes(one)
	if _, err := backup.Write(within(t), io.Discard, cfg); !errors.Is(err, backup.ErrLost) {
		t.Errorf("backup: %v", err)
	}
	two := newSite(t)
	to := backup.RestoreConfig{Config: two.config()}
	to.Progress = goes(two)
	if _, err := backup.Restore(within(t), bytes.NewReader(file), to); !errors.Is(err, backup.ErrLost) || !strings.Contains(err.Error(), "--again") {
		t.Errorf("restore: %v", err)
	}
}

func TestDamagedFile(t *testing.T) {
	t.Parallel()
	one := newSite(t)
	grow(t, one.open(), logtest.Agent("ada"), eventlog.Position{}, 40)
	file := one.backup()
	m, err := backup.Verify(bytes.NewReader(file), nil)
	if err != nil || m.Messages() != 40 {
		t.Fatalf("%+v, %v", m, err)
	}
	two := newSite(t)
	refused := func(what string, bad []byte) {
		t.Helper()
		err := two.restore(bad, false)
		if !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
		for range two.js.StreamNames(within(t)).Name() {
			t.Fatalf("%s: a stream was made", what)
		}
	}
	refused("empty", nil)
	refused("text", []byte(strings.Repeat("no backup\n", 200)))
	const padding = 3 * 512 // of the archive's last entry and end, which say nothing
	for at := 0; at < len(file)-padding; at += 1 + len(file)/50 {
		refused(fmt.Sprintf("cut at %d of %d", at, len(file)), file[:at])
	}
	// A flipped bit anywhere but in the archive's own padding and times.
	for _, find := range []string{"REPRISE_LOG_1/0", `"sha256"`, `"begun"`, `"last"`} {
		bad := bytes.Clone(file)
		bad[bytes.LastIndex(bad, []byte(find))+3] ^= 1
		refused("a flipped bit in "+find, bad)
	}
	data := bytes.Index(file, []byte("\xff\x06\x00\x00S2sTwO"))
	for i := range 20 {
		bad := bytes.Clone(file)
		bad[data+i] ^= 4
		refused(fmt.Sprintf("a flipped bit in byte %d of a stream", i), bad)
	}
	refused("bytes behind its end", append(bytes.Clone(file), "more"...))
	refused("another backup behind it", append(bytes.Clone(file), file...))
	if _, err := backup.Verify(bytes.NewReader(append(bytes.Clone(file), make([]byte, 4096)...)), nil); err != nil {
		t.Errorf("padded with zero bytes, as a tape does: %v", err)
	}
	newer := bytes.Replace(file, []byte(`"format": 1`), []byte(`"format": 9`), 1)
	if err := two.restore(newer, false); err == nil || !strings.Contains(err.Error(), "format 9") {
		t.Errorf("a newer format: %v", err)
	}
}

func TestOriginsAreRead(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1767322800123)
	for text, good := range map[string]bool{"5": true, "1:9 5": true, "": false, "1:9": false, "x": false, "1:x 5": false} {
		_, err := natslog.OriginsOf(at, jetstream.StreamConfig{Name: "IN", Metadata: map[string]string{"reprise-origins": text}})
		if (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// An input that is applied while the backup is taken is in the queue's copy or
// in the log's, whichever stream is copied first.
func TestAppliedMeanwhile(t *testing.T) {
	t.Parallel()
	one := newSite(t)
	l := one.open()
	a := inPartition(0)
	seq := one.publish(a, "wanted")
	inbox := natslog.NamesOf(messages.Subjects{}).Inbox()
	queue, err := one.js.Stream(within(t), inbox)
	if err != nil {
		t.Fatal(err)
	}
	cfg, applied := one.config(), false
	cfg.Progress = func(p backup.Progress) {
		if p.Number == 2 && !applied { // the first stream is copied
			applied = true
			grow(t, l, a, eventlog.Position{}, 1)
			if err := queue.DeleteMsg(within(t), seq); err != nil {
				t.Error(err)
			}
		}
	}
	var file bytes.Buffer
	if _, err := backup.Write(within(t), &file, cfg); err != nil || !applied {
		t.Fatal(err, applied)
	}
	two := newSite(t)
	if err := two.restore(file.Bytes(), false); err != nil {
		t.Fatal(err)
	}
	if tail, err := two.open().Head(within(t), a); err != nil || tail.Last != 1 {
		t.Errorf("neither in the queue nor in the log: %+v, %v", tail, err)
	}
}

// A server before 2.15 copies what comes while it copies: the file has more than
// the server said when it began. None of it is lost, and inputs keep their ids.
func TestMoreThanWasSaid(t *testing.T) {
	t.Parallel()
	one := newSite(t)
	tail := grow(t, one.open(), inPartition(0), eventlog.Position{}, 3)
	one.publish(inPartition(0), "said")
	more := one.publish(inPartition(0), "not said")
	two := newSite(t)
	if err := two.restore(saying(t, one.backup(), func(s *backup.Stream) { s.Last = max(s.Last, 1) - 1 }), false); err != nil {
		t.Fatal(err)
	}
	if got, err := two.open().Head(within(t), inPartition(0)); err != nil || got != tail {
		t.Errorf("tail %+v, %v, want %+v", got, err, tail)
	}
	if got, want := two.inputID(more), one.inputID(more); got != want {
		t.Errorf("the id of input %d is %s, was %s: it would run twice", more, got, want)
	}
	if next := two.publish(inPartition(0), "next"); two.inputID(next) == one.inputID(next) {
		t.Errorf("input %d has the id that another may have had", next)
	}
}

// Of an agent whose history is purged while it is copied a backup has the older
// half and not the newer, and one that is deleted after that is without payloads.
// Of one that is deleted before it has what waited in the queue, and may have been
// applied. No restored agent continues from there.
func TestDeletedMeanwhile(t *testing.T) { // A108
	t.Parallel()
	for _, at := range []string{"REPRISE_DLQ", "REPRISE_LOG_0", "REPRISE_LOG_5", ""} { // the copy during which it is deleted; else it was before
		ended := at == ""
		one := newSite(t)
		l, a, other := one.open(), inPartition(0), inPartition(1)
		one.publish(a, "wanted")
		blob := put(t, l, a, []byte("a payload"))
		tail := grow(t, l, a, eventlog.Position{}, 5)
		one.noise(messages.Subjects{}.Log(other))
		tail = grow(t, l, a, tail, 5)
		forge := func() { // what the library takes for the server's word about a consumer
			if _, err := one.js.PublishMsg(within(t), &nats.Msg{Subject: messages.Subjects{}.Log(other), Header: nats.Header{"Status": {"409"}, "Description": {"Consumer Deleted"}}}); err != nil {
				t.Error(err)
			}
		}
		forge()
		tombstone := func() {
			var err error
			if tail, err = eventlog.Commit(within(t), l, logtest.Entry(t, a, tail, messages.AgentDeleted{})); err != nil {
				t.Error(err)
			}
		}
		cfg, purged := one.config(), false
		if ended {
			tombstone()
		}
		cfg.Progress = func(p backup.Progress) {
			if p.Stream != cmp.Or(at, "REPRISE_LOG_0") || purged {
				return
			}
			if purged = true; !ended {
				forge()
				tombstone()
			}
			if err := errors.Join(l.Purge(within(t), a, tail.Seq), l.RemoveBlobs(within(t), a, eventlog.All)); err != nil {
				t.Error(err)
			}
		}
		var file bytes.Buffer
		m, err := backup.Write(within(t), &file, cfg)
		if err != nil || !purged || (m.Deleted() == 1) == ended {
			t.Fatal(err, purged, m)
		}
		two := newSite(t)
		if err := two.restore(file.Bytes(), false); err != nil {
			t.Fatal(err)
		}
		r := two.open()
		want := eventlog.Position{}
		if ended {
			want = tail
		}
		if got, err := r.Head(within(t), a); err != nil || got != want {
			t.Errorf("%s: tail %+v, %v, want %+v", at, got, err, want)
		}
		for rec, err := range r.Read(within(t), a, eventlog.Range{}) {
			if err != nil || rec.Frame.ID != want.Frame {
				t.Errorf("%s: frame %+v, %v", at, rec.Frame, err)
			}
		}
		if ended {
			continue // its next owner completes the removal
		}
		if _, err := r.Blob(within(t), a, blob); err == nil || messages.AsError(err).Code != messages.NotFound {
			t.Errorf("its payload: %v", err)
		}
		queue, err := two.js.Stream(within(t), r.Names().Inbox())
		if err != nil || queue.CachedInfo().State.Msgs != 0 {
			t.Errorf("what was sent to it: %+v, %v", queue.CachedInfo().State, err)
		}
	}
}

// noise stores more on a subject than the server sends ahead of a reader.
func (s *site) noise(subject string) {
	s.t.Helper()
	random, text := rand.NewChaCha8([32]byte{}), make([]byte, 500<<10)
	for range 32 {
		_, _ = random.Read(text)
		if _, err := s.js.Publish(within(s.t), subject, text); err != nil {
			s.t.Fatal(err)
		}
	}
}

func put(t *testing.T, l eventlog.Blobs, a messages.AgentID, payload []byte) messages.Blob {
	t.Helper()
	b, err := l.PutBlob(within(t), a, bytes.NewReader(payload))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// saying is a backup whose manifest says something else of its streams.
func saying(t *testing.T, file []byte, change func(*backup.Stream)) []byte {
	t.Helper()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	var manifest []byte
	to, from := tar.NewWriter(&out), tar.NewReader(bytes.NewReader(file))
	for {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		ok(err)
		body, err := io.ReadAll(from)
		ok(err)
		switch header.Name {
		case "manifest.json":
			var m backup.Manifest
			ok(json.Unmarshal(body, &m))
			for i := range m.Streams {
				change(&m.Streams[i])
			}
			body, err = json.MarshalIndent(m, "", "  ")
			ok(err)
			manifest = body
		case "manifest.sha256":
			body = fmt.Appendf(nil, "%x\n", sha256.Sum256(manifest))
		}
		header.Size = int64(len(body))
		ok(to.WriteHeader(header))
		_, err = to.Write(body)
		ok(err)
	}
	ok(to.Close())
	return out.Bytes()
}

// inPartition is an agent of a partition.
func inPartition(p messages.Partition) messages.AgentID {
	for i := 0; ; i++ {
		if a := logtest.Agent(fmt.Sprintf("k%d", i)); a.Partition() == p {
			return a
		}
	}
}

// TestRestoreBeginsRecords restores a log: what is on record of it begins with what was
// put back, and the streams are distinguished from those that were copied.
func TestRestoreBeginsRecords(t *testing.T) {
	from, to := newSite(t), newSite(t)
	a := logtest.Agent("ada")
	log := from.open()
	if _, err := log.Append(within(t), logtest.Entry(t, a, eventlog.Position{})); err != nil {
		t.Fatal(err)
	}
	shard := log.ShardOf(a)
	if err := log.Check(within(t), shard, true); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := backup.Write(within(t), &file, backup.Config{Conn: from.nc}); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Restore(within(t), bytes.NewReader(file.Bytes()), backup.RestoreConfig{Config: backup.Config{Conn: to.nc}}); err != nil {
		t.Fatal(err)
	}
	marks, err := to.js.Stream(within(t), natslog.MarksOf(messages.Subjects{}))
	if err != nil || marks.CachedInfo().State.Msgs != natslog.LogStreams {
		t.Fatalf("%+v, %v; want a record of each stream", marks, err)
	}
	restored := to.open()
	if err := restored.Check(within(t), shard, true); err != nil {
		t.Error(err)
	}
	if was, is := log.Identity(shard), restored.Identity(shard); was == is || !strings.Contains(is, " ") { // a time and a generation
		t.Errorf("the identity was %q and is %q", was, is)
	}
}

// TestBackupLacksNoStream refuses to copy an installation of which a stream of the log was
// set aside, so that an empty one stands in its place.
func TestBackupLacksNoStream(t *testing.T) { // A29
	s := newSite(t)
	l := s.open()
	a := logtest.Agent("ada")
	grow(t, l, a, eventlog.Position{}, 3)
	if err := l.Check(within(t), l.ShardOf(a), true); err != nil { // which begins the record
		t.Fatal(err)
	}
	s.backup()
	stream := l.Names().Log(a.Partition())
	if err := s.js.DeleteStream(within(t), stream); err != nil {
		t.Fatal(err)
	}
	s.open()
	if _, err := backup.Write(within(t), io.Discard, s.config()); err == nil || !strings.Contains(err.Error(), stream) || !strings.Contains(err.Error(), "would lack it") {
		t.Fatalf("a backup without a stream of the log: %v", err)
	}
}

// TestBackupKnowsWhatWasTakenOut restores an installation of which a frame was taken out,
// because it could not be read: its agent is still known to have lost it.
func TestBackupKnowsWhatWasTakenOut(t *testing.T) { // A29
	s := newSite(t)
	l := s.open()
	a := logtest.Agent("ada")
	tail := grow(t, l, a, eventlog.Position{}, 3)
	if err := l.Check(within(t), l.ShardOf(a), true); err != nil { // which begins the record
		t.Fatal(err)
	}
	if err := l.Quarantine(within(t), l.ShardOf(a), "one", []natslog.Quarantined{{ID: "one", First: tail.Seq, Last: tail.Seq, Agent: a}}); err != nil {
		t.Fatal(err)
	}
	file := s.backup()
	other := newSite(t)
	if err := other.restore(file, false); err != nil {
		t.Fatal(err)
	}
	l = other.open()
	if err := l.Check(within(t), l.ShardOf(a), true); err != nil {
		t.Fatal(err)
	}
	if q := l.LostFrame(a, tail.Seq); q == nil || q.Last != tail.Seq {
		t.Errorf("of the agent %+v is known", q)
	}
}
