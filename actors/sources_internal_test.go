package actors

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/providers/tool"
)

// alwaysChanged is a source that has changed whenever it is read.
type alwaysChanged struct{}

func (alwaysChanged) Tools() ([]tool.Tool, <-chan struct{}) {
	changed := make(chan struct{})
	close(changed)
	return nil, changed
}

// A source that keeps changing renews a definition a few times at once, and then once a
// minute.
func TestRenewalsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		renewals := 0
		k := &kind{prepare: func(context.Context, []tool.Source) (*definition, error) {
			renewals++
			return new(definition), nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		k.follow(ctx, &Runtime{logger: slog.Default()}, alwaysChanged{})
		if renewals < 60 || renewals > 60+renewBurst {
			t.Errorf("got %d renewals in an hour, want 60 to %d", renewals, 60+renewBurst)
		}
	})
}
