package cli

import (
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/cmd/internal/config"
)

// The address of a collector is that of the flag, the file or the environment, and an error names
// which of them it is.
func TestTelemetryOf(t *testing.T) {
	const good, bad = "http://collector:4318", "localhost:4317"
	for name, c := range map[string]struct{ flag, file, variable, want, failed string }{
		"flag":         {flag: good, file: bad, variable: bad, want: good},
		"file":         {file: good, variable: bad, want: good},
		"variable":     {variable: good, want: good},
		"none":         {},
		"bad flag":     {flag: bad, failed: "--otlp: that is no address"},
		"bad file":     {file: bad, failed: "telemetry: in the file: that is no address"},
		"bad variable": {variable: bad, failed: "$OTEL_EXPORTER_OTLP_ENDPOINT: that is no address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(otlpVariable, c.variable)
			t.Setenv(otlpHeadersVariable, "")
			got, err := telemetryOf(c.flag, config.TelemetryConfig{OTLP: c.file})
			switch {
			case c.failed == "" && (err != nil || got.OTLP != c.want):
				t.Errorf("got %q and the error %v, want %q", got.OTLP, err, c.want)
			case c.failed != "" && (err == nil || !strings.Contains(err.Error(), c.failed)):
				t.Errorf("got the error %v, want %s", err, c.failed)
			}
		})
	}
}
