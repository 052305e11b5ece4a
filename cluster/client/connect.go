package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// Options say which NATS server to talk to, and as whom.
type Options struct {
	// URL of the server; it wins over that of Context. Empty: the context's,
	// else NATS's own default.
	URL string
	// Context is the name of a context of the nats command line tool. Empty: none.
	Context string
	// Creds is a file with credentials; it wins over those of Context.
	Creds string
	// Root is the first token of the installation's subjects. Empty: reprise.
	Root string
	// Name is what the server calls the connection. Empty: reprise client.
	Name string
	// Lost is called when the server has been gone for ten seconds and the
	// connection is given up. Nil: it is never given up.
	Lost func()
}

// Resolve is the URL to connect to and what goes with it.
func (o Options) Resolve() (server string, options []nats.Option, err error) {
	server = o.URL
	if o.Context != "" {
		c, err := readContext(o.Context)
		if err != nil {
			return "", nil, err
		}
		if o.Creds != "" {
			c.User, c.Creds = "", o.Creds
		}
		if server == "" {
			server = c.URL
		}
		if options, err = c.options(); err != nil {
			return "", nil, fmt.Errorf("NATS context %s: %w", o.Context, err)
		}
	} else if o.Creds != "" {
		options = append(options, nats.UserCredentials(o.Creds))
	}
	if server == "" {
		server = nats.DefaultURL
	}
	return server, options, nil
}

// connectTime is how long a server may take to answer if the caller sets no limit.
const connectTime = 5 * time.Second

// The pauses between attempts to reconnect, and how many make ten seconds.
const (
	reconnectWait = 250 * time.Millisecond
	reconnects    = 40
)

// Connect connects to a server and makes a client of it. It fails at once if
// no server answers. The caller closes the client.
func Connect(ctx context.Context, o Options) (*Client, error) {
	server, options, err := o.Resolve()
	if err != nil {
		return nil, err
	}
	limit := connectTime
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline))
	}
	if o.Name == "" {
		o.Name = "reprise client"
	}
	attempts, closed := -1, func(*nats.Conn) {}
	if o.Lost != nil {
		attempts, closed = reconnects, func(*nats.Conn) { o.Lost() }
	}
	refused := new(refusals)
	nc, err := nats.Connect(server, append([]nats.Option{
		nats.Name(o.Name), nats.Timeout(limit), nats.MaxReconnects(attempts), nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(0, 0), nats.ClosedHandler(closed), nats.NoCallbacksAfterClientClose(),
		nats.ErrorHandler(refused.told),
	}, options...)...)
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return nil, messages.Refuse(messages.Unavailable, "the NATS server at %s refuses these credentials: %v", shown(server), err)
	case err != nil:
		return nil, messages.Refuse(messages.Unavailable, "no NATS server answers at %s: %v", shown(server), err)
	}
	c := New(nc, o.Root)
	c.refused = refused
	return c, nil
}

// shown is a server's address without a password.
func shown(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return "the given address"
	}
	return u.Redacted()
}

// Close closes the client's connection, whoever made it.
func (c *Client) Close() { c.nc.Close() }

// Server is the address of the server, without a password.
func (c *Client) Server() string { return c.nc.ConnectedUrlRedacted() }
