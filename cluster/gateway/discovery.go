package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// The Synadia Agent Protocol for NATS, v0.3: registration, status, heartbeat.
const (
	protocolVersion = "0.3"
	serviceName     = "agents"
	promptQueue     = "agents"
	// mainKey is the key under which each kind can be discovered.
	mainKey = "main"
)

// discovery answers $SRV.PING, INFO and STATS as a NATS micro service does, one service for each
// kind, under the key main. The library's own service answers on any reply subject, also on ours,
// and knows no streamed replies: docs/decisions/0022-discovery.md.
func (g *Gateway) discovery(r *nats.Msg) {
	t := strings.Split(r.Subject, ".") // $SRV.<verb>[.<name>[.<id>]]
	if len(t) > 2 && !strings.EqualFold(t[2], serviceName) || !g.answerable(r) {
		return
	}
	for _, kind := range g.Kinds {
		if id := g.instance(kind); len(t) < 4 || t[3] == id {
			g.reply(r.Reply, g.describe(t[1], kind, id))
		}
	}
}

func (g *Gateway) instance(kind string) string { return g.Self + "-" + kind }

func (g *Gateway) describe(verb, kind, id string) any {
	a := messages.AgentID{Tenant: messages.DefaultTenant, Kind: kind, Key: mainKey}
	self := micro.ServiceIdentity{
		Name: serviceName, ID: id, Version: "0.3.0",
		Metadata: map[string]string{"agent": kind, "owner": a.Tenant, "protocol_version": protocolVersion},
	}
	switch verb {
	case micro.InfoVerb.String():
		return micro.Info{ServiceIdentity: self, Type: micro.InfoResponseType, Description: "a Reprise agent of kind " + kind, Endpoints: []micro.EndpointInfo{
			{Name: "prompt", Subject: messages.Prompt(a), QueueGroup: promptQueue, Metadata: map[string]string{"max_payload": fmt.Sprintf("%dKB", (g.Conn.MaxPayload()-routeRoom)>>10), "attachments_ok": "false"}},
			{Name: "status", Subject: statusSubject("status", a), QueueGroup: promptQueue, Metadata: map[string]string{}},
		}}
	case micro.StatsVerb.String():
		return micro.Stats{ServiceIdentity: self, Type: micro.StatsResponseType, Started: g.opened, Endpoints: []*micro.EndpointStats{
			g.counts.of("prompt", messages.Prompt(a), kind), g.counts.of("status", statusSubject("status", a), kind),
		}}
	}
	return micro.Ping{ServiceIdentity: self, Type: micro.PingResponseType}
}

// counts are the requests to the endpoints of each kind. Safe for concurrent use.
type counts struct {
	mu    sync.Mutex
	known map[string]map[string]*micro.EndpointStats // by the endpoint's name and the kind
	all   map[string]int64                           // by name, those for unknown kinds included
}

func newCounts(kinds []string) *counts {
	c := &counts{known: make(map[string]map[string]*micro.EndpointStats), all: make(map[string]int64)}
	for _, name := range []string{"prompt", "status"} {
		c.known[name] = make(map[string]*micro.EndpointStats)
		for _, kind := range kinds {
			c.known[name][kind] = new(micro.EndpointStats)
		}
	}
	return c
}

// begin counts a request. end is called when its reply has ended, with the error that was its end, if one was.
func (c *counts) begin(name, kind string) (end func(*messages.Error)) {
	began := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[name]++
	stats := c.known[name][kind]
	if stats == nil {
		return func(*messages.Error) {}
	}
	stats.NumRequests++
	return func(why *messages.Error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		stats.ProcessingTime += time.Since(began)
		stats.AverageProcessingTime = stats.ProcessingTime / time.Duration(stats.NumRequests)
		if why != nil {
			stats.NumErrors++
			stats.LastError = fmt.Sprintf("%d:%s", why.Code.Status(), why.Message)
		}
	}
}

// of returns the statistics of a kind's endpoint.
func (c *counts) of(name, subject, kind string) *micro.EndpointStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	stats := *c.known[name][kind]
	stats.Name, stats.Subject, stats.QueueGroup = name, subject, promptQueue
	return &stats
}

// requests returns how many requests all endpoints of a name have had.
func (c *counts) requests(name string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[name]
}

func statusSubject(verb string, a messages.AgentID) string {
	return "agents." + verb + "." + a.Kind + "." + a.Tenant + "." + a.Key
}

// pulse is a heartbeat, and the answer to a status request.
type pulse struct {
	Agent      string    `json:"agent"`
	Owner      string    `json:"owner"`
	Session    string    `json:"session,omitempty"`
	InstanceID string    `json:"instance_id"`
	TS         time.Time `json:"ts"`
	IntervalS  int       `json:"interval_s"`
	// Phase is ours: idle, running or paused.
	Phase messages.AgentPhase `json:"phase,omitempty"`
}

func (g *Gateway) pulse(a messages.AgentID) pulse {
	return pulse{
		Agent: a.Kind, Owner: a.Tenant, InstanceID: g.instance(a.Kind), TS: time.Now().UTC(),
		IntervalS: int(heartbeat / time.Second),
	}
}

// phase is what an agent is doing, as its owner has it; empty if that is not known.
func (g *Gateway) phase(a messages.AgentID) messages.AgentPhase {
	var row projections.Agent
	owner := g.ownerOf(a.Partition())
	if owner == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(g.ctx, answerWithin)
	defer cancel()
	answer, err := g.askOwner(ctx, owner, ownersQuery{Only: a})
	if err != nil || len(answer.Rows) == 0 {
		return ""
	}
	_ = json.Unmarshal(answer.Rows[0].Line, &row) // it stays empty
	return row.Phase
}

func (g *Gateway) status(r *nats.Msg) {
	if !g.answerable(r) {
		return
	}
	a, err := messages.ParsePrompt(r.Subject)
	end := g.counts.begin("status", a.Kind)
	if err == nil {
		err = g.Serves(a.Kind)
	}
	if err != nil {
		why := messages.AsError(err)
		g.replyTo(r).fail(why)
		end(why)
		return
	}
	if !g.begin(func() {
		p := g.pulse(a)
		p.Phase = g.phase(a)
		g.reply(r.Reply, p)
		end(nil)
	}) {
		why := g.full()
		g.replyTo(r).fail(why)
		end(why)
	}
}

// heartbeats publishes a heartbeat of each kind, the first at once.
func (g *Gateway) heartbeats() {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		for _, kind := range g.Kinds {
			a := messages.AgentID{Tenant: messages.DefaultTenant, Kind: kind, Key: mainKey}
			if b, err := json.Marshal(g.pulse(a)); err == nil {
				_ = g.Conn.Publish(statusSubject("hb", a), b) // the next one follows
			}
		}
		select {
		case <-ticker.C:
		case <-g.ctx.Done():
			return
		}
	}
}

// routeRoom is what a command takes on its way to the node of its agent beside what the caller has
// sent, at most.
const routeRoom = 1 << 10
