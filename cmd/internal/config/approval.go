package config

import (
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/providers/tool"
)

const anExpression = "an expression such as args.cents > 5000"

// approvals reads what a tool says of approval, once the rest of it is known.
func (r *reader) approvals(n *node, t *ToolConfig) {
	approval, repeats, timeout := n.get("approval"), n.get("approve_repeats"), n.get("approval_timeout")
	if approval != nil {
		r.approval(approval, n.get("parameters"), t)
	}
	if t.ApproveRepeats && t.OnUnknown != tool.Pause && t.OnUnknown != tool.Rerun {
		r.add(repeats.at, "write on_unknown: rerun or on_unknown: pause, or remove approve_repeats", "approve_repeats is for tools whose repeated calls may hurt: those with on_unknown rerun or pause")
	}
	if timeout != nil && (approval == nil || approval.text == "never") && !t.ApproveRepeats {
		r.add(timeout.at, "add approval: always, or remove approval_timeout", "no call of this tool ever waits for approval")
	}
	r.keyField(n.get("key_field"), n.get("parameters"), t)
}

func (r *reader) approval(n, parameters *node, t *ToolConfig) {
	if n.kind == boolean || n.kind == integer || n.kind == number {
		r.add(n.at, "write never, always, or "+anExpression, "approval must be text, not %s", n.kind)
		return
	}
	s, ok := r.text(n, "approval")
	switch {
	case !ok || s == "never":
	case s == "always":
		t.Approval = tool.Always
	case !strings.ContainsFunc(s, func(c rune) bool { return !wordRune(c) }):
		do := "write never, always, or " + anExpression
		if w := Nearest(s, []string{"never", "always"}); w != "" {
			do = meant(s, []string{w}, "")
		}
		r.add(n.at, do, "unknown approval %s", shown(n.text))
	default:
		p, found := compile(s, argumentsOf(t.Name, parameters))
		if found == nil {
			t.Approval, t.ApproveIf = tool.Asked, p.needsApproval
		}
		r.misread(n, s, found)
	}
}

// misread reports what is wrong with an expression, at its place in the file.
func (r *reader) misread(n *node, s string, found []finding) {
	if len(found) > 0 && (strings.Contains(n.text, "${") || strings.Contains(s, "sk-")) { // its words may be a secret
		r.add(n.at, "write "+anExpression+", without variables and keys", "approval is not an expression that can be read")
		return
	}
	for _, f := range found {
		r.add(r.inside(n, s, f.from), f.do, "%s", f.what)
	}
}

// inside is where the character number from of a text is in the file; the
// text's own place where that is not known.
func (r *reader) inside(n *node, s string, from int) place {
	before := []rune(s)
	before = before[:min(from, len(before))]
	row, column := 0, 0
	for _, c := range before {
		if column++; c == '\n' {
			row, column = row+1, 0
		}
	}
	line := strings.Split(s, "\n")[row]
	if at, ok := r.seek(n.at, line); ok && line != "" {
		return place{at.line, at.col + column}
	}
	return n.at
}

// argumentsOf returns what a tool's parameters say of its arguments.
func argumentsOf(tool string, parameters *node) arguments {
	if parameters == nil {
		parameters = &node{kind: mapping, fields: []field{{name: "type", value: &node{kind: text, text: "object"}}}}
	}
	all := schemasOf(parameters)
	return arguments{titled("tool", tool), all, all.shape(parameters)}
}

// keyField reads the name of the field that carries the idempotency key.
func (r *reader) keyField(n, parameters *node, t *ToolConfig) {
	if n == nil {
		return
	}
	s, ok := r.text(n, "key_field")
	switch {
	case !ok:
	case !wordOf(s, 64):
		r.add(n.at, "write 1 to 64 of A-Z a-z 0-9 _ -, such as idempotency_key", "key_field is not the name of a field")
	case declares(parameters, s):
		r.add(n.at, "choose a name that the parameters do not have", "key_field %s is one of the tool's parameters, which the model fills", shown(n.text))
	default:
		t.KeyField = s
	}
}

// declares reports whether a schema speaks of a field.
func declares(parameters *node, name string) bool {
	isName := func(item *node) bool { return item.text == name }
	return slices.Contains(namesOf(parameters), name) || slices.ContainsFunc(below(parameters, "required"), isName)
}
