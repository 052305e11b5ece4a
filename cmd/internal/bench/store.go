package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/tool"
)

// Store is one embedded server, or a cluster of them, in a folder of its own, with the
// streams that a node makes there, and connections that no node uses.
type Store struct {
	Sync  string
	Conns []*nats.Conn
	JS    jetstream.JetStream
	Names natslog.Names
	// Dir is the folder. It is removed with the store.
	Dir    string
	Logger *slog.Logger
	// Replicas is how many servers keep each message. Zero: one server, which only this
	// process reaches.
	Replicas int
	// URLs are those of the servers, if others reach them.
	URLs []string

	frames []nats.Msg // those of an ordinary turn, as the log holds them
}

// connections is how many the raw figures use, as many as a node's log.
const connections = 4

// With opens a store of one server, which only this process reaches, for f.
func (l *Lab) With(ctx context.Context, mode string, f func(context.Context, *Store) error) error {
	return l.WithServers(ctx, mode, 0, f)
}

// WithServers opens a store on as many servers as it has replicas, for f.
func (l *Lab) WithServers(ctx context.Context, mode string, replicas int, f func(context.Context, *Store) error) (err error) {
	l.Say("sync %s: start the NATS servers", mode)
	l.Tune(mode)
	s := &Store{Sync: mode, Replicas: replicas, Names: natslog.NamesOf(messages.Subjects{})}
	if s.Dir, err = os.MkdirTemp(l.Folder, "store-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.Dir)) }()
	level := slog.LevelError
	if replicas > 0 {
		level++ // killed nodes are expected there
	}
	s.Logger = slog.New(slog.NewTextHandler(l.Progress, &slog.HandlerOptions{Level: level}))
	servers, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer func() {
		for _, server := range servers {
			err = errors.Join(err, server.Shutdown())
		}
	}()
	defer func() {
		for _, nc := range s.Conns {
			nc.Close()
		}
	}()
	if err := s.connect(servers); err != nil {
		return err
	}
	if err := s.sample(ctx); err != nil {
		return fmt.Errorf("read the frames of an ordinary turn: %w", err)
	}
	return f(ctx, s)
}

// start starts the servers.
func (s *Store) start(ctx context.Context) ([]*embedded.Server, error) {
	c := embedded.Config{Dir: filepath.Join(s.Dir, "data"), DontListen: s.Replicas == 0, Sync: embedded.Sync(s.Sync), Logger: s.Logger}
	if s.Replicas < 2 {
		server, err := embedded.Start(c)
		return []*embedded.Server{server}, err
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	return embedded.StartCluster(ctx, s.Replicas, c)
}

func (s *Store) connect(servers []*embedded.Server) error {
	for i := range connections {
		nc, err := servers[i%len(servers)].Connect(nats.Name("reprise bench"))
		if err != nil {
			return err
		}
		s.Conns = append(s.Conns, nc)
	}
	if s.Replicas > 0 {
		for _, server := range servers {
			s.URLs = append(s.URLs, server.ClientURL())
		}
	}
	var err error
	s.JS, err = jetstream.New(s.Conns[0], jetstream.WithDefaultTimeout(Patience))
	return err
}

// The agents that are measured, and what they are asked.
const (
	Kind         = "assistant"
	Instructions = "Be brief."
	ToolName     = "echo"
	ToolInput    = `{"text":"hi"}`
	UserInput    = "hello"
	ModelName    = "bench/two"
)

// Echo is the tool of the agents.
var Echo = tool.New(ToolName, "Say it back", tool.ReadOnly, func(_ context.Context, a struct {
	Text string `json:"text"`
}) (string, error) {
	return a.Text, nil
})

// Definition is that of the agents of a kind.
func Definition(kind string, tools ...tool.Tool) actors.Definition {
	return actors.Definition{Kind: kind, Model: ModelName, Instructions: Instructions, Tools: tools}
}

// Node starts one on the store whose agents' model is p.
func (s *Store) Node(ctx context.Context, p providers.Provider, change ...func(*cluster.Config)) (*cluster.Node, error) {
	c := cluster.Config{
		Conn: s.Conns[0], Logger: s.Logger, Version: "bench", IdleAfter: time.Hour, Replicas: s.Replicas,
		Providers: providers.Set{"bench": p}, Agents: []actors.Definition{Definition(Kind, Echo)},
	}
	for _, f := range change {
		f(&c)
	}
	return cluster.Start(ctx, c)
}

// AgentID is a worker's agent of a generation.
func AgentID(worker, generation int) messages.AgentID {
	return messages.AgentID{Tenant: messages.DefaultTenant, Kind: Kind, Key: "a" + strconv.Itoa(worker) + "-" + strconv.Itoa(generation)}
}

// workerOf is the worker in an agent's key, or -1.
func workerOf(key string) int {
	n := 0
	for i, c := range []byte(key) {
		switch {
		case i == 0 && c == 'a':
		case i > 0 && c >= '0' && c <= '9':
			n = 10*n + int(c-'0')
		case i > 1 && c == '-':
			return n
		default:
			return -1
		}
	}
	return -1
}

// Emptied removes everything from the streams of frames, inputs and snapshots.
func (s *Store) Emptied(ctx context.Context) error {
	for _, name := range append(s.Logs(), s.Names.Inbox(), s.Names.Snapshots()) {
		stream, err := s.JS.Stream(ctx, name)
		if err == nil {
			err = stream.Purge(ctx)
		}
		if err != nil {
			return fmt.Errorf("empty stream %s: %w", name, err)
		}
	}
	return natslog.BeginRecords(ctx, s.Conns[0], messages.Subjects{}, s.Replicas, nil) // else nodes take what was removed for lost
}

// Logs returns the names of the streams of frames.
func (s *Store) Logs() []string {
	var names []string
	for p := range messages.Partitions {
		name := s.Names.Log(messages.Partition(p))
		if len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	return names
}

// Lasts returns the last sequence of each stream of frames, and their sum: how many frames
// were ever appended.
func (s *Store) Lasts(ctx context.Context) (last map[string]uint64, total uint64, err error) {
	last = make(map[string]uint64)
	for _, name := range s.Logs() {
		stream, err := s.JS.Stream(ctx, name)
		if err != nil {
			return nil, 0, err
		}
		last[name] = stream.CachedInfo().State.LastSeq
		total += last[name]
	}
	return last, total, nil
}
