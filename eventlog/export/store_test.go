package export_test

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
)

// A process that is killed while it stores an agent leaves no file with the agent's texts, for those have
// no name from the beginning.
func TestStoreLeavesNoFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be removed there")
	}
	t.Setenv("TMPDIR", t.TempDir())
	var file bytes.Buffer
	w, err := export.NewWriter(&file, export.Head{Agent: ann.Full(), At: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Frame(&messages.Frame{ID: "f1", First: 1, Events: []messages.Event{messages.StatePatched{Reason: "a secret"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(nil, nil); err != nil {
		t.Fatal(err)
	}
	stored := 0
	for s, err := range export.Store(t.Context(), strings.NewReader(file.String()), memlog.NewStore(), func(export.Head) (messages.AgentID, bool) { return ann, true }) {
		if err != nil || s.Prefix.Last != 1 {
			t.Fatalf("got %+v, %v", s, err)
		}
		if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 0 {
			t.Errorf("files with names: %v, %v", left, err)
		}
		stored++
	}
	if stored != 1 {
		t.Errorf("%d agents were stored", stored)
	}
}
