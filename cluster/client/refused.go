package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// refusals collects what the server does not let the user do. The server reports that apart from
// the requests, which would only be left without an answer. A nil *refusals collects nothing. Safe
// for concurrent use.
type refusals struct {
	mu      sync.Mutex
	open    map[*refusal]bool
	replies *replies // nil: the client is not made yet
}

// answers sets where the answers to requests come.
func (r *refusals) answers(to *replies) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replies = to
}

// refusal ends something that needs some subjects.
type refusal struct {
	subjects []string
	end      context.CancelCauseFunc
}

// notAllowed is what the server has said.
type notAllowed struct{ what error }

// Error returns what was refused, and what to do about it.
func (e *notAllowed) Error() string {
	return fmt.Sprintf("the NATS server does not allow this: %v; use other credentials (--creds, --context), or have an administrator allow it", e.what)
}

// Is reports whether target is ErrNotAllowed.
func (e *notAllowed) Is(target error) bool { return target == ErrNotAllowed }

// ErrNotAllowed is wrapped by errors of requests that the permissions of the NATS user do not allow.
var ErrNotAllowed = errors.New("not allowed")

// Unwrap returns the server's own error.
func (e *notAllowed) Unwrap() error { return e.what }

// heed is ctx until the server refuses one of the subjects, or leave is called.
func (r *refusals) heed(ctx context.Context, subjects ...string) (_ context.Context, leave func()) {
	if r == nil {
		return ctx, func() {}
	}
	ctx, end := context.WithCancelCause(ctx)
	one := &refusal{subjects, end}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = make(map[*refusal]bool)
	}
	r.open[one] = true
	return ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.open, one)
		end(nil)
	}
}

// told ends what needs the subject that the server names. Other errors of a connection reach
// those who use it.
func (r *refusals) told(nc *nats.Conn, _ *nats.Subscription, err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	if strings.Contains(err.Error(), `Subscription to "`+inboxesOf(nc)) {
		r.noInbox(err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for one := range r.open {
		for _, subject := range one.subjects {
			if strings.Contains(err.Error(), `"`+subject+`"`) {
				one.end(&notAllowed{err})
			}
		}
	}
}

// inboxesOf is what the connection's inboxes begin with.
func inboxesOf(nc *nats.Conn) string {
	prefix := nc.Opts.InboxPrefix
	if prefix == "" {
		prefix = strings.TrimSuffix(nats.InboxPrefix, ".")
	}
	return prefix + "."
}

// noInbox ends all that is open: no answer reaches it.
func (r *refusals) noInbox(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.replies != nil {
		r.replies.refused()
	}
	for one := range r.open {
		one.end(&notAllowed{fmt.Errorf("%w, to which answers are sent: connect with the inbox prefix that the user has (--inbox-prefix; an administrator has it from `reprise permissions`)", err)})
	}
}

// ErrLost is wrapped by errors of a client whose connection is closed and will not be opened again:
// the server is gone, or [Client.Close] was called.
var ErrLost = errors.New("the connection to the NATS server was lost")

// why is what the server has refused, if that has ended ctx, else err.
func why(ctx context.Context, err error) error {
	if errors.Is(err, nats.ErrConnectionClosed) && !errors.Is(err, ErrLost) {
		err = fmt.Errorf("%w: %w", ErrLost, err)
	}
	if refused := (*notAllowed)(nil); errors.As(context.Cause(ctx), &refused) {
		return refused
	}
	return err
}
