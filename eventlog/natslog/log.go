package natslog

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// Config says what a Log is made of.
type Config struct {
	// Conns are the connections to use, at least one, made by [Connect].
	// Appends are spread over them by stream. The Log does not close them.
	Conns []*nats.Conn
	// Subjects of the installation; the zero value is the default root.
	Subjects messages.Subjects
	// Replicas of streams that Open creates. Zero: as many as the streams have that
	// are there, else 1.
	Replicas int
	// SetAside are streams of the log that the server was not given, because their files are
	// damaged. Those that Open makes in their place are marked as such.
	SetAside []string
	// Doubt is called when an append finds an agent's log shorter than it was: the
	// stream should be checked. It must not block. Nil: it is not called.
	Doubt func(shard int)
	// Logger gets foreign messages and lost consumers. Nil: slog.Default.
	Logger *slog.Logger
}

const (
	// headroom is what headers and protocol may take beside a body.
	headroom = 32 << 10
	// minMessage must fit into every stream.
	minMessage = eventlog.MaxFrame + headroom
)

// Log is an event log in JetStream. Make it with [Open]. Safe for concurrent
// use. It needs no closing: it ends with its connections.
type Log struct {
	names    Names
	subjects messages.Subjects
	conns    []*conn
	limit    int // of a frame, in bytes
	chunk    int // of blobs and snapshots, in bytes
	log      *slog.Logger
	replicas int
	foreign  sync.Map // place → struct{}: reported already
	marks    marks
	doubt    func(shard int)
	// own are the newest frames that this Log has appended, by stream.
	own [LogStreams]own
	// held are the streams that nothing is appended to now.
	held [LogStreams]atomic.Bool
	// stream and prefix of the subject, by partition
	stream [messages.Partitions]string
	prefix [messages.Partitions]string
}

var (
	_ eventlog.Log  = (*Log)(nil)
	_ eventlog.Feed = (*Log)(nil)
)

// Store returns the log with what is kept beside it.
func (l *Log) Store() eventlog.Store {
	return eventlog.Store{Log: l, Blobs: l, Snapshots: l, Definitions: l}
}

// Open creates the streams that are missing, checks those that exist and returns
// the log they make up. Several nodes may open it at once. It waits half a minute,
// or until ctx ends, for a cluster that elects its leaders. An existing stream
// whose settings could lose or change what is stored is refused; the error
// lists every such setting, its value and what to change.
func Open(ctx context.Context, c Config) (*Log, error) {
	if err := checkConns(c.Conns); err != nil {
		return nil, err
	}
	if err := messages.ValidateToken("subject root", root(c.Subjects)); err != nil {
		return nil, err
	}
	l := &Log{names: NamesOf(c.Subjects), subjects: c.Subjects, limit: eventlog.MaxFrame, log: c.Logger, replicas: c.Replicas, doubt: c.Doubt}
	if l.log == nil {
		l.log = slog.Default()
	}
	for p := range messages.Partitions {
		p := messages.Partition(p)
		l.stream[p] = l.names.Log(p)
		filter := c.Subjects.LogOf(p)
		l.prefix[p] = filter[:len(filter)-1]
	}
	for _, nc := range c.Conns {
		if err := checkVersion(nc); err != nil {
			return nil, err
		}
		l.limit = min(l.limit, int(nc.MaxPayload()/2))
	}
	l.chunk = min(chunkSize, l.limit)
	js, err := jetstream.New(c.Conns[0])
	if err != nil {
		return nil, fmt.Errorf("natslog: %w", err)
	}
	err = settled(ctx, c.Conns[0], l.replicas, l.log, func(ctx context.Context) error {
		if err := checkRestored(ctx, js, l.names); err != nil {
			return err
		}
		var err error
		if l.replicas, err = replicasOf(ctx, js, l.names, c.Replicas); err != nil {
			return err
		}
		return ensure(ctx, js, append(standIns(streams(c.Subjects, l.replicas), c.SetAside), marksStream(c.Subjects, l.replicas)))
	})
	if err != nil {
		return nil, err
	}
	for _, nc := range c.Conns {
		one, err := newConn(nc)
		if err != nil {
			return nil, fmt.Errorf("natslog: %w", err)
		}
		l.conns = append(l.conns, one)
	}
	return l, nil
}

// Replicas is how many copies what the log creates has.
func (l *Log) Replicas() int { return l.replicas }

// Names are the names of the log's streams.
func (l *Log) Names() Names { return l.names }

// Limit is the largest frame that this log takes, in bytes.
func (l *Log) Limit() int { return l.limit }

// conn is the connection that serves a partition: the same for all partitions
// of a stream.
func (l *Log) conn(p messages.Partition) *conn {
	return l.conns[Shard(p)%len(l.conns)]
}

// subject is messages.Subjects.Log for one that is built often.
func (l *Log) subject(a messages.AgentID, p messages.Partition) string {
	return l.prefix[p] + a.Tenant + "." + a.Kind + "." + a.Key
}
