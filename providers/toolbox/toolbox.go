// Package toolbox holds the tools that come with Reprise, and turns any
// program into one.
//
// # Guarantees
//
//   - No argument makes a tool panic or work without bound.
//   - A program that [Command] runs leaves nothing of its process group behind.
//   - A program inherits a few environment variables that every program needs, see
//     CommandConfig, and those that its configuration names.
package toolbox

import (
	"context"

	"github.com/reprise-dev/reprise/providers/tool"
)

// builtin are the tools that need no configuration, in the order of Names.
var builtin = []struct {
	name string
	make func() tool.Tool
}{
	{"calculator", Calculator},
	{"clock", Clock},
	{"echo", Echo},
}

// ByName is the built-in tool of that name.
func ByName(name string) (tool.Tool, bool) {
	for _, b := range builtin {
		if b.name == name {
			return b.make(), true
		}
	}
	return nil, false
}

// Names are the built-in tools, sorted.
func Names() []string {
	names := make([]string, len(builtin))
	for i, b := range builtin {
		names[i] = b.name
	}
	return names
}

// Echo returns the text it is given: for benchmarks and first steps.
func Echo() tool.Tool {
	type echo struct {
		Text string `json:"text" jsonschema:"What to say back"`
	}
	return tool.New("echo", "Say a text back", tool.ReadOnly, func(_ context.Context, e echo) (string, error) {
		return e.Text, nil
	})
}
