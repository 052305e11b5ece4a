package natslog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// StreamNames are the names of all streams that Open makes, caches included, in
// no particular order.
func StreamNames(s messages.Subjects) (names []string) {
	for _, cfg := range streams(s, 1) {
		names = append(names, cfg.Name)
	}
	return names
}

// Restoring is the stream that stands while a backup is restored. Open refuses
// an installation that has it.
func (n Names) Restoring() string { return n.prefix + "RESTORE" }

// ErrRestoring is wrapped by Open's error where a restore is under way or was
// cut short: what is there is not whole.
var ErrRestoring = errors.New("a restore into this installation is under way or was cut short, and what is there is not whole: see it through with `reprise restore --again`")

// checkWait is how long the server may take to say so. One without a leader says
// nothing.
const checkWait = time.Second

func checkRestored(ctx context.Context, js jetstream.JetStream, n Names) error {
	ctx, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	switch _, err := js.Stream(ctx, n.Restoring()); {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("look up stream %s: %w", n.Restoring(), err)
	}
	return ErrRestoring
}
