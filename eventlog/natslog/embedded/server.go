package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// Sync says when stored messages are forced to disk.
type Sync string

// The sync modes.
const (
	// SyncAlways: before each acknowledgement.
	SyncAlways Sync = "always"
	// SyncRelaxed: each second. A crash of the process loses nothing, loss of
	// power may lose the last second.
	SyncRelaxed Sync = "relaxed"
)

// Config says how to run the server.
type Config struct {
	// Dir is the folder for everything stored. It is created if it is missing.
	Dir string
	// Host to listen on. Empty: 127.0.0.1.
	Host string
	// Port to listen on. Zero: any free one.
	Port int
	// DontListen makes the server reachable from inside the process only.
	DontListen bool
	// Login is what the server wants of everyone who connects, Connect included, which
	// has it. Zero: nothing.
	Login Login
	// Insecure lets the server listen without a Login on an address that other machines
	// reach.
	Insecure bool
	// Sync mode; empty means SyncAlways.
	Sync Sync
	// MaxPayload is the largest message in bytes. Zero: 1 MiB.
	MaxPayload int
	// ServerName is how the server calls itself. Empty: reprise.
	ServerName string
	// Peers are the other servers of its cluster. Nil: it stands alone.
	Peers *Peers
	// Subjects of the installation, by which damaged files are judged; the zero value is
	// the default root.
	Subjects messages.Subjects
	// Logger gets the server's warnings and errors. Nil: slog.Default.
	Logger *slog.Logger
}

// Server is a running server. Its methods are safe for concurrent use.
type Server struct {
	cfg     Config
	lock    *flock.Flock
	exposed bool

	mu      sync.RWMutex
	srv     *server.Server
	damaged []Examined
}

const (
	relaxedInterval = time.Second
	// startTime is how long the port may take to open; the store has been
	// recovered before.
	startTime = 10 * time.Second
	// greetTime is how long a connection within the process may take: the server is
	// there, and where it is slow so is what waits for it.
	greetTime = 10 * time.Second
	// maxStore is how much may be stored: the disk's end is what counts. By itself
	// the server takes three quarters of what is free when it starts.
	maxStore = 1 << 60
)

// Start runs a server and returns once it takes connections. It fails if the
// folder is in use, of a newer format, not a folder or not writable, if the
// address is taken or would be open to everyone ([ErrExposed]), or if a stream
// is damaged that is not of the log; the error says what to do. A folder that
// was not closed in order is verified first, which takes about as long as
// reading it takes; see [Server.Damaged].
func Start(c Config) (*Server, error) { return StartContext(context.Background(), c) }

// StartContext is Start; the verification ends with ctx.
func StartContext(ctx context.Context, c Config) (_ *Server, err error) {
	if c.Sync == "" {
		c.Sync = SyncAlways
	}
	if c.Sync != SyncAlways && c.Sync != SyncRelaxed {
		return nil, fmt.Errorf("sync mode %q: want %s or %s", c.Sync, SyncAlways, SyncRelaxed)
	}
	if c.Host == "" {
		c.Host = "127.0.0.1"
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if err := c.mayListen(); err != nil {
		return nil, err
	}
	if err := c.probe(); err != nil {
		return nil, err
	}
	lock, err := openFolder(c.Dir)
	if err != nil {
		return nil, err
	}
	srv, damaged, err := run(ctx, c)
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	exposed := false
	if address, ok := srv.Addr().(*net.TCPAddr); ok {
		c.Port = address.Port // for a restart
		exposed = c.Login == (Login{}) && !address.IP.IsLoopback()
	}
	if exposed {
		c.Logger.Warn("the NATS server requires no login and listens on an address that other machines may reach: anyone who connects can read, approve and delete everything", "address", srv.Addr().String())
	}
	return &Server{cfg: c, srv: srv, exposed: exposed, damaged: damaged, lock: lock}, nil
}

// probe finds out that the address is taken before the folder is touched.
func (c Config) probe() error {
	if c.DontListen || c.Port <= 0 {
		return nil
	}
	address := net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
	if err := Free(address); err != nil {
		return fmt.Errorf("cannot listen on %s: %w; if another program uses the address, stop it or choose another with --listen", address, err)
	}
	return nil
}

// letGo is how long a process that was killed may take to let go of its address.
const letGo = time.Second

// Free returns why an address cannot be listened on, if so. One that is in use is tried
// for a second: the process that had it may just have been killed.
func Free(address string) error {
	return soon(letGo, func() error {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		return l.Close()
	})
}

// soon tries for some time until what is in use is not.
func soon(within time.Duration, try func() error) error {
	again := time.NewTicker(within / 20)
	defer again.Stop()
	for late := time.After(within); ; {
		err := try()
		if !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
		select {
		case <-again.C:
		case <-late:
			return err
		}
	}
}

// run verifies the folder and starts a server on it.
func run(ctx context.Context, c Config) (*server.Server, []Examined, error) {
	damaged, err := preflight(ctx, c)
	if err != nil {
		return nil, nil, fmt.Errorf("data folder %s: %w", c.Dir, err)
	}
	if err := opened(c.Dir); err != nil {
		return nil, nil, err
	}
	srv, err := launch(c)
	return srv, damaged, err
}

func launch(c Config) (*server.Server, error) {
	opts := &server.Options{
		ServerName: c.ServerName,
		Host:       c.Host, Port: c.Port, DontListen: c.DontListen,
		MaxPayload: int32(min(c.MaxPayload, server.MAX_PAYLOAD_MAX_SIZE)),
		JetStream:  true, StoreDir: c.Dir, JetStreamMaxStore: maxStore,
		SyncAlways: c.Sync == SyncAlways,
		NoSigs:     true,
	}
	c.Login.apply(opts)
	if opts.ServerName == "" {
		opts.ServerName = "reprise"
	}
	if opts.Port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	if c.Sync == SyncRelaxed {
		opts.SyncInterval = relaxedInterval
	}
	if err := c.Peers.apply(opts); err != nil {
		return nil, err
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("embedded NATS server: %w", err)
	}
	logs := &logger{to: c.Logger}
	srv.SetLoggerV2(logs, false, false, false)
	srv.Start()
	if srv.ReadyForConnections(startTime) && logs.fatal() == nil {
		return srv, nil
	}
	srv.Shutdown()
	srv.WaitForShutdown()
	if err := logs.fatal(); err != nil {
		return nil, fmt.Errorf("embedded NATS server: %w", err)
	}
	return nil, fmt.Errorf("the embedded NATS server took no connections within %v", startTime)
}

// Connect connects from inside the process, as natslog.Connect does. The
// connection outlives a Restart as it does a broken one.
func (s *Server) Connect(opts ...nats.Option) (*nats.Conn, error) {
	all := append([]nats.Option{nats.InProcessServer(s), nats.Timeout(greetTime)}, s.cfg.Login.options()...)
	return natslog.Connect(s.now().ClientURL(), append(all, opts...)...)
}

// InProcessConn is a way to the server that runs now; see nats.InProcessServer.
func (s *Server) InProcessConn() (net.Conn, error) { return s.now().InProcessConn() }

// now is the server that runs now.
func (s *Server) now() *server.Server {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.srv
}

// ClientURL is where clients outside the process connect to; empty if the
// server does not listen.
func (s *Server) ClientURL() string {
	if s.now().Addr() == nil {
		return ""
	}
	return s.now().ClientURL()
}

// SyncInterval is how long what was acknowledged may be kept from the disk. Zero: it is
// there before.
func (s *Server) SyncInterval() time.Duration {
	if s.cfg.Sync == SyncRelaxed {
		return relaxedInterval
	}
	return 0
}

// Sync is the mode in force.
func (s *Server) Sync() Sync { return s.cfg.Sync }

// stop stops the server in order.
func (s *Server) stop() error {
	s.now().Shutdown()
	s.now().WaitForShutdown()
	if !s.lock.Locked() { // it was stopped before
		return nil
	}
	return closed(s.cfg.Dir)
}

// Shutdown stops the server, waits until everything is on disk and releases
// the folder. Close the connections before. More than once does nothing.
func (s *Server) Shutdown() error {
	if err := s.stop(); err != nil {
		return err
	}
	if err := s.lock.Unlock(); err != nil {
		return fmt.Errorf("give back the folder: %w", err)
	}
	return nil
}
