package providertest

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
)

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
		for _, model := range f.Tests {
			all = append(all, Imitation{Server: server, Model: model})
		}
		for _, template := range names("templates") {
			t, err := load("templates", template)
			if err != nil {
				return nil, err
			}
			for _, model := range t.Tests {
				if f.Renders != 0 {
					all = append(all, Imitation{server, template, model})
				}
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

// imitation is a server's profile and what the server remembers.
type imitation struct {
	fixture
	key     string
	context int
	secret  string // makes signatures unlike those of other servers

	mu       sync.Mutex
	given    map[string]string
	kept     map[string][]object // histories by the id of their response
	refusals []Refusal
}

func newImitation(c Config) (*imitation, error) {
	f, err := load("servers", c.Imitate.Server)
	if err != nil {
		return nil, err
	}
	if f.Responses != nil {
		if err := f.Responses.respond(); err != nil {
			return nil, err
		}
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
	return &imitation{fixture: f, key: c.Key, context: cmp.Or(c.Context, 4<<20), secret: rand.Text(), given: map[string]string{}, kept: map[string][]object{}}, nil
}
