package cluster

import (
	"fmt"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster/traces"
)

// Telemetry says where a node sends the spans of turns, when these have ended.
type Telemetry struct {
	// OTLP is the base address at which a collector takes OTLP over HTTP, such as
	// http://localhost:4318. Empty: nothing is sent.
	OTLP string
	// Headers are part of every request to it.
	Headers map[string]string
	// Content sends what was asked and answered, and the arguments and results of tools, too, but
	// nothing of what encrypted agents hold.
	Content bool
	// Service is the name of the service that the spans are of. Empty: reprise.
	Service string
}

// openTraces makes what sends spans, if that is wanted. Nothing is sent before there are commits.
func (n *Node) openTraces() error {
	t := n.cfg.Telemetry
	if t.OTLP == "" {
		return nil
	}
	sender, err := traces.NewSender(t.OTLP, t.Headers, traces.Resource{Service: t.Service, Version: n.cfg.Version})
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	n.traces = traces.NewExporter(traces.ExporterConfig{Sender: sender, Log: n.log, Content: t.Content, Logger: n.cfg.Logger})
	n.background(n.traces.Run)
	return nil
}

// traced returns an observer that has the spans of turns sent, too, if that is wanted.
func (n *Node) traced(next actors.Observer) actors.Observer {
	if n.traces == nil {
		return next
	}
	return n.traces.Observer(next)
}
