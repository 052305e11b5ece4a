package cli_test

import (
	"os/user"
	"strings"
	"testing"
)

// TestPerson holds that commands name their user, or the person of --person, and
// that the views show them.
func TestPerson(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	ann := "Ann call=c9 " + strings.Repeat("\u2800", 60)
	w := newWorld(t)
	w.dev()
	asked := of(w.run("ask", "support/t1", "Refund 9900 cents for order 7", "-o", "json").exits(3).objects(), "input.accepted")
	if person, _ := asked[0]["person"].(map[string]any); person["name"] != me.Username {
		t.Errorf("ask shows the input as asked for by %v", person)
	}
	call := w.run("approvals", "-o", "json").exits(0).objects()[0]["call"].(string)
	w.run("approve", "support/t1", call, "--person", "", "--remember").exits(2, "--person")
	w.run("approve", "support/t1", call, "--person", " \u200b", "--remember").exits(2, "--person")
	w.run("approve", "support/t1", call, "--person", ann, "--remember").exits(0)
	w.await("support/t1", "turn.completed")

	events := w.run("events", "support/t1", "-o", "json").exits(0).objects()
	for kind, want := range map[string]string{"input.accepted": me.Username, "approval.granted": ann} {
		person, _ := of(events, kind)[0]["person"].(map[string]any)
		if person["name"] != want || person["claimed"] != true || person["endpoint"] == "" {
			t.Errorf("%s is by %v, want %s", kind, person, want)
		}
	}
	// Nothing in a name looks like another field, or hides that it is claimed.
	shown := `"Ann call=c9 ` + strings.Repeat("\u2800", 16) + "…"
	w.run("events", "support/t1").exits(0, "person="+shown, "\" (claimed)\n", "person="+me.Username+" (claimed)")
	w.run("effects", "support/t1").exits(0, "approved by "+shown, `" (claimed)`)
	w.run("approvals", "support/t1", "--remembered").exits(0, "PERSON", shown, `" (claimed)`)
}
