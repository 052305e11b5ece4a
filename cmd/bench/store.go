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

// store is an embedded server in a folder of its own, with the streams that a
// node makes there, and connections that no node uses.
type store struct {
	sync   string
	server *embedded.Server
	conns  []*nats.Conn
	js     jetstream.JetStream
	names  natslog.Names
	logger *slog.Logger
	// snapshotEvery is the nodes'; noIndex reports whether they keep no index.
	snapshotEvery int
	noIndex       bool
	// replicas of the streams. Zero: 1.
	replicas int
	// nowhere is a file, in which no node can keep an index.
	nowhere string
	// frames are those of an ordinary turn, as the log holds them.
	frames []frame
}

// frame is a message of the log.
type frame struct {
	header nats.Header
	data   []byte
}

// connections is how many the raw figures use, as many as a node's log.
const connections = 4

// with opens a store for f.
func (l *lab) with(ctx context.Context, mode string, f func(context.Context, *store) error) (err error) {
	l.say("sync %s: start a server", mode)
	l.Tune(mode)
	dir, err := os.MkdirTemp(l.dir, "store-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &store{sync: mode, nowhere: filepath.Join(dir, "nowhere"), names: natslog.NamesOf(messages.Subjects{}), logger: slog.New(slog.NewTextHandler(l.Progress, &slog.HandlerOptions{Level: slog.LevelError}))}
	if err := os.WriteFile(s.nowhere, nil, 0o600); err != nil {
		return err
	}
	s.server, err = embedded.Start(embedded.Config{Dir: filepath.Join(dir, "data"), DontListen: true, Sync: embedded.Sync(mode), Logger: s.logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.server.Shutdown()) }()
	defer func() {
		for _, nc := range s.conns {
			nc.Close()
		}
	}()
	for range connections {
		nc, err := s.server.Connect(nats.Name("reprise bench"))
		if err != nil {
			return err
		}
		s.conns = append(s.conns, nc)
	}
	if s.js, err = jetstream.New(s.conns[0], jetstream.WithDefaultTimeout(patience)); err != nil {
		return err
	}
	if err := s.sample(ctx); err != nil {
		return fmt.Errorf("read the frames of an ordinary turn: %w", err)
	}
	return f(ctx, s)
}

const (
	kind         = "assistant"
	instructions = "Be brief."
	toolName     = "echo"
	toolInput    = `{"text":"hi"}`
	userInput    = "hello"
	modelName    = "bench/two"
)

var echo = tool.New(toolName, "Say it back", tool.ReadOnly, func(_ context.Context, a struct {
	Text string `json:"text"`
}) (string, error) {
	return a.Text, nil
})

// node starts one on the store whose agents think with p. more are other kinds
// of agent, which use that provider too.
func (s *store) node(ctx context.Context, p providers.Provider, more ...actors.Definition) (*cluster.Node, error) {
	return cluster.Start(ctx, s.config(p, more...))
}

func (s *store) config(p providers.Provider, more ...actors.Definition) cluster.Config {
	dir := ""
	if s.noIndex {
		dir = s.nowhere // a node whose index cannot be opened works without it
	}
	return cluster.Config{
		Conn: s.conns[0], IndexDir: dir, Logger: s.logger, Version: "bench", IdleAfter: time.Hour,
		Providers: providers.Set{"bench": p},
		Agents:    append(more, actors.Definition{Kind: kind, Model: modelName, Instructions: instructions, Tools: []tool.Tool{echo}}),

		SnapshotEvery: s.snapshotEvery, Replicas: s.replicas,
	}
}

// forgetful is a node's IdleAfter where agents are to leave memory soon.
const forgetful = 100 * time.Millisecond

// rest waits until no agent is in the node's memory.
func rest(ctx context.Context, node *cluster.Node) error {
	for node.InMemory() > 0 && ctx.Err() == nil {
		sleep(ctx, forgetful/20)
	}
	return context.Cause(ctx)
}

// agentID is a worker's agent of a generation.
func agentID(worker, generation int) messages.AgentID {
	return messages.AgentID{Tenant: "default", Kind: kind, Key: "a" + strconv.Itoa(worker) + "-" + strconv.Itoa(generation)}
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

// emptied removes everything from the streams of frames, inputs and snapshots.
func (s *store) emptied(ctx context.Context) error {
	for _, name := range append(s.logs(), s.names.Inbox(), s.names.Snapshots()) {
		stream, err := s.js.Stream(ctx, name)
		if err == nil {
			err = stream.Purge(ctx)
		}
		if err != nil {
			return fmt.Errorf("empty stream %s: %w", name, err)
		}
	}
	return natslog.BeginRecords(ctx, s.conns[0], messages.Subjects{}, s.replicas, nil) // else nodes take what was removed for lost
}

// logs are the names of the streams of frames.
func (s *store) logs() []string {
	var names []string
	for p := range messages.Partitions {
		name := s.names.Log(messages.Partition(p))
		if len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	return names
}

// written is how many frames were ever appended.
func (s *store) written(ctx context.Context) (total uint64, err error) {
	for _, name := range s.logs() {
		stream, err := s.js.Stream(ctx, name)
		if err != nil {
			return 0, err
		}
		total += stream.CachedInfo().State.LastSeq
	}
	return total, nil
}
