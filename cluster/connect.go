package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
)

// connect starts the embedded server, if there is to be one, and connects.
func (n *Node) connect(ctx context.Context) error {
	dial, err := n.dialer(ctx)
	if err != nil {
		return err
	}
	for i := range logConns + 1 {
		nc, err := dial(nats.Name(fmt.Sprintf("reprise %s %d", n.id, i)), nats.ErrorHandler(n.connectionError))
		if err != nil {
			return err
		}
		n.onClose(nc.Close)
		if i == logConns {
			n.nc = nc
			n.limiter.watch(nc)
		} else {
			n.conns = append(n.conns, nc)
		}
	}
	return nil
}

func (n *Node) connectionError(_ *nats.Conn, sub *nats.Subscription, err error) {
	subject := ""
	if sub != nil {
		subject = sub.Subject
	}
	n.cfg.Logger.Warn("NATS connection", "error", err, "subscription", subject)
}

type dialer func(...nats.Option) (*nats.Conn, error)

// likeConn returns a dialer that connects as the caller's connection did, but without its
// callbacks: they are for that connection, not ours.
func likeConn(opts nats.Options) dialer {
	opts.ReconnectBufSize, opts.AllowReconnect, opts.MaxReconnect, opts.RetryOnFailedConnect = -1, true, -1, false
	opts.ReconnectWait, opts.NoEcho, opts.IgnoreAuthErrorAbort = 250*time.Millisecond, false, true
	opts.ClosedCB, opts.DisconnectedErrCB, opts.ConnectedCB, opts.ReconnectedCB = nil, nil, nil, nil
	opts.ReconnectErrCB, opts.DiscoveredServersCB, opts.LameDuckModeHandler = nil, nil, nil
	return func(more ...nats.Option) (*nats.Conn, error) {
		mine := opts
		for _, o := range more {
			if err := o(&mine); err != nil {
				return nil, err
			}
		}
		return mine.Connect()
	}
}

func (n *Node) dialer(ctx context.Context) (dialer, error) {
	cfg := n.cfg
	switch {
	case cfg.Conn != nil:
		return likeConn(cfg.Conn.Opts), nil
	case cfg.NATS != "":
		return func(more ...nats.Option) (*nats.Conn, error) {
			return natslog.Connect(cfg.NATS, append(more, cfg.NATSOptions...)...)
		}, nil
	case cfg.Data == "":
		return nil, errors.New("a node needs a NATS server: set NATS to its URL, or Data to a folder for an embedded one")
	}
	ec := embedded.Config{
		Dir: cfg.Data, Sync: embedded.Sync(cfg.Sync), Subjects: n.subjects, Logger: cfg.Logger,
		DontListen: cfg.Listen == "", Login: cfg.Login, Insecure: cfg.Insecure,
	}
	if cfg.Listen != "" {
		host, port, err := net.SplitHostPort(cfg.Listen)
		if err == nil {
			ec.Port, err = strconv.Atoi(port)
		}
		if err != nil {
			return nil, fmt.Errorf("listen address %q: write host:port, such as 127.0.0.1:4222", cfg.Listen)
		}
		ec.Host = host
	}
	server, err := embedded.StartContext(ctx, ec)
	if err != nil {
		return nil, err
	}
	n.server = server
	n.onClose(func() { _ = server.Shutdown() })
	return server.Connect, nil
}

// askSync finds out when what is acknowledged is on disk. Only a login that is refused
// is an error.
func (n *Node) askSync(ctx context.Context) error {
	n.sync = natslog.SyncUnknown
	switch {
	case n.server != nil:
		n.sync = string(n.server.Sync())
		return nil
	case n.cfg.System == nil:
		return nil
	}
	nc, err := natslog.Connect(cmp.Or(n.cfg.NATS, n.nc.ConnectedUrl()), append([]nats.Option{nats.Name("reprise " + n.id + " system"), nats.ErrorHandler(n.connectionError)}, n.cfg.System...)...)
	if err != nil {
		return fmt.Errorf("system account: %w", err)
	}
	defer nc.Close()
	if n.sync, err = natslog.AskSync(ctx, nc); err != nil {
		n.cfg.Logger.Warn("when the servers force to disk what they acknowledge is unknown", "error", err)
	}
	return nil
}

// syncInterval is how long a server may keep what it acknowledged from the disk. Zero:
// not at all, or it is not known.
func (n *Node) syncInterval() time.Duration {
	if n.server != nil {
		return n.server.SyncInterval()
	}
	every, err := time.ParseDuration(strings.TrimPrefix(n.sync, "every "))
	if err != nil {
		return 0
	}
	return every
}

// FewerCopies is the least number of copies that a stream or bucket of the store has, if
// that is less than what was asked for; else 0. Alone reports whether the server is in no
// cluster, and can keep no more.
func (n *Node) FewerCopies(ctx context.Context) (least int, alone bool, err error) {
	all, err := n.streams.Copies(ctx)
	least, alone = n.cfg.Replicas, true
	for _, c := range all {
		if c.Err == nil {
			least = min(least, c.Replicas)
		}
		alone = alone && c.Err == nil && !c.Clustered
	}
	if least == n.cfg.Replicas {
		least = 0
	}
	return least, alone, err
}
