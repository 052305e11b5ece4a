package natslog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

// stored is the message on a subject of a stream.
func stored(t *testing.T, c natslog.Config, stream, subject string) (jetstream.Stream, *jetstream.RawStreamMsg) {
	t.Helper()
	s, err := jetStream(t, c).Stream(context.Background(), stream)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.GetLastMsgForSubject(context.Background(), subject)
	if err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
	for name := range m.Header {
		if name != "Reprise-Chunk" { // others say where it was found
			m.Header.Del(name)
		}
	}
	return s, m
}

func removeMsg(t *testing.T, s jetstream.Stream, m *jetstream.RawStreamMsg) {
	t.Helper()
	if err := s.DeleteMsg(context.Background(), m.Sequence); err != nil {
		t.Fatal(err)
	}
}

func publish(t *testing.T, c natslog.Config, m *nats.Msg) {
	t.Helper()
	if _, err := jetStream(t, c).PublishMsg(context.Background(), m); err != nil {
		t.Fatal(err)
	}
}

func chunkOf(c natslog.Config, a messages.AgentID, b messages.Blob, chunk int) string {
	return fmt.Sprintf("%s.%s.%d", c.Subjects.Blobs(a), b.SHA256, chunk)
}

// tamper flips a bit in chunk 1 of a stored blob.
func tamper(t *testing.T, c natslog.Config, a messages.AgentID, b messages.Blob) {
	t.Helper()
	s, m := stored(t, c, natslog.NamesOf(c.Subjects).Blobs(a.Partition()), chunkOf(c, a, b, 1))
	removeMsg(t, s, m)
	m.Data[len(m.Data)/2] ^= 1
	publish(t, c, &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data})
}

// bytesOf are n bytes, no two chunks of which are the same.
func bytesOf(n int, what string) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		_, _ = fmt.Fprintf(&b, "%s %d\n", what, i)
	}
	return b.Bytes()[:n]
}

func putBlob(t *testing.T, l eventlog.Blobs, a messages.AgentID, payload []byte) messages.Blob {
	t.Helper()
	b, err := l.PutBlob(context.Background(), a, bytes.NewReader(payload))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func getBlob(l eventlog.Blobs, a messages.AgentID, b messages.Blob) ([]byte, error) {
	r, err := l.Blob(context.Background(), a, b)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(r)
	return got, errors.Join(err, r.Close())
}

func wantCode(t *testing.T, err error, code messages.Code, parts ...string) {
	t.Helper()
	var e *messages.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("%v, want %s", err, code)
	}
	for _, part := range parts {
		if err != nil && !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

// A damaged or missing chunk is reported with its place.
func TestBlobDamageHasAPlace(t *testing.T) { // A29
	l, c := open(t, 1)
	a, payload := logtest.Agent("ada"), bytesOf(700<<10, "blob")
	b := putBlob(t, l, a, payload)
	tamper(t, c, a, b)
	_, err := getBlob(l, a, b)
	s, m := stored(t, c, l.Names().Blobs(a.Partition()), chunkOf(c, a, b, 1))
	wantCode(t, err, messages.Damaged, "chunk 1 of 0 to 3", chunkOf(c, a, b, 1), fmt.Sprintf("sequence %d", m.Sequence), "backup")
	removeMsg(t, s, m)
	got, err := getBlob(l, a, b)
	wantCode(t, err, messages.Damaged, "chunk 1 of 0 to 3", "is missing")
	if !bytes.Equal(got, payload[:224<<10]) {
		t.Errorf("%d bytes came before the missing chunk, want chunk 0", len(got))
	}
}

// A reader that wants the end of a blob does not wait for what comes before.
func TestBlobIsSkippedUnread(t *testing.T) { // A36
	l, c := open(t, 1)
	a, payload := logtest.Agent("ada"), bytesOf(3<<20, "blob")
	b := putBlob(t, l, a, payload)
	s, m := stored(t, c, l.Names().Blobs(a.Partition()), chunkOf(c, a, b, 7))
	removeMsg(t, s, m)
	r, err := l.Blob(t.Context(), a, b)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	const at = 2<<20 + 17
	if err := eventlog.Skip(r, at); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, payload[at:]) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// Chunks that do not say what they are, and the right chunks in a wrong place.
func TestBlobOfForeignChunks(t *testing.T) { // A29
	l, c := open(t, 1)
	a := logtest.Agent("ada")
	b := messages.Blob{SHA256: messages.DigestOf([]byte("x")), Size: 1}
	publish(t, c, &nats.Msg{Subject: chunkOf(c, a, b, 0), Data: []byte("x")})
	_, err := getBlob(l, a, b)
	wantCode(t, err, messages.Damaged, "chunk 0", "Reprise-Chunk")

	other := putBlob(t, l, a, []byte("y"))
	_, m := stored(t, c, l.Names().Blobs(a.Partition()), chunkOf(c, a, other, 0))
	b.SHA256 = messages.DigestOf([]byte("z"))
	publish(t, c, &nats.Msg{Subject: chunkOf(c, a, b, 0), Data: m.Data, Header: m.Header})
	_, err = getBlob(l, a, b)
	wantCode(t, err, messages.Damaged, "chunk 0")

	// A chunk that is whole, but not what the blob's hash says.
	b.SHA256 = messages.DigestOf([]byte("q"))
	sum := crc32.Checksum([]byte("y"), crc32.MakeTable(crc32.Castagnoli))
	m.Header.Set("Reprise-Chunk", fmt.Sprintf("%s 0 1 1 %08x", b.SHA256, sum))
	publish(t, c, &nats.Msg{Subject: chunkOf(c, a, b, 0), Data: []byte("y"), Header: m.Header})
	_, err = getBlob(l, a, b)
	wantCode(t, err, messages.Damaged, string(b.SHA256))
	publish(t, c, &nats.Msg{Subject: c.Subjects.Snapshots(a) + ".state.0", Data: []byte("x"), Header: m.Header})
	if got, err := l.Snapshot(context.Background(), a, "state"); got != nil || err != nil {
		t.Errorf("a snapshot with another checksum: %q, %v", got, err)
	}
}

// The streams of payloads and snapshots of a log in use are removed: what they held is
// gone, and what comes is stored.
func TestRemovedStreams(t *testing.T) { // A29, A36
	l, c := open(t, 1)
	a, payload := logtest.Agent("ada"), bytesOf(700<<10, "blob")
	old := putBlob(t, l, a, []byte("old"))
	for _, name := range []string{l.Names().Blobs(a.Partition()), l.Names().Snapshots()} {
		if err := jetStream(t, c).DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	b := putBlob(t, l, a, payload)
	if got, err := getBlob(l, a, b); err != nil || !bytes.Equal(got, payload) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	_, err := getBlob(l, a, old)
	wantCode(t, err, messages.NotFound)
	if err := l.PutSnapshot(t.Context(), a, "state", payload); err != nil {
		t.Fatal(err)
	}
	if got, err := l.Snapshot(t.Context(), a, "state"); err != nil || !bytes.Equal(got, payload) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	// A stream of the log is no cache: it is not made again.
	name := l.Names().Log(a.Partition())
	if err := jetStream(t, c).DeleteStream(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), logtest.Entry(t, a, eventlog.Position{})); err == nil {
		t.Error("a frame was stored in a log that is gone")
	}
	if _, err := jetStream(t, c).Stream(t.Context(), name); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the log was made again: %v", err)
	}
}

// A blob whose writer died before the last chunk is not there; storing it again
// completes it, whatever its chunks were cut like.
func TestHalfABlob(t *testing.T) { // A36
	l, c := open(t, 1)
	a, payload := logtest.Agent("ada"), bytesOf(700<<10, "half")
	b := putBlob(t, l, a, payload)
	name := l.Names().Blobs(a.Partition())
	s, m := stored(t, c, name, chunkOf(c, a, b, 3))
	removeMsg(t, s, m)
	_, err := getBlob(l, a, b)
	wantCode(t, err, messages.NotFound)
	for b, err := range l.ListBlobs(t.Context(), a) {
		if err != nil || b.Size != 3*224<<10 {
			t.Errorf("half a blob is listed as %+v, %v", b, err)
		}
	}
	putBlob(t, l, a, payload)
	if got, err := getBlob(l, a, b); err != nil || !bytes.Equal(got, payload) {
		t.Errorf("%d bytes, %v", len(got), err)
	}

	s, m = stored(t, c, name, chunkOf(c, a, b, 3))
	removeMsg(t, s, m)
	s, m = stored(t, c, name, chunkOf(c, a, b, 1))
	removeMsg(t, s, m)
	publish(t, c, &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data[:1000]}) // as a smaller server cuts
	putBlob(t, l, a, payload)
	if got, err := getBlob(l, a, b); err != nil || !bytes.Equal(got, payload) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A blob that was removed and is stored again is there, though a server that is
// behind still has the one that was removed.
func TestBlobStoredAgainBesideALaggard(t *testing.T) { // A36, A108
	l, c := open(t, 1)
	a, payload := logtest.Agent("ada"), bytesOf(700<<10, "again")
	b := putBlob(t, l, a, payload)
	s, _ := stored(t, c, l.Names().Blobs(a.Partition()), chunkOf(c, a, b, 3))
	config := s.CachedInfo().Config
	direct := func(on bool) {
		t.Helper()
		config.AllowDirect = on
		if _, err := jetStream(t, c).UpdateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	last, err := c.Conns[0].Request("$JS.API.DIRECT.GET."+config.Name+"."+chunkOf(c, a, b, 3), nil, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	direct(false) // the test is the laggard
	laggard, err := c.Conns[0].Subscribe("$JS.API.DIRECT.GET."+config.Name+".>", func(m *nats.Msg) {
		_ = m.RespondMsg(&nats.Msg{Header: last.Header, Data: last.Data})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.RemoveBlobs(t.Context(), a, eventlog.All, b.SHA256); err != nil {
		t.Fatal(err)
	}
	putBlob(t, l, a, payload)
	if err := laggard.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	direct(true)
	if got, err := getBlob(l, a, b); err != nil || !bytes.Equal(got, payload) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A crash in the middle of replacing a snapshot leaves chunks of two.
func TestHalfASnapshot(t *testing.T) {
	l, c := open(t, 1)
	ctx, a := context.Background(), logtest.Agent("ada")
	subject := func(chunk int) string { return fmt.Sprintf("%s.state.%d", c.Subjects.Snapshots(a), chunk) }
	older, newer := bytesOf(700<<10, "older"), bytesOf(700<<10, "newer")
	put := func(snapshot []byte) {
		t.Helper()
		if err := l.PutSnapshot(ctx, a, "state", snapshot); err != nil {
			t.Fatal(err)
		}
	}
	want := func(snapshot []byte) {
		t.Helper()
		if got, err := l.Snapshot(ctx, a, "state"); err != nil || !bytes.Equal(got, snapshot) || (got == nil) != (snapshot == nil) {
			t.Errorf("%d bytes, %v; want %d others", len(got), err, len(snapshot))
		}
	}
	for chunk := range 4 {
		put(newer)
		_, m := stored(t, c, l.Names().Snapshots(), subject(chunk))
		put(older)
		want(older)
		publish(t, c, &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data})
		want(nil)
		s, m := stored(t, c, l.Names().Snapshots(), subject(chunk))
		removeMsg(t, s, m)
		want(nil)
		m.Data[0] ^= 1
		publish(t, c, &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data})
		want(nil)
		publish(t, c, &nats.Msg{Subject: m.Subject, Data: []byte("who am I")})
		want(nil)
	}
	put(older)
	want(older)
	put(newer[:300<<10]) // leaves nothing of what was larger
	want(newer[:300<<10])
	s, _ := stored(t, c, l.Names().Snapshots(), subject(0))
	info, err := s.Info(ctx)
	if err != nil || info.State.Msgs != 4 || info.State.Bytes >= 304<<10 { // two of them without data
		t.Errorf("%d messages of %d bytes are kept, %v; want 4 of which two hold 300 KiB", info.State.Msgs, info.State.Bytes, err)
	}
}

// An administrator may switch direct reads off, and a small server cuts small.
func TestStoreOnOtherServers(t *testing.T) { // A36
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), DontListen: true, Sync: embedded.SyncRelaxed, MaxPayload: 64 << 10, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Shutdown() })
	nc, err := srv.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c := natslog.Config{Conns: []*nats.Conn{nc}, Logger: quiet}
	l, err := natslog.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, js, a := context.Background(), jetStream(t, c), logtest.Agent("ada")
	for _, direct := range []bool{true, false} {
		for _, name := range []string{l.Names().Snapshots(), l.Names().Blobs(a.Partition())} {
			s, err := js.Stream(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			config := s.CachedInfo().Config
			config.AllowDirect = direct
			if _, err := js.UpdateStream(ctx, config); err != nil {
				t.Fatal(err)
			}
		}
		payload := bytesOf(200<<10, fmt.Sprint(direct))
		if got, err := getBlob(l, a, putBlob(t, l, a, payload)); err != nil || !bytes.Equal(got, payload) {
			t.Errorf("direct %v: a blob of %d bytes, %v", direct, len(got), err)
		}
		if _, err := getBlob(l, a, messages.Blob{SHA256: messages.DigestOf([]byte("none"))}); err == nil {
			t.Errorf("direct %v: found a blob that was never stored", direct)
		}
		if err := l.PutSnapshot(ctx, a, "state", payload); err != nil {
			t.Error(err)
		}
		if got, err := l.Snapshot(ctx, a, "state"); err != nil || !bytes.Equal(got, payload) {
			t.Errorf("direct %v: a snapshot of %d bytes, %v", direct, len(got), err)
		}
	}
}

// A snapshot costs no fsync, on a server that syncs always.
func TestSnapshotsDoNotWaitForTheDisk(t *testing.T) {
	l, c := open(t, 1)
	s, err := jetStream(t, c).Stream(context.Background(), l.Names().Snapshots())
	if err != nil || s.CachedInfo().Config.PersistMode != jetstream.AsyncPersistMode {
		t.Errorf("%+v, %v", s.CachedInfo().Config, err)
	}
	for _, name := range []string{l.Names().Log(0), l.Names().Blobs(0)} {
		s, err := jetStream(t, c).Stream(context.Background(), name)
		if err != nil || s.CachedInfo().Config.PersistMode != jetstream.DefaultPersistMode {
			t.Errorf("%+v, %v", s.CachedInfo().Config, err)
		}
	}
}

// What was acknowledged is on disk, and what was purged is not, whenever the
// server dies.
func TestStoreAfterACrash(t *testing.T) { // A36, A108
	for _, sync := range []embedded.Sync{embedded.SyncAlways, embedded.SyncRelaxed} {
		dir := t.TempDir()
		l := openDir(t, dir, sync)
		agents, payload := logtest.Neighbours(2), bytesOf(2<<20, "crash")
		var tails [2][]eventlog.Position
		for range 20 {
			for i, a := range agents {
				var tail eventlog.Position
				if n := len(tails[i]); n > 0 {
					tail = tails[i][n-1]
				}
				tails[i] = append(tails[i], grow(t, l, a, tail, 1)...)
			}
		}
		kept, gone := putBlob(t, l, agents[0], payload), putBlob(t, l, agents[1], payload)
		if err := l.Purge(t.Context(), agents[1], tails[1][15].Seq); err != nil {
			t.Fatal(err)
		}
		if err := l.RemoveBlobs(t.Context(), agents[1], eventlog.All); err != nil {
			t.Fatal(err)
		}

		l = openDir(t, copied(t, dir), sync)
		if got, err := getBlob(l, agents[0], kept); err != nil || !bytes.Equal(got, payload) {
			t.Errorf("sync %s: %d bytes, %v", sync, len(got), err)
		}
		_, err := getBlob(l, agents[1], gone)
		wantCode(t, err, messages.NotFound)
		if got, err := readFrom(l, agents[0], tails[0][0]); err != nil || len(got) != 19 {
			t.Errorf("sync %s: %d frames, %v", sync, len(got), err)
		}
		if got, err := readFrom(l, agents[1], tails[1][15]); err != nil || len(got) != 4 {
			t.Errorf("sync %s: %d frames behind the purge, %v", sync, len(got), err)
		}
		if _, err := readFrom(l, agents[1], tails[1][14]); !errors.Is(err, eventlog.ErrElsewhere) {
			t.Errorf("sync %s: a purged frame came back: %v", sync, err)
		}
	}
}

// What replaced a snapshot may be removed, and the server die at any time after that: no older one
// is there again, and none of its chunks.
func TestRemovedSnapshotsAfterACrash(t *testing.T) {
	for _, sync := range []embedded.Sync{embedded.SyncAlways, embedded.SyncRelaxed} {
		dir := t.TempDir()
		l := openDir(t, dir, sync)
		gone, kept := logtest.Agent("ada"), logtest.Agent("eve")
		for round := range 5 {
			for i, size := range []int{900 << 10, 500 << 10, 300} {
				for _, a := range []messages.AgentID{gone, kept} {
					if err := l.PutSnapshot(t.Context(), a, "state", bytesOf(size, fmt.Sprint(round, i, a))); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := l.RemoveSnapshots(t.Context(), gone, eventlog.All); err != nil {
				t.Fatal(err)
			}
			again := openDir(t, copied(t, dir), sync)
			if names, err := again.ListSnapshots(t.Context(), gone); err != nil || len(names) > 0 {
				t.Errorf("sync %s: removed snapshots are there again: %v, %v", sync, names, err)
			}
			if got, err := again.Snapshot(t.Context(), gone, "state"); err != nil || got != nil {
				t.Errorf("sync %s: %d bytes are there again, %v", sync, len(got), err)
			}
			if got, err := again.Snapshot(t.Context(), kept, "state"); err != nil || len(got) != 300 {
				t.Errorf("sync %s: the other's has %d bytes, %v", sync, len(got), err)
			}
		}
	}
}

// copied is a copy of the folder of a server that runs.
func copied(t *testing.T, dir string) string {
	t.Helper()
	for {
		to := t.TempDir()
		err := os.CopyFS(to, os.DirFS(dir))
		if err == nil {
			return to
		}
		if !errors.Is(err, fs.ErrNotExist) { // else the server has put a file in another's place
			t.Fatal(err)
		}
	}
}

// A server that is shut down in order keeps its snapshots.
func TestSnapshotsAfterARestart(t *testing.T) {
	dir, a, want := t.TempDir(), logtest.Agent("ada"), bytesOf(500<<10, "restart")
	srv, err := embedded.Start(embedded.Config{Dir: dir, DontListen: true, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	nc, err := srv.Connect()
	if err != nil {
		t.Fatal(err)
	}
	l, err := natslog.Open(context.Background(), natslog.Config{Conns: []*nats.Conn{nc}, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	for _, snapshot := range [][]byte{bytesOf(900<<10, "older"), want} {
		if err := l.PutSnapshot(t.Context(), a, "state", snapshot); err != nil {
			t.Fatal(err)
		}
	}
	nc.Close()
	if err := srv.Shutdown(); err != nil {
		t.Fatal(err)
	}
	if got, err := openDir(t, dir, embedded.SyncAlways).Snapshot(t.Context(), a, "state"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v; want %d", len(got), err, len(want))
	}
}

// openDir opens a log on a server of its own in dir.
func openDir(t *testing.T, dir string, sync embedded.Sync) *natslog.Log {
	t.Helper()
	srv, err := embedded.Start(embedded.Config{Dir: dir, DontListen: true, Sync: sync, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Shutdown() })
	nc, err := srv.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	l, err := natslog.Open(context.Background(), natslog.Config{Conns: []*nats.Conn{nc}, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// An agent with blobs is found, whether it has a log or not.
func TestAgentsOfBlobs(t *testing.T) { // A36
	l, _ := open(t, 1)
	have := make(map[string]bool)
	for i := range 40 {
		a := logtest.Agent(fmt.Sprint("b", i))
		if _, err := l.PutBlob(t.Context(), a, strings.NewReader(strings.Repeat("x", 1+i))); err != nil {
			t.Fatal(err)
		}
		have[a.Full()] = true
	}
	for shard := range l.Shards() {
		agents, err := l.BlobAgents(t.Context(), shard)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range agents {
			if !have[a.Full()] || int(a.Partition())*l.Shards()/messages.Partitions != shard {
				t.Errorf("%s is found in shard %d", a, shard)
			}
			delete(have, a.Full())
		}
	}
	if len(have) != 0 {
		t.Errorf("not found: %v", have)
	}
}
