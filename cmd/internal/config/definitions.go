package config

import (
	"slices"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

// Definitions are the agents of the file with their tools. lookup finds the
// built-in tools, command makes one that runs a program; builtin, if given,
// names what lookup knows, so that a typo can be put right. The error is
// [Problems].
func (c *Config) Definitions(
	lookup func(name string) (tool.Tool, bool),
	command func(toolbox.CommandConfig) (tool.Tool, error),
	builtin ...string,
) ([]actors.Definition, error) {
	found := &collector{file: c.File}
	declared := c.declared(found, lookup, command)
	names := slices.Clone(builtin)
	for name := range declared {
		names = append(names, name)
	}
	slices.Sort(names)
	defs := make([]actors.Definition, 0, len(c.Agents))
	for _, a := range c.Agents {
		d := a.Definition
		for _, name := range a.Tools {
			t, ok := declared[name]
			if !ok {
				t, ok = lookup(name)
			}
			if !ok {
				found.add(c.places[spot("name", a.Kind, name)], meant(name, names, "tools"), "no tool is called %s", shown(name))
				continue
			}
			if t != nil { // else its own problem is noted
				d.Tools = append(d.Tools, t)
			}
		}
		defs = append(defs, d)
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	return defs, nil
}

// declared makes the tools of the file. One that cannot be made is nil.
func (c *Config) declared(
	found *collector,
	lookup func(string) (tool.Tool, bool),
	command func(toolbox.CommandConfig) (tool.Tool, error),
) map[string]tool.Tool {
	out := make(map[string]tool.Tool, len(c.Tools))
	for _, tc := range c.Tools {
		at := c.places[spot("tool", tc.Name)]
		out[tc.Name] = nil
		if _, taken := lookup(tc.Name); taken {
			found.add(at, "choose another name", "a tool called %s is built in", shown(tc.Name))
			continue
		}
		if tc.Agent != "" {
			out[tc.Name] = tc.agentTool()
			continue
		}
		t, err := command(tc.program())
		if err != nil {
			found.add(at, "correct its command", "tool %s cannot be made: %v", shown(tc.Name), err)
			continue
		}
		out[tc.Name] = t
	}
	return out
}

// program is the program of an entry, with its environment.
func (t ToolConfig) program() toolbox.CommandConfig {
	c := t.CommandConfig
	c.Env = assignments(t.Env)
	return c
}

// assignments are name=value, sorted.
func assignments(env map[string]Secret) (list []string) {
	for name, value := range env {
		list = append(list, name+"="+value.Reveal())
	}
	slices.Sort(list)
	return list
}
