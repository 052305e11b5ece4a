package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/tenant"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

// tenancy is a server with exactly the configuration that a layout prints, and a
// node in it as the user node.
type tenancy struct {
	*world
	layout tenant.Layout
	node   *cluster.Node
}

func newTenancy(t *testing.T, l tenant.Layout, changes ...change) *tenancy {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, dir: t.TempDir(), log: new(embeddedtest.Words)}
	var conf strings.Builder
	fmt.Fprintf(&conf, "listen: \"127.0.0.1:-1\"\njetstream: { store_dir: %q }\n", filepath.Join(w.dir, "store"))
	for _, a := range l.Accounts {
		for _, u := range a.Users {
			fmt.Fprintf(&conf, "%s: %q\n", u.Variable(), "secret of "+u.Name)
		}
	}
	file := filepath.Join(w.dir, "nats.conf")
	w.ok(os.WriteFile(file, []byte(conf.String()+l.Text()), 0o600))
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatalf("%v in\n%s", err, l.Text())
	}
	w.serve(opts)
	y := &tenancy{world: w, layout: l}
	w.use(y.login("admin").nc)
	asNode := func(c *cluster.Config) {
		c.NATSOptions = append(c.NATSOptions, nats.UserInfo("node", "secret of node"))
	}
	y.node = w.node(append([]change{asNode}, changes...)...)
	return y
}

// person is a user who has logged in, and what the server has refused him.
type person struct {
	*tenancy
	nc     *nats.Conn
	client *client.Client
	user   tenant.User
}

// login logs a user in as the layout says.
func (y *tenancy) login(name string) *person {
	y.t.Helper()
	var users []tenant.User
	for _, a := range y.layout.Accounts {
		for _, u := range a.Users {
			if u.Name == name {
				users = append(users, u)
			}
		}
	}
	if len(users) != 1 {
		y.t.Fatalf("there are %d users %s", len(users), name)
	}
	p := &person{tenancy: y, user: users[0]}
	options := []nats.Option{unhurried, nats.UserInfo(name, "secret of "+name), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})}
	if p.user.InboxPrefix != "" {
		options = append(options, nats.CustomInboxPrefix(p.user.InboxPrefix))
	}
	nc, err := nats.Connect(y.url, options...)
	y.ok(err)
	y.t.Cleanup(nc.Close)
	p.nc, p.client = nc, client.New(nc, "")
	return p
}

// flush returns when the server has judged all that was sent.
func (p *person) flush() {
	p.t.Helper()
	p.ok(p.nc.FlushWithContext(p.ctx))
}

// denied checks that the server refuses to take messages for a subject, or to send any.
func (p *person) denied(verb, subject string) {
	p.t.Helper()
	want := fmt.Sprintf("Permissions Violation for %s to %q", verb, subject)
	var sub *nats.Subscription
	var err error
	if verb == "Publish" {
		err = p.nc.PublishRequest(subject, p.user.InboxPrefix+".x", []byte("attack"))
	} else {
		sub, err = p.nc.SubscribeSync(subject)
	}
	p.ok(err)
	p.flush()
	if sub != nil {
		_ = sub.Unsubscribe()
	}
	said := p.nc.LastError()
	if said == nil || !strings.Contains(strings.ToLower(said.Error()), strings.ToLower(want)) {
		p.t.Errorf("%s has the right of %s to %s (%v)", p.user.Name, verb, subject, said)
	}
}

func (p *person) view(agent, view string) (lines int, err error) {
	for _, err := range p.client.Query(p.ctx, agent, messages.Query{View: view}) {
		if err != nil {
			return lines, err
		}
		lines++
	}
	return lines, nil
}

var acme = []tenant.Config{
	{Tenant: "acme", Users: []string{"ann", "anton"}, Roles: []tenant.Role{tenant.Publish, tenant.Read}},
	{Tenant: "acme", Users: []string{"carl"}, Roles: []tenant.Role{tenant.Read, tenant.Decide}},
	{Tenant: "acme", Users: []string{"bot"}, Roles: tenant.Roles, Agents: []messages.AgentID{{Tenant: "acme", Kind: "assistant", Key: "mine"}}},
	{Tenant: "acme", Users: []string{"pub"}, Roles: []tenant.Role{tenant.Publish}},
	{Tenant: "evil", Users: []string{"eve"}, Roles: tenant.Roles},
}

func layoutOf(t *testing.T, make layingOut) tenant.Layout {
	t.Helper()
	l, err := make(acme...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

type layingOut func(...tenant.Config) (tenant.Layout, error)

var layouts = map[string]layingOut{"accounts": tenant.Accounts, "shared": tenant.Shared}

// Each role works through the endpoints that it has, from another account as well as
// in that of the nodes: streams that continue, acknowledgements, answers to commands and
// to what an agent asks.
func TestTenantsWork(t *testing.T) { // A103
	for name, make := range layouts {
		t.Run(name, func(t *testing.T) {
			var ran atomic.Int32
			y := newTenancy(t, layoutOf(t, make), refunds(&ran), func(c *cluster.Config) { c.PromptDecides = func(string, string) bool { return true } })
			ann, carl := y.login("ann"), y.login("carl")
			live, err := ann.nc.SubscribeSync("reprise.live.acme.*.*")
			y.ok(err)
			ann.flush()
			text := ""
			for ev, err := range ann.client.AskFacts(y.ctx, "acme/assistant/till", input("u1", "pay them back")) {
				y.ok(err)
				switch {
				case ev.Type == "delta":
					text += ev.Text
				case ev.Question == nil:
				case strings.Contains(ev.Question.Prompt, `"order":"7"`):
					y.ok(ann.client.Answer(y.ctx, *ev.Question, "yes"))
				default:
					carl.approves("acme/assistant/till", "c")
				}
			}
			if text != "paid 7, paid 8, paid 9" || ran.Load() != 3 {
				t.Errorf("answered %q, %d refunds were paid", text, ran.Load())
			}
			if _, err := live.NextMsgWithContext(y.ctx); err != nil {
				t.Errorf("no delta came: %v", err)
			}
			ann.sends("acme/assistant/till")
			for _, p := range []*person{ann, carl} {
				if n, err := p.view("acme/assistant/till", "events"); err != nil || n == 0 {
					t.Errorf("%s reads %d events: %v", p.user.Name, n, err)
				}
				for _, err := range p.client.QueryTenant(y.ctx, "acme", messages.Query{View: "agents"}) {
					y.ok(err)
				}
			}
			bot := y.login("bot")
			bot.sends("acme/assistant/mine")
			bot.reads("acme/assistant/mine")
			if _, err := bot.client.Do(y.ctx, "acme/assistant/mine", messages.Clear{}); err != nil {
				t.Errorf("bot decides about its own agent: %v", err)
			}
			for _, p := range []*person{ann, carl, bot} {
				if err := p.nc.LastError(); err != nil {
					t.Errorf("%s was refused something: %v", p.user.Name, err)
				}
			}
			if said := y.log.String(); strings.Contains(said, "Violation") {
				t.Errorf("the node may not do what it does:\n%s", said)
			}
		})
	}
}

// approves waits until the agent asks for a call, and approves it.
func (p *person) approves(agent string, call messages.CallID) {
	p.t.Helper()
	found := false
	for waiting, err := range p.client.Approvals(p.ctx, agent) {
		p.ok(err)
		if waiting.Call == call {
			found = true
			_, err := p.client.Do(p.ctx, agent, messages.Approve{Call: call, ArgsHash: waiting.ArgsHash})
			p.ok(err)
		}
	}
	if !found {
		p.t.Errorf("call %s does not wait", call)
	}
}

// sends publishes an input, and receives its end on a subject of its own.
func (p *person) sends(agent string) {
	p.t.Helper()
	replies, err := p.nc.SubscribeSync(p.user.InboxPrefix + ".replies")
	p.ok(err)
	in := input("sent", "be quick")
	in.Reply = replies.Subject
	_, err = p.client.Send(p.ctx, agent, in)
	p.ok(err)
	for {
		msg, err := replies.NextMsgWithContext(p.ctx)
		if err != nil {
			p.t.Fatalf("%s heard nothing of the end: %v", p.user.Name, err)
		}
		if strings.Contains(string(msg.Data), `"turn.completed"`) || strings.Contains(string(msg.Data), `"turn.failed"`) {
			return
		}
	}
}

// reads follows an agent until something comes that is later than it looked.
func (p *person) reads(agent string) {
	p.t.Helper()
	seen := false
	for line, err := range p.client.Query(p.ctx, agent, messages.Query{View: "events", Follow: true}) {
		p.ok(err)
		if strings.Contains(string(line), `"followed"`) {
			return
		}
		if !seen {
			seen = true
			_, err := p.client.Send(p.ctx, agent, input("followed", "be quick"))
			p.ok(err)
		}
	}
}

// No user reaches what is not his: not another tenant, not another agent where he is
// limited to one, and nothing that is beside the endpoints.
func TestTenantsAreKeptApart(t *testing.T) { // A103
	for name, make := range layouts {
		t.Run(name, func(t *testing.T) {
			y := newTenancy(t, layoutOf(t, make))
			y.say(y.login("ann").client, "acme/assistant/a", "1", "hello")
			before := y.lastSeqs()
			a := messages.AgentID{Tenant: "acme", Kind: "assistant", Key: "a"}
			for _, name := range []string{"eve", "bot"} {
				p := y.login(name)
				for _, subject := range subjectsOf(a) {
					p.denied("Publish", subject)
					p.denied("Subscription", subject)
				}
				for _, subject := range everywhere {
					p.denied("Publish", strings.NewReplacer("*", "x", ">", "x").Replace(subject))
					p.denied("Subscription", subject)
				}
				p.denied("Subscription", y.login("ann").user.InboxPrefix+".>")
			}
			y.login("pub").denied("Publish", messages.Subjects{}.Query(a))
			y.login("pub").denied("Publish", messages.Subjects{}.Ctl(a))
			y.login("ann").denied("Publish", messages.Subjects{}.Ctl(a))
			y.login("carl").denied("Publish", messages.Subjects{}.In(a))
			y.login("carl").denied("Publish", messages.Prompt(a))
			y.login("anton").denied("Subscription", y.login("ann").user.InboxPrefix+".>")
			y.login("anton").denied("Publish", y.login("ann").user.InboxPrefix+".x")
			y.login("anton").denied("Subscription", messages.Subjects{}.In(a)) // what others of the tenant say
			y.login("anton").denied("Subscription", "reprise.in.acme.*.*")
			y.login("anton").denied("Subscription", "agents.prompt.*.acme.*")
			y.login("anton").denied("Publish", "reprise.q.acme.>")
			y.login("anton").denied("Publish", "reprise.in.*.assistant.a")
			y.unchanged(before)
		})
	}
}

// subjectsOf are all that an agent has.
func subjectsOf(a messages.AgentID) []string {
	s := messages.Subjects{}
	return []string{
		s.In(a), s.Ctl(a), s.Peer(a), s.Query(a), s.TenantQuery(a.Tenant), s.Live(a), s.DeadLetter(a), s.Log(a), s.Snapshots(a) + ".x", s.Blobs(a) + ".x.0",
		"reprise.inq." + a.Partition().String() + ".ctl.acme.assistant.a", "reprise.inq." + a.Partition().String() + ".in.acme.assistant.a",
		messages.Prompt(a), messages.Status(a), messages.Question(a, "x"), "agents.hb.assistant.acme.a",
	}
}

// everywhere are subjects of the store, the nodes and the server.
var everywhere = []string{
	">", "reprise.>", "reprise.q", "reprise.q.*", "reprise.def.*", "reprise.in.>", "_INBOX.>", "_REPLY.>", "_R_.>", "_actor.>", "_actor.reprise.ping.x",
	"_actor.reprise.door.x", "_cluster.>", "agents.>", "$SRV.>", "$SRV.PING", "$SRV.INFO.agents", "$SYS.>", "$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.PING.CONNZ",
	"$SYS.REQ.USER.INFO", "$JS.>", "$JS.API.>", "$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.INFO.REPRISE_IN", "$JS.API.STREAM.PURGE.REPRISE_IN",
	"$JS.API.STREAM.MSG.GET.REPRISE_LOG_0", "$JS.API.DIRECT.GET.REPRISE_SNAP", "$JS.API.CONSUMER.CREATE.REPRISE_IN", "$JS.API.STREAM.CREATE.MINE",
	"$JS.ACK.REPRISE_IN.p1-e1.1.1.1.1.0", "$JS.FC.>", "$JS.EVENT.>", "$KV.>", "$KV.reprise_leases.0", "$KV.reprise_members.m.x", "$O.>", "anything",
}

// lastSeqs is where each stream ends.
func (w *world) lastSeqs() map[string]uint64 {
	w.t.Helper()
	ends := map[string]uint64{}
	list := w.js.ListStreams(w.ctx)
	for info := range list.Info() {
		if !strings.HasPrefix(info.Config.Name, "KV_") { // members beat
			ends[info.Config.Name] = info.State.LastSeq
		}
	}
	w.ok(list.Err())
	return ends
}

func (w *world) unchanged(before map[string]uint64) {
	w.t.Helper()
	for name, last := range w.lastSeqs() {
		if last != before[name] {
			w.t.Errorf("stream %s ends at %d, ended at %d", name, last, before[name])
		}
	}
}

// What a tenant asks to have written elsewhere is written nowhere: not at the answers
// of another tenant, not among our own subjects, and not at those by which the server
// brings answers to other accounts.
func TestRepliesStayWithTheTenant(t *testing.T) { // A104
	for name, make := range layouts {
		t.Run(name, func(t *testing.T) {
			y := newTenancy(t, layoutOf(t, make))
			eve, ann := y.login("eve"), y.login("ann")
			heard, err := ann.nc.SubscribeSync(ann.user.InboxPrefix + ".>")
			y.ok(err)
			all, err := y.nc.SubscribeSync("_R_.stolen.x")
			y.ok(err)
			ann.flush()
			y.ok(y.nc.Flush())
			y.say(eve.client, "evil/assistant/e", "1", "hello")
			targets := []string{
				ann.user.InboxPrefix + ".replies", "_R_.stolen.x", "reprise.log.0.acme.assistant.a", "reprise.ctl.acme.assistant.a", "$JS.API.STREAM.PURGE.REPRISE_IN",
				"_actor.reprise.x", "agents.prompt.assistant.acme.a", "$KV.x.y",
			}
			before := y.lastSeqs()["REPRISE_LOG_0"]
			for i, target := range targets {
				msg := nats.NewMsg("reprise.in.evil.assistant.e")
				msg.Header.Set(messages.HeaderReply, target)
				msg.Header.Set(messages.HeaderID, fmt.Sprint("in", i))
				msg.Data = []byte("hello")
				y.ok(eve.nc.PublishMsg(msg))
				cmd := nats.NewMsg("reprise.ctl.evil.assistant.e")
				cmd.Header.Set(messages.HeaderReply, target)
				cmd.Data = []byte(`{"type":"clear"}`)
				y.ok(eve.nc.PublishMsg(cmd))
				prompt := nats.NewMsg("agents.prompt.assistant.evil.e")
				prompt.Reply, prompt.Data = eve.user.InboxPrefix+".prompt", []byte(`{"prompt":"hello","reprise":{"reply":"`+target+`"}}`)
				y.ok(eve.nc.PublishMsg(prompt))
			}
			letters := 0
			for _, l := range y.letters(eve.client, "evil", 2*len(targets)) {
				if letters++; l.Code != string(messages.ForbiddenReply) {
					t.Errorf("letter %+v", l)
				}
			}
			if letters != 2*len(targets) {
				t.Errorf("%d letters", letters)
			}
			if n, err := eve.view("evil/assistant/e", "turns"); n != 1 || err != nil {
				t.Errorf("%d turns were run: %v", n, err)
			}
			ann.silent(heard)
			y.ok(y.nc.Flush())
			if n, _, _ := all.Pending(); n > 0 {
				t.Errorf("%d messages came to the server's own subject", n)
			}
			if after := y.lastSeqs()["REPRISE_LOG_0"]; after != before {
				t.Errorf("the log grew from %d to %d", before, after)
			}
		})
	}
}

// silent checks that nothing has come to a subscription.
func (p *person) silent(sub *nats.Subscription) {
	p.t.Helper()
	p.flush()
	if n, _, err := sub.Pending(); n > 0 || err != nil {
		msg, _ := sub.NextMsgWithContext(p.ctx)
		p.t.Errorf("%s hears %d messages that are not his, such as %s: %s (%v)", p.user.Name, n, msg.Subject, msg.Data, err)
	}
}

// A request of one tenant is not answered at the inbox of another, even where the
// server leaves reply subjects as they are.
func TestRequestsAnswerTheirTenant(t *testing.T) { // A104
	for name, make := range layouts {
		t.Run(name, func(t *testing.T) {
			y := newTenancy(t, layoutOf(t, make))
			eve, ann := y.login("eve"), y.login("ann")
			heard, err := ann.nc.SubscribeSync(ann.user.InboxPrefix + ".>")
			y.ok(err)
			ann.flush()
			for _, subject := range []string{"reprise.q.evil.assistant.e", "reprise.q.evil", "agents.prompt.assistant.evil.e", "agents.status.assistant.evil.e"} {
				y.ok(eve.nc.PublishRequest(subject, ann.user.InboxPrefix+".x", []byte(`{"view":"agents"}`)))
			}
			y.say(eve.client, "evil/assistant/e", "1", "hello") // comes behind them
			ann.silent(heard)
		})
	}
}

// Headers that mean something to a server or to a consumer do not affect the inputs of
// others: a message with them is refused, or is an input like others.
func TestHostileHeadersOfTenants(t *testing.T) { // A102, A103
	y := newTenancy(t, layoutOf(t, tenant.Accounts))
	eve, ann := y.login("eve"), y.login("ann")
	neighbour := neighbourOf(messages.AgentID{Tenant: "evil", Kind: "assistant", Key: "e"})
	for name, headers := range hostileHeaders {
		for _, body := range []string{"", "hello"} {
			msg := nats.NewMsg("reprise.in.evil.assistant.e")
			msg.Data = []byte(body)
			for i := 0; i < len(headers); i += 2 {
				msg.Header.Set(headers[i], headers[i+1])
			}
			y.ok(eve.nc.PublishMsg(msg))
		}
		eve.flush()
		_, err := ann.client.Send(y.ctx, neighbour.Full(), input(name, "hello"))
		y.ok(err)
		y.until(ann.client, neighbour.Full(), func(e event) bool {
			return e.Type == "turn.completed" && strings.Contains(string(e.Data), `"`+name+`"`)
		})
	}
	y.eventually("the queue is empty", func() bool {
		s, err := y.js.Stream(y.ctx, "REPRISE_IN")
		y.ok(err)
		return s.CachedInfo().State.Msgs == 0
	})
	if n, list := y.foreign("reprise"); n > 0 {
		t.Errorf("foreign messages in the log: %v", list)
	}
}

// neighbourOf is an agent of acme in the same partition.
func neighbourOf(of messages.AgentID) messages.AgentID {
	for i := 0; ; i++ {
		if a := (messages.AgentID{Tenant: "acme", Kind: "assistant", Key: fmt.Sprint("n", i)}); a.Partition() == of.Partition() {
			return a
		}
	}
}

var hostileHeaders = map[string][]string{
	"consumer deleted": {"Status", "409", "Description", "Consumer Deleted"},
	"bad request":      {"Status", "400"},
	"heartbeat":        {"Status", "100", "Description", "Idle Heartbeat"},
	"request timeout":  {"Status", "408", "Nats-Pending-Messages", "255", "Nats-Pending-Bytes", "1"},
	"timeout, bad":     {"Status", "408"},
	"leadership":       {"Status", "409", "Description", "Leadership Change"},
	"no messages":      {"Status", "404"},
	"pin":              {"Status", "423", "Nats-Pin-Id", "mine"},
	"no responders":    {"Status", "503"},
	"rollup":           {"Nats-Rollup", "all"},
	"ttl":              {"Nats-TTL", "1s"},
	"schedule":         {"Nats-Schedule", "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target", "reprise.inq.0.ctl.acme.assistant.a"},
	"expected":         {"Nats-Expected-Last-Sequence", "77", "Nats-Expected-Stream", "REPRISE_LOG_0"},
	"batch":            {"Nats-Batch-Id", "b", "Nats-Batch-Sequence", "1"},
	"counter":          {"Nats-Incr", "1"},
	"trace":            {"Nats-Trace-Dest", "reprise.log.0.acme.assistant.a"},
	"trace only":       {"Nats-Trace-Dest", "reprise.ctl.acme.assistant.a", "Nats-Trace-Only", "true"},
	"forwarded":        {"Reprise-Forwarded-For", "agents.prompt.assistant.acme.a", "Reprise-Forwarded-Reply", "reprise.log.0.acme.assistant.a"},
	"frame":            {"Reprise-Frame", "1", "Reprise-Epoch", "99999"},
}

// Users of a tenant who ask for what is of all tenants together, or who do not say where their
// answers come to, get an error at once, from the call that wanted it.
func TestUsersOfATenantAreTold(t *testing.T) { // A103
	y := newTenancy(t, layoutOf(t, tenant.Accounts))
	as := func(name, prefix string) *client.Client {
		t.Helper()
		c, err := dial(y.ctx, client.Options{URL: strings.Replace(y.url, "//", "//"+name+":secret%20of%20"+name+"@", 1), InboxPrefix: prefix})
		y.ok(err)
		t.Cleanup(c.Close)
		return c
	}
	ann := as("ann", "_REPLY.reprise.acme.ann")
	_, _, err := ann.Backlog(y.ctx)
	y.notAllowed("backlog", err, "STREAM.INFO")
	_, err = ann.Login(y.ctx)
	y.notAllowed("login", err, "USER.INFO")
	_, err = ann.Do(y.ctx, "acme/assistant/a", messages.Abort{})
	y.notAllowed("do", err, "reprise.ctl.acme.assistant.a")
	for _, err := range ann.QueryStore(y.ctx, messages.Query{View: "doctor"}) {
		y.notAllowed("doctor", err, "reprise.q")
	}
	for _, err := range ann.QueryTenant(y.ctx, "evil", messages.Query{View: "agents"}) {
		y.notAllowed("agents", err, "reprise.q.evil")
	}
	for _, err := range ann.Ask(y.ctx, "evil/assistant/e", "hello") {
		y.notAllowed("ask", err, "agents.prompt.assistant.evil.e")
	}
	astray := func() *client.Client { return as("ann", "") } // one for each: the library asks for its inbox once
	_, err = astray().Send(y.ctx, "acme/assistant/a", input("1", "hello"))
	y.notAllowed("send without a prefix", err, "--inbox-prefix")
	for _, err := range astray().Ask(y.ctx, "acme/assistant/a", "hello") {
		y.notAllowed("ask without a prefix", err, "--inbox-prefix")
	}
	if who, err := client.New(y.nc, "").Login(y.ctx); err != nil || who != (client.Login{User: "admin", Account: "REPRISE"}) {
		t.Errorf("the administrator is %+v: %v", who, err)
	}
	if y.ctx.Err() != nil {
		t.Error("it was waited for")
	}
}

func (y *tenancy) notAllowed(what string, err error, part string) {
	y.t.Helper()
	if !errors.Is(err, client.ErrNotAllowed) || !strings.Contains(err.Error(), part) {
		y.t.Errorf("%s: %v", what, err)
	}
}

// The doctor reports that tenants share an account with the nodes, where every user without
// an account of its own is, and only then.
func TestDoctorOfTenants(t *testing.T) { // A103
	found := func(w *world, c *client.Client) bool {
		for line, err := range c.QueryStore(w.ctx, messages.Query{View: "doctor"}) {
			w.ok(err)
			if strings.Contains(string(line), "several tenants, such as acme and evil") {
				return true
			}
		}
		return false
	}
	t.Run("one account", func(t *testing.T) {
		w := newWorld(t)
		c := w.node().Client()
		w.say(c, "acme/assistant/a", "1", "hello")
		if found(w, c) {
			t.Error("there is one tenant only")
		}
		w.say(c, "evil/assistant/e", "1", "hello")
		w.eventually("it is told", func() bool { return found(w, c) }) // unless NATS is slow to say who asks
	})
	t.Run("accounts", func(t *testing.T) {
		y := newTenancy(t, layoutOf(t, tenant.Accounts))
		y.say(y.login("ann").client, "acme/assistant/a", "1", "hello")
		y.say(y.login("eve").client, "evil/assistant/e", "1", "hello")
		if found(y.world, y.node.Client()) {
			t.Error("they are isolated")
		}
	})
}
