package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// TestTenantsPage holds that the page about tenants lists the commands of the role decide.
func TestTenantsPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guides", "tenants.md"))
	if err != nil {
		t.Fatal(err)
	}
	if list := strings.Join(messages.CommandTypes(messages.FromCtl), ", "); !strings.Contains(string(page), list) {
		t.Errorf("the page does not list the commands of the role decide: %s", list)
	}
}

func TestPermissions(t *testing.T) { // A103
	w := newWorld(t)
	for _, c := range []struct {
		args  string
		parts []string
		not   []string
	}{
		{"--tenant acme", []string{`"REPRISE_acme"`, `{ user: "acme"`, `"reprise.in.acme.*.*"`, `response_type: Stream`}, []string{"reprise.ctl"}},
		{"--tenant acme --role publish --agent support/a --agent acme/support/b", []string{`"reprise.in.acme.support.a"`, `"agents.prompt.support.acme.b"`}, []string{`"reprise.q.acme`, "reprise.live"}},
		{"--tenant acme --root prod --role decide", []string{`"PROD_acme"`, `"prod.ctl.acme.*.*"`, "_REPLY.prod.acme.acme"}, []string{"reprise.ctl", "prod.in.acme"}},
		{"--tenant acme --shared", []string{"Not isolated", `"reprise.q.acme"`}, []string{"imports: [", "exports: ["}},
		{"--role node", []string{`"$JS.API.>"`, "$NATS_NODE_PASSWORD"}, []string{"accounts"}},
		{"--role admin", []string{`user: "admin"`}, []string{"allow"}},
		{"--tenant acme -o json", []string{`"inbox_prefix":"_REPLY.reprise.acme.acme"`}, []string{"password"}},
	} {
		got := w.run(append([]string{"permissions"}, strings.Fields(c.args)...)...).exits(0, c.parts...)
		for _, not := range c.not {
			if strings.Contains(got.out, not) {
				t.Errorf("%s: it has %s:\n%s", c.args, not, got.out)
			}
		}
	}
	for args, part := range map[string]string{
		"":                                     "--tenant",
		"--tenant a.b":                         "tenant",
		"--tenant *":                           "tenant",
		"--tenant acme --role root":            "role",
		"--tenant acme --agent evil/support/a": "belongs to tenant evil",
		"--tenant acme --agent support/>":      "key",
		"--tenant acme --user node":            "taken",
		"--tenant acme --user a-b --user a_b":  "NATS_A_B_PASSWORD",
		"--tenant acme --user x=publish,all":   "role",
		"--tenant acme --role node":            "stands alone",
		"--tenant acme --root a.b":             "root",
	} {
		w.run(append([]string{"permissions"}, strings.Fields(args)...)...).exits(2, part)
	}
}
