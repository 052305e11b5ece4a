package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// world is a NATS server of a test's own and whatever nodes it starts there.
type world struct {
	t   *testing.T
	ctx context.Context
	srv *embedded.Server
	dir string
	url string
	nc  *nats.Conn
	js  jetstream.JetStream
	log *embeddedtest.Words
	// moved is the server's address once it was started again, empty while it is stopped.
	moved atomic.Pointer[string]
	// last is the node that was started last.
	last *cluster.Node
}

// newWorld starts a server that nodes reach over TCP, so that they can be cut off.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, dir: t.TempDir(), log: new(embeddedtest.Words)}
	srv, err := embedded.Start(embedded.Config{Dir: w.dir, Sync: embedded.SyncRelaxed, Logger: w.log.Logger()})
	w.ok(err)
	t.Cleanup(func() { _ = w.srv.Shutdown() })
	w.srv, w.url = srv, srv.ClientURL()
	w.use(w.connect())
	return w
}

// serve moves the world to a server with options that embedded does not have.
func (w *world) serve(o *server.Options) *server.Server {
	w.t.Helper()
	o.NoSigs, o.NoLog, o.AuthTimeout = true, true, 60
	srv, err := server.NewServer(o)
	w.ok(err)
	srv.Start()
	w.t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(time.Minute) {
		w.t.Fatal("the server does not listen")
	}
	w.url = srv.ClientURL()
	return srv
}

// use makes nc the world's own connection.
func (w *world) use(nc *nats.Conn) {
	w.t.Helper()
	var err error
	w.nc = nc
	w.js, err = jetstream.New(nc)
	w.ok(err)
}

// unhurried lets a machine that stalls for seconds take its time to connect.
var unhurried = nats.Timeout(time.Minute)

// codeOf is the code of an error; empty if there is none.
func codeOf(err error) messages.Code {
	if err == nil {
		return ""
	}
	return messages.AsError(err).Code
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// Dial implements nats.CustomDialer. It connects to the server's current address.
func (w *world) Dial(network, address string) (net.Conn, error) {
	if moved := w.moved.Load(); moved != nil {
		address = *moved
	}
	if address == "" {
		return nil, errors.New("the server is stopped")
	}
	return net.Dial(network, address)
}

func (w *world) connect() *nats.Conn {
	w.t.Helper()
	nc, err := nats.Connect(w.url, unhurried, nats.SetCustomDialer(w), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	w.ok(err)
	w.t.Cleanup(nc.Close)
	return nc
}

// change is something that a test wants different in a node's configuration.
type change func(*cluster.Config)

// over makes a node's connections go through a wire.
func over(wi *wire) change {
	return func(c *cluster.Config) { c.NATSOptions = append(c.NATSOptions, nats.SetCustomDialer(wi)) }
}

func rooted(root string) change { return func(c *cluster.Config) { c.Root = root } }

// agents defines one kind, assistant, with a model and tools.
func agents(model providers.Provider, change func(*actors.Definition)) change {
	return func(c *cluster.Config) {
		d := actors.Definition{Kind: "assistant", Model: "test/model", Instructions: "Be brief."}
		if change != nil {
			change(&d)
		}
		c.Providers, c.Agents = providers.Set{"test": model}, []actors.Definition{d}
	}
}

func (w *world) config(changes ...change) cluster.Config {
	cfg := cluster.Config{NATS: w.url, NATSOptions: []nats.Option{unhurried, nats.SetCustomDialer(w)}, Logger: w.log.Logger()}
	for _, c := range append([]change{agents(echo(), nil)}, changes...) {
		c(&cfg)
	}
	return cfg
}

// node starts a node. A test that has several at a time is not for short mode.
func (w *world) node(changes ...change) *cluster.Node {
	w.t.Helper()
	if testing.Short() && w.last != nil && !w.last.Closed() {
		w.t.Fatal("a second node in short mode: the test begins with embeddedtest.Long")
	}
	n, err := cluster.Start(w.ctx, w.config(changes...))
	w.ok(err)
	w.t.Cleanup(func() { _ = n.Close() })
	w.last = n
	return n
}

// echo answers with the last thing that the user said.
func echo() *scripted.Model {
	return scripted.Func(func(r providers.Request) scripted.Step { return scripted.Say("you said " + lastUser(r)) })
}

func lastUser(r providers.Request) string {
	for i := len(r.Items) - 1; i >= 0; i-- {
		if r.Items[i].Role == messages.RoleUser {
			return r.Items[i].Content.Text()
		}
	}
	return ""
}

// event is one line of the events view.
type event struct {
	N     messages.EventNumber `json:"n"`
	Seq   uint64               `json:"seq"`
	Frame string               `json:"frame"`
	Type  string               `json:"type"`
	Turn  messages.TurnID      `json:"turn"`
	At    time.Time            `json:"at"`
	Data  json.RawMessage      `json:"data"`
}

func (e event) field(name string) string {
	var fields map[string]any
	_ = json.Unmarshal(e.Data, &fields)
	s, _ := fields[name].(string)
	return s
}

// events reads all events of an agent.
func (w *world) events(c *client.Client, agent string) []event {
	w.t.Helper()
	var all []event
	for line, err := range c.Query(w.ctx, agent, messages.Query{View: "events"}) {
		w.ok(err)
		var e event
		w.ok(json.Unmarshal(line, &e))
		if e.N != messages.EventNumber(len(all)+1) {
			w.t.Fatalf("event %d of %s is numbered %d", len(all)+1, agent, e.N)
		}
		all = append(all, e)
	}
	return all
}

func count(events []event, eventType string) int {
	n := 0
	for _, e := range events {
		if e.Type == eventType {
			n++
		}
	}
	return n
}

// until follows an agent, under any owner, until an event is as wanted.
func (w *world) until(c *client.Client, agent string, wanted func(event) bool) event {
	w.t.Helper()
	for line, err := range c.Query(w.ctx, agent, messages.Query{View: "events", Follow: true}) {
		w.ok(err)
		var e event
		w.ok(json.Unmarshal(line, &e))
		if wanted(e) {
			return e
		}
	}
	w.t.Fatalf("%s: the event did not come", agent)
	return event{}
}

func ofType(eventType string) func(event) bool {
	return func(e event) bool { return e.Type == eventType }
}

// asked is what an Ask yielded.
type asked struct {
	text   string
	events []client.Event
	end    client.Event
}

func (w *world) ask(c *client.Client, agent string, in messages.Input) (asked, error) {
	return w.askSeeing(c, agent, in, func(client.Event) {})
}

// askSeeing is ask; saw is called with each event but deltas as it comes.
func (w *world) askSeeing(c *client.Client, agent string, in messages.Input, saw func(client.Event)) (asked, error) {
	var got asked
	for e, err := range c.AskFacts(w.ctx, agent, in) {
		if err != nil {
			return got, err
		}
		if e.Type == "delta" {
			got.text += e.Text
			continue
		}
		got.events, got.end = append(got.events, e), e
		saw(e)
	}
	return got, nil
}

func (w *world) say(c *client.Client, agent, id, text string) asked {
	w.t.Helper()
	got, err := w.ask(c, agent, input(id, text))
	w.ok(err)
	return got
}

func input(id, text string) messages.Input {
	return messages.Input{ID: id, Content: messages.TextContent(text)}
}

// eventually looks again and again, and less often with time, for a look may be
// a query that takes the machine from what it waits for; only ctx bounds it.
func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	for pause := 5 * time.Millisecond; !is(); pause = min(pause*5/4, 50*time.Millisecond) {
		select {
		case <-time.After(pause):
		case <-w.ctx.Done():
			w.t.Fatalf("%s: it did not happen; logged:\n%s", what, w.log)
		}
	}
}

// foreign counts messages on log subjects that no node wrote.
func (w *world) foreign(root string) (n int, subjects []string) {
	w.t.Helper()
	for _, raw := range w.stored("") {
		if strings.HasPrefix(raw.Subject, root+".log.") && raw.Header.Get("Reprise-Frame") == "" {
			n, subjects = n+1, append(subjects, raw.Subject)
		}
	}
	return n, subjects
}

// messagesRequest is a model call, by a name that needs no import.
type messagesRequest = providers.Request
