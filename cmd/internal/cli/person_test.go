package cli_test

import (
	"os/user"
	"testing"
)

// TestPerson holds that commands name their user, or the person of --person, and
// that the views show them.
func TestPerson(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.dev()
	w.run("ask", "support/t1", "Refund 9900 cents for order 7").exits(3)
	call := w.run("approvals", "-o", "json").exits(0).objects()[0]["call"].(string)
	w.run("approve", "support/t1", call, "--person", "", "--remember").exits(2, "--person")
	w.run("approve", "support/t1", call, "--person", "Ann Lee", "--remember").exits(0)
	w.await("support/t1", "turn.completed")

	events := w.run("events", "support/t1", "-o", "json").exits(0).objects()
	for kind, want := range map[string]string{"input.accepted": me.Username, "approval.granted": "Ann Lee"} {
		person, _ := of(events, kind)[0]["person"].(map[string]any)
		if person["name"] != want || person["claimed"] != true || person["endpoint"] == "" {
			t.Errorf("%s is by %v, want %s", kind, person, want)
		}
	}
	w.run("events", "support/t1").exits(0, "person=Ann Lee (claimed)", "person="+me.Username+" (claimed)")
	w.run("effects", "support/t1").exits(0, "decided by Ann Lee (claimed)")
	w.run("approvals", "support/t1", "--remembered").exits(0, "PERSON", "Ann Lee (claimed)")
}
