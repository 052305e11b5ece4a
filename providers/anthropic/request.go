package anthropic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/internal/wire"
)

const (
	// maxTokens is the limit of an answer where none is set: as many as all models since Claude
	// Opus 4 give. https://platform.claude.com/docs/en/about-claude/models/overview
	maxTokens = 32_000
	// bodySize is about how many bytes a request takes beside its texts.
	bodySize = 1 << 10
)

// body returns the body of a request. It is written here, because the SDK's writing takes several
// times the memory of the body.
func (p *Provider) body(r providers.Request) ([]byte, error) {
	s := r.Settings
	for _, name := range s.Names() {
		if slices.Contains(p.Refuses(r.Model), name) {
			return nil, &providers.Error{Kind: providers.Unsupported,
				Message: fmt.Sprintf("the Messages API refuses or ignores the setting %s for the model %s: remove it", name, r.Model)}
		}
	}
	if err := wire.Finite(s); err != nil {
		return nil, err
	}
	extra := maps.Clone(p.extra)
	maps.Copy(extra, s.ExtraBody)
	w := writer{b: append(make([]byte, 0, wire.Size(r)+bodySize), '{'), extra: extra}
	w.text("model", r.Model)
	w.raw("max_tokens", strconv.Itoa(cmp.Or(s.MaxOutputTokens, maxTokens)))
	w.raw("stream", "true")
	w.raw("cache_control", `{"type":"ephemeral"}`)
	omitted, err := p.history(r, &w)
	if err != nil {
		return nil, err
	}
	w.text("system", wire.Instructions(r, omitted))
	if err := w.tools(r); err != nil {
		return nil, err
	}
	choice, err := toolChoice(r)
	if err != nil {
		return nil, err
	}
	w.raw("tool_choice", choice)
	if s.Temperature != nil {
		w.raw("temperature", strconv.FormatFloat(float64(*s.Temperature), 'g', -1, 32))
	}
	if s.TopP != nil {
		w.raw("top_p", strconv.FormatFloat(float64(*s.TopP), 'g', -1, 32))
	}
	if len(s.Stop) > 0 {
		stop, _ := json.Marshal(s.Stop) // strings always marshal
		w.raw("stop_sequences", string(stop))
	}
	if s.ReasoningEffort != "" {
		w.raw("output_config", `{"effort":`+quoted(s.ReasoningEffort)+`}`)
	}
	w.text("service_tier", s.ServiceTier)
	w.extra = nil
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if !json.Valid(extra[name]) {
			return nil, wire.Invalid("extra_body: " + strconv.Quote(name) + " is no JSON")
		}
		w.raw(name, string(extra[name]))
	}
	return append(w.b, '}'), nil
}

func quoted(s string) string { return string(wire.AppendString(nil, s)) }

// writer writes a JSON object. The members of extra are left out.
type writer struct {
	b     []byte
	extra map[string]json.RawMessage
}

// key begins a member, and reports whether its value is to follow.
func (w *writer) key(name string) bool {
	if _, other := w.extra[name]; other {
		return false
	}
	if w.b[len(w.b)-1] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = append(wire.AppendString(w.b, name), ':')
	return true
}

// raw writes a value, unless it is empty.
func (w *writer) raw(name, value string) {
	if value != "" && w.key(name) {
		w.b = append(w.b, value...)
	}
}

// text writes a text, unless it is empty.
func (w *writer) text(name, value string) {
	if value != "" && w.key(name) {
		w.b = wire.AppendString(w.b, value)
	}
}

// tools writes the tools of the agent and those that the server runs.
func (whole *writer) tools(r providers.Request) error {
	if len(r.Tools)+len(r.Settings.HostedTools) == 0 || !whole.key("tools") {
		return nil
	}
	w := &writer{b: append(whole.b, '[')}
	for _, t := range r.Tools {
		schema := t.Parameters
		switch {
		case len(schema) == 0:
			schema = []byte(`{"type":"object"}`)
		case !wire.Complete(schema):
			return wire.Invalid("the parameters of tool " + strconv.Quote(t.Name) + " are no JSON object")
		}
		w.element()
		w.text("name", t.Name)
		w.text("description", t.Description)
		w.raw("input_schema", string(schema))
		w.b = append(w.b, '}')
	}
	for _, hosted := range r.Settings.HostedTools {
		if !wire.Complete(hosted) {
			return wire.Invalid("hosted_tools: a tool is no JSON object")
		}
		w.element()
		w.b = append(w.b[:len(w.b)-1], hosted...)
	}
	whole.b = append(w.b, ']')
	return nil
}

// element begins an object in a list.
func (w *writer) element() {
	if w.b[len(w.b)-1] != '[' {
		w.b = append(w.b, ',')
	}
	w.b = append(w.b, '{')
}

// toolChoice returns the choice of a request, "" for the model's own. Whether the model may make
// several calls at once is part of it.
func toolChoice(r providers.Request) (string, error) {
	alone := ""
	if parallel := r.Settings.ParallelToolCalls; parallel != nil {
		alone = `,"disable_parallel_tool_use":` + strconv.FormatBool(!*parallel)
	}
	some := len(r.Tools)+len(r.Settings.HostedTools) > 0
	named := func(t providers.ToolSpec) bool { return t.Name == r.ToolChoice }
	switch {
	case !some && (r.ToolChoice == "" || r.ToolChoice == "none"):
		return "", nil
	case r.ToolChoice == "none":
		return `{"type":"none"}`, nil
	case r.ToolChoice == "required" && some:
		return `{"type":"any"` + alone + `}`, nil
	case slices.ContainsFunc(r.Tools, named):
		return `{"type":"tool","name":` + quoted(r.ToolChoice) + alone + `}`, nil
	case r.ToolChoice != "":
		return "", wire.Invalid("tool_choice is " + strconv.Quote(r.ToolChoice) + ", and the request has no such tool")
	case alone != "":
		return `{"type":"auto"` + alone + `}`, nil
	}
	return "", nil
}
