package archtest

import (
	"strings"
	"testing"
)

// TestRulesBite shows every check a file that breaks it and one that does not,
// so that no table is right and checks nothing.
func TestRulesBite(t *testing.T) {
	for _, c := range []struct {
		name, file, body string
		check            func(file) []string
		bad              bool
	}{
		{"down", "actors/a.go", `import "` + module + `/messages"`, arrows, false},
		{"down two floors", "cluster/a.go", `import "` + module + `/eventlog/natslog"`, arrows, false},
		{"up", "messages/a.go", `import "` + module + `/eventlog"`, arrows, true},
		{"up in a test", "eventlog/a_test.go", `import "` + module + `/actors"`, arrows, true},
		{"sideways", "eventlog/memlog/a.go", `import "` + module + `/providers"`, arrows, true},
		{"contract to its implementation", "eventlog/a.go", `import "` + module + `/eventlog/memlog"`, arrows, true},
		{"own external test", "eventlog/a_test.go", `import "` + module + `/eventlog"`, arrows, false},
		{"turn to history", "actors/turn/a.go", `import "` + module + `/projections"`, arrows, false},
		{"turn to tools", "actors/turn/a.go", `import "` + module + `/providers/tool"`, arrows, true},
		{"turn to its actor", "actors/turn/a.go", `import "` + module + `/actors"`, arrows, true},
		{"up in an example", "eventlog/example_test.go", `import "` + module + `/actors"`, arrows, false},
		{"client to views", "cluster/client/a.go", `import "` + module + `/projections"`, arrows, false},
		{"client to the index", "cluster/client/a.go", `import "` + module + `/projections/index"`, arrows, true},
		{"client", "cluster/client/a.go", `import "` + module + `/cluster/inbox"`, arrows, true},
		{"part to node", "cluster/ownership/a.go", `import "` + module + `/cluster"`, arrows, true},
		{"gateway to node", "cluster/gateway/a.go", `import "` + module + `/cluster"`, arrows, true},
		{"main to node", "cmd/reprise/main.go", `import "` + module + `/cluster"`, arrows, true},
		{"example to inside", "cmd/examples/hello/main.go", `import "` + module + `/cmd/internal/cli"`, arrows, true},
		{"no such room", "tools/a.go", ``, arrows, true},

		{"msgpack at home", "messages/a.go", `import "github.com/vmihailenco/msgpack/v5"`, strangers, false},
		{"msgpack abroad", "eventlog/a.go", `import "github.com/vmihailenco/msgpack/v5"`, strangers, true},
		{"nats in a command", "cmd/internal/cli/a.go", `import "github.com/nats-io/nats.go/jetstream"`, strangers, true},
		{"nats in the test of a command", "cmd/internal/cli/a_test.go", `import "github.com/nats-io/nats.go"`, strangers, false},
		{"server beside the log", "eventlog/natslog/a.go", `import "github.com/nats-io/nats-server/v2/server"`, strangers, true},
		{"server at home", "eventlog/natslog/embedded/a.go", `import "github.com/nats-io/nats-server/v2/server"`, strangers, false},

		{"pure", "actors/turn/a.go", `import "time"; var d time.Duration`, excesses, false},
		{"clock", "actors/turn/a.go", `import "time"; var n = time.Now()`, excesses, true},
		{"context", "actors/turn/a.go", `import "context"`, excesses, true},
		{"web", "actors/turn/a.go", `import "net/http"`, excesses, true},
		{"library in turn", "actors/turn/a.go", `import "github.com/oklog/ulid/v2"`, excesses, true},
		{"client with nats", "cluster/client/a.go", `import "github.com/nats-io/nats.go"`, excesses, false},
		{"client with more", "cluster/client/a.go", `import "github.com/oklog/ulid/v2"`, excesses, true},
	} {
		f, err := parse(c.file, []byte("package p; "+c.body+"\n"))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := c.check(f); (len(got) > 0) != c.bad {
			t.Errorf("%s: %s: got %q", c.name, c.body, got)
		}
	}
}

func TestIntroduces(t *testing.T) {
	for comment, want := range map[string]bool{
		"// Package p keeps what happened.\n":            true,
		"// Package p keeps what happened. More of it\n": true,
		"// Package p\n":                      false,
		"// The room.\n":                      false,
		"":                                    false,
		"// Package p is not next to it.\n\n": false,
	} {
		f, err := parse("messages/a.go", []byte(comment+"package p\n"))
		if err != nil || introduces(f) != want {
			t.Errorf("%q: %v, %v", comment, introduces(f), err)
		}
	}
}

// TestTableIsWhole holds that every rule says why and that patterns are written
// as the matcher reads them.
func TestTableIsWhole(t *testing.T) {
	check := func(why string, patterns ...string) {
		for _, p := range patterns {
			if why == "" || strings.Contains(strings.TrimSuffix(p, "/..."), ".") || strings.HasSuffix(p, "/") {
				t.Errorf("%q: a rule needs a reason and a clean pattern", p)
			}
		}
	}
	for _, r := range rooms {
		check(r.why, append(r.may, r.path)...)
	}
	for _, h := range homes {
		check(h.why, append(h.tests, h.in...)...)
	}
	for _, d := range diets {
		check(d.why, d.path)
	}
	for pkg, why := range unmeasured {
		check(why, pkg)
	}
}
