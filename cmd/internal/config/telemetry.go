package config

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
	r.fields(n, "telemetry", map[string]func(*node){
		"otlp": r.line("otlp", &t.OTLP),
		"headers": func(n *node) {
			t.Headers = r.secrets(n, "headers", headerName, "the name of a header", "use letters, digits and -")
		},
		"content": r.flag("content", &t.Content),
	})
}
