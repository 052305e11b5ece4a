package gateway

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages/reftest"
)

var update = flag.Bool("update", false, "rewrite the generated parts of docs/reference/views.md; read the diff")

const viewsPage = "../../docs/reference/views.md"

// viewRow is what views.md says of a view.
type viewRow struct {
	name, row string // row is the type of its lines; empty: text describes them
	text      string
	command   string
	method    string // of client.Client
}

var (
	agentViews = []viewRow{
		{"show", "projections.AgentStatus", "What the agent is doing, its queue and what it waits for. One line.", "show", "Show"},
		{"events", "projections.EventJSON", "The events, oldest first. With `follow` it continues with new events for half a minute.", "events", "Events"},
		{"history", "projections.HistoryItem", "What a model sees of the past, oldest item first. `turn` selects the items of one turn.", "history", "History"},
		{"state", "", "The state of the agent: one line, a JSON object with sorted keys. `{}` if nothing was set.", "state", "State"},
		{"turns", "projections.TurnLine", "The turns, oldest first. `whole` adds the texts of question and answer.", "turns", "Turns"},
		{"turn", "projections.TurnDetail", "One turn: its inputs, model calls, tool calls and answer. One line; `turn` is required.", "turn", "Turn"},
		{"usage", "projections.UsageLine", "What the model calls used: a line for each call, turn and model, last the total.", "usage", "Usage"},
		{"approvals", "messages.Approval", "The calls that wait for approval. With `remembered` the lines are [remembered decisions](#remembered).", "approvals", "Approvals"},
		{"effects", "projections.Effect", "The calls of tools with their outcomes, oldest first.", "effects", "Effects"},
		{"children", "projections.Child", "The agents that its calls have created, oldest call first.", "tree", "Children"},
		{"forks", "projections.Fork", "The forks of the agent, oldest first.", "forks", "Forks"},
		{"timers", "messages.Timer", "The scheduled inputs, the next one first.", "timers", "Timers"},
		{"timeline", "projections.Row", "What happened, a row for each input, turn, model call, tool call, approval, child and change of owner. With `follow` it continues with the rows that change, each one whole.", "replay", "Timeline"},
		{"why", "projections.Why", "Why the event `at` happened. One line; `at` is required.", "why", "Why"},
		{"request", "projections.ModelRequest", "What a model call was sent: the call that the event `at` belongs to, or the newest. One line.", "request", "Request"},
		{"replay", "projections.Change", "The events with what each changed. Each line also has `text`, the same as `reprise replay --wide` prints it.", "replay --wide", "Replay"},
		{"traces", "projections.Span", "The turns as OpenTelemetry spans, the span of a turn before those below it.", "traces", ""},
		{"frames", "messages.FrameLine", "The frames as they are stored, in clear, and the definitions that they name.", "export", "Frames"},
		{"blob", "messages.BlobPiece", "The bytes of a large payload, in pieces. `blob` is required, such as `{\"sha256\":\"3f2a…\"}`.", "blob", "Blob"},
		{"inventory", "messages.Inventory", "What is stored of the agent, and would be removed by a delete. One line.", "delete --dry-run", "Inventory"},
		{"verify", "verify.Result", "Whether the code and definitions of the node decide the same events again. One line.", "verify", ""},
		{"doctor", "gateway.Examined", "The findings of an examination of the agent's log. Fields of the request: `deep`, `rate`.", "doctor", ""},
	}
	tenantViews = []viewRow{
		{"agents", "projections.Agent", "The agents of the tenant, by address.", "ls", "Agents"},
		{"approvals", "messages.Approval", "The calls of all agents that wait for approval.", "approvals", "Approvals"},
		{"effects", "projections.Effect", "The calls of tools of all agents, newest first.", "effects", "Effects"},
		{"find", "projections.Found", "The events that hold the words of `text`, newest first.", "find", "Find"},
		{"usage", "projections.UsageSum", "What the model calls used, summed by `by` (`agent`, `kind`, `model`, `day` or `hour`), last the total.", "usage", "UsageOf"},
		{"dlq", "messages.DeadLetter", "The dead letters, oldest first. Those without a readable address belong to the tenant `default`.", "dlq ls", "DeadLetters"},
	}
	storeViews = []viewRow{
		{"doctor", "gateway.Examined", "The findings of an examination of the store. Fields of the request: `deep`, `repair`, `rate`; `from` is the shard of a page.", "doctor", ""},
		{"nodes", "gateway.NodeRow", "The nodes, as the node that answers sees them.", "nodes", ""},
		{"partitions", "gateway.PartitionRow", "The 64 partitions with their owners, and what waits in each.", "partitions", ""},
		{"index", "gateway.IndexPosition", "How far the index of each owner has read the log.", "index", ""},
	}
)

// usual are the texts of fields that mean the same wherever they stand.
var usual = map[string]string{
	"agent": "The address of the agent.", "turn": "The turn.", "step": "The step of the turn, from 1.", "call": "The call.", "attempt": "The attempt, from 1.",
	"tool": "The name of the tool.", "model": "The model, as `provider/model`.", "input": "The id of the input.", "inputs": "The ids of the inputs.",
	"reason": "Why, in words for a person.", "message": "The same in words for a person.", "usage": "The tokens that were used.",
	"cost_nanos": "The cost by the price table, in billionths of its unit. 0 without a price.", "kind": "The kind of the agent.", "n": "The number of the event.",
	"at": "The time of the event.", "type": "The type of the event.", "node": "The id of the node.", "partition": "The number of the partition, 0 to 63.",
	"child": "The full address of the child.", "steps": "How many model calls the turn has made.",
}

// docs/reference/views.md describes each view, and the lines of each as their doc comments do.
func TestReferenceOfViews(t *testing.T) {
	root := "../../"
	p := reftest.NewPage(t, reftest.Parse(t, ".", root+"messages", root+"projections", root+"actors/verify", root+"eventlog/doctor"))
	p.Usual = usual
	p.Elsewhere = eventsPage(t)
	examples := lineExamples(t)
	for _, scope := range []struct {
		name  string
		views []viewRow
		takes map[string][]string
	}{{"agent", agentViews, filterableOfAgent}, {"tenant", tenantViews, filterableOfTenant}, {"store", storeViews, withDoctor(filterableOfStore)}} {
		var b strings.Builder
		for _, v := range scope.views {
			b.WriteString(section(p, scope.name, v, scope.takes[v.name], examples[scope.name+" "+v.name]))
		}
		reftest.Hold(t, viewsPage, scope.name, b.String(), *update)
		var described []string
		for _, v := range scope.views {
			described = append(described, v.name)
		}
		slices.Sort(described)
		if want := slices.Sorted(maps.Keys(scope.takes)); !slices.Equal(described, want) {
			t.Errorf("views of the %s: got %v described, want %v", scope.name, described, want)
		}
	}
	reftest.Hold(t, viewsPage, "remembered", p.Table("messages.Remembered"), *update)
	reftest.Hold(t, viewsPage, "request", p.Table("messages.Query"), *update)
	reftest.Hold(t, viewsPage, "uncovered", p.Table("messages.Uncovered"), *update)
	reftest.Hold(t, viewsPage, "objects", p.Shared(), *update)
}

// withDoctor adds the view of the whole store that has no filters.
func withDoctor(takes map[string][]string) map[string][]string {
	all := maps.Clone(takes)
	all["doctor"] = nil
	return all
}

// section describes one view.
func section(p *reftest.Page, scope string, v viewRow, takes []string, example string) string {
	var b strings.Builder
	heading := v.name
	if scope == "tenant" && slices.ContainsFunc(agentViews, func(of viewRow) bool { return of.name == v.name }) {
		heading += " of all agents"
	}
	if scope == "store" && v.name == "doctor" {
		heading += " of the store"
	}
	shown := "`reprise " + v.command + "`"
	if v.method != "" {
		shown += ", in Go `Client." + v.method + "`"
	}
	fmt.Fprintf(&b, "### %s\n\n%s\n\n", heading, reftest.Wrap(v.text))
	if len(takes) > 0 {
		quoted := make([]string, len(takes))
		for i, name := range takes {
			quoted[i] = "`" + name + "`"
		}
		fmt.Fprintf(&b, "Filters: %s. ", strings.Join(quoted, ", "))
	}
	fmt.Fprintf(&b, "Shown by %s.\n\n", shown)
	if v.row != "" {
		b.WriteString(p.Table(v.row) + "\n")
	}
	if example != "" {
		fmt.Fprintf(&b, "```json\n%s\n```\n\n", example)
	}
	return b.String()
}

// eventsPage returns the addresses of the objects that events.md describes.
func eventsPage(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/events.md")
	if err != nil {
		t.Fatal(err)
	}
	_, objects, _ := strings.Cut(string(text), "\n## Objects and words\n")
	at := map[string]string{"messages.Code": "errors.md#codes"}
	for _, m := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllStringSubmatch(objects, -1) {
		var name strings.Builder
		for _, word := range strings.Fields(m[1]) {
			name.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
		at["messages."+name.String()] = "events.md#" + strings.ReplaceAll(m[1], " ", "-")
	}
	return at
}

// lineExamples returns a line of each view, from the stories that the views of nodes are held to.
func lineExamples(t *testing.T) map[string]string {
	t.Helper()
	examples := make(map[string]string)
	better := func(key, line string) {
		old := examples[key]
		if fields := strings.Count(line, `":`); len(line) < 700 && (old == "" || fields > strings.Count(old, `":`)) {
			examples[key] = line
		}
	}
	files, err := filepath.Glob("../testdata/views/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("stories: got %d files, error %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^(\w+) \d+ (\{.*\})$`).FindAllStringSubmatch(string(text), -1) {
			better("agent "+m[1], m[2])
		}
		for _, m := range regexp.MustCompile(`(?m)^== \{"view":"(\w+)"[^}]*\}\n(\{.*\})$`).FindAllStringSubmatch(string(text), -1) {
			better("tenant "+m[1], m[2])
		}
	}
	for key, line := range examples {
		examples[key] = strings.NewReplacer(`"SEQ"`, "3", `"STORED"`, `"2026-01-02T03:00:00Z"`).Replace(line)
	}
	return examples
}
