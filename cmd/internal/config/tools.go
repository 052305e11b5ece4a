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
)

func (r *reader) tools(n *node) {
	r.entries(n, "tools", func(f field) {
		if !wordOf(f.name, 64) {
			r.add(f.at, "rename it: 1 to 64 of A-Z a-z 0-9 _ -", "a tool cannot be called %s", shown(f.name))
		}
		r.places[toolPlace(f.name)] = f.at
		r.config.Tools = append(r.config.Tools, r.tool(f))
	})
}

func wordOf(s string, limit int) bool {
	return s != "" && len(s) <= limit && !strings.ContainsFunc(s, func(c rune) bool { return !wordRune(c) })
}

func (r *reader) tool(f field) ToolConfig {
	t := ToolConfig{
		Name: f.name, Class: tool.Once, Dir: filepath.Dir(r.file),
		Parameters: json.RawMessage(`{"type":"object","properties":{}}`),
	}
	owner := titled("tool", f.name)
	if agent := f.value.get("agent"); agent != nil {
		return r.agentTool(f, owner, t)
	}
	r.fields(f.value, owner, map[string]func(*node){
		"command":     func(n *node) { t.Command = r.command(n, "command") },
		"reconcile":   func(n *node) { t.Reconcile = r.command(n, "reconcile") },
		"description": r.line("description", &t.Description),
		"parameters":  func(n *node) { r.parameters(n, &t) },
		"class":       func(n *node) { r.class(n, &t) },
		"timeout":     r.duration("timeout", &t.Timeout),
		"max_output":  r.countTo(maxPayload, "max_output", &t.MaxOutput),
		"env":         func(n *node) { t.Env = r.environment(n) },
		"dir":         func(n *node) { r.dir(n, &t) },
		"approval":    func(*node) {}, // these two are read once the parameters are
		"key_field":   func(*node) {},

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
		r.add(f.at, "add description: a sentence that tells the model what it does", "%s has no description", owner)
	}
	r.reconciles(f.value, t)
	r.approvals(f.value, &t)
	return t
}

// reconciles holds that the class check and a reconcile program come together.
func (r *reader) reconciles(n *node, t ToolConfig) {
	class, program := n.get("class"), n.get("reconcile")
	switch {
	case t.Class == tool.Check && program == nil:
		r.add(class.at, "add reconcile: [./program], or write keyed if a second run with the same key does nothing, else once",
			"class check needs a reconcile program that tells what became of a call")
	case t.Class != tool.Check && program != nil:
		r.add(program.at, "write class: check, or remove reconcile", "reconcile is only asked for tools of class check")
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

func (r *reader) class(n *node, t *ToolConfig) {
	if s, ok := r.word(n, "class", []string{string(tool.Pure), string(tool.Keyed), string(tool.Check), string(tool.Once)}); ok {
		t.Class = tool.Class(s)
	}
}

func (r *reader) dir(n *node, t *ToolConfig) {
	s, ok := r.text(n, "dir")
	switch {
	case !ok:
	case filepath.IsAbs(s):
		t.Dir = filepath.Clean(s)
	default:
		t.Dir = filepath.Join(filepath.Dir(r.file), s)
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
	before := len(r.found)
	raw, err := json.Marshal(r.plain(n, verbatim))
	if err != nil || len(r.found) > before {
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
	if err = json.Unmarshal(raw, &schema); err == nil {
		_, err = schema.Resolve(nil)
	}
	if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
		err = fmt.Errorf("%s cannot be a %s", wrong.Field[strings.LastIndex(wrong.Field, ".")+1:], wrong.Value)
	}
	if err != nil {
		r.add(n.at, "mend it; json-schema.org has the words", "parameters are not a JSON schema: %v", err)
		return
	}
	check := schemaCheck{r, titled("tool", t.Name), schemasOf(n)}
	check.schema(n, "args", false)
	t.Parameters = raw
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
		r.add(n.at, "write a number that JSON knows", "this number cannot be read")
		return 0
	}
	return v
}
