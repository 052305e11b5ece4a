package backup

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

// Without an answer in time about a restore under way, there is no backup.
func TestARestoreIsLookedFor(t *testing.T) {
	w := embeddedtest.New(t)
	js, err := jetstream.New(w.Connect())
	w.OK(err)
	late, cancel := context.WithCancel(w.Ctx)
	cancel()
	var s messages.Subjects
	if _, err := present(late, js, s); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), natslog.NamesOf(s).Restoring()) {
		t.Errorf("%v, want that the question about a restore was not answered", err)
	}
}
