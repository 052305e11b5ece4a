package config

import (
	"slices"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/providers/tool"
)

// programOnly are the fields of a tool that is a program.
var programOnly = []string{"command", "reconcile", "read_only", "on_unknown", "timeout", "env", "dir", "key_field", "approve_repeats"}

// agentOnly are the fields of a tool that is an agent, beside agent itself.
var agentOnly = []string{"wait", "max_children"}

// agentTool reads a tool that is an agent.
func (r *reader) agentTool(f field, owner string, t ToolConfig) ToolConfig {
	wait := true
	t.Parameters, t.OnUnknown = nil, ""
	readers := map[string]func(*node){
		"agent": func(n *node) {
			if s, ok := r.text(n, "agent"); ok {
				t.Agent = s
				r.asked = append(r.asked, asking{s, n})
			}
		},
		"description":      r.line("description", &t.Description),
		"parameters":       func(n *node) { r.parameters(n, &t) },
		"wait":             r.flag("wait", &wait),
		"max_children":     r.count("max_children", &t.MaxChildren),
		"approval_timeout": r.duration("approval_timeout", &t.ApprovalTimeout),
		"approval": func(n *node) {
			if s, ok := r.word(n, "approval", []string{"never", "always"}); ok && s == "always" {
				t.Approval = tool.Always
			}
		},
	}
	for _, name := range programOnly {
		readers[name] = func(*node) {
			r.add(r.fieldOf(f, name), "remove it, or remove agent", "%s is an agent, and %s is for programs", owner, name)
		}
	}
	r.fields(f.value, &toolKeys, owner, readers)
	t.Detached = !wait
	if f.value.get("description") == nil {
		r.add(f.at, "add description: what it does, in a sentence for the model", "%s has no description", owner)
	}
	if timeout := f.value.get("approval_timeout"); timeout != nil && t.Approval != tool.Always {
		r.add(timeout.at, "add approval: always, or remove approval_timeout", "no call of this tool ever waits for approval")
	}
	return t
}

// fieldOf is the place of a field of f.
func (r *reader) fieldOf(f field, name string) place {
	for _, below := range f.value.fields {
		if below.name == name {
			return below.at
		}
	}
	return f.at
}

// agentsAsked holds that agents which are tools are in the file.
func (r *reader) agentsAsked() {
	var kinds []string
	for _, a := range r.config.Agents {
		kinds = append(kinds, a.Kind)
	}
	for _, u := range r.asked {
		if !slices.Contains(kinds, u.kind) {
			r.add(u.at.at, meant(u.kind, kinds, "agents of the file"), "no agent is called %s", shown(u.at.text))
		}
	}
}

// agentTool is the tool of an entry with an agent.
func (t ToolConfig) agentTool() tool.Tool {
	made := actors.AsTool(t.Agent, t.Description).Named(t.Name).MaxChildren(t.MaxChildren).ApprovalTimeout(t.ApprovalTimeout)
	if t.Parameters != nil {
		made = made.Parameters(t.Parameters)
	}
	if t.Detached {
		made = made.Detached()
	}
	if t.Approval == tool.Always {
		made = made.ApproveAlways()
	}
	return made
}

// asking is where a tool names an agent, or an agent a server.
type asking struct {
	kind string
	at   *node
}
