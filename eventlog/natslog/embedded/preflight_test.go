package embedded_test

import (
	"context"
	"encoding/binary"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

// killedStore returns the folder of a killed server with five frames of an agent, and
// their tails.
func killedStore(t *testing.T) (dir string, a messages.AgentID, tails []eventlog.Position) {
	t.Helper()
	dir = t.TempDir()
	_, nc := embeddedtest.Start(t, dir)
	log := openLog(t, nc)
	a = logtest.Agent("ada")
	var tail eventlog.Position
	for range 5 {
		var err error
		if tail, err = log.Append(t.Context(), logtest.Entry(t, a, tail)); err != nil {
			t.Fatal(err)
		}
		tails = append(tails, tail)
	}
	if err := log.Mark(t.Context(), a.Partition(), log.Position(a.Partition())); err != nil {
		t.Fatal(err)
	}
	for _, definition := range []string{"Be brief.", "Be kind."} {
		if _, err := log.PutDefinition(t.Context(), []byte(definition)); err != nil {
			t.Fatal(err)
		}
	}
	return embeddedtest.Crash(t, dir), a, tails
}

func openLog(t *testing.T, nc *nats.Conn) *natslog.Log {
	t.Helper()
	log, err := natslog.Open(t.Context(), natslog.Config{Conns: []*nats.Conn{nc}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// sequences returns those of the messages in a stream.
func sequences(t *testing.T, nc *nats.Conn, stream string) (all []uint64) {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); seq <= s.CachedInfo().State.LastSeq; seq++ {
		if _, err := s.GetMsg(t.Context(), seq); err == nil {
			all = append(all, seq)
		}
	}
	return all
}

func startOn(dir string, sync embedded.Sync) (*embedded.Server, error) {
	return embedded.Start(embedded.Config{Dir: dir, Sync: sync, DontListen: true, Logger: slog.New(slog.DiscardHandler)})
}

// running starts a server on a folder until the function that it returns is called.
func running(t *testing.T, dir string) (srv *embedded.Server, nc *nats.Conn, stop func()) {
	t.Helper()
	srv, err := startOn(dir, embedded.SyncAlways)
	if err != nil {
		t.Fatal(err)
	}
	if nc, err = srv.Connect(); err != nil {
		t.Fatal(err)
	}
	return srv, nc, func() {
		nc.Close()
		if err := srv.Shutdown(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamagedLogIsNotOpened starts a server on a log that it would cut: it is set aside as
// it is, at each start, until what cannot be read is taken out.
func TestDamagedLogIsNotOpened(t *testing.T) { // A29
	dir, a, tails := killedStore(t)
	stream := natslog.NamesOf(messages.Subjects{}).Log(a.Partition())
	embeddedtest.Flip(t, dir, stream, string(tails[1].Frame)) // the third frame names the second
	block := embeddedtest.Blocks(t, dir, stream)[0]
	before, err := os.ReadFile(block)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		srv, nc, stop := running(t, dir)
		damaged := srv.Damaged()
		if len(damaged) != 1 || damaged[0].Stream != stream || damaged[0].Known != tails[4].Seq || len(damaged[0].Damage) != 1 {
			t.Fatalf("damaged: %+v", damaged)
		}
		if p := damaged[0].Damage[0]; p.Agent != a || p.First != tails[2].Seq || p.Last != p.First || !strings.Contains(p.String(), "1.blk at byte") {
			t.Errorf("at %v", p)
		}
		openLog(t, nc) // which makes a stream in its place
		stop()
		after, err := os.ReadFile(filepath.Join(dir, "damaged", stream, "msgs", filepath.Base(block)))
		if err != nil || string(after) != string(before) {
			t.Fatalf("the block has changed, or is not there: %v", err)
		}
	}
	if found, err := examine(dir, stream); err != nil || len(found.Damage) != 1 {
		t.Errorf("examined: %+v, %v", found, err)
	}

	taken := quarantine(t, dir)
	if len(taken) != 1 || taken[0].Err != nil || taken[0].Places[0].Agent != a {
		t.Fatalf("taken out: %+v", taken)
	}
	if kept, err := os.ReadFile(filepath.Join(taken[0].Folder, filepath.Base(block))); err != nil || string(kept) != string(before) {
		t.Errorf("no copy was kept: %v", err)
	}
	srv, nc, stop := running(t, dir)
	defer stop()
	if all := sequences(t, nc, stream); len(srv.Damaged()) > 0 || len(all) != 4 || all[3] != tails[4].Seq {
		t.Errorf("of %d damaged streams the messages are %v", len(srv.Damaged()), all)
	}
	reports, err := srv.Quarantined()
	if err != nil || len(reports) != 1 || reports[0].Stream != stream || reports[0].Places[0].Last != tails[2].Seq {
		t.Fatalf("reported: %+v, %v", reports, err)
	}
	if err := srv.Recorded(reports[0]); err != nil {
		t.Error(err)
	}
	if reports, err := srv.Quarantined(); err != nil || len(reports) > 0 {
		t.Errorf("still reported: %+v, %v", reports, err)
	}
	if taken := quarantine(t, embeddedtest.Crash(t, dir)); len(taken) > 0 {
		t.Errorf("taken out of a sound folder: %+v", taken)
	}
}

// quarantine takes what cannot be read out of a folder.
func quarantine(t *testing.T, dir string) (taken []embedded.Quarantined) {
	t.Helper()
	err := embedded.Quarantine(context.Background(), dir, messages.DefaultRoot, func(q embedded.Quarantined) { taken = append(taken, q) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

// TestOtherDamageIsRefused starts a server on a damaged stream that is not of the log. It
// changes nothing and says what to do.
func TestOtherDamageIsRefused(t *testing.T) { // A29
	dir, _, _ := killedStore(t)
	stream := natslog.NamesOf(messages.Subjects{}).Definitions()
	embeddedtest.Flip(t, dir, stream, "Be brief.")
	block := embeddedtest.Blocks(t, dir, stream)[0]
	before, err := os.ReadFile(block)
	if err != nil {
		t.Fatal(err)
	}
	_, err = startOn(dir, embedded.SyncAlways)
	if err == nil || !strings.Contains(err.Error(), block+" at byte") || !strings.Contains(err.Error(), "--quarantine") {
		t.Fatalf("started: %v", err)
	}
	if after, err := os.ReadFile(block); err != nil || string(after) != string(before) {
		t.Errorf("the block has changed, or is not there: %v", err)
	}
	if taken := quarantine(t, dir); len(taken) != 1 || taken[0].Err != nil || taken[0].Stream != stream {
		t.Fatalf("taken out: %+v", taken)
	}
	_, _, stop := running(t, dir)
	stop()
}

// TestTornEndIsNoDamage starts a server on what a crash and, with relaxed sync, a loss of
// power leave.
func TestTornEndIsNoDamage(t *testing.T) {
	dir, a, tails := killedStore(t)
	stream := natslog.NamesOf(messages.Subjects{}).Log(a.Partition())
	for name, harm := range map[string]struct {
		sync  embedded.Sync
		spoil func(block []byte, at int) []byte
	}{
		"torn":       {embedded.SyncAlways, func(block []byte, _ int) []byte { return append(block, block[:20]...) }},
		"no damage":  {embedded.SyncAlways, func(block []byte, _ int) []byte { return block }},
		"power lost": {embedded.SyncRelaxed, func(block []byte, _ int) []byte { return append(block, make([]byte, 4096)...) }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := embeddedtest.Crash(t, dir)
			embeddedtest.Spoil(t, dir, stream, string(tails[4].Frame), harm.spoil)
			srv, err := startOn(dir, harm.sync)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = srv.Shutdown() }()
			if damaged := srv.Damaged(); len(damaged) > 0 {
				t.Errorf("damaged: %+v", damaged)
			}
			nc, err := srv.Connect()
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if all := sequences(t, nc, stream); len(all) != 5 {
				t.Errorf("the messages are %v", all)
			}
		})
	}
}

// TestWrittenInItsPlace has another client write to the stream that was made in place of one that
// is set aside. Neither is given up.
func TestWrittenInItsPlace(t *testing.T) {
	dir, a, tails := killedStore(t)
	stream := natslog.NamesOf(messages.Subjects{}).Log(a.Partition())
	embeddedtest.Flip(t, dir, stream, string(tails[1].Frame))
	_, nc, stop := running(t, dir)
	openLog(t, nc)
	js, err := jetstream.New(nc)
	if err == nil {
		_, err = js.Publish(t.Context(), messages.Subjects{}.Log(a), []byte("by hand"))
	}
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := startOn(dir, embedded.SyncAlways); err == nil || !strings.Contains(err.Error(), "set aside") {
		t.Fatalf("started: %v", err)
	}
	for _, where := range []string{filepath.Join(dir, "damaged", stream), filepath.Join(dir, "jetstream", "$G", "streams", stream)} {
		if _, err := os.Stat(filepath.Join(where, "msgs")); err != nil {
			t.Error(err)
		}
	}
}

// TestFlippedSequence flips a bit of a sequence and of a length in the newest block of a
// folder that was closed in order. The server reads that block at start: it would fill its
// memory, or cut the block.
func TestFlippedSequence(t *testing.T) { // A29
	dir, a, tails := killedStore(t)
	_, _, stop := running(t, dir)
	stop()
	stream := natslog.NamesOf(messages.Subjects{}).Log(a.Partition())
	for name, at := range map[string]int{"sequence": 4 + 5, "length": 0} {
		t.Run(name, func(t *testing.T) {
			dir := embeddedtest.Crash(t, dir)
			embeddedtest.Spoil(t, dir, stream, string(tails[1].Frame), func(block []byte, in int) []byte {
				record := strings.LastIndex(string(block[:in]), messages.Subjects{}.Log(a)) - 22 // its subject is behind 22 bytes
				block[record+at] ^= 4
				return block
			})
			srv, _, stop := running(t, dir)
			defer stop()
			if damaged := srv.Damaged(); len(damaged) != 1 || damaged[0].Stream != stream || damaged[0].Damage[0].First != tails[2].Seq {
				t.Errorf("damaged: %+v", damaged)
			}
		})
	}
}

// TestKilledFolderIsReadWhole has a damaged frame in a stream whose index the server trusts.
// It is found if the folder was not closed in order.
func TestKilledFolderIsReadWhole(t *testing.T) { // A29
	dir, a, tails := killedStore(t)
	_, _, stop := running(t, dir)
	stop()
	stream := natslog.NamesOf(messages.Subjects{}).Log(a.Partition())
	embeddedtest.Flip(t, dir, stream, string(tails[1].Frame))
	srv, _, stop := running(t, dir)
	if damaged := srv.Damaged(); len(damaged) > 0 {
		t.Errorf("the server can open it, and readers find the place: %+v", damaged)
	}
	killed := embeddedtest.Crash(t, dir)
	stop()
	srv, _, stop = running(t, killed)
	defer stop()
	if damaged := srv.Damaged(); len(damaged) != 1 || damaged[0].Stream != stream {
		t.Errorf("damaged: %+v", damaged)
	}
}

// TestLastRecordOfKilled flips a bit of the last record of a stream of which nothing is on
// record. Where the machine kept running it was stored whole; where it may have lost power the
// record may be one that was being written.
func TestLastRecordOfKilled(t *testing.T) { // A29
	dir, _, _ := killedStore(t)
	open := filepath.Join(dir, "OPEN")
	boot, err := os.ReadFile(open) // empty where the system has no id of its start
	if err != nil || len(boot) == 0 && runtime.GOOS == "linux" {
		t.Fatalf("OPEN holds %q, %v", boot, err)
	}
	embeddedtest.Flip(t, dir, natslog.NamesOf(messages.Subjects{}).Definitions(), "Be kind.")
	if len(boot) > 0 {
		if _, err := startOn(dir, embedded.SyncAlways); err == nil || !strings.Contains(err.Error(), "1.blk at byte") {
			t.Errorf("after a kill: %v", err)
		}
	}
	if err := os.WriteFile(open, []byte("another start"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, stop := running(t, dir)
	stop()
}

// TestDamagedTwice starts a server twice on an older block that it cannot walk, and stops it
// in order between: what was set aside is verified whole again.
func TestDamagedTwice(t *testing.T) { // A29
	dir, a, tails := killedStore(t)
	_, _, stop := running(t, dir)
	stop()
	stream := natslog.NamesOf(messages.Subjects{}).Log(a.Partition())
	embeddedtest.Flip(t, dir, stream, string(tails[1].Frame)) // which the server can walk
	if err := os.WriteFile(filepath.Join(dir, "OPEN"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		srv, _, stop := running(t, dir)
		if damaged := srv.Damaged(); len(damaged) != 1 || damaged[0].Stream != stream {
			t.Errorf("damaged: %+v", damaged)
		}
		stop()
	}
}

// TestWithoutSettings removes the settings of a stream, which the server would then empty.
func TestWithoutSettings(t *testing.T) {
	dir, a, tails := killedStore(t)
	stream := natslog.NamesOf(messages.Subjects{}).Log(a.Partition())
	if err := os.Remove(filepath.Join(dir, "jetstream", "$G", "streams", stream, "meta.inf")); err != nil {
		t.Fatal(err)
	}
	srv, _, stop := running(t, dir)
	defer stop()
	if damaged := srv.Damaged(); len(damaged) != 1 || damaged[0].Stream != stream || damaged[0].Last != tails[4].Seq {
		t.Errorf("damaged: %+v", damaged)
	}
	if blocks, err := os.ReadDir(filepath.Join(dir, "damaged", stream, "msgs")); err != nil || len(blocks) == 0 {
		t.Errorf("its messages: %v, %v", blocks, err)
	}
}

// TestBrokenOlderBlock flips a bit of a length in an older block of a folder that was closed
// in order. The server would cut the block when it reads it, so it must not be read.
func TestBrokenOlderBlock(t *testing.T) { // A29
	dir := t.TempDir()
	_, nc, stop := running(t, dir)
	openLog(t, nc)
	a := logtest.Agent("ada")
	stream := natslog.NamesOf(messages.Subjects{}).Log(a.Partition())
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for range 12 {
		if _, err := js.Publish(t.Context(), messages.Subjects{}.Log(a), make([]byte, 900<<10)); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	srv, _, stop := running(t, dir)
	if broken, err := srv.Broken(t.Context(), stream); err != nil || len(broken) > 0 {
		t.Errorf("of a sound stream: %v, %v", broken, err)
	}
	stop()
	older := embeddedtest.Blocks(t, dir, stream)[0]
	block, err := os.ReadFile(older)
	if err != nil {
		t.Fatal(err)
	}
	second := int(binary.LittleEndian.Uint32(block)) // where the second record begins
	block[second+1] ^= 4
	if err := os.WriteFile(older, block, 0o600); err != nil {
		t.Fatal(err)
	}
	// A server that runs may have cut it by now: it reads what is younger than its window for
	// duplicates.
	if broken, err := srv.Broken(t.Context(), stream); err != nil || len(broken) != 1 || broken[0] != older {
		t.Errorf("broken: %v, %v", broken, err)
	}
}
