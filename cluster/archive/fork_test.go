package archive_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/cluster/archive"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
)

// A file of a fork would not be whole: there is none.
func TestForkIsNotWritten(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		inner := memlog.New()
		log := inner.Store().Log
		if sealed {
			keys, err := encrypted.Open(t.Context(), &encrypted.Memory{}, encrypted.Key{1})
			if err != nil {
				t.Fatal(err)
			}
			log = encrypted.New(inner.Store(), inner, keys).Store().Log
		}
		fork, parent, dir := logtest.Agent("fork"), logtest.Agent("parent"), t.TempDir()
		for _, e := range []eventlog.Entry{
			logtest.Entry(t, parent, eventlog.Position{}),
			logtest.Entry(t, fork, eventlog.Position{Last: 1}, messages.AgentForked{Agent: fork.Full(), Parent: parent.Full(), At: 1}),
		} {
			if _, err := log.Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := archive.Write(t.Context(), dir, inner, fork, nil, time.Now()); !errors.Is(err, archive.ErrFork) {
			t.Errorf("sealed %t: got %v", sealed, err)
		}
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				t.Errorf("sealed %t: %s was written", sealed, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, end, err := archive.Write(t.Context(), dir, inner, parent, nil, time.Now()); err != nil || end.Frames != 1 {
			t.Errorf("sealed %t: the parent: got %+v, %v", sealed, end, err)
		}
	}
}
