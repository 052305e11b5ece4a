package actors

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// panicError is the error of a call that panicked.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("panicked: %v", e.value) }

// protect calls f. A panic in it is logged, if log is not nil, and returned as a *panicError.
func protect[R any](log func() *slog.Logger, f func() (R, error)) (r R, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p}
			if log != nil {
				log().Error("a panic was caught", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			}
		}
	}()
	return f()
}

// The pauses before an agent that failed is activated again double from the first to the longest.
const (
	firstPause = 50 * time.Millisecond
	mostPause  = 30 * time.Second
)

// pause returns once d has passed, or with an error once ctx has ended.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retry calls f until it succeeds, its error is permanent, or ctx ends, and returns the newest
// error. Failed attempts are logged with message and args.
func (rt *Runtime) retry(ctx context.Context, f func() error, message string, args ...any) error {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = firstPause, 5*time.Second
	var last error
	_, err := backoff.Retry(ctx, func() (struct{}, error) { last = f(); return struct{}{}, last },
		backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, _ time.Duration) {
			rt.warn(message, append(args, "error", err)...)
		}))
	if err != nil && ctx.Err() != nil && last != nil {
		return last
	}
	return err
}

// warn logs a warning. Floods of alike ones are for the logger's handler to bound.
func (rt *Runtime) warn(message string, args ...any) { rt.logger.Warn(message, args...) }
