package integrity

import (
	"bytes"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/eventlog/prefix"
	"github.com/reprise-dev/reprise/messages"
)

// What an agent begins with is read to its end if it is a blob, of an import or of a detached fork, with the
// payloads that only its frames name.
func TestCheckPrefixes(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(frames, payload []byte) ([]byte, []byte)
		want  string
	}{
		"sound":      {func(f, p []byte) ([]byte, []byte) { return f, p }, ""},
		"cut":        {func(f, p []byte) ([]byte, []byte) { return f[:len(f)-3], p }, "prefix: its events up to 2 are in blob"},
		"no payload": {func(f, p []byte) ([]byte, []byte) { return f, []byte("another") }, "blob: its payload"},
	} {
		for _, detached := range []bool{false, true} {
			store, a := memlog.NewStore(), logtest.Agent("a")
			payload := []byte("large")
			var frames bytes.Buffer
			to := prefix.NewWriter(a, &frames)
			named := messages.Blob{SHA256: messages.DigestOf(payload), Size: int64(len(payload))}
			if err := to.Frame(&messages.Frame{ID: "f1", First: 1, Events: []messages.Event{messages.AgentCreated{}, messages.ToolCompleted{Call: "c1", Blob: &named}}}); err != nil {
				t.Fatal(err)
			}
			spoilt, payload := c.spoil(frames.Bytes(), payload)
			stored, err := store.PutBlob(t.Context(), a, bytes.NewReader(spoilt))
			if err == nil {
				_, err = store.PutBlob(t.Context(), a, bytes.NewReader(payload))
			}
			if err != nil {
				t.Fatal(err)
			}
			p := to.Prefix()
			events := []messages.Event{messages.AgentImported{Frames: &stored, Last: p.Last, Digest: p.Digest}}
			if detached {
				events = []messages.Event{messages.AgentForked{Parent: logtest.Agent("b").Full(), At: p.Last}, messages.ForkDetached{Frames: &stored, Last: p.Last, Digest: p.Digest}}
			}
			if _, err := store.Append(t.Context(), logtest.Entry(t, a, eventlog.Position{Last: p.Last}, events...)); err != nil {
				t.Fatal(err)
			}
			for _, deep := range []bool{false, true} {
				var found []string
				err := CheckPrefixes(store)(t.Context(), doctor.Subject{Agent: a}, doctor.Options{Deep: deep}, func(f doctor.Finding) { found = append(found, f.Check+": "+f.Detail) })
				if got := strings.Join(found, "; "); err != nil || (got == "") != (c.want == "" || !deep) || !strings.HasPrefix(got, c.want) && deep {
					t.Errorf("%s, detached %t, deep %t: got %q, %v; want %q", name, detached, deep, got, err, c.want)
				}
			}
		}
	}
}
