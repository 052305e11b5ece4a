package config

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/providers/mcp"
	"github.com/reprise-dev/reprise/providers/tool"
)

// MCPConfig is one entry of mcp: a server whose tools agents have.
type MCPConfig struct {
	Name string
	// Command is the program and its arguments; a relative program is found from Dir.
	Command []string
	Env     map[string]Secret
	Dir     string
	// URL is a server over HTTP, in place of Command. It may hold a key.
	URL     Secret
	Headers map[string]Secret
	// Timeout ends a call that takes longer. Zero: tool.DefaultTimeout.
	Timeout time.Duration
	// Used reports whether an agent has tools of it. Only then is the server sure to have what it
	// needs.
	Used bool
}

// MCPUse is an entry of an agent's tools that names a server.
type MCPUse struct {
	Server        string
	mcp.Selection `json:"-"`
}

// Config is the server as package mcp has it.
func (m MCPConfig) Config() mcp.Config {
	c := mcp.Config{Name: m.Name, Command: m.Command, URL: m.URL.Reveal(), Env: assignments(m.Env), Timeout: m.Timeout}
	if len(m.Command) > 0 {
		c.Dir = m.Dir
	}
	if len(m.Headers) > 0 {
		c.Headers = make(map[string]string)
	}
	for name, value := range m.Headers {
		c.Headers[name] = value.Reveal()
	}
	return c
}

// MCPPrograms reports servers that are used and whose programs are not there. The error is
// [Problems].
func (c *Config) MCPPrograms() error {
	found := &collector{file: c.File}
	for _, m := range c.MCP {
		if _, err := m.Config().Program(); m.Used && err != nil {
			found.add(c.places[spot("mcp", m.Name)], "correct its command", "MCP server %s cannot be started: %v", shown(m.Name), err)
		}
	}
	return found.err()
}

// servers reads the section, then holds the agents' tools against it.
func (r *reader) servers(n *node) {
	var names []string
	if n != nil {
		r.entries(n, "mcp", func(f field) {
			names = append(names, f.name)
			r.places[spot("mcp", f.name)] = f.at
			r.config.MCP = append(r.config.MCP, r.server(f))
		})
	}
	for _, u := range r.served {
		if !slices.Contains(names, u.kind) {
			r.add(u.at.at, meant(u.kind, names, "servers below mcp"), "no MCP server is called %s", shown(u.at.text))
		}
	}
}

func (r *reader) server(f field) MCPConfig {
	m := MCPConfig{Name: f.name, Dir: filepath.Dir(r.file)}
	m.Used = slices.ContainsFunc(r.served, func(u asking) bool { return u.kind == f.name })
	if !wordOf(f.name, 64) {
		r.add(f.at, "rename it: 1 to 64 of A-Z a-z 0-9 _ -", "an MCP server cannot be called %s", shown(f.name))
	}
	r.lenient = !m.Used
	defer func() { r.lenient = false }()
	unset := false // a variable of url
	before, owner := len(r.found), titled("MCP server", f.name)
	r.fields(f.value, &serverKeys, owner, map[string]func(*node){
		"command": func(n *node) { m.Command = r.command(n, "command") },
		"env":     func(n *node) { m.Env = r.environment(n) },
		"dir":     r.path("dir", &m.Dir),
		"url": func(n *node) {
			r.unset = false
			s, _ := r.text(n, "url")
			m.URL, unset = Secret(s), r.unset
		},
		"headers": func(n *node) {
			m.Headers = r.secrets(n, "headers", headerName, "the name of a header", "use letters, digits and -")
		},
		"timeout": r.duration("timeout", &m.Timeout),
	})
	command, url := f.value.get("command"), f.value.get("url")
	switch {
	case f.value.kind != mapping && f.value.kind != empty, len(r.found) > before:
	case command == nil && url == nil:
		r.add(f.at, "add command: [./program], or url: https://tools.example.com/mcp", "%s has neither command nor url", owner)
	case command != nil && url != nil:
		r.add(url.at, "keep one of them", "%s has both command and url", owner)
	case !unset:
		if err := m.Config().Validate(); err != nil {
			r.add(f.at, "correct it, such as url: https://tools.example.com/mcp", "%v", err)
		}
	}
	return m
}

func headerName(s string) bool { return wordOf(s, 64) }

// anyArguments is the schema of tools that only their server knows.
var anyArguments = &node{kind: mapping, fields: []field{
	{name: "type", value: &node{kind: text, text: "object"}},
	{name: "additionalProperties", value: &node{kind: boolean, text: "true"}},
}}

// mcpUse reads an entry of an agent's tools that names a server.
func (r *reader) mcpUse(item *node, a *AgentConfig) {
	var u MCPUse
	server := item.get("mcp")
	r.fields(item, &useKeys, "an entry of tools", map[string]func(*node){
		"mcp": func(n *node) {
			if s, ok := r.text(n, "mcp"); ok {
				u.Server = s
				r.served = append(r.served, asking{s, n})
			}
		},
		"only": func(n *node) {
			if n.kind == empty || n.kind == list && len(n.items) == 0 {
				r.add(n.at, "write the names of tools, or leave it out for all of them", "only is an empty list")
			}
			u.Only = r.patterns(n, "only")
		},
		"except": func(n *node) { u.Except = r.patterns(n, "except") },
		"prefix": func(n *node) {
			if s, ok := r.text(n, "prefix"); ok && !wordOf(s, 32) {
				r.add(n.at, "write 1 to 32 of A-Z a-z 0-9 _ -", "prefix cannot begin the name of a tool")
			} else {
				u.Prefix = s
			}
		},
		"read_only": func(n *node) {
			if r.readOnly(n) {
				u.OnUnknown = append(u.OnUnknown, mcp.OnUnknownRule{Tool: "*", OnUnknown: tool.ReadOnly})
			}
		},
		"on_unknown": func(n *node) {
			r.toolRules(n, "on_unknown", func(name string, n *node) {
				if s, ok := r.onUnknown(n, tool.ReadOnly, tool.Rerun, tool.Pause); ok {
					u.OnUnknown = append(u.OnUnknown, mcp.OnUnknownRule{Tool: name, OnUnknown: s})
				}
			})
		},
		"approval": func(n *node) {
			r.toolRules(n, "approval", func(name string, n *node) {
				var t ToolConfig
				t.Name = name
				r.approval(n, anyArguments, &t)
				u.Approvals = append(u.Approvals, mcp.ApprovalRule{Tool: name, Approval: t.Approval, ApproveIf: t.ApproveIf})
			})
		},
	})
	r.oneOnUnknown(item)
	twice := slices.ContainsFunc(a.MCP, func(o MCPUse) bool { return o.Server == u.Server && o.Prefix == u.Prefix })
	switch {
	case server == nil:
		r.add(item.at, "add mcp: and the name of a server below mcp", "an entry of tools names no MCP server")
	case twice && u.Server != "":
		r.add(item.at, "keep one of them, or give them different prefixes", "MCP server %s is listed twice", shown(server.text))
	}
	a.MCP = append(a.MCP, u)
}

// patterns reads a list of names of tools.
func (r *reader) patterns(n *node, name string) (list []string) {
	r.list(n, name, "[read_*, search]", func(item *node, s string) {
		if r.pattern(item, s, item.text) {
			list = append(list, s)
		}
	})
	return list
}

func (r *reader) pattern(n *node, s, written string) bool {
	_, err := path.Match(s, "")
	if err != nil || s == "" {
		r.add(n.at, "write a name, or a pattern such as read_*", "%s means no tool", shown(written))
		return false
	}
	return true
}

// rules reads one value for all tools, or one for each name or pattern, of which the first that
// fits holds.
func (r *reader) toolRules(n *node, name string, each func(tool string, n *node)) {
	if n.kind != mapping {
		each("*", n)
		return
	}
	r.entries(n, name, func(f field) {
		if r.pattern(f.value, f.name, f.name) {
			each(f.name, f.value)
		}
	})
}

// secrets reads values whose names have a form.
func (r *reader) secrets(n *node, section string, named func(string) bool, what, do string) map[string]Secret {
	list := make(map[string]Secret)
	r.entries(n, section, func(f field) {
		value, ok := r.text(f.value, section+" "+shown(f.name))
		switch {
		case !named(f.name):
			r.add(f.at, do, "%s cannot be %s", shown(f.name), what)
		case ok && strings.ContainsRune(value, 0):
			r.add(f.value.at, "remove it", "%s %s has a zero byte in it", section, shown(f.name))
		case ok:
			list[f.name] = Secret(value)
		}
	})
	return list
}
