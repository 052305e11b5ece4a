package cluster

import (
	"log/slog"
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections/index"
)

// What an agent was imported with, or has copied, is missing without a word if the agent was deleted before
// the index reads it. If not, that is damage.
func TestIndexOfWhatIsDeletedMeanwhile(t *testing.T) { // A87, A108
	for _, c := range []struct {
		name   string
		events []messages.Event
	}{
		{"imported", []messages.Event{messages.AgentImported{Frames: &messages.Blob{SHA256: "gone"}, Last: 6}}},
		{"copied", []messages.Event{messages.ToolRequested{Turn: "t", Call: "c"}, messages.ForkDetached{Frames: &messages.Blob{SHA256: "gone"}, Last: 6}}},
	} {
		for _, deleted := range []bool{false, true} {
			log, a := memlog.New(), named("a000")
			tail, err := log.Append(t.Context(), logtest.Entry(t, a, eventlog.Position{Last: 6}, c.events...))
			if err != nil {
				t.Fatal(err)
			}
			v := newAgentsIndex(log, "", quiet)
			v.blobs = log
			heard := stored(t, log, a, v)
			if deleted {
				tail, err = log.Append(t.Context(), logtest.Entry(t, a, tail, messages.AgentDeleted{}))
				if err == nil {
					err = log.Purge(t.Context(), a, tail.Seq)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			var words embeddedtest.Words
			store, err := index.Open(t.Context(), "", slog.New(slog.NewTextHandler(&words, nil)))
			if err != nil {
				t.Fatal(err)
			}
			b := store.Batch()
			for _, m := range heard {
				if err := b.Add(t.Context(), int(a.Partition()), m); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n, said := store.Unreadable(a.Tenant, nil), words.String(); (n == 0) != deleted || (said == "") != deleted {
				t.Errorf("%s, deleted %v: %d frames are left out, and it says: %s", c.name, deleted, n, said)
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// stored returns the messages of an agent's partition for the index.
func stored(t *testing.T, log *memlog.Log, a messages.AgentID, v *agentsIndex) (list []index.Message) {
	t.Helper()
	for m, err := range log.ReadPartition(t.Context(), a.Partition(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, v.messageOf(m))
	}
	return list
}
