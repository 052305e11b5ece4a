// Package cluster runs a node inside a program: NATS (embedded or given), the event log, the agents,
// their inputs and the endpoints. Begin with [Start]. A program describes its agents by
// actors.Definition, tools by package tool and its models by packages such as openai; it talks to
// agents by the [client.Client] that [Node.Client] returns.
//
// # Guarantees
//
//   - No globals, no os.Exit, no signal handlers; everything is logged to the
//     caller's logger; several nodes may run in one process.
//   - When Start returns, the node answers, and agents with unfinished work are being
//     recovered.
//   - An agent that is not in memory, or whose node is gone, is activated when its next timer
//     is due, by the node that owns it then.
//   - A node without a wrapping key ends by itself if another node has encrypted the store.
//   - An embedded server whose disk was full is started again, on the same folder
//     and address, once there is room; if that fails, the node ends by itself.
//   - Close accepts nothing new, stops the agents of the node, hands its partitions over and
//     returns. Unfinished work continues at the next start or at the next owner.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
	_ "time/tzdata" // cron lines name zones, whether the host has a database of them or not

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster/archive"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/cluster/gateway/metrics"
	"github.com/reprise-dev/reprise/cluster/inbox"
	"github.com/reprise-dev/reprise/cluster/integrity"
	"github.com/reprise-dev/reprise/cluster/ownership"
	"github.com/reprise-dev/reprise/cluster/traces"
	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/eventlog/prefix"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/memory"
)

// Config is what a node is made of. One of Data, NATS and Conn is needed.
type Config struct {
	// Data is the folder of the embedded NATS server, used when neither NATS
	// nor Conn is given.
	Data string
	// IndexDir is the folder of the index of all agents, a cache of the log. Each node needs
	// one of its own. Empty: index in Data, or a temporary folder if the server is not embedded.
	// With encryption the index is kept in memory only, and built again at each start.
	IndexDir string
	// Listen is the embedded server's address, such as 127.0.0.1:4222, for other programs:
	// commands reach the node by reprise --nats nats://127.0.0.1:4222. Port 0 takes any free
	// port. Empty: the server is reachable from inside the process only.
	Listen string
	// Login is what the embedded server requires from clients that connect. Zero: nothing, and
	// every user and program of this machine may do everything.
	Login embedded.Login
	// Insecure allows a Listen address that other machines may reach, without a Login. Without
	// it, Start fails with embedded.ErrExposed.
	Insecure bool
	// Sync is when the embedded server writes to the disk: always (default) or relaxed.
	Sync string
	// NATS is the URL of a server to use instead of an embedded one, or those of several with
	// commas between them, each with its own user:password@ if that is the login. NATSOptions
	// are options of these connections.
	NATS        string
	NATSOptions []nats.Option
	// System are options that log in to the system account of that server, to find out when it
	// writes to the disk what it acknowledges. Nil: that stays unknown.
	System []nats.Option
	// Conn is a connection whose server and options are used instead. The node opens
	// connections of its own, and neither uses nor closes this one.
	Conn *nats.Conn
	// Root is the first token of all subjects. Empty: reprise.
	Root string
	// Replicas is the number of copies of the streams that the node creates. Zero: as many as the
	// store already has, else 1.
	Replicas int
	// WrappingKeys encrypt what is stored: each agent gets a key of its own, which is stored
	// wrapped by the first of these. The others are older ones, which can still unwrap. Empty:
	// nothing is encrypted. An encrypted store does not open without one of its keys. What was
	// stored before stays as it is. Inputs that are not applied yet, dead letters and
	// definitions are never encrypted.
	WrappingKeys []encrypted.Key
	// Archive is the folder that agents are written to before they are deleted
	// because of their Definition's Retain. Empty: archive, below Data.
	Archive string
	// Providers are the providers of models, by the name before the slash of a model.
	Providers providers.Set
	// Agents are the kinds of agents of this node.
	Agents []actors.Definition
	// Prices are the prices of a million tokens, by provider/model, in a currency of your
	// choice. A model without a price costs nothing; Start refuses it for an agent with a limit
	// of cost.
	Prices map[string]messages.Price
	// PromptDecides reports whether a client that prompts an agent of a kind may also approve its
	// calls of a tool: the stream of the prompt then asks the client. Nil: it may not, and
	// decisions come only by the command subject, which has NATS permissions of its own.
	// Called from many goroutines.
	PromptDecides func(kind, tool string) bool
	// MaxPayload is the size of the largest result, answer or input, in bytes. A larger one fails
	// as too_large or is refused. Zero: actors.DefaultMaxPayload, 64 MiB.
	MaxPayload int
	// PayloadMemory is how many bytes of memory the requests to models, their answers and the
	// outputs of tools may take together while their calls run. A byte of payload counts as four.
	// Calls with less than 256 KiB are not counted. A call that does not fit waits up to five
	// minutes and then fails as no_memory. A call with more payload than an eighth of
	// PayloadMemory fails at once. Zero: a quarter of the memory that the process may use.
	PayloadMemory int64
	// IdleAfter is how long an idle agent stays in memory. Zero: five minutes.
	IdleAfter time.Duration
	// MaxAgents and AgentMemory bound the agents in memory by their number and by the bytes that
	// they are estimated to take. Beyond either, idle agents leave memory, least recently used
	// first; agents that work stay. Zero: an eighth of the memory that the process may use, and
	// an agent for each 8 KiB of that.
	MaxAgents   int
	AgentMemory int64
	// SnapshotEvery is the least number of events between two snapshots of an agent. Zero:
	// actors.DefaultSnapshotEvery; negative: there are none, and each activation reads the whole
	// log of the agent.
	SnapshotEvery int
	// HTTP is the address, host:port, of /healthz, /readyz and /metrics, which require no login.
	// Port 0 takes any free port. Empty: they are not served.
	HTTP string
	// HTTPHosts are the host names, beside localhost, with which that address may be requested.
	// A request with another one is refused, except for /healthz and /readyz. Empty: none on the
	// loopback, any elsewhere.
	HTTPHosts []string
	// Telemetry sends the spans of turns to a collector of OpenTelemetry. Zero: none are sent.
	Telemetry Telemetry
	// Name is the name of the node in lists and for drain. Empty: the name of the machine.
	Name string
	// RecoverRate is how many model calls that were lost with a node are made again in a second
	// by the node that takes over. Zero: actors.DefaultRecoverRate; negative: all at once.
	RecoverRate int
	// Logger receives the log of the node. Nil: slog.Default. Warnings with the same text are
	// limited to a few, then one every ten seconds. While NATS cannot be reached, the only
	// warning is about that; others are logged at debug level.
	Logger *slog.Logger
	// DrainLimit is how long Close may take to hand the node's partitions over, and how long Drain
	// waits in each partition for tools with OnUnknown Pause and Reconcile. Calls that take
	// longer are cut off. Zero: 20 seconds; negative: Close and Drain do not wait.
	DrainLimit time.Duration
	// Version is the version of the program, for lists of nodes and metrics.
	Version string
}

// Node is a running node. Its methods are safe for concurrent use.
type Node struct {
	cfg       Config
	limiter   *limiter // what cfg.Logger writes to
	id        string
	subjects  messages.Subjects
	server    *embedded.Server
	ailing    atomic.Pointer[error] // why server stores nothing; nil: not known
	sync      string
	nc        *nats.Conn          // of the endpoints
	js        jetstream.JetStream // of nc
	conns     []*nats.Conn
	streams   *natslog.Log // what log is stored in
	log       *encrypted.Log
	keys      *encrypted.Keys // nil: nothing is encrypted
	index     *agentsIndex
	integrity *integrity.Monitor
	kinds     *kinds
	host      *host
	broker    *gateway.Broker
	owner     *owner
	retention *archive.Retention
	http      *gateway.HTTP // nil: none
	metrics   *metrics.Metrics
	traces    *traces.Exporter // nil: no spans are sent
	memory    *memory.Bound
	inbox     *inbox.Inbox
	agents    *projections.Agents
	started   time.Time
	// up reports whether all of the node is there, ending whether it stops.
	up, ending atomic.Bool
	ownership  *ownership.Ownership
	gateway    *gateway.Gateway
	client     *client.Client
	leaving    sync.Once
	closing    sync.Once
	closers    []func() // in the order in which they were opened
	// life is canceled by end when the node ends by itself, with the cause.
	life    context.Context
	end     context.CancelCauseFunc
	failing sync.Once
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
	if err := messages.ValidateRoot(cfg.Root); err != nil {
		return nil, err
	}
	if cfg.PayloadMemory < 0 {
		return nil, fmt.Errorf("PayloadMemory is %d: write how many bytes payloads in flight may take, or 0 for a quarter of the machine's memory", cfg.PayloadMemory)
	}
	for _, d := range cfg.Agents {
		if err := d.ValidatePrices(cfg.Prices); err != nil {
			return nil, err
		}
	}
	if cfg.DrainLimit == 0 {
		cfg.DrainLimit = 20 * time.Second
	}
	id := ulid.Make().String()
	limited := newLimiter(cfg.Logger.With("node", id).Handler())
	cfg.Logger = slog.New(limited)
	n := &Node{
		cfg: cfg, limiter: limited, id: id, subjects: messages.Subjects{Root: cfg.Root}, agents: &projections.Agents{}, started: time.Now().UTC(),
	}
	n.life, n.end = context.WithCancelCause(context.Background())
	n.kinds = &kinds{self: n.id}
	n.memory = memory.New(cmp.Or(cfg.PayloadMemory, memory.Default()))
	defer func() {
		if err != nil {
			n.undo()
		}
	}()
	for _, step := range []func(context.Context) error{n.openHTTP, n.archives, n.connect, n.openLog, n.askSync, n.openIntegrity, n.openIndex, n.openHost, n.openOwner, n.openGateway, n.join, n.openEndpoints, n.openControl, n.openRetention, n.watchServer, n.watchMark} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	n.up.Store(true)
	context.AfterFunc(n.life, n.undo) // all that is to be closed is known
	return n, nil
}

// undo closes what was opened, newest first. A second call waits until it is done.
func (n *Node) undo() {
	n.closing.Do(func() {
		n.ending.Store(true)
		for i := len(n.closers) - 1; i >= 0; i-- {
			n.closers[i]()
		}
	})
}

func (n *Node) onClose(f func()) { n.closers = append(n.closers, f) }

// background runs f until the node is closed or ends by itself.
func (n *Node) background(f func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(n.life)
	var running sync.WaitGroup
	running.Go(func() { f(ctx) })
	n.onClose(func() { cancel(); running.Wait() })
}

// ticks yields the time at each interval until ctx ends.
func ticks(ctx context.Context, every time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for tick := time.Tick(every); ; {
			select {
			case <-tick: // which may have been due a while ago
				if !yield(time.Now()) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// lookEvery is how often a node looks at what it is not notified of.
const lookEvery = time.Second

func (n *Node) openLog(ctx context.Context) (err error) {
	n.integrity = integrity.New(n.server, n.agents, n.cfg.Logger)
	n.streams, err = natslog.Open(ctx, natslog.Config{Conns: n.conns, Subjects: n.subjects, Replicas: n.cfg.Replicas, SetAside: n.integrity.Unopened(), Doubt: n.integrity.Doubt, Logger: n.cfg.Logger})
	if err != nil {
		return err
	}
	n.cfg.Replicas = n.streams.Replicas()
	if n.keys, err = await(ctx, n, n.openKeys); err != nil {
		return fmt.Errorf("encryption: %w", err)
	}
	n.log = encrypted.New(n.streams.Store(), n.streams, n.keys)
	return nil
}

// openIntegrity checks the streams of the log and begins to watch over them.
func (n *Node) openIntegrity(ctx context.Context) error {
	err := n.integrity.Open(ctx, integrity.Config{Log: n.streams, Conns: n.conns, Subjects: n.subjects, SyncInterval: n.syncInterval()})
	if err == nil {
		n.onClose(func() { n.integrity.Close(func() bool { return n.server != nil && n.connected() }) })
	}
	return err
}

// peers returns what endpoints know of the other nodes.
func (n *Node) peers() gateway.Nodes {
	nodes := gateway.Nodes{
		Self: n.id, OwnerOf: n.ownerOf, Router: n.host.router,
		Hosts: func(p messages.Partition) bool { return n.host.hosted(p) != nil },
		Epoch: func(p messages.Partition) messages.Epoch { return n.owner.epoch(p) },
		Alive: func(node string) bool { return n.ownership.Alive(node) },
	}
	if !n.Encrypted() { // what is published is encrypted, too
		nodes.Published = natslog.Published
	}
	return nodes
}

// openHost makes the actor system, and what commits and commands go through.
func (n *Node) openHost(ctx context.Context) error {
	n.host = newHost(n.nc, n.subjects, n.cfg.Logger)
	n.onClose(n.host.stop)
	if err := n.openTraces(); err != nil {
		return err
	}
	router := n.host.router
	broker := gateway.NewBroker(n.nc, n.subjects, n.agents, n.cfg.Logger, n.fenced, n.peers())
	router.local, router.owner = broker, n.ownerOf
	err := router.open()
	if err != nil {
		return fmt.Errorf("listen to other nodes: %w", err)
	}
	if n.js, err = jetstream.New(n.nc); err != nil {
		return err
	}
	rt, err := await(ctx, n, func(ctx context.Context) (*actors.Runtime, error) {
		return actors.NewRuntime(ctx, actors.Config{
			Purger: &purger{js: n.js, subjects: n.subjects, letters: n.streams.Names().DeadLetters(), keys: n.shredder()},
			Send:   n.send,
			MayAct: func() bool { return n.ownership.Trusted() }, Evidence: n.integrity, ElectionTimeout: n.integrity.ElectionTimeout(), Lease: lateAfter,
			Store: n.metrics.Store(n.log.Store()), MaxPayload: n.cfg.MaxPayload, Memory: n.memory, Node: n.id, Host: hostname(), Providers: n.cfg.Providers, Definitions: n.cfg.Agents, Prices: n.cfg.Prices, Observer: indexed{n.metrics.Observer(n.traced(broker)), n.index},
			MaxFrame: n.streams.Limit() - encrypted.Overhead, IdleAfter: n.cfg.IdleAfter, MaxAgents: n.cfg.MaxAgents, AgentMemory: n.cfg.AgentMemory, SnapshotEvery: n.cfg.SnapshotEvery, RecoverRate: n.cfg.RecoverRate, Logger: n.cfg.Logger,
		})
	})
	if err != nil {
		return err
	}
	n.host.runtime, n.broker = rt, broker
	n.background(rt.Watch)
	return nil
}

// openOwner makes what owning a partition takes. Nothing is owned before the node has joined.
func (n *Node) openOwner(ctx context.Context) (err error) {
	rt, router := n.host.runtime, n.host.router
	inputs := inbox.Config{
		Conn: n.nc, Subjects: n.subjects, Told: n.broker.Told, Logger: n.cfg.Logger,
		Serves: func(kind string) bool { return rt.Serves(kind) == nil }, KnownElsewhere: n.kinds.expected,
		Deliver: func(ctx context.Context, d *actors.Deliver) (messages.Answer, error) {
			answer, err := n.host.ask(ctx, d.Agent, d)
			if err == nil {
				err = n.reply(ctx, d, answer)
			}
			return answer, err
		},
	}
	n.inbox, err = await(ctx, n, func(ctx context.Context) (*inbox.Inbox, error) { return inbox.Open(ctx, inputs) })
	if err != nil {
		return err
	}
	n.owner = (&owner{may: n.staysPlain, check: n.integrity.Prepare, damaged: n.integrity.Damaged, host: n.host, log: n.log, index: n.index, inbox: n.inbox, agents: n.agents, came: n.metrics.Taken, left: func(p messages.Partition) { n.metrics.Lost(p); n.broker.Moved(p); n.integrity.Left(p) }, logger: n.cfg.Logger}).begin()
	n.onClose(n.owner.close)
	n.ownership = ownership.New(ownership.Config{
		JetStream: n.js, Root: n.cfg.Root, Replicas: n.cfg.Replicas, Owner: n.owner, Moved: n.moved, DrainLimit: n.cfg.DrainLimit, Logger: n.cfg.Logger,
		Self: ownership.Info{ID: n.id, Host: n.Name(), Version: n.cfg.Version, Started: n.started, Kinds: rt.Kinds()},
	})
	router.trusted, router.there, router.steady = n.ownership.Trusted, n.ownership.There, n.ownership.Steady
	return nil
}

// openGateway makes the endpoints. They receive nothing yet.
func (n *Node) openGateway(context.Context) error {
	n.client = client.New(n.nc, n.cfg.Root)
	joined := prefix.New(n.log.Store())
	n.retention = n.newRetention()
	n.gateway = gateway.New(gateway.Config{
		Conn: n.nc, Subjects: n.subjects, Log: joined, Blobs: joined, Snapshots: n.log, Definitions: n.log.Store(), Broker: n.broker, Kinds: n.host.runtime.Kinds(), Serves: n.serves,
		Current: n.host.runtime.Current,
		Deliver: n.host.router.deliver, Whole: n.integrity.WholeNow,
		Agents:  n.agents,
		Index:   n.index,
		Nodes:   n.peers(),
		Cluster: members{n},

		PromptDecides: n.cfg.PromptDecides,
		DeadLetters:   n.streams.Names().DeadLetters(), Inbox: n.streams.Names().Inbox(), Logger: n.cfg.Logger,
		Doctor: integrity.DoctorOf(n.streams, n.log, n.cfg.WrappingKeys, actors.CheckHeads(joined), actors.CheckSnapshots(joined), integrity.CheckPrefixes(n.log.Store()), n.index.examine(n.log)),
		Store: &gateway.StoreFindings{
			Unsound: n.streams.Unsound, Lost: n.integrity.Find, Unwritable: n.streams.Unwritable, Oldest: n.streams.Oldest,
			Locked: n.locked, Copies: n.integrity.FindCopies, Retention: n.retention.Find,
		},
		Scrubbed: n.integrity.Scrubbed, Encrypted: n.Encrypted(),
		Requested: n.host.runtime.Requested,
	})
	return nil
}

// join becomes a member and takes the partitions that are free.
func (n *Node) join(ctx context.Context) error {
	n.integrity.Follow(owned{n.owner, n.ownership})
	if err := natslog.Await(ctx, n.nc, n.cfg.Logger, n.ownership.Join); err != nil {
		return fmt.Errorf("join the other nodes: %w", err)
	}
	n.onClose(n.ownership.Close)
	n.kinds.follow(n.ownership.List)
	n.background(func(ctx context.Context) {
		for now := range ticks(ctx, lookEvery) {
			n.kinds.look(now)
		}
	})
	return n.ownership.Settled(ctx)
}

// await opens something that asks JetStream, again while that does not answer.
func await[T any](ctx context.Context, n *Node, open func(context.Context) (T, error)) (got T, err error) {
	err = natslog.Await(ctx, n.nc, n.cfg.Logger, func(ctx context.Context) error {
		got, err = open(ctx)
		return err
	})
	return got, err
}

// serves refuses a kind that no member defines.
func (n *Node) serves(kind string) error {
	if n.kinds.elsewhere(kind) {
		return nil
	}
	return n.host.runtime.Serves(kind)
}

// Name returns the name of the node: Config.Name, or the name of the machine.
func (n *Node) Name() string { return cmp.Or(n.cfg.Name, hostname()) }

// hostname is empty where the system has none.
func hostname() string {
	name, _ := os.Hostname()
	return name
}

// fenced is called after an agent has met a newer owner than this node.
func (n *Node) fenced(a messages.AgentID, _ messages.Epoch) { n.ownership.Doubt(a.Partition()) }

func (n *Node) openEndpoints(context.Context) error {
	n.onClose(n.gateway.Close)
	if err := n.gateway.Open(); err != nil {
		return fmt.Errorf("open the endpoints: %w", err)
	}
	return nil
}

// heard waits until the server knows what this node subscribes to. If the connection breaks
// meanwhile, it waits for that on the next one.
func (n *Node) heard(ctx context.Context) error {
	return natslog.Await(ctx, n.nc, n.cfg.Logger, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		err := n.nc.FlushWithContext(ctx)
		if errors.Is(err, nats.ErrConnectionClosed) && !n.nc.IsClosed() { // it broke with the question on its way
			err = nats.ErrDisconnected
		}
		return err
	})
}

// ownerOf returns the node that owns an agent's partition; empty: none does.
func (n *Node) ownerOf(p messages.Partition) string {
	owner, _ := n.owned(p)
	return owner
}

// owned returns the node that owns a partition, and its epoch; empty: none does. What this node
// has taken counts before the watch of the leases shows it.
func (n *Node) owned(p messages.Partition) (string, messages.Epoch) {
	epoch := n.owner.epoch(p)
	if epoch == 0 {
		return n.place(p)
	}
	if !n.ownership.Trusted() {
		return "", 0 // others may have taken it
	}
	return n.id, epoch
}

// place returns the living owner of a partition and its epoch; empty: there is none.
func (n *Node) place(p messages.Partition) (string, messages.Epoch) { return n.ownership.Owner(p) }

// moved is called when a partition may have another owner.
func (n *Node) moved(p messages.Partition) {
	n.broker.Moved(p)
}

// Client returns a client on this node's own connection. Close of the node ends it.
func (n *Node) Client() *client.Client { return n.client }

// ID returns the id of the node, which is new at each start.
func (n *Node) ID() string { return n.id }

// URL returns the URL for NATS clients. Empty: the embedded server is reachable from inside the
// process only.
func (n *Node) URL() string {
	if n.server != nil {
		return n.server.ClientURL()
	}
	return messages.Redacted(n.nc.ConnectedUrl())
}

// Exposed reports whether the node has an embedded server that requires no login and listens
// on an address that other machines may reach; see [Config.Insecure].
func (n *Node) Exposed() bool { return n.server != nil && n.server.Exposed() }

// Sync returns when an acknowledged write is on disk. For an embedded server it is always or relaxed.
// For another server it is what Config.System has shown when the node started, such as always or
// every 2m0s, else unknown.
func (n *Node) Sync() string { return n.sync }

// Partitions returns how many partitions the node owns.
func (n *Node) Partitions() int { return n.ownership.Held() }

// InMemory returns how many agents are in the memory of this node.
func (n *Node) InMemory() int { return n.host.runtime.InMemory() }

// Ended is closed when the node ends by itself; Err returns why then.
func (n *Node) Ended() <-chan struct{} { return n.life.Done() }

// Err returns why the node has ended by itself. Nil: it has not.
func (n *Node) Err() error { return context.Cause(n.life) }

// fail has the node end by itself. At once nothing is written any more.
func (n *Node) fail(why error) {
	n.failing.Do(func() {
		n.log.Close(why)
		n.cfg.Logger.Error("the node ends", "error", why)
		n.end(why)
	})
}

// Close stops the node. If there are other nodes, it first hands its partitions over, within
// DrainLimit, and keeps answering meanwhile. Answers that are streamed by it end with an error;
// their turns continue at the next start or owner. A second call does nothing.
func (n *Node) Close() error {
	n.leaving.Do(func() {
		if n.cfg.DrainLimit < 0 || n.Err() != nil || !n.nc.IsConnected() || !n.ownership.Others() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), n.cfg.DrainLimit)
		defer cancel()
		if err := n.Drain(ctx, true); err != nil && n.ownership.Others() { // who stop together need not wait for each other
			n.cfg.Logger.Warn("the node ends before all its partitions are handed over; their next owners continue what is under way", "error", err)
		}
	})
	n.undo()
	return nil
}

// Drain hands this node's partitions over to other nodes and returns when it has none left. In each
// partition it waits for tools with OnUnknown Pause and Reconcile, at most for Config.DrainLimit.
// From then on the node takes no partition, and its endpoints stay open. Agents whose partition
// moves pause for a moment; clients and inputs wait for them. With on false the node takes part
// again, and Drain returns at once. If ctx ends first, the drain continues, and the error has the
// number of partitions that are left. Drain fails if no other node takes partitions, also if that
// becomes so meanwhile: the node then keeps its partitions, takes free ones, and hands all over as
// soon as another node takes partitions.
func (n *Node) Drain(ctx context.Context, on bool) error {
	if err := n.mayDrain(on); err != nil {
		return err
	}
	if err := n.ownership.Drain(ctx, on); err != nil || !on {
		return err
	}
	left := n.ownership.Empty(ctx)
	switch {
	case left == 0:
		return nil
	case ctx.Err() == nil:
		return keeps(left)
	}
	return fmt.Errorf("%d partitions are still here (%w)", left, ctx.Err())
}

// keeps is why a node that drains does not become empty.
func keeps(left int) *messages.Error {
	return messages.Refuse(messages.Conflict, "no other node takes partitions any more, so the remaining %d stay here: start a node, or end the drain of another", left)
}

func (n *Node) mayDrain(on bool) error {
	if on && !n.ownership.Others() {
		return messages.Refuse(messages.Conflict, "no other node takes partitions: start one first")
	}
	return nil
}
