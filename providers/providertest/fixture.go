package providertest

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

//go:embed servers templates responses
var fixtures embed.FS

// fixture is what a file of servers or templates holds.
type fixture struct {
	// Facts are the public sources of what the file holds.
	Facts []string `json:"facts"`
	// Bases are the paths before /chat/completions. The first is in Server.URL.
	Bases []string `json:"bases"`
	// Tests are models that the rules treat differently.
	Tests []string `json:"tests"`
	// Thinking is the member of messages that carries reasoning, or content
	// where reasoning is parts of it.
	Thinking string `json:"thinking"`
	// Renders is the status of a template's error. Zero: no templates.
	Renders int `json:"renders"`
	// Before is sent before the first event; NoDone leaves the end mark out.
	Before string `json:"before"`
	NoDone bool   `json:"no_done"`
	// Joined sends the finish reason with the last call.
	Joined bool `json:"joined"`
	// Unasked sends usage although the request does not ask for it.
	Unasked bool `json:"unasked"`
	// Finish maps finish reasons of scripts to those of the server.
	Finish   map[string]string `json:"finish"`
	Checks   []rule            `json:"checks"`
	Forms    map[string]any    `json:"forms"`
	Families []family          `json:"families"`
	// Responses is what the server has beside responses/openai.json, nil if it
	// does not speak the Responses API.
	Responses *fixture `json:"responses"`
	// Messages is the Messages API of the server, nil if it has none.
	Messages *fixture `json:"messages"`
}

// family is what differs for some models.
type family struct {
	Models []string       `json:"models"`
	Checks []rule         `json:"checks"`
	Forms  map[string]any `json:"forms"`
}

// render adds the rules and forms of a template.
func (f *fixture) render(t fixture) {
	for _, r := range t.Checks {
		r.Status, r.form = f.Renders, "template"
		f.Checks = append(f.Checks, r)
	}
	maps.Copy(f.Forms, t.Forms)
}

// respond adds what the Responses API is everywhere.
func (f *fixture) respond() error {
	common, err := load("responses", "openai")
	if err != nil {
		return err
	}
	f.Checks = append(f.Checks, common.Checks...)
	maps.Copy(common.Forms, f.Forms)
	f.Forms, f.Families = common.Forms, common.Families
	return nil
}

func load(kind, name string) (fixture, error) {
	var f fixture
	data, err := fixtures.ReadFile(path.Join(kind, name+".json"))
	if err != nil {
		return f, fmt.Errorf("imitate %q: it is none of %s", name, strings.Join(names(kind), ", "))
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return f, fmt.Errorf("read %s/%s.json: %w", kind, name, err)
	}
	return f, nil
}

func names(kind string) []string {
	entries, _ := fixtures.ReadDir(kind) // all are embedded
	list := make([]string, len(entries))
	for i, e := range entries {
		list[i] = strings.TrimSuffix(e.Name(), ".json")
	}
	return list
}

// form returns the named form for model, nil if there is none.
func (f *fixture) form(name, model string) any {
	for _, family := range f.Families {
		if form, ok := family.Forms[name]; ok && matches(family.Models, model) {
			return form
		}
	}
	return f.Forms[name]
}

// rules returns the checks for model in order, those of its families first.
func (f *fixture) rules(model string) []rule {
	var rules []rule
	for _, family := range f.Families {
		if matches(family.Models, model) {
			rules = append(rules, family.Checks...)
		}
	}
	return append(rules, f.Checks...)
}

// matches reports whether a pattern fits model. No pattern fits every model.
func matches(patterns []string, model string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(p, model)
		return ok
	})
}
