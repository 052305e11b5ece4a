package gateway

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// A prompt that cannot be streamed is refused before it is delivered: what was
// accepted must not be answered by an error that says try again.
func TestPromptBeyondTheLimit(t *testing.T) {
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Sync: embedded.SyncRelaxed, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Shutdown() }()
	nc, err := nats.Connect(srv.ClientURL(), nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	delivered := 0
	agents := new(projections.Agents)
	g := New(Config{
		Conn: nc, Agents: agents, Broker: NewBroker(nc, messages.Subjects{}, agents, slog.New(slog.DiscardHandler), nil, Nodes{}), Logger: slog.New(slog.DiscardHandler),
		Serves: func(string) error { return nil },
		Deliver: func(*actors.Deliver) func(context.Context) (messages.Answer, error) {
			delivered++
			return func(context.Context) (messages.Answer, error) {
				return messages.Answer{}, messages.Refuse(messages.QueueFull, "the queue is full")
			}
		},
	})
	defer g.Close()
	replies, err := nc.SubscribeSync(nc.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		streams, delivered int
		told               string
	}{{maxStreams, 0, "its limit"}, {maxStreams - 1, 1, "the queue is full"}} {
		g.streams = c.streams
		g.prompt(&nats.Msg{Subject: "agents.prompt.assistant.default.a", Reply: replies.Subject, Data: []byte("hello")})
		msg, err := replies.NextMsg(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if why := msg.Header.Get("Nats-Service-Error"); !strings.Contains(why, c.told) || delivered != c.delivered {
			t.Errorf("with %d streams: told %q, delivered %d times", c.streams, why, delivered)
		}
		if _, err := replies.NextMsg(time.Minute); err != nil { // the empty message that ends it
			t.Fatal(err)
		}
	}
}

// Every caller whose prompt had come when the endpoints closed is answered.
func TestPromptsAtTheDoorsWhenTheyClose(t *testing.T) {
	h := newHouse(t, nil)
	callers := make([]*caller, 2*cap(h.came)) // half of them wait behind an endpoint that is busy
	for i := range callers {
		callers[i] = h.prompt("hello", nil)
	}
	h.ok(h.nc.Flush())
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		h.g.Close()
	}()
	for endpoint := h.g.subs[0]; endpoint.IsValid() && !endpoint.IsDraining(); {
		h.ok(h.nc.Flush())
	}
	for range callers {
		h.next()
	}
	for _, c := range callers {
		c.hears("error 500 "+errShut.Message, "end")
	}
	<-closed
}

// A model's refusal of the request, and its rate limit, reach the caller with the status that its server
// gave. Every other failure is the node's own, and no status is outside those of the protocol.
func TestFailuresOfModels(t *testing.T) {
	for kind, status := range map[string]string{
		"bad_request": "400", "context_length": "400", "content_filter": "400", "unsupported": "400", "auth": "500", "not_found": "404",
		"rate_limit": "429", "overloaded": "500", "network": "500", "internal": "500",
	} {
		t.Run(kind, func(t *testing.T) {
			h := newHouse(t, nil)
			c := h.prompt(`{"prompt":"hello","reprise":{"id":"u1"}}`, nil)
			d := h.next()
			in := d.Command.(messages.Input).ID
			n := h.wrote(till, messages.PhaseRunning, accepted(in, messages.Started, "t2"), messages.TurnStarted{Turn: "t2", Inputs: []string{in}})
			d.answers <- messages.Answer{N: n}
			c.hears("input.accepted turn.started")
			h.wrote(till, messages.PhaseIdle, messages.TurnFailed{Turn: "t2", Inputs: []string{in}, Reason: "model", Kind: messages.ModelFailure(kind), Message: "no"})
			c.hears("turn.failed", "error "+status+" turn t2 failed ("+kind+"): no", "end")
		})
	}
}
