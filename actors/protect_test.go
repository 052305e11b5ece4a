package actors

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// A panic is returned as an error and logged with its stack. An error is returned unchanged.
func TestProtect(t *testing.T) { // A31
	var out bytes.Buffer
	log := func() *slog.Logger { return slog.New(slog.NewTextHandler(&out, nil)) }
	_, err := protect(log, func() (int, error) { panic("a bug") })
	var panicked *panicError
	if !errors.As(err, &panicked) || err.Error() != "panicked: a bug" || !strings.Contains(out.String(), "TestProtect") {
		t.Errorf("got error %v and log %q, want the panic and its stack", err, &out)
	}
	if n, err := protect(log, func() (int, error) { return 1, errors.ErrUnsupported }); n != 1 || err != errors.ErrUnsupported {
		t.Errorf("got %d, %v, want 1, %v", n, err, errors.ErrUnsupported)
	}
}

// retry calls a function until it succeeds, its error is permanent, or the context ends.
func TestRetry(t *testing.T) { // A36
	synctest.Test(t, func(t *testing.T) {
		rt := &Runtime{logger: slog.New(slog.DiscardHandler)}
		unavailable := errors.New("unavailable")
		for _, c := range []struct {
			name  string
			fails int // how often
			err   error
			tries int
			want  error
		}{
			{"succeeds", 20, unavailable, 21, nil},
			{"permanent error", 1, backoff.Permanent(unavailable), 1, unavailable},
			{"context ends", 1 << 30, unavailable, 0, unavailable},
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
				t.Errorf("%s: got error %v after %d tries, want %v after %d (0: any number)", c.name, err, tries, c.want, c.tries)
			}
		}
	})
}
