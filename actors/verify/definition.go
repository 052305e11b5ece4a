package verify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/projections"
)

// Change is a field in which a recorded definition differs from that of today.
type Change struct {
	// Definition is the SHA-256 of the recorded definition, in hex.
	Definition string `json:"definition"`
	// Field names the field, such as `instructions`, `max_steps` or "tool refund: description".
	Field string `json:"field"`
	// Recorded is the recorded value, or its first line that differs. Empty: there is none.
	Recorded string `json:"recorded,omitempty"`
	// Now is the value of today, or its first line that differs. Empty: there is none.
	Now string `json:"now,omitempty"`
}

// String describes the change for a person. Its values are as they are stored.
func (c Change) String() string {
	switch {
	case c.Recorded == "":
		return fmt.Sprintf("%s: now %s", c.Field, c.Now)
	case c.Now == "":
		return fmt.Sprintf("%s: no longer %s", c.Field, c.Recorded)
	}
	return fmt.Sprintf("%s: %s, now %s", c.Field, c.Recorded, c.Now)
}

// decides are the fields of a definition, and of its tools, that a model is not shown: what they
// change is seen in the events.
var (
	decides = []string{
		"kind", "model", "fallbacks", "max_steps", "max_queue", "max_attempts", "parallel", "tool_choice", "stop_on",
		"approval_timeout", "turn_limits", "agent_limits", "pause_at_limit", "compact", "hooks",
	}
	decidesTool = []string{"on_unknown", "timeout", "approval", "approve_repeats", "approval_timeout", "agent", "detached", "max_children"}
)

// schema is the field of a tool's arguments. The order of names in it has no meaning: a program that
// writes the same schema in another order shows a model the same tool.
const schema = "parameters"

// unknown is the field of a definition that is not there.
const unknown = "definition"

// definitions compares those that a stream was recorded with.
type definitions struct {
	current Current
	met     map[string]*comparison
	order   []string
}

// comparison is how a recorded definition differs.
type comparison struct {
	changes []Change
	// shown reports whether a model is shown something else, summarized whether one is that makes
	// summaries.
	shown, summarized bool
}

// shown reports whether a model is shown something else by the recorded definition.
func (d *definitions) shown(digest string) bool { return d.of(digest).shown }

// summarizes reports whether a model that makes summaries is.
func (d *definitions) summarizes(digest string) bool { return d.of(digest).summarized }

// changed reports whether the field of a recorded definition has another value today.
func (d *definitions) changed(digest, field string) bool {
	return slices.ContainsFunc(d.of(digest).changes, func(c Change) bool { return c.Field == field || c.Field == unknown })
}

func (d *definitions) of(digest string) *comparison {
	if digest == d.current.Turn.Digest || digest == "" {
		return &comparison{}
	}
	c := d.met[digest]
	if c == nil {
		c = d.current.compare(digest)
		if d.met == nil {
			d.met = make(map[string]*comparison)
		}
		d.met[digest] = c
		d.order = append(d.order, digest)
	}
	return c
}

// changes lists those of all definitions, in the order in which the stream names them.
func (d *definitions) changes() (list []Change) {
	for _, digest := range d.order {
		list = append(list, d.met[digest].changes...)
	}
	return list
}

// text describes the changes of the definition that was met last; empty if there are none.
func (d *definitions) text() string {
	if len(d.order) == 0 {
		return ""
	}
	var parts []string
	for _, c := range d.met[d.order[len(d.order)-1]].changes {
		parts = append(parts, c.String())
	}
	if len(parts) == 0 {
		return ""
	}
	return "the definition has changed: " + strings.Join(parts, "; ")
}

// compare compares the definition with a recorded one. One that is not there may differ in
// everything.
func (c Current) compare(digest string) *comparison {
	var old, now map[string]json.RawMessage
	var err error
	var stored json.RawMessage
	if c.Recorded != nil {
		stored, err = c.Recorded(digest)
	}
	if err != nil || json.Unmarshal(stored, &old) != nil || json.Unmarshal(c.Stored, &now) != nil {
		return &comparison{shown: true, summarized: true, changes: []Change{
			{digest, unknown, shortDigest(digest) + ", which is not stored here, so that what has changed is not known", shortDigest(c.Turn.Digest)},
		}}
	}
	r := &comparison{}
	for _, k := range union(old, now) {
		switch {
		case k == "tools":
			r.tools(digest, old[k], now[k])
		case !bytes.Equal(old[k], now[k]):
			r.add(digest, k, old[k], now[k], !slices.Contains(decides, k))
		}
	}
	r.summarized = field(old["compact"], "instructions") != field(now["compact"], "instructions")
	return r
}

func (r *comparison) add(digest, name string, old, now json.RawMessage, shown bool) {
	a, b := differing(text(old), text(now))
	r.changes = append(r.changes, Change{digest, name, a, b})
	r.shown = r.shown || shown
}

// tools compares tools by their names.
func (r *comparison) tools(digest string, old, now json.RawMessage) {
	was, names := toolsOf(old)
	is, nowNames := toolsOf(now)
	for _, name := range union(was, is) {
		a, b := was[name], is[name]
		switch {
		case a == nil:
			r.add(digest, "tool "+name, nil, json.RawMessage(`"added"`), true)
		case b == nil:
			r.add(digest, "tool "+name, json.RawMessage(`"there"`), nil, true)
		}
		if a == nil || b == nil {
			continue
		}
		for _, k := range union(a, b) {
			switch {
			case bytes.Equal(a[k], b[k]):
			case k == schema && projections.CanonicalJSON(string(a[k])) == projections.CanonicalJSON(string(b[k])):
				r.add(digest, "tool "+name+": order of names in "+k, a[k], b[k], false)
			default:
				r.add(digest, "tool "+name+": "+k, a[k], b[k], !slices.Contains(decidesTool, k))
			}
		}
	}
	if len(was) == len(is) && !slices.Equal(names, nowNames) && !r.shown {
		r.changes = append(r.changes, Change{digest, "order of tools", strings.Join(names, ", "), strings.Join(nowNames, ", ")})
		r.shown = true
	}
}

// toolsOf returns the fields of tools by name, and the names in order.
func toolsOf(b json.RawMessage) (tools map[string]map[string]json.RawMessage, names []string) {
	var list []map[string]json.RawMessage
	_ = json.Unmarshal(b, &list) // nil: there are none
	tools = make(map[string]map[string]json.RawMessage)
	for _, t := range list {
		name := text(t["name"])
		tools[name] = t
		names = append(names, name)
	}
	return tools, names
}

// union returns the keys of both maps, sorted.
func union[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

func field(b json.RawMessage, name string) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(b, &fields) // nil: there are none
	return text(fields[name])
}

// text returns a JSON value as text: a string without its quotes.
func text(b json.RawMessage) string {
	var s string
	if json.Unmarshal(b, &s) == nil {
		return s
	}
	return string(b)
}

// differing returns the first lines that differ of two texts, with their number if there are
// several.
func differing(a, b string) (string, string) {
	if !strings.Contains(a, "\n") && !strings.Contains(b, "\n") {
		return a, b
	}
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	i := 0
	for i < min(len(x), len(y)) && x[i] == y[i] {
		i++
	}
	return numbered(x, i), numbered(y, i)
}

func numbered(lines []string, i int) string {
	if i >= len(lines) {
		return ""
	}
	return fmt.Sprintf("line %d %q", i+1, lines[i])
}

// shortDigest returns the beginning of a digest.
func shortDigest(digest string) string { return digest[:min(len(digest), 12)] }
