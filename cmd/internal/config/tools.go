package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

func (r *reader) tools(n *node) {
	r.entries(n, "tools", func(f field) {
		if !wordOf(f.name, 64) {
			r.add(f.at, "rename it: 1 to 64 of A-Z a-z 0-9 _ -", "a tool cannot be called %s", shown(f.name))
		}
		r.places[spot("tool", f.name)] = f.at
		r.config.Tools = append(r.config.Tools, r.tool(f))
	})
}

func wordOf(s string, limit int) bool {
	return s != "" && len(s) <= limit && !strings.ContainsFunc(s, func(c rune) bool { return !wordRune(c) })
}

func (r *reader) tool(f field) ToolConfig {
	t := ToolConfig{CommandConfig: toolbox.CommandConfig{
		Name: f.name, OnUnknown: tool.Pause, Dir: filepath.Dir(r.file),
		Parameters: json.RawMessage(`{"type":"object","properties":{}}`),
	}}
	owner := titled("tool", f.name)
	if agent := f.value.get("agent"); agent != nil {
		return r.agentTool(f, owner, t)
	}
	r.fields(f.value, &toolKeys, owner, map[string]func(*node){
		"command":     func(n *node) { t.Command = r.command(n, "command") },
		"reconcile":   func(n *node) { t.Reconcile = r.command(n, "reconcile") },
		"description": r.line("description", &t.Description),
		"parameters":  func(n *node) { r.parameters(n, &t) },
		"read_only": func(n *node) {
			if r.readOnly(n) {
				t.OnUnknown = tool.ReadOnly
			}
		},
		"on_unknown": func(n *node) {
			if s, ok := r.onUnknown(n, tool.Rerun, tool.Reconcile, tool.Pause); ok {
				t.OnUnknown = s
			}
		},
		"timeout":    r.duration("timeout", &t.Timeout),
		"max_output": r.countTo(maxPayload, "max_output", &t.MaxOutput),
		"env":        func(n *node) { t.Env = r.environment(n) },
		"dir":        r.path("dir", &t.Dir),
		"approval":   func(*node) {}, // these two are read once the parameters are
		"key_field":  func(*node) {},

		"approve_repeats":  r.flag("approve_repeats", &t.ApproveRepeats),
		"approval_timeout": r.duration("approval_timeout", &t.ApprovalTimeout),
	})
	if f.value.kind != mapping && f.value.kind != empty {
		return t
	}
	if f.value.get("command") == nil {
		r.add(f.at, "add command: [./program], or agent: and the name of an agent", "%s has no command", owner)
	}
	if f.value.get("description") == nil {
		r.add(f.at, "add description: what it does, in a sentence for the model", "%s has no description", owner)
	}
	if r.oneOnUnknown(f.value) {
		r.reconciles(f.value, t)
	}
	r.approvals(f.value, &t)
	return t
}

// reconciles adds a problem unless on_unknown reconcile and a reconcile program come together.
func (r *reader) reconciles(n *node, t ToolConfig) {
	onUnknown, program := n.get("on_unknown"), n.get("reconcile")
	switch {
	case t.OnUnknown == tool.Reconcile && program == nil:
		r.add(onUnknown.at, "add reconcile: [./program], or write rerun if a second run with the same key does nothing, else pause",
			"on_unknown reconcile needs a reconcile program that reports what became of a call")
	case t.OnUnknown != tool.Reconcile && program != nil:
		r.add(program.at, "write on_unknown: reconcile, or remove reconcile", "the program of reconcile only runs with on_unknown reconcile")
	}
}

func (r *reader) command(n *node, name string) []string {
	var words []string
	r.list(n, name, "[./lookup.sh, --short]", func(item *node, word string) {
		if strings.ContainsRune(word, 0) {
			r.add(item.at, "remove it", "an entry of %s has a zero byte in it", name)
		}
		words = append(words, word)
	})
	if n.kind == empty || n.kind == list && (len(n.items) == 0 || len(words) > 0 && words[0] == "") {
		r.add(n.at, "write the program and its arguments, such as [./lookup.sh, --short]", "%s names no program", name)
	}
	return words
}

// readOnly reports whether read_only is true.
func (r *reader) readOnly(n *node) (is bool) {
	r.flag("read_only", &is)(n)
	return is
}

// onUnknown reads one of the given values of on_unknown.
func (r *reader) onUnknown(n *node, values ...tool.OnUnknown) (tool.OnUnknown, bool) {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	s, ok := r.word(n, "on_unknown", words)
	return tool.OnUnknown(s), ok
}

// oneOnUnknown reports whether read_only and on_unknown are not both set, and adds a
// problem if they are.
func (r *reader) oneOnUnknown(n *node) bool {
	onUnknown := n.get("on_unknown")
	if onUnknown == nil || n.get("read_only") == nil {
		return true
	}
	r.add(onUnknown.at, "remove one of them", "read_only and on_unknown are both set")
	return false
}

// path reads a path, seen from the folder of the file. An empty one changes nothing.
func (r *reader) path(name string, into *string) func(*node) {
	return func(n *node) {
		s, ok := r.text(n, name)
		switch {
		case !ok || s == "":
		case filepath.IsAbs(s):
			*into = filepath.Clean(s)
		default:
			*into = filepath.Join(filepath.Dir(r.file), s)
		}
	}
}

func (r *reader) environment(n *node) map[string]Secret {
	return r.secrets(n, "env", variable, "the name of a variable", "use letters, digits and _, no digit first")
}

func (r *reader) parameters(n *node, t *ToolConfig) {
	if n.kind != mapping {
		if n.kind == noted {
			return
		}
		r.add(n.at, "write {type: object, properties: {…}}", "parameters must be the JSON schema of an object, not %s", n.kind)
		return
	}
	raw, ok := r.json(n, verbatim)
	if !ok {
		return
	}
	if kind := n.get("type"); kind == nil || kind.text != "object" {
		at := n.at
		if kind != nil {
			at = kind.at
		}
		r.add(at, "add type: object", "parameters must be the JSON schema of an object")
		return
	}
	var schema jsonschema.Schema
	err := json.Unmarshal(raw, &schema)
	if err == nil {
		_, err = schema.Resolve(nil)
	}
	if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
		err = fmt.Errorf("%s cannot be a %s", wrong.Field[strings.LastIndex(wrong.Field, ".")+1:], wrong.Value)
	}
	if err != nil {
		r.add(n.at, "correct it; json-schema.org has the words", "parameters are not a JSON schema: %v", err)
		return
	}
	check := schemaCheck{r, titled("tool", t.Name), schemasOf(n)}
	check.schema(n, "args", false)
	t.Parameters = raw
}

// json returns a node as JSON, with the texts that read returns; false if it is none, which is
// then noted.
func (r *reader) json(n *node, read func(*node) string) (json.RawMessage, bool) {
	before := len(r.found)
	raw, err := json.Marshal(r.plain(n, read))
	return raw, err == nil && len(r.found) == before
}

// verbatim returns a text as it is written.
func verbatim(n *node) string { return n.text }

// plain is a node as JSON has it; read returns the texts of text nodes.
func (r *reader) plain(n *node, read func(*node) string) any {
	switch n.kind {
	case text:
		return read(n)
	case boolean:
		return strings.EqualFold(n.text, "true")
	case integer, number:
		return r.number(n)
	case list:
		items := make([]any, len(n.items))
		for i, item := range n.items {
			items[i] = r.plain(item, read)
		}
		return items
	case mapping:
		fields := make(map[string]any, len(n.fields))
		for _, f := range n.fields {
			fields[f.name] = r.plain(f.value, read)
		}
		return fields
	}
	return nil
}

func (r *reader) number(n *node) any {
	s := strings.ReplaceAll(n.text, "_", "")
	if i, err := strconv.ParseInt(s, 0, 64); err == nil && n.kind == integer {
		return i
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		r.add(n.at, "write a JSON number", "this number cannot be read")
		return 0
	}
	return v
}
