package cluster_test

import (
	"slices"
	"strings"
	"sync"
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
			if f.Status != doctor.Warn || !strings.Contains(f.Detail, "in the last hour: 1 (auth: 1), such as assistant/bad") || !strings.Contains(f.Remedy, "ls --last failed") {
				t.Errorf("doctor says %+v", f)
			}
		}
		s := w.show(c, "assistant/bad")
		if len(want) == 0 {
			if s.Failed != nil || s.LastFailed != "" {
				t.Errorf("it shows %+v", s.Failed)
			}
		} else if s.Failed == nil || s.Failed.Turn != "t4" || s.Failed.Reason != "auth" || s.Failed.Message != "Incorrect API key" || s.Failed.At.IsZero() || s.LastFailed != "auth" {
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

// A turn whose model refused it fails with the kind of that refusal, and its caller is answered
// with the status of it. What was refused is not shown to the model again.
func TestRefusalsReachCallers(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	var seen []string
	n := w.node(agents(scripted.Func(func(r providers.Request) scripted.Step {
		kind, refused := strings.CutPrefix(lastUser(r), "fail ")
		if refused {
			return scripted.Fail(&providers.Error{Kind: providers.ErrorKind(kind), Message: "no " + kind})
		}
		mu.Lock()
		defer mu.Unlock()
		seen = nil
		for _, item := range r.Items {
			seen = append(seen, item.Content.Text())
		}
		return scripted.Say("well")
	}), nil))
	for kind, want := range map[providers.ErrorKind]string{
		providers.BadRequest: "400", providers.ContextLength: "400", providers.ContentFilter: "400", providers.Unsupported: "400",
		providers.Auth: "500", providers.NotFound: "404", providers.RateLimit: "429", providers.Overloaded: "500",
		providers.BadAnswer: "500", "other": "500",
	} {
		agent, text := "assistant/"+string(kind), "fail "+string(kind)
		got := w.request("agents.prompt.assistant.default."+string(kind), text)
		if got.code != want || !strings.Contains(got.reason, "("+string(kind)+"): no "+string(kind)) {
			t.Errorf("%s: the caller is answered %s %q, want %s", kind, got.code, got.reason, want)
		}
		w.say(n.Client(), agent, "next", "hello")
		mu.Lock()
		shown := slices.Contains(seen, text)
		mu.Unlock()
		if refused := want == "400"; shown == refused {
			t.Errorf("%s: the model sees %q next", kind, seen)
		}
	}
}

// How the last answer ended is in the turn's end, in its list, and in what a caller is sent.
func TestFinishReachesCallers(t *testing.T) {
	w := newWorld(t)
	c := w.node(agents(scripted.Func(func(r providers.Request) scripted.Step {
		return scripted.Step{Text: "so far", Finish: lastUser(r)}
	}), nil)).Client()
	for _, finish := range []string{messages.FinishLength, messages.FinishFilter, "stop"} {
		got := w.request("agents.prompt.assistant.default."+finish, finish)
		want := `"finish":"` + finish + `"`
		ended := got.chunks[len(got.chunks)-1]
		if got.code != "" || !strings.Contains(ended, "turn.completed") || strings.Contains(ended[strings.LastIndex(ended, "turn.completed"):], want) != (finish != "stop") {
			t.Errorf("%s: the caller is sent %s", finish, ended)
		}
		for line, err := range c.Query(w.ctx, "assistant/"+finish, messages.Query{View: "turns"}) {
			if w.ok(err); strings.Contains(string(line), want) != (finish != "stop") {
				t.Errorf("%s: its turn is %s", finish, line)
			}
		}
	}
}
