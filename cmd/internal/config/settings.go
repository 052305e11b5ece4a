package config

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-dev/reprise/providers"
)

// settings are the fields that people look for in the agent itself.
var settings = providers.SettingNames()

// settings reads the settings of an agent or of one of its models.
func (r *reader) settings(n *node) (s providers.Settings) {
	r.fields(n, &settingsKeys, "settings", map[string]func(*node){
		"temperature":       r.float("temperature", 0, 2, &s.Temperature),
		"top_p":             r.float("top_p", 0, 1, &s.TopP),
		"max_output_tokens": r.count("max_output_tokens", &s.MaxOutputTokens),
		"stop": func(n *node) {
			r.list(n, "stop", "[END]", func(_ *node, text string) { s.Stop = append(s.Stop, text) })
		},
		"seed":                func(n *node) { s.Seed = r.seed(n) },
		"presence_penalty":    r.float("presence_penalty", -2, 2, &s.PresencePenalty),
		"frequency_penalty":   r.float("frequency_penalty", -2, 2, &s.FrequencyPenalty),
		"reasoning_effort":    r.line("reasoning_effort", &s.ReasoningEffort),
		"verbosity":           r.line("verbosity", &s.Verbosity),
		"service_tier":        r.line("service_tier", &s.ServiceTier),
		"parallel_tool_calls": func(n *node) { s.ParallelToolCalls = new(bool); r.flag("parallel_tool_calls", s.ParallelToolCalls)(n) },
		"cache_key":           r.line("cache_key", &s.CacheKey),
		"hosted_tools":        func(n *node) { s.HostedTools = r.hostedTools(n) },
		"extra_body":          func(n *node) { s.ExtraBody = r.extraBody(n) },
	})
	return s
}

func (r *reader) seed(n *node) *int64 {
	s, ok := r.digits(n, "seed", "a whole number")
	if !ok {
		return nil
	}
	v, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		r.add(n.at, "write a whole number", "seed is %s", map[bool]string{true: "out of range", false: "not a whole number"}[errors.Is(err, strconv.ErrRange)])
		return nil
	}
	return &v
}

// essential are members of a request that an extra body cannot replace.
var essential = []string{"model", "messages", "input", "tools", "stream"}

// extraBody reads members of the JSON of requests.
func (r *reader) extraBody(n *node) map[string]json.RawMessage {
	extra := make(map[string]json.RawMessage)
	r.entries(n, "extra_body", func(f field) {
		if slices.Contains(essential, f.name) {
			r.add(f.at, "remove it", "extra_body cannot replace %s, which the request is made of", f.name)
			return
		}
		if raw, ok := r.json(f.value, r.expanded); ok {
			extra[f.name] = raw
		}
	})
	return extra
}

// hostedTools reads tools that a server runs.
func (r *reader) hostedTools(n *node) (tools []json.RawMessage) {
	if n.kind != list {
		r.add(n.at, "write a list, such as [{type: web_search}]", "hosted_tools must be a list, not %s", n.kind)
		return nil
	}
	for _, item := range n.items {
		if !r.hosted(item) {
			continue
		}
		if raw, ok := r.json(item, r.expanded); ok {
			tools = append(tools, raw)
		}
	}
	return tools
}

// hosted reports whether an entry is a tool that the server can run alone.
func (r *reader) hosted(tool *node) bool {
	const write = "write what the server calls the tool, such as {type: web_search}"
	kind := tool.get("type")
	if kind == nil {
		r.add(tool.at, write, "a hosted tool has no type")
		return false
	}
	name, ok := r.text(kind, "the type of a hosted tool")
	if name == "" {
		if ok {
			r.add(kind.at, write, "the type of a hosted tool is empty")
		}
		return false
	}
	if fix := r.clientSide(tool, name); fix != "" {
		r.add(kind.at, fix, "a tool of type %s waits for an answer of the caller, which agents do not give", name)
		return false
	}
	return true
}

// clientSide returns how to put right a tool that the server does not run alone; "" for others.
func (r *reader) clientSide(tool *node, kind string) string {
	environment, execution := tool.get("environment").get("type"), tool.get("execution")
	switch {
	case kind == "shell" && (environment == nil || !strings.HasPrefix(r.expanded(environment), "container")):
		return "write environment: {type: container_auto} beside it, or remove it"
	case kind == "tool_search" && execution != nil && r.expanded(execution) != "server":
		return "write execution: server beside it, or remove it"
	case kind == "mcp" && r.asks(tool):
		return "write require_approval: never beside it, or take the server below mcp"
	case strings.HasPrefix(kind, "computer"), slices.Contains([]string{"function", "custom", "local_shell", "apply_patch"}, kind):
		return "remove it, and give the agent a tool of its own below tools"
	}
	return ""
}

// asks reports whether a call of a hosted server can want an approval: unless none does, or all
// tools that it may call are among those that do not.
func (r *reader) asks(server *node) bool {
	approval := server.get("require_approval")
	if approval == nil || approval.get("always") != nil {
		return true
	}
	allowed, never := toolNames(server.get("allowed_tools")), toolNames(approval.get("never"))
	if approval.kind == text && r.expanded(approval) == "never" {
		return false
	}
	return allowed == nil || slices.ContainsFunc(allowed, func(name string) bool { return !slices.Contains(never, name) })
}

// toolNames returns the tools that a list has, or the list tool_names in a mapping.
func toolNames(n *node) (names []string) {
	if inner := n.get("tool_names"); inner != nil {
		n = inner
	}
	if n != nil {
		for _, item := range n.items {
			names = append(names, item.text)
		}
	}
	return names
}

// expanded returns a text with its variables replaced.
func (r *reader) expanded(n *node) string {
	s, _ := r.text(n, "a value of the request")
	return s
}
