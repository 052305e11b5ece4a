package config

import "net/url"

// TelemetryConfig is the section telemetry: where the spans of turns are sent.
type TelemetryConfig struct {
	// OTLP is the base address of the collector. Empty: the file names none.
	OTLP string
	// Headers are part of every request to it.
	Headers map[string]Secret
	// Content sends what was asked and answered, too.
	Content bool
}

func (r *reader) telemetry(n *node) {
	t := &r.config.Telemetry
	r.fields(n, &telemetryKeys, "telemetry", map[string]func(*node){
		"otlp": func(n *node) { t.OTLP = r.otlp(n) },
		"headers": func(n *node) {
			t.Headers = r.secrets(n, "headers", headerName, "the name of a header", "use letters, digits and -")
		},
		"content": r.flag("content", &t.Content),
	})
}

// otlp reads the address of a collector. A variable that is empty is none.
func (r *reader) otlp(n *node) string {
	s, ok := r.text(n, "otlp")
	if !ok || s == "" {
		return ""
	}
	if u, err := url.Parse(s); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		r.add(n.at, "write the base address at which the collector takes OTLP over HTTP, such as http://localhost:4318", "otlp is not an http or https address")
	}
	return s
}
