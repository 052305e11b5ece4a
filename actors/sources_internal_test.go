package actors

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/providers/tool"
)

// restless is a source that changes whenever it is looked at.
type restless struct{}

func (restless) Tools() ([]tool.Tool, <-chan struct{}) {
	changed := make(chan struct{})
	close(changed)
	return nil, changed
}

// A source that keeps changing renews a definition a few times at once, and then once a minute.
func TestRenewalsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		renewals := 0
		k := &kind{prepare: func(context.Context, []tool.Source) (*definition, error) {
			renewals++
			return new(definition), nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		k.follow(ctx, &Runtime{logger: slog.Default()}, restless{})
		if renewals < 60 || renewals > 60+renewBurst {
			t.Errorf("in an hour the definition was renewed %d times", renewals)
		}
	})
}
