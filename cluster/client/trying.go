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
)

// trying is what is known of a stream that has broken off, since something was
// last heard of it. Its zero value is a stream that goes well.
type trying struct {
	broken *messages.Error // by what, at first
	since  time.Time
	pause  time.Duration
}

// again waits until the stream may be asked for again after err, or gives what
// its reader is to be told: the newest refusal, with what first broke it off.
func (t *trying) again(ctx context.Context, err error) error {
	var refused *messages.Error
	switch {
	case !errors.As(err, &refused):
		if t.broken != nil { // why it was asked again tells more than a closed connection alone
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
