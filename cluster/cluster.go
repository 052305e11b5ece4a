// Package cluster puts a node together: NATS (embedded or given), the event
// log, the agents, their inputs and the doors. [Start] is the whole product as
// a library.
//
// # Guarantees
//
//   - No globals, no os.Exit, no signal handlers; everything is logged to the
//     caller's logger; several nodes may run in one process.
//   - When Start returns the node answers, and agents that owed work are being
//     recovered.
//   - An agent that sleeps, or whose node has gone, is woken when its next timer
//     is due, by whichever node owns it then.
//   - A node without a wrapping key that finds the store encrypted by another ends
//     by itself.
//   - An embedded server whose disk was full is started again, on the same folder
//     and address, once there is room; if it cannot be, the node ends by itself.
//   - Close takes nothing new, stops its agents, gives its partitions up and
//     returns; what was under way goes on at the next start or at the next owner.
package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // cron lines name zones, whether the host has a database of them or not

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/cluster/inbox"
	"github.com/reprise-dev/reprise/cluster/lease"
	"github.com/reprise-dev/reprise/cluster/member"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/eventlog/sealed"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
)

// Config says what a node is made of. Of NATS, Conn and Data one is needed.
type Config struct {
	// Data is the folder of the embedded NATS server, used when neither NATS
	// nor Conn is given.
	Data string
	// Views is the folder where the node keeps the views of the fleet, a cache of
	// the log. No two nodes may share one. Empty: views in Data, or a temporary
	// folder where the server is not embedded. With encryption they are kept in
	// memory alone and built anew at each start.
	Views string
	// Listen is the embedded server's address, such as 127.0.0.1:4222. Port 0
	// takes any free port. Empty: it is reachable from inside the process only.
	Listen string
	// Sync is the embedded server's: always (default) or relaxed.
	Sync string
	// NATS is the URL of a server to use instead; NATSOptions go with it.
	NATS        string
	NATSOptions []nats.Option
	// Conn is a connection whose server and options are used instead. The node
	// opens connections of its own and leaves this one alone.
	Conn *nats.Conn
	// Root is the first token of all subjects. Empty: reprise.
	Root string
	// Replicas of the streams that the node creates. Zero: 1.
	Replicas int
	// WrappingKeys encrypt what is stored: each agent gets a key of its own, which
	// is kept wrapped by the first of these. The others are older ones, which still
	// unwrap. Empty: nothing is encrypted. A store that is encrypted does not open
	// without one of its keys. What was stored before stays as it is, and inputs
	// that are not applied yet, dead letters and definitions are never encrypted.
	WrappingKeys []sealed.Key
	// Archive is the folder that agents are written to before they are deleted
	// because of their Definition's Retain. Empty: archive, below Data.
	Archive   string
	Providers providers.Set
	Agents    []actors.Definition
	// Prices are what model calls cost, by provider/model: whole units of money,
	// in one currency of your choice, for a million tokens. A model without a
	// price costs nothing, and a limit of cost does not stop it.
	Prices map[string]messages.Price
	// PromptDecides says whether whoever may prompt agents of a kind may also
	// decide about their calls of a tool that wait for approval: they are asked on
	// the stream of their prompt. Nil: nobody may; decisions come by the command
	// subject. Permissions are by subject: who may talk to an agent may not
	// therefore approve its refunds. Called from many goroutines.
	PromptDecides func(kind, tool string) bool
	// MaxPayload is the largest result, answer or input that is kept, in bytes: what
	// is larger is a typed failure. Zero: actors.DefaultMaxPayload, 64 MiB.
	MaxPayload int
	// IdleAfter is how long an idle agent stays in memory. Zero: five minutes.
	IdleAfter time.Duration
	// SnapshotEvery is how many events an agent writes, at least, between two
	// snapshots. Zero: actors.DefaultSnapshotEvery; negative: there are none, and an
	// agent that comes into memory reads its whole log.
	SnapshotEvery int
	// Logger hears what an operator must know. Nil: slog.Default. Of warnings with
	// one text it hears a few each second, and while NATS is away none but that;
	// the others come at debug.
	Logger *slog.Logger
	// Version is what the node says of itself.
	Version string
}

// Node is a running node. Its methods are safe for concurrent use.
type Node struct {
	cfg      Config
	calm     *calm // what cfg.Logger writes to
	id       string
	subjects messages.Subjects
	server   *embedded.Server
	doors    *nats.Conn
	js       jetstream.JetStream // of doors
	conns    []*nats.Conn
	streams  *natslog.Log // what log is stored in
	log      *sealed.Log
	keys     *sealed.Keys // nil: nothing is encrypted
	views    *views
	host     *host
	owner    *owner
	// retention is set before the doors open.
	retention *retention
	members   *member.Members
	leases    *lease.Leases
	gateway   *gateway.Gateway
	client    *client.Client
	closing   sync.Once
	closers   []func() // in the order in which they were opened
	// doubts are partitions whose agents have met a newer owner.
	doubts chan messages.Partition
	// ended is closed when the node ends by itself, because of failed.
	ended   chan struct{}
	failing sync.Once
	failed  error
}

// logConns is how many connections appends are spread over.
const logConns = 4

// Start starts a node. ctx bounds the starting, not the node's life.
func Start(ctx context.Context, cfg Config) (_ *Node, err error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Root == "" {
		cfg.Root = messages.DefaultRoot
	}
	if err := messages.ValidateToken("subject root", cfg.Root); err != nil {
		return nil, err
	}
	if strings.HasPrefix(cfg.Root, "_") || cfg.Root == "agents" {
		return nil, fmt.Errorf("root %q: subjects under it belong to others; choose another first token", cfg.Root)
	}
	quiet := newCalm(cfg.Logger.Handler())
	cfg.Logger = slog.New(quiet)
	n := &Node{
		cfg: cfg, calm: quiet, id: ulid.Make().String(), subjects: messages.Subjects{Root: cfg.Root},
		doubts: make(chan messages.Partition, messages.Partitions), ended: make(chan struct{}),
	}
	defer func() {
		if err != nil {
			n.undo()
		}
	}()
	for _, step := range []func(context.Context) error{n.archives, n.connect, n.openLog, n.openViews, n.openHost, n.join, n.openDoors, n.openRetention, n.watchServer, n.watchMark} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// undo closes what was opened, newest first. Whoever comes second waits until
// it is done.
func (n *Node) undo() {
	n.closing.Do(func() {
		for i := len(n.closers) - 1; i >= 0; i-- {
			n.closers[i]()
		}
	})
}

func (n *Node) onClose(f func()) { n.closers = append(n.closers, f) }

func (n *Node) openLog(ctx context.Context) (err error) {
	n.streams, err = natslog.Open(ctx, natslog.Config{Conns: n.conns, Subjects: n.subjects, Replicas: n.cfg.Replicas, Logger: n.cfg.Logger})
	if err != nil {
		return err
	}
	if n.keys, err = n.openKeys(ctx); err != nil {
		return fmt.Errorf("encryption: %w", err)
	}
	n.log = sealed.New(n.streams, n.keys)
	return nil
}

func (n *Node) openHost(ctx context.Context) error {
	agents := &projections.Agents{}
	hub := gateway.NewHub(n.doors, n.subjects, agents, n.cfg.Logger, n.fenced)
	var err error
	if n.js, err = jetstream.New(n.doors); err != nil {
		return err
	}
	rt, err := actors.NewRuntime(ctx, actors.Config{
		Purger: &purger{js: n.js, subjects: n.subjects, letters: n.streams.Names().DeadLetters(), keys: n.shredder()},
		Send:   n.send,
		Log:    n.log, MaxPayload: n.cfg.MaxPayload, Providers: n.cfg.Providers, Definitions: n.cfg.Agents, Prices: n.cfg.Prices, Observer: hub,
		MaxFrame: n.streams.Limit() - sealed.Overhead, IdleAfter: n.cfg.IdleAfter, SnapshotEvery: n.cfg.SnapshotEvery, Logger: n.cfg.Logger,
	})
	if err != nil {
		return err
	}
	n.host = newHost(rt, n.cfg.Root, n.cfg.Logger)
	n.onClose(n.host.stop)
	in, err := inbox.Open(ctx, inbox.Config{
		Conn: n.doors, Subjects: n.subjects, Told: hub.Told, Logger: n.cfg.Logger,
		Deliver: func(ctx context.Context, d *actors.Deliver) (messages.Answer, error) {
			answer, err := n.host.ask(d.Agent, d)(ctx)
			if err == nil {
				err = n.reply(ctx, d, answer)
			}
			return answer, err
		},
	})
	if err != nil {
		return err
	}
	n.owner = (&owner{may: n.staysPlain, host: n.host, log: n.log, inbox: in, agents: agents, left: hub.Moved, logger: n.cfg.Logger}).begin()
	n.onClose(n.owner.close)
	n.retention = n.newRetention()
	n.gateway = gateway.New(gateway.Config{
		Conn: n.doors, Subjects: n.subjects, Log: n.log, Hub: hub, Kinds: rt.Kinds(), Serves: rt.Serves,
		Deliver: func(d *actors.Deliver) func(context.Context) (messages.Answer, error) { return n.host.ask(d.Agent, d) },
		Agents:  agents,
		Fleet:   n.views,
		Self:    n.id,
		OwnerOf: n.ownerOf,

		PromptDecides: n.cfg.PromptDecides,
		DeadLetters:   n.streams.Names().DeadLetters(), Inbox: n.streams.Names().Inbox(), Logger: n.cfg.Logger,
		Doctor: doctorOf(n.streams, n.log, n.cfg.WrappingKeys, actors.ExamineHeads(n.log), actors.ExamineSnapshots(n.log), n.views.examine(n.log)),
		Store: gateway.StoreFindings{
			Unsound: n.streams.Unsound, Unwritable: n.streams.Unwritable, Oldest: n.streams.Oldest, OwnerOf: n.ownerOf, Locked: n.locked, Retention: n.retention.find,
		}.Find, Encrypted: n.Encrypted(),
	})
	return nil
}

// join becomes a member and takes the partitions that are free.
func (n *Node) join(ctx context.Context) (err error) {
	hostname, _ := os.Hostname() // empty where the system has none
	self := member.Info{ID: n.id, Host: hostname, Version: n.cfg.Version, Started: time.Now().UTC()}
	if err := n.owner.watchAll(ctx); err != nil {
		return fmt.Errorf("read the heads of the agents: %w", err)
	}
	n.members, err = member.Join(ctx, member.Config{Conn: n.doors, Root: n.cfg.Root, Replicas: n.cfg.Replicas, Self: self, Logger: n.cfg.Logger})
	if err != nil {
		return fmt.Errorf("join the other nodes: %w", err)
	}
	n.onClose(func() { n.bounded(n.members.Leave) })
	n.leases, err = lease.Open(ctx, lease.Config{
		Conn: n.doors, Root: n.cfg.Root, Replicas: n.cfg.Replicas, Members: n.members, Owner: n.owner, Doubts: n.doubts, Logger: n.cfg.Logger,
	})
	if err != nil {
		return fmt.Errorf("take partitions: %w", err)
	}
	n.onClose(func() { n.bounded(n.leases.Release) })
	return n.leases.Settled(ctx)
}

// fenced hears that an agent has met a newer owner than this node.
func (n *Node) fenced(a messages.AgentID, _ messages.Epoch) {
	select {
	case n.doubts <- a.Partition():
	default: // enough doubts
	}
}

func (n *Node) bounded(f func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	f(ctx)
}

func (n *Node) openDoors(context.Context) error {
	n.onClose(n.gateway.Close)
	if err := n.gateway.Open(); err != nil {
		return fmt.Errorf("open the doors: %w", err)
	}
	n.client = client.New(n.doors, n.cfg.Root)
	return n.doors.Flush()
}

// ownerOf is the node that owns an agent's partition; empty if nobody does.
func (n *Node) ownerOf(p messages.Partition) string {
	if n.owner.epoch(p) != 0 {
		return n.id
	}
	return n.leases.Owner(p)
}

// Client talks to the cluster through this node's own connection.
func (n *Node) Client() *client.Client { return n.client }

// ID is the node's name among the members.
func (n *Node) ID() string { return n.id }

// URL is where NATS clients connect to; empty if the embedded server listens
// to nobody outside.
func (n *Node) URL() string {
	if n.server != nil {
		return n.server.ClientURL()
	}
	return n.doors.ConnectedUrlRedacted()
}

// Sync says when what is acknowledged is on disk: always, relaxed, or unknown
// for a server that is not ours.
func (n *Node) Sync() string {
	if n.server == nil {
		return "unknown"
	}
	return string(n.server.Sync())
}

// Partitions is how many partitions the node owns.
func (n *Node) Partitions() int { return n.leases.Held() }

// InMemory is how many agents are in this node's memory; the others are in its
// log alone.
func (n *Node) InMemory() int { return n.host.runtime.InMemory() }

// Ended is closed when the node ends by itself; Err says why then.
func (n *Node) Ended() <-chan struct{} { return n.ended }

// Err is why the node has ended by itself; nil: it has not.
func (n *Node) Err() error {
	select {
	case <-n.ended:
		return n.failed
	default:
		return nil
	}
}

// fail has the node end by itself. At once nothing is written any more.
func (n *Node) fail(why error) {
	n.failing.Do(func() {
		n.log.Close(why)
		n.cfg.Logger.Error("the node ends", "error", why)
		n.failed = why
		close(n.ended)
	})
}

// Close stops the node. Streams that run through it end with an error that says
// so; their turns go on at the next start or owner. More than once does nothing.
func (n *Node) Close() error {
	n.undo()
	return nil
}
