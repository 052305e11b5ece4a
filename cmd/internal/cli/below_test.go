//go:build unix

package cli_test

import (
	"strings"
	"testing"
)

// TestOneOfTwoDecisions has two people decide at the same time about a call, one at the root of
// the tree and one at its agent: one of them gets no success.
func TestOneOfTwoDecisions(t *testing.T) { // A45
	w := newWorld(t)
	w.file("reprise.yaml", strings.Replace(family, "    approval: always", "    approval: always\n    approval_timeout: 1h", 1))
	w.dev()
	for _, boss := range []string{"boss/a", "boss/b", "boss/c"} {
		w.run("ask", boss, "Ask the manager to ask the clerk to pay an amount of 50").exits(3)
		listed := w.run("approvals", boss, "-o", "json").exits(0).objects()
		if len(listed) != 1 || listed[0]["expires_at"] == nil {
			t.Fatalf("the boss lists %v", listed)
		}
		call, clerk := listed[0]["call"].(string), strings.TrimPrefix(listed[0]["agent"].(string), "default/")
		denies := w.begin("", "deny", clerk, call)
		above, below := w.run("approve", boss, call, "-o", "json"), denies()
		w.await(boss, "turn.completed")
		paid := w.outputs(clerk)[0] == "paid"
		if above.code == 0 != paid || below.code == 0 == paid {
			t.Errorf("paid: %v; approve %d %s%s; deny %d %s%s", paid, above.code, above.out, above.err, below.code, below.out, below.err)
		}
		if paid {
			above.exits(0, `"forwarded_to":"default/`+clerk, `"settled":{`)
		}
	}
}
