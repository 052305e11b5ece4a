package gateway

import (
	"encoding/json"
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

// register makes a kind discoverable under the key main.
func (g *Gateway) register(kind string) error {
	a := messages.AgentID{Tenant: messages.DefaultTenant, Kind: kind, Key: mainKey}
	service, err := micro.AddService(g.Conn, micro.Config{
		Name: serviceName, Version: "0.3.0", Description: "a Reprise agent of kind " + kind,
		Metadata: map[string]string{"agent": kind, "owner": a.Tenant, "protocol_version": protocolVersion},
	})
	if err != nil {
		return err
	}
	g.services = append(g.services, service)
	if err := service.AddEndpoint("prompt", micro.HandlerFunc(func(r micro.Request) { g.prompt(asMsg(r)) }),
		micro.WithEndpointSubject(messages.Prompt(a)), micro.WithEndpointQueueGroup(promptQueue),
		micro.WithEndpointMetadata(map[string]string{"max_payload": "384KB", "attachments_ok": "false"})); err != nil {
		return err
	}
	return service.AddEndpoint("status", micro.HandlerFunc(func(r micro.Request) { g.status(asMsg(r)) }),
		micro.WithEndpointSubject(statusSubject("status", a)), micro.WithEndpointQueueGroup(promptQueue))
}

func asMsg(r micro.Request) *nats.Msg {
	return &nats.Msg{Subject: r.Subject(), Reply: r.Reply(), Header: nats.Header(r.Headers()), Data: r.Data()}
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
	Phase string `json:"phase,omitempty"`
}

func (g *Gateway) pulse(a messages.AgentID) pulse {
	p := pulse{
		Agent: a.Kind, Owner: a.Tenant, InstanceID: g.Self + "-" + a.Kind, TS: time.Now().UTC(),
		IntervalS: int(heartbeat / time.Second),
	}
	if row, ok := g.Agents.Agent(a); ok {
		p.Phase = row.Phase
	}
	return p
}

func (g *Gateway) status(msg *nats.Msg) {
	if !g.answerable(msg) {
		return
	}
	a, err := messages.ParsePrompt(msg.Subject)
	if err == nil {
		err = g.Serves(a.Kind)
	}
	if err != nil {
		g.fail(msg.Reply, messages.AsError(err))
		return
	}
	if !g.elsewhere(a.Partition(), msg) {
		g.reply(msg.Reply, g.pulse(a))
	}
}

// beat publishes heartbeats, the first at once.
func (g *Gateway) beat() {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		for _, kind := range g.Kinds {
			a := messages.AgentID{Tenant: messages.DefaultTenant, Kind: kind, Key: mainKey}
			if b, err := json.Marshal(g.pulse(a)); err == nil {
				_ = g.Conn.Publish(statusSubject("hb", a), b)
			}
		}
		select {
		case <-ticker.C:
		case <-g.ctx.Done():
			return
		}
	}
}
