package client

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// Options are the NATS server to connect to, and the login.
type Options struct {
	// URL is the URL of the server, or those of several with commas between them, each with its
	// own user:password@ if that is the login. It takes precedence over that of Context. Empty:
	// that of Context, else nats.DefaultURL.
	URL string
	// Context is the name of a context of the nats command line tool. Empty: none.
	Context string
	// Creds is a file with credentials. It takes precedence over a login of Context.
	Creds string
	// NKey is a file with the seed of a user's key. It takes precedence over a login of Context.
	NKey string
	// CA is a file with the certificates of the authorities that sign the server's certificate.
	// Cert and Key are files with the client's certificate and key. They take precedence over
	// those of Context.
	CA, Cert, Key string
	// Root is the first token of the installation's subjects. Empty: reprise.
	Root string
	// InboxPrefix is the prefix of the subjects of answers, for a user who may read no others.
	// It takes precedence over that of Context. Empty: that of NATS, _INBOX.
	InboxPrefix string
	// Name is the name of the connection in the server's lists. Empty: reprise client.
	Name string
	// Person is the person in whose name the client acts; see [Client.As]. Empty: no one is named.
	Person string
	// Lost is called when the server has been gone for ten seconds and the
	// connection is given up. Nil: it is never given up.
	Lost func()
}

// Resolve returns the URL to connect to, and the options of the connection.
func (o Options) Resolve() (server string, options []nats.Option, err error) {
	var c natsContext
	if o.Context != "" {
		if c, err = readContext(o.Context); err != nil {
			return "", nil, err
		}
	}
	if o.Creds != "" || o.NKey != "" {
		c.User, c.Creds, c.NKey = "", o.Creds, o.NKey
	}
	c.CA, c.Cert, c.Key = cmp.Or(o.CA, c.CA), cmp.Or(o.Cert, c.Cert), cmp.Or(o.Key, c.Key)
	if options, err = c.options(); err != nil {
		if o.Context != "" {
			err = fmt.Errorf("NATS context %s: %w", o.Context, err)
		}
		return "", nil, err
	}
	if o.InboxPrefix != "" {
		options = append(options, nats.CustomInboxPrefix(o.InboxPrefix))
	}
	server = cmp.Or(o.URL, c.URL, nats.DefaultURL)
	if err = messages.CheckServers(server); err != nil {
		return "", nil, err
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

// Connect connects to a server and returns a client. It fails at once if no server answers or the
// login is refused; [Advice] returns what to do about that. The caller closes the client.
func Connect(ctx context.Context, o Options) (*Client, error) {
	server, options, err := o.Resolve()
	if err != nil {
		return nil, err
	}
	limit := connectTime
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline))
	}
	if limit <= 0 {
		late := context.DeadlineExceeded
		return nil, &unconnected{messages.Refuse(messages.Unavailable, "no time was left to connect to the NATS server at %s: %v", messages.Redacted(server), late), late}
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
	case Advice(err) != "":
		return nil, &unconnected{messages.Refuse(messages.Unavailable, "cannot log in to the NATS server at %s: %v", messages.Redacted(server), err), err}
	case err != nil:
		return nil, messages.Refuse(messages.Unavailable, "no NATS server answers at %s: %v", messages.Redacted(server), err)
	}
	c := New(nc, o.Root)
	c.refused, c.person = refused, o.Person
	refused.answers(c.replies)
	return c, nil
}

// unconnected is a refusal with its cause.
type unconnected struct {
	refusal *messages.Error
	cause   error
}

func (u *unconnected) Error() string { return u.refusal.Error() }

// Unwrap returns both.
func (u *unconnected) Unwrap() []error { return []error{u.refusal, u.cause} }

// Advice returns what to do about a login that a server refuses, or whose files cannot be used.
// Empty: the error is about something else.
func Advice(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	switch text := strings.ToLower(fmt.Sprint(err)); {
	case err == nil:
		return ""
	case errors.As(err, &unknown):
		return "name the CA that signed its certificate with --tlsca, or in the context"
	case errors.As(err, &name):
		return "use a host name that is in its certificate"
	case strings.Contains(text, "tls: certificate required"), strings.Contains(text, "tls: bad certificate"), strings.Contains(text, "tls: unknown certificate authority"),
		strings.Contains(text, "after tls handshake"): // as servers end it that do not take the certificate
		return "it requires a client certificate that its CA has signed: give one with --tlscert and --tlskey, or in the context"
	case errors.Is(err, nats.ErrSecureConnWanted), errors.Is(err, nats.ErrSecureConnRequired):
		return "one side requires TLS and the other does not use it: check tls:// in the URL, --tlsca, and the server's tls block"
	case errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired),
		strings.Contains(text, "authentication expired"), strings.Contains(text, "authentication revoked"): // as servers say it
		return "these credentials have expired or were revoked: get new ones"
	case errors.Is(err, nats.ErrAuthorization), strings.Contains(text, "authorization violation"):
		return "log in with --creds, --nkey, --context, or user:password@ in the URL"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), strings.Contains(text, "nkey"), strings.Contains(text, "credentials"):
		return "check that the files of --creds, --nkey, --tlsca, --tlscert and --tlskey, or of the context, exist, can be read, and hold what the option names"
	}
	return ""
}

// Close closes the client's connection, also one that was given to [New].
func (c *Client) Close() { c.nc.Close() }

// Server returns the address of the server, without a password or token.
func (c *Client) Server() string { return messages.Redacted(c.nc.ConnectedUrl()) }
