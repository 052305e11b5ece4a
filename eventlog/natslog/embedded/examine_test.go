package embedded_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

// TestExamine reads the files of a server: while it runs, after it was stopped, after it
// was killed, and with a flipped bit.
func TestExamine(t *testing.T) { // A29
	dir := t.TempDir()
	_, nc := embeddedtest.Start(t, dir)
	log, err := natslog.Open(t.Context(), natslog.Config{Conns: []*nats.Conn{nc}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	a := logtest.Agent("ada")
	stream := natslog.NamesOf(messages.Subjects{}).Log(a.Partition())
	var tails []eventlog.Position
	var tail eventlog.Position
	for range 5 {
		if tail, err = log.Append(t.Context(), logtest.Entry(t, a, tail)); err != nil {
			t.Fatal(err)
		}
		tails = append(tails, tail)
	}
	if err := log.Mark(t.Context(), a.Partition(), log.Position(a.Partition())); err != nil {
		t.Fatal(err)
	}
	if _, err := examine(dir, stream); !errors.Is(err, embedded.ErrRunning) {
		t.Errorf("of a folder in use: %v", err)
	}

	killed := embeddedtest.Crash(t, dir)
	sound, err := examine(killed, stream)
	if err != nil || len(sound.Damage) != 0 || sound.Messages != 5 || sound.Last != tail.Seq {
		t.Errorf("of a killed server: %+v, %v", sound, err)
	}
	before := files(t, killed)
	embeddedtest.Flip(t, killed, stream, string(tails[1].Frame))
	bad, err := examine(killed, stream)
	if err != nil || len(bad.Damage) != 1 || bad.Damage[0].First == 0 || bad.Damage[0].First != bad.Damage[0].Last || bad.Damage[0].Agent != a || bad.Damage[0].Offset == 0 {
		t.Errorf("with a flipped bit: %+v, %v", bad, err)
	}
	if after := files(t, killed); len(after) != len(before) {
		t.Errorf("the folder had %d files and has %d", len(before), len(after))
	}

	cut := embeddedtest.Crash(t, dir)
	embeddedtest.Spoil(t, cut, stream, string(tails[4].Frame), func(block []byte, at int) []byte { return block[:at] })
	short, err := examine(cut, stream)
	if err != nil || len(short.Damage) == 0 {
		t.Errorf("with an end cut off that is known to have been stored: %+v, %v", short, err)
	}
	gone := embeddedtest.Crash(t, dir)
	if err := os.RemoveAll(filepath.Join(gone, "jetstream", "$G", "streams", stream)); err != nil {
		t.Fatal(err)
	}
	if lost, err := examine(gone, stream); err != nil || len(lost.Damage) != 1 || lost.Damage[0].Detail == "" {
		t.Errorf("without the stream: %+v, %v", lost, err)
	}
	if _, err := examine(t.TempDir(), stream); err == nil {
		t.Error("of an empty folder: no error")
	}
}

func examine(dir, stream string) (is embedded.Examined, err error) {
	err = embedded.Examine(context.Background(), dir, messages.DefaultRoot, func(e embedded.Examined) {
		if e.Stream == stream {
			is = e
		}
	}, nil)
	return is, err
}

// files are the names of all files below a folder.
func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Base(path) != "LOCK" {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
