package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

// servers are NATS servers of this process that nodes reach over TCP, with the
// streams that a node makes there.
type servers struct {
	*store
	dir  string
	urls []string // of each server
}

// forming bounds how long servers may take to find one another.
const forming = 30 * time.Second

// withServers opens a store on as many servers as it has replicas, for f.
func (l *lab) withServers(ctx context.Context, mode string, replicas int, f func(context.Context, *servers) error) (err error) {
	l.say("sync %s, R%d: start the NATS servers", mode, replicas)
	l.Tune(mode)
	dir, err := os.MkdirTemp(l.dir, "servers-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &servers{dir: dir, store: &store{
		sync: mode, replicas: replicas, nowhere: filepath.Join(dir, "nowhere"), noIndex: true, names: natslog.NamesOf(messages.Subjects{}),
		logger: slog.New(slog.NewTextHandler(l.Progress, &slog.HandlerOptions{Level: slog.LevelError + 1})), // killed nodes are expected here
	}}
	if err := os.WriteFile(s.nowhere, nil, 0o600); err != nil {
		return err
	}
	all, err := s.run(ctx)
	if err != nil {
		return err
	}
	defer func() {
		for _, server := range all {
			err = errors.Join(err, server.Shutdown())
		}
	}()
	for _, server := range all {
		s.urls = append(s.urls, server.ClientURL())
	}
	defer func() {
		for _, nc := range s.conns {
			nc.Close()
		}
	}()
	if err := s.connect(); err != nil {
		return err
	}
	if err := s.sample(ctx); err != nil {
		return fmt.Errorf("read the frames of an ordinary turn: %w", err)
	}
	return f(ctx, s)
}

// run starts one server, or a cluster of them.
func (s *servers) run(ctx context.Context) ([]*embedded.Server, error) {
	c := embedded.Config{Dir: filepath.Join(s.dir, "data"), Sync: embedded.Sync(s.sync), Logger: s.logger}
	if s.replicas == 1 {
		server, err := embedded.Start(c)
		return []*embedded.Server{server}, err
	}
	ctx, cancel := context.WithTimeout(ctx, forming)
	defer cancel()
	return embedded.StartCluster(ctx, s.replicas, c)
}

func (s *servers) connect() (err error) {
	for i := range connections {
		nc, err := natslog.Connect(s.urls[i%len(s.urls)], nats.Name("reprise bench"))
		if err != nil {
			return err
		}
		s.conns = append(s.conns, nc)
	}
	s.js, err = jetstream.New(s.conns[0], jetstream.WithDefaultTimeout(patience))
	return err
}

// beside makes a stream like those of the log that no node looks at, for what is
// measured raw while nodes run.
func (s *servers) beside(ctx context.Context) (stream string, err error) {
	const name = "BENCH"
	_, err = s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: name, Subjects: []string{besideSubject}, Replicas: s.replicas, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew,
	})
	return name, err
}

const besideSubject = "bench.beside"
