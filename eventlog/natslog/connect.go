package natslog

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Connect connects to a server as the log needs it: without a reconnect
// buffer, which would send old frames late, and reconnecting for ever once it
// has been connected. It fails at once if no server answers. Further options
// win over these; taking the reconnect buffer back makes [Open] refuse the
// connection. The caller closes it.
func Connect(servers string, opts ...nats.Option) (*nats.Conn, error) {
	all := append([]nats.Option{
		nats.Name("reprise"),
		nats.ReconnectBufSize(-1),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.RetryOnFailedConnect(false),
		nats.NoCallbacksAfterClientClose(),
		nats.PingInterval(10 * time.Second),
		nats.ErrorHandler(report),
	}, opts...)
	nc, err := nats.Connect(servers, all...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS at %q: %w", redacted(servers), err)
	}
	return nc, nil
}

// redacted is a list of server addresses without what may be secret in them:
// passwords, and users that may be tokens.
func redacted(servers string) string {
	list := strings.Split(servers, ",")
	for i, server := range list {
		if at := strings.LastIndexByte(server, '@'); at >= 0 {
			scheme, _, found := strings.Cut(server, "://")
			if list[i] = "xxxxx" + server[at:]; found {
				list[i] = scheme + "://" + list[i]
			}
		}
	}
	return strings.Join(list, ",")
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
