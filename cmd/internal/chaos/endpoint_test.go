//go:build unix

package chaos

import (
	"context"
	"errors"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// system is what the load is put on: one node that is killed again and again, or a
// cluster.
type system interface {
	// open returns a way in, waiting until there is one.
	open(ctx context.Context) (*endpoint, error)
	// met is notified of an event. It may hold its caller until a fault has struck.
	met(what string)
	// calm waits until no program works for a call any more that was begun by a node
	// which does not have its agent now.
	calm(ctx context.Context, key string) error
	// tail is the end of what was logged.
	tail() string
}

// endpoint is a way to the agents, for a while.
type endpoint struct {
	// number is kept with what was acknowledged.
	number int
	client *client.Client
	ctx    context.Context // ends when nothing comes through any more
	close  func()
}

// insist does something through an endpoint, again and again as an honest client does,
// until it is done or finally refused. It returns the number of the endpoint.
func (w *world) insist(do func(*endpoint) error) (number int, err error) {
	for {
		d, err := w.system.open(w.ctx)
		if err != nil {
			return 0, err
		}
		done, err := d.try(do)
		if done {
			return d.number, err
		}
	}
}

// try does something once and reports whether that was enough. If it was not, it takes
// a moment.
func (d *endpoint) try(do func(*endpoint) error) (done bool, err error) {
	defer d.close()
	err = do(d)
	var refused *messages.Error
	switch {
	case err == nil:
		return true, nil
	case d.ctx.Err() != nil:
		return false, nil
	case errors.As(err, &refused) && (!refused.Temporary() || refused.Code == messages.Busy):
		return true, err
	}
	select {
	case <-d.ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
	return false, nil
}
