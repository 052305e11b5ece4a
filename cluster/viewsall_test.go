package cluster_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// ofAll are queries of a tenant, whose views are read from the index of all agents.
var ofAll = []messages.Query{
	{View: "agents"},
	{View: "agents", Kind: "test", Phase: "paused"},
	{View: "agents", Phase: "running"},
	{View: "agents", Last: "failed"},
	{View: "agents", Phase: "deleted"},
	{View: "agents", Deleted: true, Last: "failed"},
	{View: "agents", Since: storyTime, Limit: 2},
	{View: "approvals"},
	{View: "approvals", Tool: "pay"},
	{View: "approvals", Where: map[string]string{"to": "bob"}},
	{View: "effects"},
	{View: "effects", Outcome: "failed"},
	{View: "effects", Outcome: "denied"},
	{View: "effects", Tool: "mail", Where: map[string]string{"to": "bob"}},
	{View: "effects", Since: storyTime.Add(time.Minute), Until: storyTime.Add(time.Hour)},
	{View: "effects", Repeated: true},
	{View: "find", Text: "bob"},
	{View: "find", Text: "c1"},
	{View: "usage"},
	{View: "usage", By: "agent"},
	{View: "usage", By: "kind"},
	{View: "usage", By: "day"},
	{View: "usage", By: "hour"},
	{View: "usage", By: "agent", Model: "other/a"},
	{View: "dlq"},
}

// ofNone are queries that are refused.
var ofNone = []messages.Query{
	{View: "nothing"},
	{View: "show"},
	{View: "agents", Tool: "mail"},
	{View: "agents", Phase: "asleep"},
	{View: "effects", Outcome: "lost"},
	{View: "usage", By: "week"},
	{View: "effects", Since: storyTime, Until: storyTime},
	{View: "effects", Where: map[string]string{"": "bob"}},
	{View: "agents", Cursor: "nowhere"},
	{View: "find"},
	{View: "find", Text: "---"},
	{View: "find", Text: "bob", Tool: "mail"},
	{View: "effects", Text: "bob"},
}

// ofNoAgent are queries of an agent that are refused.
var ofNoAgent = []struct {
	agent string
	messages.Query
}{
	{"test/nothing", messages.Query{View: "show"}},
	{"test/nothing", messages.Query{View: "history"}},
	{"test/gone", messages.Query{View: "history", At: 1000}},
	{"test/approve", messages.Query{View: "nothing"}},
	{"test/approve", messages.Query{View: "state", At: 1000}},
	{"test/approve", messages.Query{View: "events", From: 1000}},
	{"test/approve", messages.Query{View: "turns", Tool: "mail"}},
	{"test/approve", messages.Query{View: "approvals", Remembered: true, Follow: true}},
}

// storyTime is when the clock of every story begins.
var storyTime = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// viewsOfAll renders the views of all agents together, and the refusals, each below
// its query.
func (w *world) viewsOfAll(n *cluster.Node) string {
	var out strings.Builder
	answer := func(of string, q messages.Query, lines []string) {
		asked, err := json.Marshal(q)
		w.ok(err)
		fmt.Fprintf(&out, "== %s%s\n", of, asked)
		for _, line := range lines {
			out.WriteString(line + "\n")
		}
		out.WriteString("\n")
	}
	for _, q := range append(ofAll, ofNone...) {
		answer("", q, w.linesOfAll(n, q))
	}
	for _, q := range ofNoAgent {
		a, err := messages.ParseAgentID(q.agent)
		w.ok(err)
		answer(q.agent+" ", q.Query, w.lines(n, a, q.Query))
	}
	return out.String()
}

// storedAt is when the server stored an agent's newest frame.
var storedAt = regexp.MustCompile(`"updated":"[^"]*"`)

// linesOfAll reads a view of the tenant, once it lacks nothing that is stored.
func (w *world) linesOfAll(n *cluster.Node, q messages.Query) (lines []string) {
	w.eventually("the index has read the log", func() bool {
		lines = nil
		behind := false
		for line, err := range n.Client().QueryTenant(w.ctx, messages.DefaultTenant, q, func(l client.Lacks) { behind = len(l.Uncovered) > 0 }) {
			if err != nil {
				lines = append(lines, refusal(err))
				return codeOf(err) != messages.Unavailable
			}
			lines = append(lines, storedAt.ReplaceAllString(masked(n, string(line)), `"updated":"STORED"`))
		}
		return !behind
	})
	return lines
}
