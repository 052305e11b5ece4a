// Package gateway holds the endpoints of a node: the Synadia Agent Protocol for NATS
// and the views of the query subject. It speaks commands in and views out and
// holds no state.
//
// # Guarantees
//
//   - The ack of a prompt is sent when its input.accepted is in the log, not
//     before: from then on a caller that goes away loses the stream, never the
//     turn.
//   - Prompts of one publisher through one node reach an agent in the order in
//     which they came.
//   - Nothing is ever answered on a subject of ours ([messages.Subjects.AllowReply]).
//   - A follower that stalls or dies harms neither the turn nor other followers.
//   - A client that prompts decides about a call that waits for approval only if
//     Config.PromptDecides says so, by an answer that no other client was asked for,
//     and with one effect however often it is given. The stream names an
//     answer that had none. Of a call of an agent below, only who may decide about
//     that agent's calls, too, is asked; the agent that was prompted passes it on.
//   - Views are read from the log: they show what is committed and nothing else.
//     Those of a whole tenant wait, two seconds at most, until they show all
//     that was committed when they were asked; else they say how much they lack.
//   - What the log names as a blob is poured into views piece by piece; the
//     error for one that is gone names it and where it belongs.
package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/verify"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Config is what the endpoints use.
type Config struct {
	Conn      *nats.Conn
	Subjects  messages.Subjects
	Log       eventlog.Log
	Blobs     eventlog.Blobs
	Snapshots eventlog.Snapshots
	// Definitions are those that the view frames shows beside the frames that name them.
	Definitions eventlog.Definitions
	Broker      *Broker
	// Kinds are the kinds served here; Serves refuses all others.
	Kinds  []string
	Serves func(kind string) error
	// Current returns what streams of agents of a kind are compared with. It refuses a kind that is
	// not defined here.
	Current func(ctx context.Context, kind string) (verify.Current, error)
	// Deliver puts a command on its way at once, so that order is kept, and returns a function
	// that waits for the answer.
	Deliver func(d *actors.Deliver) (wait func(context.Context) (messages.Answer, error))
	// Whole returns why the log that holds an agent cannot be relied on; nil: it can. A
	// nil Whole: it always can.
	Whole func(context.Context, messages.AgentID) error
	// Agents is the list of the agents that this node owns.
	Agents *projections.Agents
	// Index holds the views of all agents together.
	Index Index
	Nodes
	// Cluster reports on all nodes and partitions.
	Cluster Cluster
	// PromptDecides reports whether those who may prompt agents of a kind may also
	// decide about their calls of a tool that wait for approval: the reply then
	// asks, as the agent protocol's query. It may be called from many goroutines.
	//
	// Nil: they may not. Permissions are by subject, and those who may talk to an
	// agent may not therefore approve its refunds; the stream then stays open
	// until the command subject has decided. Set it where those who prompt are
	// those who answer for what is done, as on a laptop.
	PromptDecides func(kind, tool string) bool
	// Doctor examines the log. Nil: the view doctor is refused.
	Doctor *doctor.Doctor
	// Store looks at what all agents depend on. Nil: the view doctor looks at agents alone.
	Store *StoreFindings
	// Scrubbed returns how far the log was read through in the background. Nil: it is not shown.
	Scrubbed func(context.Context) *doctor.Scrubbed
	// Requested returns what a model call was sent, as [actors.Runtime.Requested]. Nil: the view
	// request is refused.
	Requested func(context.Context, messages.AgentID, *projections.RequestedCall, actors.HistoryAt) (*projections.ModelRequest, error)
	// Encrypted reports that the data of agents is encrypted where it is stored.
	Encrypted bool
	// DeadLetters is the name of the stream of dead letters, Inbox that of the
	// inputs that are not applied yet.
	DeadLetters, Inbox string
	Logger             *slog.Logger
}

// Gateway is the endpoints of a node.
type Gateway struct {
	Config
	js     jetstream.JetStream
	ctx    context.Context
	cancel context.CancelFunc
	subs   []*nats.Subscription
	// again bounds how many streams read what was before they came: a crowd that
	// asks again must not take the log's connection from those who work.
	again chan struct{}
	// reading bounds how many blobs are read for callers at once.
	reading chan struct{}
	// questions are those of all streams that callers have been asked, by the subject of their
	// answers. It cannot be guessed: only who was asked can answer.
	questions sync.Map // string → *question
	cursors   cursors
	opened    time.Time
	counts    *counts
	// examining has room for one examination of the store at a time.
	examining chan struct{}

	mu      sync.Mutex
	closed  bool
	streams int
	own     int // of streams, what runs for as long as the endpoints are open
	running sync.WaitGroup
}

// New returns a Gateway that receives nothing yet.
func New(cfg Config) *Gateway {
	g := &Gateway{Config: cfg, opened: time.Now().UTC(), again: make(chan struct{}, againAtOnce), examining: make(chan struct{}, 1), reading: make(chan struct{}, blobsAtOnce)}
	g.counts = newCounts(cfg.Kinds)
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// Open subscribes: the server knows of that once the connection is flushed. After
// an error the gateway must be closed.
func (g *Gateway) Open() (err error) {
	if g.js, err = jetstream.New(g.Conn); err != nil {
		return err
	}
	q := g.Subjects.TenantQuery("*")
	for _, endpoint := range []struct {
		subject, queue string
		handle         nats.MsgHandler
	}{
		{"agents.prompt.*.*.*", promptQueue, g.prompt},
		{"agents.status.*.*.*", promptQueue, g.status},
		{q + ".*.*", "q", g.query},
		{q, "q", g.queryTenant},
		{g.Subjects.StoreQuery(), "q", g.queryStore},
		{messages.Question(messages.AgentID{Tenant: "*", Kind: "*", Key: "*"}, "*"), "", g.answered},
		{g.tells(g.Self), "", g.tell},
		{g.ownersSubject(g.Self), "", g.queryOwned},
		{"$SRV.PING.>", "", g.discovery}, {"$SRV.PING", "", g.discovery},
		{"$SRV.INFO.>", "", g.discovery}, {"$SRV.INFO", "", g.discovery},
		{"$SRV.STATS.>", "", g.discovery}, {"$SRV.STATS", "", g.discovery},
	} {
		sub, err := g.Conn.QueueSubscribe(endpoint.subject, endpoint.queue, endpoint.handle)
		if err != nil {
			return err
		}
		g.subs = append(g.subs, sub)
	}
	if !g.begin(g.heartbeats) || !g.begin(func() { g.Broker.run(g.ctx.Done()) }) {
		return errShut
	}
	g.mu.Lock()
	g.own = g.streams
	g.mu.Unlock()
	return nil
}

// Load is how many streamed replies are under way, and how many prompts have come so
// far.
func (g *Gateway) Load() (streams int, prompts int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.streams - g.own, g.counts.requests("prompt")
}

// againAtOnce is how many streams read the past of their turn at the same time.
const againAtOnce = 8

// unseenFor is how long a stream to a caller in another account may be quiet: the server does not
// report whether the caller is still there.
const unseenFor = 5 * time.Minute

// maxStreams is how many streamed replies a node may have under way.
const maxStreams = 16 << 10

var errShut = messages.Refuse(messages.Unavailable, "this node is shutting down: try again")

// begin runs f beside, unless the endpoints are closed or too much is under way.
func (g *Gateway) begin(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.streams >= maxStreams {
		return false
	}
	g.streams++
	g.running.Go(func() {
		defer func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.streams--
		}()
		f()
	})
	return true
}

// full is why begin has refused.
func (g *Gateway) full() *messages.Error {
	if g.ctx.Err() != nil {
		return errShut
	}
	return messages.Refuse(messages.Unavailable, "this node serves %d streams, its limit: try again later", maxStreams)
}

// Close closes the endpoints and ends their streams with an error that says so. The turns
// continue.
func (g *Gateway) Close() {
	g.drain()
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel()
	g.running.Wait()
	_ = g.Conn.FlushTimeout(time.Second) // what was sent to callers
}

// drainFor is how long Close waits for the requests that have come already.
const drainFor = 5 * time.Second

// drain unsubscribes, and waits for the requests that have come already: the caller of one
// that was dropped would get no answer.
func (g *Gateway) drain() {
	closed, waits := make(chan string, len(g.subs)), 0
	for _, s := range g.subs {
		s.SetClosedHandler(func(subject string) { closed <- subject })
		if g.Conn.IsConnected() && s.IsValid() && s.Drain() == nil {
			waits++
		}
	}
	for late := time.After(drainFor); waits > 0; waits-- {
		select {
		case <-closed:
		case <-late:
			return
		}
	}
}

// reply answers with one JSON message.
func (g *Gateway) reply(subject string, v any) {
	if b, err := json.Marshal(v); err == nil {
		_ = g.Conn.Publish(subject, b) // a caller without an answer asks again
	}
}

// why returns the error that is sent to a caller; one that came of closing the endpoints is
// replaced.
func (g *Gateway) why(err error) *messages.Error {
	if g.ctx.Err() != nil {
		return errShut
	}
	var refused *messages.Error
	if errors.Is(err, eventlog.ErrUnavailable) && !errors.As(err, &refused) {
		return messages.Refuse(messages.Unavailable, "%v: try again", err)
	}
	return messages.AsError(err)
}

// answerable reports whether a request has a reply subject that may be answered.
func (g *Gateway) answerable(r *nats.Msg) bool {
	err := g.Subjects.AllowReply(g.Subjects.TenantAt(r.Subject), r.Reply)
	if r.Reply == "" {
		err = errNoReply
	}
	if err != nil {
		g.Logger.Warn("a request was refused", "subject", r.Subject, "error", err)
	}
	return err == nil
}

var errNoReply = messages.Refuse(messages.BadInput, "it has no reply subject: send a request, or publish to the agent's input subject")

// The agent protocol's times.
const (
	heartbeat = 30 * time.Second
	// keepAlive is far below what the protocol asks for, so that our own client
	// notices soon that a node is gone.
	keepAlive = 2 * time.Second
)
