//go:build unix

package clustertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// serverRole is a NATS server.
type serverRole struct {
	Name   string
	Dir    string
	Port   int
	Route  int   // its port for other servers
	Routes []int // of all of the cluster; empty: it stands alone
	Sync   bool  // each message is on disk before it is acknowledged
}

// run is the process of a server.
func (r *serverRole) run(stop <-chan os.Signal) error {
	opts := &server.Options{
		ServerName: r.Name, Host: "127.0.0.1", Port: r.Port, NoSigs: true,
		JetStream: true, StoreDir: r.Dir, JetStreamMaxStore: 1 << 40, JetStreamMaxMemory: 256 << 20, SyncAlways: r.Sync,
	}
	if len(r.Routes) > 0 {
		// NoAdvertise: no client learns of a way around its wire.
		opts.Cluster = server.ClusterOpts{Name: "clustertest", Host: "127.0.0.1", Port: r.Route, NoAdvertise: true}
		for _, port := range r.Routes {
			opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats-route", Host: address(port)})
		}
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	srv.SetLoggerV2(serverLog{slog.New(slog.NewTextHandler(os.Stderr, nil))}, false, false, false)
	srv.Start()
	if !srv.ReadyForConnections(30 * time.Second) {
		return errors.New("the server takes no connections")
	}
	if err := say(r.Name); err != nil {
		return err
	}
	<-stop
	srv.Shutdown()
	srv.WaitForShutdown()
	return nil
}

// serverLog passes the server's log to slog, without debug and trace messages.
type serverLog struct{ to *slog.Logger }

func (l serverLog) Noticef(format string, v ...any) { l.to.Info(fmt.Sprintf(format, v...)) }
func (l serverLog) Warnf(format string, v ...any)   { l.to.Warn(fmt.Sprintf(format, v...)) }
func (l serverLog) Errorf(format string, v ...any)  { l.to.Error(fmt.Sprintf(format, v...)) }
func (l serverLog) Debugf(string, ...any)           {}
func (l serverLog) Tracef(string, ...any)           {}

// Fatalf ends the process: the server continues as if it had ended.
func (l serverLog) Fatalf(format string, v ...any) {
	l.to.Error(fmt.Sprintf(format, v...))
	os.Exit(1)
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", fmt.Sprint(port)) }

// Server is a NATS server of a [World]. Its methods are for the test's goroutine.
type Server struct {
	w    *World
	role serverRole
	at   *process
}

// begin starts the process and returns when it takes connections.
func (s *Server) begin() error {
	p, err := spawn(role{Server: &s.role}, filepath.Join(s.w.dir, s.role.Name+".log"))
	if err != nil {
		return err
	}
	s.at = p
	if _, ok := <-p.said; !ok {
		p.kill()
		return fmt.Errorf("server %s ended at once: %s", s.role.Name, p.tail())
	}
	return nil
}

// Start starts a server that was killed, on its folder and ports, and returns when
// it takes connections.
func (s *Server) Start() {
	s.w.t.Helper()
	s.w.note("%s starts", s.role.Name)
	s.w.ok(s.begin())
}

// Kill ends the server as loss of power would.
func (s *Server) Kill() {
	s.w.note("%s is killed", s.role.Name)
	s.at.kill()
}

// Freeze stops the server without its knowing, until Thaw.
func (s *Server) Freeze() {
	s.w.note("%s is frozen", s.role.Name)
	s.at.signal(syscall.SIGSTOP)
}

// Thaw undoes Freeze.
func (s *Server) Thaw() {
	s.w.note("%s is thawed", s.role.Name)
	s.at.signal(syscall.SIGCONT)
}

// Leads is the server that leads a stream, waiting until one does.
func (w *World) Leads(stream string) *Server {
	w.t.Helper()
	var leads *Server
	w.Eventually("somebody leads "+stream, func() bool {
		info, err := insist(w.ctx, func(ctx context.Context) (jetstream.Stream, error) { return w.js.Stream(ctx, stream) })
		if err != nil || info.CachedInfo().Cluster == nil {
			return false
		}
		for _, s := range w.servers {
			if s.role.Name == info.CachedInfo().Cluster.Leader {
				leads = s
			}
		}
		return leads != nil
	})
	w.note("%s leads %s", leads.role.Name, stream)
	return leads
}

// URL is where the server's clients connect to without a wire.
func (s *Server) URL() string { return "nats://" + address(s.role.Port) }

// lowest and highest port that a server takes: below those that the kernel gives to
// connections, so that one that is down finds its own free again.
const lowest, highest = 20000, 32000

// given are the ports that worlds of this program were given: that of a server that is
// down is free to be listened on, and is no other's.
var given sync.Map

// ports finds so many that are free.
func ports(n int) ([]int, error) {
	var found []int
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	for tries := 0; len(found) < n; tries++ {
		if tries > 100*n {
			return nil, errors.New("no free ports")
		}
		port := lowest + rand.IntN(highest-lowest)
		l, err := net.Listen("tcp", address(port))
		if err == nil {
			held = append(held, l)
			if _, before := given.LoadOrStore(port, true); !before {
				found = append(found, port)
			}
		}
	}
	return found, nil
}

// startServers starts n servers that know one another; on a conflict of ports with
// others it tries again.
func (w *World) startServers(n int, sync bool) (err error) {
	for range 5 {
		if err = w.tryServers(n, sync); err == nil {
			return nil
		}
		for _, s := range w.servers {
			if s.at != nil {
				s.at.kill()
			}
		}
		w.servers = nil
	}
	return err
}

func (w *World) tryServers(n int, sync bool) error {
	free, err := ports(2 * n)
	if err != nil {
		return err
	}
	for i := range n {
		r := serverRole{Name: fmt.Sprintf("nats-%d", i), Port: free[2*i], Route: free[2*i+1], Sync: sync}
		r.Dir = filepath.Join(w.dir, r.Name)
		if n > 1 {
			for j := range n {
				r.Routes = append(r.Routes, free[2*j+1])
			}
		}
		w.servers = append(w.servers, &Server{w: w, role: r})
	}
	failed := make(chan error, n)
	for _, s := range w.servers {
		go func() { failed <- s.begin() }()
	}
	var all error
	for range n {
		all = errors.Join(all, <-failed)
	}
	return all
}
