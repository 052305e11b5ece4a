// Package gateway holds a node's doors: the Synadia Agent Protocol for NATS
// and the views of the query subject. It speaks commands in and views out and
// holds no state.
//
// # Guarantees
//
//   - The ack of a prompt is sent when its input.accepted is in the log, not
//     before: from then on a caller that goes away loses the stream, never the
//     turn.
//   - Prompts of one publisher reach an agent in the order in which they came.
//   - Nothing is ever answered on a subject of ours ([messages.Subjects.AllowReply]).
//   - A follower that stalls or dies harms neither the turn nor other followers.
//   - Views are read from the log: they show what is committed and nothing else.
package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Config is what the doors lead to.
type Config struct {
	Conn     *nats.Conn
	Subjects messages.Subjects
	Log      eventlog.Log
	Hub      *Hub
	// Kinds are the kinds served here; Serves refuses all others.
	Kinds  []string
	Serves func(kind string) error
	// Deliver puts a command on its way at once, so that order is kept, and
	// gives a function that waits for the answer.
	Deliver func(*actors.Deliver) (wait func() (actors.Answer, error))
	// Agents is the list of agents of the partitions that this node owns.
	Agents *projections.Agents
	// Self is this node's id, OwnerOf that of a partition's owner, empty if
	// nobody owns it.
	Self    string
	OwnerOf func(messages.Partition) string
	// DeadLetters is the name of the stream of dead letters.
	DeadLetters string
	Logger      *slog.Logger
}

// Gateway is a node's open doors.
type Gateway struct {
	Config
	js       jetstream.JetStream
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup
	subs     []*nats.Subscription
	services []micro.Service
}

// New makes doors that are still closed.
func New(cfg Config) *Gateway {
	g := &Gateway{Config: cfg}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// Open opens the doors. After an error the gateway must be closed.
func (g *Gateway) Open() (err error) {
	if g.js, err = jetstream.New(g.Conn); err != nil {
		return err
	}
	q := g.Subjects.TenantQuery("*")
	for _, door := range []struct {
		subject, queue string
		handle         func(*nats.Msg)
	}{
		{"agents.prompt.*.*.*", promptQueue, g.prompt},
		{"agents.status.*.*.*", promptQueue, g.status},
		{q + ".*.*", g.Subjects.Any("q"), g.query},
		{q, g.Subjects.Any("q"), g.queryTenant},
		{g.direct(g.Self), "", g.forwarded},
	} {
		sub, err := g.Conn.QueueSubscribe(door.subject, door.queue, door.handle)
		if err != nil {
			return err
		}
		g.subs = append(g.subs, sub)
	}
	for _, kind := range g.Kinds {
		if err := g.register(kind); err != nil {
			return err
		}
	}
	g.running.Go(g.beat)
	return nil
}

// Close closes the doors and ends the streams that go through them. Turns
// behind them go on.
func (g *Gateway) Close() {
	for _, s := range g.services {
		_ = s.Stop()
	}
	for _, s := range g.subs {
		_ = s.Unsubscribe()
	}
	g.cancel()
	g.running.Wait()
}

// reply sends one JSON message of a streamed reply.
func (g *Gateway) reply(subject string, v any) bool {
	b, err := json.Marshal(v)
	if err == nil {
		err = g.Conn.Publish(subject, b)
	}
	return err == nil
}

// end sends the empty message that ends a streamed reply.
func (g *Gateway) end(subject string) { _ = g.Conn.Publish(subject, nil) }

// fail ends a streamed reply with an error, in the headers that NATS services use.
func (g *Gateway) fail(subject string, why *messages.Error) {
	g.failStatus(subject, why.Code.Status(), why)
}

func (g *Gateway) failStatus(subject string, status int, why *messages.Error) {
	msg := nats.NewMsg(subject)
	msg.Header.Set(micro.ErrorCodeHeader, strconv.Itoa(status))
	msg.Header.Set(micro.ErrorHeader, oneLine(why.Message))
	msg.Header.Set("Reprise-Code", string(why.Code))
	_ = g.Conn.PublishMsg(msg)
	g.end(subject)
}

func oneLine(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c < ' ' {
			b[i] = ' '
		}
	}
	return string(b[:min(len(b), 1024)])
}

// answerable says whether a request has a reply subject that may be answered.
func (g *Gateway) answerable(msg *nats.Msg) bool {
	if msg.Reply == "" {
		return false
	}
	if err := g.Subjects.AllowReply(msg.Reply); err != nil {
		g.Logger.Warn("a request was refused", "subject", msg.Subject, "error", err)
		return false
	}
	return true
}

// The agent protocol's times.
const (
	heartbeat = 30 * time.Second
	keepAlive = 20 * time.Second
)
