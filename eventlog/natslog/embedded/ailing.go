package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// Ailing says why the server does not store what it is given; nil: it does, or
// nothing shows otherwise. A stream that could not write once, as on a full disk,
// takes nothing more until [Server.Restart].
func (s *Server) Ailing() error {
	srv := s.now()
	if !srv.JetStreamEnabled() {
		return errors.New("JetStream was switched off, as after a write that the system did not permit")
	}
	for _, e := range srv.Healthz(&server.HealthzOptions{Details: true}).Errors {
		if e.Type == server.HealthzErrorStream && strings.Contains(e.Error, "write error") { // what else is wrong no new start mends
			return errors.New(e.Error)
		}
	}
	return nil
}

// probeSize is how much must fit before a server that could not write is started
// again: room for what waits and for the blocks that it begins.
const probeSize = 8 << 20

// Room says why nothing can be written to the folder; nil: there is room again. It
// writes a file to find out, and removes it.
func (s *Server) Room() (err error) {
	path := filepath.Join(s.cfg.Dir, "PROBE")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(path)) }()
	if _, err := f.Write(make([]byte, probeSize)); err != nil {
		return err
	}
	return f.Sync()
}

// Restart stops the server and starts it on the same folder and address. What was
// acknowledged is kept; connections break and are made again. After an error no
// server runs. After [Server.Shutdown] it starts the server that was stopped. Not
// for use at the same time as Shutdown.
func (s *Server) Restart() error {
	if err := s.stop(); err != nil {
		return fmt.Errorf("start the server again: %w", err)
	}
	if !s.lock.Locked() {
		lock, err := openFolder(s.cfg.Dir)
		if err != nil {
			return err
		}
		s.lock = lock
	}
	srv, damaged, err := run(context.Background(), s.cfg)
	if err != nil {
		return fmt.Errorf("start the server again: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.srv, s.damaged = srv, damaged
	return nil
}
