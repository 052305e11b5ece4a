package providertest

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
)

//go:embed servers templates
var fixtures embed.FS

// Imitation names a server to imitate, one that [Imitations] lists. The zero
// value imitates none.
type Imitation struct {
	// Server is the name of a profile, such as groq.
	Server string
	// Template is the chat template that the server renders, such as qwen.
	// Empty: one without rules of its own.
	Template string
	// Model is a model that the profile has rules for. Start ignores it.
	Model string
}

// String returns the set names, joined by slashes.
func (i Imitation) String() string {
	return strings.Join(slices.DeleteFunc([]string{i.Server, i.Template, i.Model}, func(s string) bool { return s == "" }), "/")
}

// Imitations returns all that can be imitated: every server with each template
// that it can render and each model that its profile has rules for.
func Imitations() ([]Imitation, error) {
	var all []Imitation
	for _, server := range names("servers") {
		f, err := load("servers", server)
		if err != nil {
			return nil, err
		}
		templates := []string{""}
		if f.Renders != 0 {
			templates = append(templates, names("templates")...)
		}
		for _, template := range templates {
			for _, model := range f.Tests {
				all = append(all, Imitation{Server: server, Template: template, Model: model})
			}
		}
	}
	return all, nil
}

// Imitate starts a server that checks requests and words answers like the
// named one, and plays answers in order. Its errors are those of [Start].
func Imitate(server, template string, answers ...Answer) (*Server, error) {
	return Start(Play(answers...), Config{Imitate: Imitation{Server: server, Template: template}})
}

// Refusal is a request that a check of an imitated server did not let through.
type Refusal struct {
	// Number is that of the request.
	Number int
	// Check is the name of the check.
	Check  string
	Status int
	Body   []byte
}

// fixture is what a file of servers or templates holds.
type fixture struct {
	// Facts are the public sources of what the file holds.
	Facts []string `json:"facts"`
	// Bases are the paths before /chat/completions. The first is in Server.URL.
	Bases []string `json:"bases"`
	// Tests are models that the rules tell apart.
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
}

// family is what differs for some models.
type family struct {
	Models []string       `json:"models"`
	Checks []rule         `json:"checks"`
	Forms  map[string]any `json:"forms"`
}

// imitation is a server's profile and what the server remembers.
type imitation struct {
	fixture
	key     string
	context int
	secret  string // makes signatures unlike those of other servers

	mu       sync.Mutex
	given    map[string]string
	refusals []Refusal
}

func newImitation(c Config) (*imitation, error) {
	f, err := load("servers", c.Imitate.Server)
	if err != nil {
		return nil, err
	}
	if name := c.Imitate.Template; name != "" {
		t, err := load("templates", name)
		if err != nil {
			return nil, err
		}
		if f.Renders == 0 {
			return nil, fmt.Errorf("imitate %s: it renders no chat template; leave %q out", c.Imitate.Server, name)
		}
		f.render(t)
	}
	return &imitation{fixture: f, key: c.Key, context: cmp.Or(c.Context, 4<<20), secret: rand.Text(), given: map[string]string{}}, nil
}

// render adds the rules and forms of a template.
func (f *fixture) render(t fixture) {
	for _, r := range t.Checks {
		r.Status, r.form = f.Renders, "template"
		f.Checks = append(f.Checks, r)
	}
	for name, form := range t.Forms {
		f.Forms[name] = form
	}
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
	entries, _ := fixtures.ReadDir(kind) // both are embedded
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
