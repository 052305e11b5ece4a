package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/reprise-dev/reprise/messages"
)

// The Synadia Agent Protocol for NATS, v0.3: registration, status, heartbeat.
const (
	protocolVersion = "0.3"
	serviceName     = "agents"
	promptQueue     = "agents"
	// mainKey is the key under which each kind can be discovered.
	mainKey = "main"
)

// discovery answers $SRV.PING, INFO and STATS as a NATS micro service would,
// one service for each kind, under the key main. It does so itself because the
// library's service answers on any reply subject, also on ours.
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
			{Name: "prompt", Subject: messages.Prompt(a), QueueGroup: promptQueue, NumRequests: int(g.prompts.Load())},
			{Name: "status", Subject: statusSubject("status", a), QueueGroup: promptQueue},
		}}
	}
	return micro.Ping{ServiceIdentity: self, Type: micro.PingResponseType}
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
	p := pulse{
		Agent: a.Kind, Owner: a.Tenant, InstanceID: g.instance(a.Kind), TS: time.Now().UTC(),
		IntervalS: int(heartbeat / time.Second),
	}
	if row, ok := g.Agents.Agent(a); ok {
		p.Phase = row.Phase
	}
	return p
}

func (g *Gateway) status(r *nats.Msg) {
	if !g.answerable(r) {
		return
	}
	a, err := messages.ParsePrompt(r.Subject)
	if err == nil {
		err = g.Serves(a.Kind)
	}
	if err != nil {
		g.replying(r).fail(messages.AsError(err))
		return
	}
	g.reply(r.Reply, g.pulse(a))
}

// beat publishes heartbeats, the first at once.
func (g *Gateway) beat() {
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
