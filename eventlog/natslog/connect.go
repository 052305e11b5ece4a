package natslog

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// ErrConnect is wrapped by errors of [Connect].
var ErrConnect = errors.New("connect to NATS")

// Connect connects to a server as the log needs it: without a reconnect
// buffer, which would send old frames late, and reconnecting forever once it
// has been connected, also while its login is refused. It fails at once if no
// server answers. Further options win over these; taking the reconnect buffer
// back makes [Open] refuse the connection. The caller closes it.
func Connect(servers string, opts ...nats.Option) (*nats.Conn, error) {
	all := append([]nats.Option{
		nats.Name("reprise"),
		nats.ReconnectBufSize(-1),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), // a login that is refused twice may be accepted later
		nats.ReconnectWait(250 * time.Millisecond),
		nats.RetryOnFailedConnect(false),
		nats.NoCallbacksAfterClientClose(),
		nats.PingInterval(10 * time.Second),
		nats.ErrorHandler(report),
	}, opts...)
	if err := messages.CheckServers(servers); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConnect, err)
	}
	nc, err := nats.Connect(servers, all...)
	if err != nil {
		return nil, fmt.Errorf("%w at %q: %w", ErrConnect, messages.Redacted(servers), err)
	}
	return nc, nil
}

func report(_ *nats.Conn, sub *nats.Subscription, err error) {
	subject := ""
	if sub != nil {
		subject = sub.Subject
	}
	slog.Warn("NATS connection", "error", err, "subscription", subject)
}

func checkConns(conns []*nats.Conn) error {
	if len(conns) == 0 {
		return errors.New("natslog needs a connection at least")
	}
	for _, nc := range conns {
		if nc.Opts.ReconnectBufSize >= 0 {
			return fmt.Errorf("connection %q has a reconnect buffer, which would send old frames late: make it with natslog.Connect", nc.Opts.Name)
		}
	}
	return nil
}
