package cli

import (
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/traces"
	"github.com/reprise-dev/reprise/cmd/internal/config"
	"github.com/reprise-dev/reprise/messages"
)

// The variables of OpenTelemetry that are read, as by all programs that send by OTLP.
const (
	otlpVariable        = "OTEL_EXPORTER_OTLP_ENDPOINT"
	otlpHeadersVariable = "OTEL_EXPORTER_OTLP_HEADERS"
	serviceVariable     = "OTEL_SERVICE_NAME"
)

// otlpFlag adds to a command that runs a node the flag --otlp.
func otlpFlag(cmd *cobra.Command, address *string) {
	cmd.Flags().StringVar(address, "otlp", "", "base `URL` of an OpenTelemetry collector that accepts OTLP over HTTP, for the spans of turns, such as http://localhost:4318 (default: telemetry in the file, else $"+otlpVariable+", else nothing is sent)")
}

// telemetryOf returns where a node sends spans: to the address of a flag, that of the file, or that
// of the environment.
func telemetryOf(flag string, file config.TelemetryConfig) (cluster.Telemetry, error) {
	t := cluster.Telemetry{Content: file.Content, Service: os.Getenv(serviceVariable)}
	for _, from := range []struct{ name, address string }{{"--otlp", flag}, {"telemetry: in the file", file.OTLP}, {"$" + otlpVariable, os.Getenv(otlpVariable)}} {
		if from.address == "" {
			continue
		}
		if _, err := traces.NewSender(from.address, nil, traces.Resource{}); err != nil {
			return t, usage("%s: %v", from.name, err)
		}
		t.OTLP = from.address
		break
	}
	if t.OTLP == "" {
		return t, nil
	}
	var err error
	if t.Headers, err = otlpHeaders(); err != nil {
		return t, err
	}
	for name, value := range file.Headers {
		t.Headers[http.CanonicalHeaderKey(name)] = value.Reveal()
	}
	return t, nil
}

// callerTrace returns the trace context that the program was started with, as OpenTelemetry hands
// it to programs: what is sent to an agent belongs to it.
func callerTrace() messages.TraceContext {
	return messages.TraceOf(func(name string) string { return os.Getenv(strings.ToUpper(name)) })
}

// otlpHeaders returns the headers that the environment has for a collector. The error names no
// value: it may be a secret.
func otlpHeaders() (map[string]string, error) {
	headers := make(map[string]string)
	for pair := range strings.SplitSeq(os.Getenv(otlpHeadersVariable), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !found || name == "" || err != nil {
			return nil, usage("$%s: write name=value, with commas between several, and %% as %%25", otlpHeadersVariable)
		}
		headers[http.CanonicalHeaderKey(name)] = value
	}
	return headers, nil
}
