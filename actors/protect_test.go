package actors

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// A panic is an error, and is logged with its stack; an error stays what it is.
func TestProtect(t *testing.T) { // A31
	var out bytes.Buffer
	log := func() *slog.Logger { return slog.New(slog.NewTextHandler(&out, nil)) }
	_, err := protect(log, func() (int, error) { panic("a bug") })
	var panicked *panicError
	if !errors.As(err, &panicked) || err.Error() != "panicked: a bug" || !strings.Contains(out.String(), "TestProtect") {
		t.Errorf("%v, logged %q", err, &out)
	}
	if n, err := protect(log, func() (int, error) { return 1, errors.ErrUnsupported }); n != 1 || err != errors.ErrUnsupported {
		t.Errorf("%d, %v", n, err)
	}
}

// What fails is tried until it succeeds, until its error is permanent, or until its context ends.
func TestRetry(t *testing.T) { // A36
	synctest.Test(t, func(t *testing.T) {
		rt := &Runtime{logger: slog.New(slog.DiscardHandler)}
		away := errors.New("away")
		for _, c := range []struct {
			name  string
			fails int // how often
			err   error
			tries int
			want  error
		}{
			{"it succeeds", 20, away, 21, nil},
			{"it is permanent", 1, backoff.Permanent(away), 1, away},
			{"its time is over", 1 << 30, away, 0, away},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			tries := 0
			err := rt.retry(ctx, func() error {
				if tries++; tries <= c.fails {
					return c.err
				}
				return nil
			}, "it failed")
			cancel()
			if !errors.Is(err, c.want) || c.tries > 0 && tries != c.tries || tries > 2000 {
				t.Error(fmt.Errorf("%s: %w after %d tries", c.name, err, tries))
			}
		}
	})
}
