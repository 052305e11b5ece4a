package inbox

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

type told struct {
	subject string
	messages.Answer
}

// installation is a server with the streams of a node.
type installation struct {
	ctx  context.Context
	conn *nats.Conn
	js   jetstream.JetStream
	log  *natslog.Log
}

func install(t *testing.T) installation {
	t.Helper()
	at, _ := installed(t, embedded.Config{DontListen: true})
	return at
}

func installed(t *testing.T, c embedded.Config) (installation, *embedded.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	c.Dir, c.Sync, c.Logger = t.TempDir(), embedded.SyncRelaxed, quiet
	srv, err := embedded.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Shutdown() })
	nc, err := srv.Connect(nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectBufSize(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	stored, err := srv.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stored.Close)
	log, err := natslog.Open(ctx, natslog.Config{Conns: []*nats.Conn{stored}, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return installation{ctx, nc, js, log}, srv
}

var (
	quiet = slog.New(slog.DiscardHandler)
	a     = messages.AgentID{Tenant: "default", Kind: "support", Key: "t1"}
)

// Every command and policy that a body can name reaches its agent in order; one that the agent
// refuses is kept with the reason and reported to its sender, once no other owner can be given
// it.
func TestCommandsReachTheirAgent(t *testing.T) { // A102
	at := install(t)
	ctx, nc, js, log := at.ctx, at.conn, at.js, at.log
	came, answers := make(chan *actors.Deliver, 1), make(chan told, 1)
	var refuses atomic.Pointer[messages.Error]
	b, err := Open(ctx, Config{
		Conn: nc, Logger: quiet,
		Deliver: func(_ context.Context, d *actors.Deliver) (messages.Answer, error) {
			answer := messages.Answer{N: 7, Err: refuses.Load()}
			came <- d
			return answer, nil
		},
		Told: func(subject string, _ messages.AgentID, answer messages.Answer) {
			if inputs, err := js.Stream(ctx, log.Names().Inbox()); answer.Err != nil && (err != nil || inputs.CachedInfo().State.Msgs != 0) {
				t.Errorf("a refusal is told while what was refused is in the queue, %v", err)
			}
			answers <- told{subject, answer}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	stop := b.Pull(a.Partition(), 1)
	defer stop()
	purges, err := nc.SubscribeSync("$JS.API.STREAM.PURGE.>")
	if err != nil {
		t.Fatal(err)
	}

	var subjects messages.Subjects
	for _, refusal := range []*messages.Error{nil, messages.Refuse(messages.Conflict, "call c has run already")} {
		refuses.Store(refusal)
		for _, c := range []struct{ subject, body, want string }{
			{subjects.Ctl(a), `{"type":"approve","id":"1","call":"c","args_hash":"h","remember":true,"reason":"fine"}`, `{"id":"1","call":"c","args_hash":"h","remember":true,"reason":"fine"}`},
			{subjects.Ctl(a), `{"type":"deny","id":"2","call":"c","text":""}`, `{"id":"2","call":"c","text":""}`},
			{subjects.Ctl(a), `{"type":"forget","id":"3","tool":"f"}`, `{"id":"3","tool":"f"}`},
			{subjects.Ctl(a), `{"type":"cancel","id":"4","all":true}`, `{"id":"4","all":true}`},
			{subjects.Ctl(a), `{"type":"clear","id":"5"}`, `{"id":"5"}`},
			{subjects.Ctl(a), `{"type":"resume","id":"6","max_cost":0.5,"agent_limits":{"max_tokens":9}}`, `{"id":"6","max_cost":0.5,"agent_limits":{"max_tokens":9}}`},
			{subjects.In(a), `{"id":"7","policy":"steer","content":"hello"}`, `{"id":"7","policy":"steer","content":"hello","reply":"inbox.me"}`},
			{subjects.In(a), `{"id":"8","policy":"reject","content":"hello"}`, `{"id":"8","policy":"reject","content":"hello","reply":"inbox.me"}`},
		} {
			msg := &nats.Msg{Subject: c.subject, Data: []byte(c.body), Header: nats.Header{messages.HeaderReply: {"inbox.me"}}}
			if _, err := js.PublishMsg(ctx, msg); err != nil {
				t.Fatal(err)
			}
			d := next(ctx, t, came)
			got, err := json.Marshal(d.Command)
			if err != nil || string(got) != c.want || d.Agent != a || d.Cause.Reason != messages.ReasonOf(d.Command) {
				t.Errorf("%s came as %s by %+v, %v", c.body, got, d.Cause, err)
			}
			if _, isInput := d.Command.(messages.Input); isInput && refusal == nil {
				continue // its acceptance is reported by the writer of the log
			}
			if w := next(ctx, t, answers); w.subject != "inbox.me" || w.N != 7 && refusal == nil || w.Err != refusal {
				t.Errorf("%s was answered by %+v", c.body, w)
			}
			if refusal != nil {
				checkLetter(ctx, t, js, log.Names().DeadLetters(), c.body, refusal)
			}
		}
	}
	if n, _, err := purges.Pending(); n > 0 || err != nil { // each takes the longer, the more is in hand
		t.Errorf("%d purges of what its consumer had ended, %v", n, err)
	}
}

func next[T any](ctx context.Context, t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-ctx.Done():
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// checkLetter waits for a dead letter with this body and reads its reason.
func checkLetter(ctx context.Context, t *testing.T, js jetstream.JetStream, stream, body string, why *messages.Error) {
	t.Helper()
	consumer, err := js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	it, err := consumer.Messages()
	if err != nil {
		t.Fatal(err)
	}
	defer it.Stop()
	for {
		letter, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			t.Fatalf("the dead letter of %s: %v", body, err)
		}
		if string(letter.Data()) != body {
			continue
		}
		h := letter.Headers()
		if h.Get(messages.HeaderCode) != string(why.Code) || !strings.Contains(h.Get(messages.HeaderReason), why.Message) {
			t.Errorf("the dead letter of %s says %v", body, h)
		}
		return
	}
}

// An input was applied and its acknowledgement lost. When the agent is given its delete the input
// is gone: whatever happens from then on, it cannot come again and bring the agent back to life.
func TestNothingComesAgainAfterADelete(t *testing.T) { // A108
	at := install(t)
	var subjects messages.Subjects
	for subject, body := range map[string]string{
		subjects.In(a): `{"id":"1","content":"hello"}`,
		subjects.In(messages.AgentID{Tenant: a.Tenant, Kind: a.Kind, Key: "t2"}): `{"id":"1","content":"hello"}`,
	} {
		if _, err := at.js.Publish(at.ctx, subject, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	last, err := at.js.Publish(at.ctx, subjects.Ctl(a), []byte(`{"type":"delete","id":"2"}`))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := at.js.Stream(at.ctx, at.log.Names().Inbox())
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := stream.CreateConsumer(at.ctx, jetstream.ConsumerConfig{AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: subjects.InboxOf(a.Partition())})
	if err != nil {
		t.Fatal(err)
	}
	var stored uint64
	b, err := Open(at.ctx, Config{
		Conn: at.conn, Logger: quiet,
		Deliver: func(ctx context.Context, _ *actors.Deliver) (messages.Answer, error) {
			info, err := stream.Info(ctx)
			if err == nil {
				stored = info.State.Msgs
			}
			return messages.Answer{N: 9}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	batch, err := consumer.Fetch(3)
	if err != nil {
		t.Fatal(err)
	}
	for raw := range batch.Messages() {
		if meta, err := raw.Metadata(); err != nil || meta.Sequence.Stream != last.Sequence {
			continue
		}
		m, _, err := source{stream, natslog.Origins{{}}}.message(&nats.Msg{Subject: raw.Subject(), Reply: raw.Reply(), Data: raw.Data(), Sub: new(nats.Subscription)})
		if err != nil {
			t.Fatal(err)
		}
		if what := b.apply(at.ctx, a, m, &trial{}); what.did != deleted || stored != 2 {
			t.Errorf("became %+v, with %d messages stored when the agent was given the delete, want it and another agent's", what, stored)
		}
		return
	}
	t.Fatalf("the delete did not come: %v", batch.Error())
}

// An agent that is being deleted takes no input until its child has said that it
// has ended. That comes behind the input and must not wait for it.
func TestWhatAChildSaysDoesNotWait(t *testing.T) { // A108
	at := install(t)
	ended, came := make(chan struct{}), make(chan *actors.Deliver, 1)
	b, err := Open(at.ctx, Config{
		Conn: at.conn, Logger: quiet,
		Deliver: func(_ context.Context, d *actors.Deliver) (messages.Answer, error) {
			if _, is := d.Command.(messages.Report); is {
				close(ended)
				return messages.Answer{N: 8}, nil
			}
			select {
			case <-ended:
				came <- d
				return messages.Answer{N: 9}, nil
			default:
				return messages.Answer{Err: messages.Refuse(messages.Unavailable, "it is being deleted")}, nil
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var subjects messages.Subjects
	report, err := messages.Body(messages.Report{ID: "r", Turn: "t1", Call: "c", Child: "default/helper/h", N: 3, What: messages.ReportAborted})
	if err != nil {
		t.Fatal(err)
	}
	for _, msg := range []*nats.Msg{{Subject: subjects.In(a), Data: []byte("hello")}, {Subject: subjects.Peer(a), Data: report}} {
		if _, err := at.js.PublishMsg(at.ctx, msg); err != nil {
			t.Fatal(err)
		}
	}
	defer b.Pull(a.Partition(), 1)()
	next(at.ctx, t, came)
}
