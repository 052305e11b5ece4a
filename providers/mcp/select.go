package mcp

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reprise-dev/reprise/providers/tool"
)

// Selection says which of a server's tools agents have, and how. Tools are meant by their names
// at the server, or by patterns as path.Match has them, but that * is any run of characters, slashes
// too: read_* for all that begin so. The zero value is all of them.
//
// A tool's OnUnknown is that of the first rule that fits. Without one it follows the
// server's hints: tool.ReadOnly if the tool only reads, tool.Rerun if it is idempotent and
// destroys nothing, else tool.Pause. Each call carries its idempotency key as
// dev.reprise/idempotency-key in _meta.
type Selection struct {
	// Only are the tools to have. Empty: all.
	Only []string
	// Except are those not to have.
	Except []string
	// Prefix comes before each name.
	Prefix string
	// OnUnknown and Approvals are rules, of which the first that fits a tool holds.
	OnUnknown []OnUnknownRule
	Approvals []ApprovalRule
}

// OnUnknownRule sets the OnUnknown of tools: tool.ReadOnly, tool.Rerun or tool.Pause.
type OnUnknownRule struct {
	Tool      string
	OnUnknown tool.OnUnknown
}

// ApprovalRule says which calls of tools wait for a person. ApproveIf is for tool.Asked and
// no other; its error counts as yes.
type ApprovalRule struct {
	Tool      string
	Approval  tool.Approval
	ApproveIf func(arguments json.RawMessage) (bool, error)
}

var prefix = regexp.MustCompile(`^[A-Za-z0-9_-]{0,32}$`)

// Validate reports what is wrong with a selection.
func (v Selection) Validate() error {
	patterns := slices.Concat(v.Only, v.Except)
	for _, r := range v.OnUnknown {
		if r.OnUnknown != tool.ReadOnly && r.OnUnknown != tool.Rerun && r.OnUnknown != tool.Pause {
			return fmt.Errorf("on_unknown %q of %s: write %s, %s or %s", r.OnUnknown, r.Tool, tool.ReadOnly, tool.Rerun, tool.Pause)
		}
		patterns = append(patterns, r.Tool)
	}
	for _, r := range v.Approvals {
		if (r.Approval == tool.Asked) != (r.ApproveIf != nil) {
			return fmt.Errorf("approval %q of %s: only %q comes with a function, and it must", r.Approval, r.Tool, tool.Asked)
		}
		patterns = append(patterns, r.Tool)
	}
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return fmt.Errorf("%q is no name and no pattern such as read_*", p)
		}
	}
	if !prefix.MatchString(v.Prefix) {
		return fmt.Errorf("prefix %q: it may have 32 letters, digits, _ and -", v.Prefix)
	}
	return nil
}

// Select returns a source of some of the server's tools. The error is that of [Selection.Validate].
func (s *Server) Select(v Selection) (tool.Source, error) {
	if err := v.Validate(); err != nil {
		return nil, fmt.Errorf("MCP server %s: %w", s.config.Name, err)
	}
	return &selected{Selection: v, server: s}, nil
}

// maxSpec is how many bytes the description and the schema of a tool may have.
const maxSpec = 64 << 10

// selected is a source. It keeps what it made of a list of tools until there is another.
type selected struct {
	Selection
	server  *Server
	mu      sync.Mutex
	changed chan struct{}
	now     []tool.Tool
}

// Tools returns those there are now.
func (v *selected) Tools() ([]tool.Tool, <-chan struct{}) {
	v.server.mu.Lock()
	tools, changed := v.server.tools, v.server.changed
	v.server.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	if changed != v.changed {
		v.changed, v.now = changed, v.make(tools)
	}
	return v.now, v.changed
}

func (v *selected) make(tools []*sdk.Tool) (made []tool.Tool) {
	tools = slices.DeleteFunc(slices.Clone(tools), func(t *sdk.Tool) bool {
		return len(v.Only) > 0 && !fits(v.Only, t.Name) || fits(v.Except, t.Name)
	})
	named := make(map[string][]string)
	for _, t := range tools {
		name := valid(v.Prefix + t.Name)
		named[name] = append(named[name], t.Name)
	}
	for _, t := range tools {
		name := valid(v.Prefix + t.Name)
		if len(named[name]) > 1 {
			v.server.logger.Error("an mcp tool is left out, because others get the same name; list them under except", "tool", t.Name, "name", name, "tools", named[name])
			continue
		}
		r, err := v.remote(t, name)
		if err != nil {
			v.server.logger.Error("an mcp tool is left out", "tool", t.Name, "error", err)
			continue
		}
		made = append(made, r)
	}
	for _, p := range v.Only {
		if len(tools) > 0 && !slices.ContainsFunc(tools, func(t *sdk.Tool) bool { return fits([]string{p}, t.Name) }) {
			v.server.logger.Warn("an mcp server has no tool that is to be used", "tool", p)
		}
	}
	return made
}

func (v *selected) remote(t *sdk.Tool, name string) (*remote, error) {
	raw, err := json.Marshal(t.InputSchema)
	if err != nil {
		return nil, err
	}
	if bytes := len(t.Description) + len(raw); bytes > maxSpec {
		return nil, fmt.Errorf("its description and schema have %d bytes: the limit is %d", bytes, maxSpec)
	}
	schema := resolve(raw)
	raw = []byte(v.server.keys.Replace(string(raw)))
	var top struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &top) != nil || top.Type != "object" {
		return nil, fmt.Errorf("the schema of its arguments is not that of an object")
	}
	r := &remote{server: v.server, name: t.Name, schema: schema, spec: tool.Spec{
		Name: name, Description: v.server.hidden.Replace(t.Description), Parameters: raw, OnUnknown: onUnknown(t.Annotations), Timeout: v.server.config.Timeout,
	}}
	for _, rule := range slices.Backward(v.OnUnknown) {
		if fits([]string{rule.Tool}, t.Name) {
			r.spec.OnUnknown = rule.OnUnknown
		}
	}
	for _, rule := range slices.Backward(v.Approvals) {
		if fits([]string{rule.Tool}, t.Name) {
			r.spec.Approval, r.approveIf = rule.Approval, rule.ApproveIf
		}
	}
	return r, nil
}

// resolve returns the schema, or nil where arguments cannot be checked by it here: it cannot be read,
// is of another version, or its check might not end.
func resolve(raw json.RawMessage) *jsonschema.Resolved {
	var schema jsonschema.Schema
	if depth(raw) > maxDepth || json.Unmarshal(raw, &schema) != nil || nested(&schema) {
		return nil
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil
	}
	if err := resolved.Validate(map[string]any{}); err != nil && strings.HasPrefix(err.Error(), "cannot validate version") {
		return nil
	}
	return resolved
}

var (
	reference = regexp.MustCompile(`"\$ref":"([^"]*)"`)
	definable = regexp.MustCompile(`^#/(\$defs|definitions)/`)
	renaming  = regexp.MustCompile(`"\$(id|dynamicRef)":`)
)

// maxDepth is how deep a schema may nest that is checked here. Reading one takes time for all that is below each level.
const maxDepth = 100

// depth returns how many braces and brackets of JSON are open at most, those in strings included.
func depth(raw []byte) (most int) {
	open := 0
	for _, c := range raw {
		switch c {
		case '{', '[':
			open++
			most = max(most, open)
		case '}', ']':
			open--
		}
	}
	return most
}

// nested reports whether a reference in a schema may lead to another one. The check of arguments by
// such a schema may not end, or take time that grows by powers. Not nested is one whose references
// all lead into its definitions, where there are none.
func nested(s *jsonschema.Schema) bool {
	top := *s
	top.ID = ""
	whole, err := json.Marshal(&top)
	definitions, _ := json.Marshal([]map[string]*jsonschema.Schema{s.Defs, s.Definitions})
	return err != nil || renaming.Match(whole) || reference.Match(definitions) ||
		slices.ContainsFunc(reference.FindAllSubmatch(whole, -1), func(m [][]byte) bool { return !definable.Match(m[1]) })
}

// onUnknown follows a server's hints about a tool. What they do not cover may hurt when
// it runs twice.
func onUnknown(hints *sdk.ToolAnnotations) tool.OnUnknown {
	switch {
	case hints == nil:
	case hints.ReadOnlyHint:
		return tool.ReadOnly
	case hints.IdempotentHint && hints.DestructiveHint != nil && !*hints.DestructiveHint:
		return tool.Rerun
	}
	return tool.Pause
}

// fits reports whether one of the patterns means the name. A slash is a character like any other.
func fits(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(strings.ReplaceAll(p, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
		return ok || p == name
	})
}

var invalid = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// valid is a name that models take.
func valid(name string) string {
	name = invalid.ReplaceAllString(name, "_")
	return name[:min(len(name), 64)]
}
