package client

import (
	"context"
	"errors"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

const (
	// patience is how long a stream without a deadline is asked for again though
	// nothing comes.
	patience = 30 * time.Second
	// firstPause is how long its caller waits before that; the pauses double, up
	// to mostPause.
	firstPause = 50 * time.Millisecond
	mostPause  = time.Second
	// waitsForLeader is how long a view is asked for that no endpoint can give now, and a
	// message published that no stream takes now. Elections took up to ten seconds in
	// our tests.
	waitsForLeader = 12 * time.Second
)

// trying is what is known of a stream that has broken off, since something was last received from
// it. Its zero value is a stream that goes well.
type trying struct {
	broken *messages.Error // by what, at first
	since  time.Time
	pause  time.Duration
}

// soon reports whether it is worth while to ask for a view again though an endpoint has answered
// with err: what it was asked for cannot be had now, as while a stream elects its leader
// or a connection is made again, which is over within waitsForLeader.
func (t *trying) soon(err error) bool {
	var refused *messages.Error
	if errors.As(err, new(noEndpointError)) || !errors.As(err, &refused) || refused.Code != messages.Unavailable {
		return false
	}
	return t.broken == nil || time.Since(t.since) < waitsForLeader
}

// noEndpointError is that no endpoint is there.
type noEndpointError struct{ refused *messages.Error }

// Error is the text of the refusal, for callers.
func (e noEndpointError) Error() string { return e.refused.Error() }

// Unwrap returns the refusal that callers get.
func (e noEndpointError) Unwrap() error { return e.refused }

// again waits until the stream may be asked for again after err, or returns the error for its
// reader: the newest refusal, with what first broke it off.
func (t *trying) again(ctx context.Context, err error) error {
	var refused *messages.Error
	switch {
	case !errors.As(err, &refused):
		if t.broken != nil { // why it was asked again says more than a closed connection alone
			return errors.Join(t.broken, err)
		}
		return err
	case t.broken == nil:
		t.broken, t.since, t.pause = refused, time.Now(), firstPause
	case refused.Message != t.broken.Message:
		refused = messages.Refuse(refused.Code, "%s (at first: %s)", refused.Message, t.broken.Message)
	}
	_, limited := ctx.Deadline()
	if refused.Code != messages.Unavailable || !limited && time.Since(t.since) > patience {
		return refused
	}
	select {
	case <-time.After(t.pause):
		t.pause = min(2*t.pause, mostPause)
		return nil
	case <-ctx.Done():
		return refused
	}
}
