package cluster_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// TestFailedTurnsAreSeen holds that the list, show and doctor name an agent whose last turn
// has failed, also on a node that has only read the heads of the log, and that they stop once
// a turn was completed.
func TestFailedTurnsAreSeen(t *testing.T) {
	w := newWorld(t)
	refused := &providers.Error{Kind: providers.Auth, Status: 401, Message: "Incorrect API key"}
	model := agents(scripted.Func(func(r providers.Request) scripted.Step {
		if lastUser(r) == "fail" {
			return scripted.Fail(refused)
		}
		return scripted.Say("well")
	}), nil)
	n := w.node(model)
	w.say(n.Client(), "assistant/well", "u1", "hello")
	if _, err := w.ask(n.Client(), "assistant/bad", input("u1", "fail")); err == nil || !strings.Contains(err.Error(), "Incorrect API key") {
		t.Fatalf("the turn ends with %v", err)
	}
	look := func(n *cluster.Node, want ...string) {
		t.Helper()
		c := n.Client()
		if got := w.listed(c, messages.Query{Last: "failed"}); !slices.Equal(got, want) {
			t.Errorf("failed are %v, want %v", got, want)
		}
		found, _ := w.examined(c, messages.Query{})
		if len(found) != len(want) {
			t.Errorf("doctor finds %+v", found)
		}
		for _, f := range found {
			if f.Status != doctor.Warn || !strings.Contains(f.Detail, "in the last hour: 1 (model: 1), such as assistant/bad") || !strings.Contains(f.Remedy, "ls --last failed") {
				t.Errorf("doctor says %+v", f)
			}
		}
		s := w.show(c, "assistant/bad")
		if len(want) == 0 {
			if s.Failed != nil || s.LastFailed != "" {
				t.Errorf("it shows %+v", s.Failed)
			}
		} else if s.Failed == nil || s.Failed.Turn != "t4" || s.Failed.Reason != "model" || s.Failed.Message != "Incorrect API key" || s.Failed.At.IsZero() || s.LastFailed != "model" {
			t.Errorf("it shows %+v, %q", s.Failed, s.LastFailed)
		}
	}
	look(n, "assistant/bad idle")
	w.ok(n.Close())
	n = w.node(model)
	look(n, "assistant/bad idle")
	w.say(n.Client(), "assistant/bad", "u2", "hello")
	look(n)
}
