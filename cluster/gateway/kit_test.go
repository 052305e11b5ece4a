package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

var (
	till    = messages.AgentID{Tenant: "default", Kind: "support", Key: "till"}
	tillAt  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	anybody = func(string, string) bool { return true }
)

// house is a gateway with a real NATS server, whose agents are played by the
// test: it writes their frames and answers what is delivered to them.
type house struct {
	t      *testing.T
	ctx    context.Context
	nc     *nats.Conn
	log    *memlog.Log
	read   *sync.Map // the agents whose log the gateway has read
	frames *atomic.Int64
	g      *Gateway
	client *client.Client
	came   chan delivered
	tails  map[messages.AgentID]eventlog.Position
	queues map[messages.AgentID]*projections.Work
	views  *readers
	ways   map[string][]nats.Option // of the connections of nodes, by id
}

// delivered is a command that waits for its answer.
type delivered struct {
	*actors.Deliver
	answers chan messages.Answer
}

// noted is a log that notes which agents are read, and how many frames.
type noted struct {
	*memlog.Log
	read   *sync.Map
	frames *atomic.Int64
}

// Read notes the agent, and counts its frames.
func (l noted) Read(ctx context.Context, a messages.AgentID, r eventlog.Range) iter.Seq2[eventlog.Recorded, error] {
	if r.After.Frame == "" {
		l.read.Store(a, true)
	}
	return func(yield func(eventlog.Recorded, error) bool) {
		for rec, err := range l.Log.Read(ctx, a, r) {
			if l.frames.Add(1); !yield(rec, err) {
				return
			}
		}
	}
}

func newHouse(t *testing.T, decides func(kind, tool string) bool) *house {
	t.Helper()
	return newHouseOn(t, decides, embedded.Config{})
}

// newHouseOn is newHouse on a server of another kind.
func newHouseOn(t *testing.T, decides func(kind, tool string) bool, cfg embedded.Config) *house {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	quiet := slog.New(slog.DiscardHandler)
	cfg.Dir, cfg.Sync, cfg.Logger = t.TempDir(), embedded.SyncRelaxed, quiet
	srv, err := embedded.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Shutdown() })
	h := &house{t: t, ctx: ctx, log: memlog.New(), read: new(sync.Map), frames: new(atomic.Int64), came: make(chan delivered, 16), tails: make(map[messages.AgentID]eventlog.Position), queues: make(map[messages.AgentID]*projections.Work)}
	h.nc = h.connect(srv)
	agents := new(projections.Agents)
	endpoints := h.connect(srv)
	h.g = New(Config{
		Conn: endpoints, Log: noted{h.log, h.read, h.frames}, Blobs: h.log, Snapshots: h.log, Definitions: h.log, Index: h.index(), Agents: agents, Logger: quiet, Nodes: Nodes{Self: "n1"},
		Broker: NewBroker(endpoints, messages.Subjects{}, agents, quiet, func(messages.AgentID, messages.Epoch) {}, Nodes{Self: "n1"}),
		Serves: func(string) error { return nil },
		Deliver: func(d *actors.Deliver) func(context.Context) (messages.Answer, error) {
			in := delivered{d, make(chan messages.Answer, 1)}
			h.came <- in
			return func(ctx context.Context) (messages.Answer, error) {
				select {
				case a := <-in.answers:
					return a, nil
				case <-ctx.Done():
					return messages.Answer{}, ctx.Err()
				}
			}
		},
		PromptDecides: decides,
	})
	t.Cleanup(h.g.Close)
	h.ok(h.g.Open())
	h.ok(endpoints.Flush())
	h.client = client.New(h.nc, "")
	return h
}

func (h *house) ok(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) connect(srv *embedded.Server) *nats.Conn {
	h.t.Helper()
	nc, err := nats.Connect(srv.ClientURL(), nats.Timeout(time.Minute))
	h.ok(err)
	h.t.Cleanup(nc.Close)
	return nc
}

// wrote appends a frame of the agent's and notifies the broker; it returns the number of the
// first event.
func (h *house) wrote(a messages.AgentID, phase messages.AgentPhase, events ...messages.Event) messages.EventNumber {
	h.t.Helper()
	return h.wroteBecause(messages.Cause{Type: messages.CauseEffect}, a, phase, events...)
}

// wroteBecause is wrote for a frame with a cause.
func (h *house) wroteBecause(of messages.Cause, a messages.AgentID, phase messages.AgentPhase, events ...messages.Event) messages.EventNumber {
	h.t.Helper()
	tail := h.tails[a]
	f := &messages.Frame{
		ID: messages.FrameID(ulid.Make().String()), Epoch: 1, First: tail.Last + 1, Prev: tail.Frame, PrevDigest: tail.Digest,
		Time: tillAt, Cause: of, Events: events,
	}
	if h.queues[a] == nil {
		h.queues[a] = new(projections.Work)
	}
	projections.Fold(f, 0, h.queues[a])
	waiting := len(h.queues[a].Waiting())
	raw, err := messages.EncodeFrame(a, f)
	h.ok(err)
	tail, err = h.log.Append(h.ctx, eventlog.Entry{Agent: a, Expect: tail, Frame: f, Bytes: raw, Summary: eventlog.Summary{Phase: phase, Waiting: waiting}})
	h.ok(err)
	h.tails[a] = tail
	h.g.Broker.Committed(actors.Commit{Agent: a, Seq: tail.Seq, Frame: f, Phase: phase, Waiting: waiting})
	return f.First
}

// next is the next command that the gateway delivers.
func (h *house) next() delivered {
	h.t.Helper()
	select {
	case d := <-h.came:
		return d
	case <-h.ctx.Done():
		h.t.Fatal("nothing was delivered")
		panic("unreachable")
	}
}

// prompt prompts till and returns the caller.
func (h *house) prompt(body string, header nats.Header) *caller {
	h.t.Helper()
	sub, err := h.nc.SubscribeSync(h.nc.NewInbox())
	h.ok(err)
	h.ok(h.nc.PublishMsg(&nats.Msg{Subject: messages.Prompt(till), Reply: sub.Subject, Header: header, Data: []byte(body)}))
	return &caller{h: h, sub: sub}
}

// caller prompts as any client of the protocol would.
type caller struct {
	h       *house
	sub     *nats.Subscription
	queries []client.Question
}

// waiting is what a caller receives whose prompt is not accepted yet.
const waiting = "reprise.waiting null"

// hears reads the stream, keep-alives left out, and compares it with want.
func (c *caller) hears(want ...string) {
	c.h.t.Helper()
	for i := 0; i < len(want); {
		msg, err := c.sub.NextMsgWithContext(c.h.ctx)
		if err != nil {
			c.h.t.Fatalf("waiting for %s: %v", want[i], err)
		}
		got := c.told(msg)
		if got == "ack" || got == waiting {
			continue
		}
		if got != want[i] {
			c.h.t.Fatalf("heard %s, want %s", got, want[i])
		}
		i++
	}
}

func (c *caller) told(msg *nats.Msg) string {
	if why := msg.Header.Get("Nats-Service-Error"); why != "" {
		return "error " + msg.Header.Get("Nats-Service-Error-Code") + " " + why
	}
	if len(msg.Data) == 0 {
		return "end"
	}
	var chunk struct {
		Type string
		Data json.RawMessage
	}
	c.h.ok(json.Unmarshal(msg.Data, &chunk))
	switch chunk.Type {
	case "status":
		return "ack"
	case "reprise.events":
		var list []projections.EventJSON
		c.h.ok(json.Unmarshal(chunk.Data, &list))
		types := make([]string, len(list))
		for i, e := range list {
			types[i] = e.Type
		}
		return strings.Join(types, " ")
	case "query":
		var q client.Question
		c.h.ok(json.Unmarshal(chunk.Data, &q))
		c.queries = append(c.queries, q)
		return "query " + q.ID
	}
	return fmt.Sprintf("%s %s", chunk.Type, chunk.Data)
}

// answers answers a query that was received.
func (c *caller) answers(query int, text string) {
	c.h.t.Helper()
	c.h.ok(c.h.client.Answer(c.h.ctx, c.queries[query], text))
}

func accepted(input string, disposition messages.Disposition, turn messages.TurnID) messages.InputAccepted {
	return messages.InputAccepted{Input: input, Disposition: disposition, Turn: turn, Content: messages.TextContent("hello")}
}

func asks(turn messages.TurnID, call messages.CallID, inputs ...string) messages.Event {
	return messages.ModelRequested{Turn: turn, Step: 1, Attempt: 1, Call: call, Inputs: inputs}
}

func says(turn messages.TurnID, call messages.CallID, text string) messages.Event {
	return messages.ModelCompleted{Turn: turn, Call: call, Items: []messages.Item{messages.Text(messages.RoleAssistant, text)}}
}

// calling is says, with a call of a tool.
func calling(turn messages.TurnID, call messages.CallID, text string) messages.Event {
	return messages.ModelCompleted{Turn: turn, Call: call, Items: []messages.Item{messages.Text(messages.RoleAssistant, text), {Type: messages.ItemCall, CallID: "c", Name: "refund", Arguments: "{}"}}}
}

func (h *house) delta(turn messages.TurnID, call messages.CallID, text string) {
	h.g.Broker.Delta(actors.Delta{Agent: till, Turn: turn, Call: call, Kind: "text", Text: text})
}
