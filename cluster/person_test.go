package cluster_test

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/tenant"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// persons are who an agent's events of a type name, in order; without a name for none.
func (w *world) persons(c *client.Client, agent, eventType string) (named []messages.Person) {
	w.t.Helper()
	for _, e := range viewOf[projections.EventJSON](w, c, agent, "events") {
		switch {
		case e.Type != eventType:
		case e.Person == nil:
			named = append(named, messages.Person{})
		default:
			named = append(named, *e.Person)
		}
	}
	return named
}

func (w *world) named(got []messages.Person, want ...messages.Person) {
	w.t.Helper()
	if len(got) != len(want) {
		w.t.Errorf("got %+v, want %+v", got, want)
		return
	}
	for i := range want {
		if got[i] != want[i] {
			w.t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// claimed is a person by their own word.
func claimed(name string, endpoint messages.Endpoint) messages.Person {
	return messages.Person{Name: name, Claimed: true, Endpoint: endpoint}
}

// TestPersonIsRecorded holds that the log says who sent an input, who decided about each
// call and who deleted the agent, at which endpoint, and the views do.
func TestPersonIsRecorded(t *testing.T) {
	w := newWorld(t)
	var ran atomic.Int32
	c := w.node(refunds(&ran)).Client()
	for _, name := range []string{"none", "carol"} {
		msg := &nats.Msg{Subject: "reprise.in.default.assistant." + name, Data: []byte("be quick"), Header: nats.Header{}}
		if name != "none" {
			msg.Header.Set(messages.HeaderPerson, name)
		}
		w.ok(w.nc.PublishMsg(msg))
		w.until(c, "assistant/"+name, ofType("turn.completed"))
	}
	w.named(w.persons(c, "assistant/none", "input.accepted"), messages.Person{})
	w.named(w.persons(c, "assistant/carol", "input.accepted"), claimed("carol", "in"))

	// One that is sent again keeps the name that it has.
	for key, headers := range map[string]map[string][]string{"letter": nil, "named": {messages.HeaderPerson: {"carol"}}} {
		w.ok(c.As("olga").Resend(w.ctx, messages.DeadLetter{Subject: "reprise.in.default.assistant." + key, Headers: headers, Body: "be quick"}))
		w.until(c, "assistant/"+key, ofType("turn.completed"))
	}
	w.named(w.persons(c, "assistant/letter", "input.accepted"), claimed("olga", "in"))
	w.named(w.persons(c, "assistant/named", "input.accepted"), claimed("carol", "in"))

	const till = "assistant/till"
	done := make(chan error, 1)
	go func() {
		_, err := w.ask(c.As("alice"), till, input("u1", "pay them back"))
		done <- err
	}()
	w.until(c, till, ofType("turn.paused"))
	_, err := c.As("bob").Do(w.ctx, till, messages.Approve{Call: "a", Remember: true})
	w.ok(err)
	_, err = c.As("dora").Do(w.ctx, till, messages.Deny{Call: "c"})
	w.ok(err)
	w.ok(<-done)
	w.named(w.persons(c, till, "input.accepted"), claimed("alice", "prompt"))
	w.named(w.persons(c, till, "approval.granted"), claimed("bob", "ctl"))
	w.named(w.persons(c, till, "approval.denied"), claimed("dora", "ctl"))
	w.named(w.persons(c, till, "turn.completed"), messages.Person{})

	decided := func(list []projections.Effect) map[messages.CallID]messages.Person {
		by := make(map[messages.CallID]messages.Person)
		for _, e := range list {
			if e.Person != nil {
				by[e.ID] = *e.Person
			}
		}
		return by
	}
	want := func(by map[messages.CallID]messages.Person) bool {
		return len(by) == 2 && by["a"] == claimed("bob", "ctl") && by["c"] == claimed("dora", "ctl")
	}
	if got := decided(viewOf[projections.Effect](w, c, till, "effects")); !want(got) {
		t.Errorf("the agent's effects name %+v", got)
	}
	w.eventually("the views of all agents name them", func() bool {
		var all []projections.Effect
		for line, err := range c.QueryTenant(w.ctx, messages.DefaultTenant, messages.Query{View: "effects"}) {
			w.ok(err)
			var e projections.Effect
			w.ok(json.Unmarshal(line, &e))
			all = append(all, e)
		}
		return want(decided(all))
	})
	for r, err := range c.Remembered(w.ctx, till) {
		if err != nil || r.Person == nil || *r.Person != claimed("bob", "ctl") {
			t.Errorf("remembered %+v, %v", r, err)
		}
	}

	const busy = "assistant/busy" // its end takes more than one frame
	_, err = c.Send(w.ctx, busy, input("u1", "pay them back"))
	w.ok(err)
	w.until(c, busy, ofType("turn.paused"))
	for _, agent := range []string{till, busy} {
		_, err = c.As("erik").Do(w.ctx, agent, messages.Delete{})
		w.ok(err)
		w.until(c, agent, ofType("agent.deleted"))
		w.named(w.persons(c, agent, "agent.deleted"), claimed("erik", "ctl"))
	}
}

// TestPersonBelow holds that a decision that is passed down names who decided at the top,
// and an answer to a question who gave it.
func TestPersonBelow(t *testing.T) {
	w := newWorld(t)
	asked := func(c *cluster.Config) { c.PromptDecides = func(string, string) bool { return true } }
	f := new(family)
	c := w.node(f.agents(), asked).Client()
	leaf := ""
	for ev, err := range c.As("ann").AskFacts(w.ctx, "root/r", input("u1", "pay it")) {
		w.ok(err)
		if ev.Question != nil {
			leaf = viewOf[messages.Approval](w, c, "root/r", "approvals")[0].Agent.String()
			w.ok(c.As("ben").Answer(w.ctx, *ev.Question, "yes"))
		}
	}
	w.named(w.persons(c, "root/r", "child.decided"), claimed("ben", "prompt"))
	w.named(w.persons(c, leaf, "approval.granted"), claimed("ben", "peer"))
}

// prompted has a client prompt an agent and answer its question.
func (w *world) prompted(c *client.Client, agent string) {
	w.t.Helper()
	for ev, err := range c.AskFacts(w.ctx, agent, input("u1", "pay them back")) {
		w.ok(err)
		if ev.Question != nil {
			w.ok(c.Answer(w.ctx, *ev.Question, "yes"))
		}
	}
}

// TestPersonOfTenant holds that the server's word counts over the sender's, also at the
// answer to a question, that a name which the server did not prove is marked as claimed,
// and that no client can speak for the server.
func TestPersonOfTenant(t *testing.T) {
	var ran atomic.Int32
	asked := func(c *cluster.Config) { c.PromptDecides = func(string, string) bool { return true } }
	y := newTenancy(t, layoutOf(t, tenant.Accounts), refunds(&ran), asked)
	ann, carl := y.login("ann"), y.login("carl")
	const till = "acme/assistant/till"
	y.prompted(ann.client.As("the boss"), till)
	want := messages.Person{Name: "ann", Claimed: true, Account: "REPRISE_acme", Endpoint: "prompt"}
	y.named(y.persons(carl.client, till, "input.accepted"), want)
	y.named(y.persons(carl.client, till, "approval.granted"), want, want)

	// A client that sends an nkey beside its password is shown by that, unchecked.
	raw, err := net.Dial("tcp", strings.TrimPrefix(y.url, "nats://"))
	y.ok(err)
	t.Cleanup(func() { _ = raw.Close() })
	_, err = fmt.Fprintf(raw, "CONNECT {\"user\":\"ann\",\"pass\":\"secret of ann\",\"nkey\":\"boss\"}\r\nPUB agents.prompt.assistant.acme.raw %s.x 8\r\nbe quick\r\n", ann.user.InboxPrefix)
	y.ok(err)
	y.until(carl.client, "acme/assistant/raw", ofType("turn.completed"))
	want.Name = "boss"
	y.named(y.persons(carl.client, "acme/assistant/raw", "input.accepted"), want)

	// Within one account the server says nothing, and takes no reply subject of its own.
	admin := y.login("admin")
	forged := &nats.Msg{
		Subject: "agents.prompt.assistant.acme.forged", Data: []byte("be quick"), Reply: admin.nc.NewInbox(),
		Header: nats.Header{"Nats-Request-Info": {`{"acc":"REPRISE_acme","user":"ann"}`}},
	}
	y.ok(admin.nc.PublishMsg(forged))
	y.until(carl.client, "acme/assistant/forged", ofType("turn.completed"))
	y.named(y.persons(carl.client, "acme/assistant/forged", "input.accepted"), messages.Person{})
	forged.Reply = "_R_.forged"
	y.ok(admin.nc.PublishMsg(forged))
	admin.flush()
	if err := admin.nc.LastError(); err == nil || !strings.Contains(err.Error(), "Reply") {
		t.Errorf("the server takes a reply subject of its own: %v", err)
	}
}

// TestPersonByJWT holds that a user whose key the server has checked counts as
// authenticated, whatever other name the client gives the server.
func TestPersonByJWT(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	operator, operatorID, _ := nkey(t, dir, "operator", nkeys.PrefixByteOperator)
	encoded := func(c interface {
		Encode(nkeys.KeyPair) (string, error)
	}, by nkeys.KeyPair) string {
		text, err := c.Encode(by)
		w.ok(err)
		return text
	}
	_, systemID, _ := nkey(t, dir, "system", nkeys.PrefixByteAccount)
	trust := jwt.NewOperatorClaims(operatorID)
	trust.SystemAccount = systemID
	conf := "operator: " + encoded(trust, operator) + "\nresolver: MEMORY\nresolver_preload: { " + systemID + ": " + encoded(jwt.NewAccountClaims(systemID), operator)
	users := make(map[string]nats.Option)
	nodes, nodesID, _ := nkey(t, dir, "nodes", nkeys.PrefixByteAccount)
	tenants, tenantsID, _ := nkey(t, dir, "tenants", nkeys.PrefixByteAccount)
	subjects := []jwt.Subject{"agents.prompt.>", "agents.answer.>", "reprise.q.>"}
	for name, account := range map[string]nkeys.KeyPair{"nodes": nodes, "tenants": tenants} {
		id, err := account.PublicKey()
		w.ok(err)
		claims := jwt.NewAccountClaims(id)
		for _, subject := range subjects {
			if name == "nodes" {
				claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
				claims.Exports.Add(&jwt.Export{Name: string(subject), Subject: subject, Type: jwt.Service, ResponseType: jwt.ResponseTypeStream})
			} else {
				claims.Imports.Add(&jwt.Import{Name: string(subject), Account: nodesID, Subject: subject, Type: jwt.Service, Share: true})
			}
		}
		conf += ", " + id + ": " + encoded(claims, operator)
		key, keyID, _ := nkey(t, dir, name+" user", nkeys.PrefixByteUser)
		text := encoded(jwt.NewUserClaims(keyID), account)
		users[name] = nats.UserJWT(func() (string, error) { return text, nil }, key.Sign)
		users[name+" key"] = nats.Name(keyID)
	}
	address := "nats://" + configured(t, conf+" }")
	var ran atomic.Int32
	n := w.node(refunds(&ran), func(c *cluster.Config) {
		c.NATS, c.NATSOptions = address, []nats.Option{unhurried, users["nodes"]}
		c.PromptDecides = func(string, string) bool { return true }
	})
	theirs, err := nats.Connect(address, unhurried, users["tenants"], users["tenants key"], nats.UserInfo("boss", "x"))
	w.ok(err)
	t.Cleanup(theirs.Close)
	w.prompted(client.New(theirs, "").As("the boss"), "assistant/till")
	want := messages.Person{Name: theirs.Opts.Name, Account: tenantsID, Endpoint: "prompt"}
	w.named(w.persons(n.Client(), "assistant/till", "input.accepted"), want)
	w.named(w.persons(n.Client(), "assistant/till", "approval.granted"), want, want)
}
