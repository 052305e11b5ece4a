package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/cluster/ownership"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

func served(c *cluster.Config) { c.HTTP = "127.0.0.1:0" }

// fetch asks a node's HTTP address.
func (w *world) fetch(method string, n *cluster.Node, path string) (status int, body []byte) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.ctx, method, "http://"+n.HTTP()+path, nil)
	w.ok(err)
	got, err := http.DefaultClient.Do(r)
	w.ok(err)
	defer func() { _ = got.Body.Close() }()
	body, err = io.ReadAll(got.Body)
	w.ok(err)
	return got.StatusCode, body
}

// readiness asks whether a node is ready, and why not.
func (w *world) readiness(n *cluster.Node) (status int, codes []string) {
	w.t.Helper()
	status, body := w.fetch("GET", n, "/readyz")
	var r gateway.Readiness
	w.ok(json.Unmarshal(body, &r))
	if r.Ready != (status == http.StatusOK) || r.Ready != (len(r.Reasons) == 0) {
		w.t.Fatalf("status %d with %s", status, body)
	}
	for _, why := range r.Reasons {
		codes = append(codes, why.Code)
	}
	return status, codes
}

// families are a node's metrics as Prometheus reads them.
func (w *world) families(n *cluster.Node) map[string]*dto.MetricFamily {
	w.t.Helper()
	status, body := w.fetch("GET", n, "/metrics")
	if status != http.StatusOK {
		w.t.Fatalf("metrics: %d %s", status, body)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	w.ok(err)
	return families
}

// metric is the value of a metric with these labels, given as name and value in turn;
// of a histogram the number of what was observed.
func (w *world) metric(n *cluster.Node, name string, labels ...string) float64 {
	w.t.Helper()
	return w.valueOf(w.families(n), name, labels...)
}

func (w *world) valueOf(families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	w.t.Helper()
	for _, m := range families[name].GetMetric() {
		var has []string
		for _, l := range m.GetLabel() {
			has = append(has, l.GetName(), l.GetValue())
		}
		if !slices.Equal(has, labels) {
			continue
		}
		switch {
		case m.GetCounter() != nil:
			return m.GetCounter().GetValue()
		case m.GetHistogram() != nil:
			return float64(m.GetHistogram().GetSampleCount())
		}
		return m.GetGauge().GetValue()
	}
	w.t.Fatalf("metric %s with labels %q is missing", name, labels)
	return 0
}

// standsStill are the metrics that are 0 of a partition with nothing to do. Its agents
// are known by their frames' heads, which follow the log.
var standsStill = []string{"reprise_agents_owing_work", "reprise_inputs_in_hand", "reprise_inputs_pending", "reprise_inputs_oldest_age_seconds"}

func TestMetricsMoveAsTurnsRun(t *testing.T) {
	w := newWorld(t)
	work := tool.New("work", "", tool.ReadOnly, func(context.Context, struct{}) (string, error) { return "done", nil })
	spent := func(s scripted.Step) scripted.Step {
		s.Usage = messages.Usage{Input: 30, Output: 5, Cached: 10, Reasoning: 2}
		return s
	}
	n := w.node(served, agents(scripted.New(spent(scripted.Ask(scripted.Call{Name: "work", Arguments: "{}"})), spent(scripted.Say("well")), scripted.Fail(&providers.Error{Kind: providers.BadRequest, Message: "no"})), func(d *actors.Definition) {
		d.Tools = []tool.Tool{work}
	}), func(c *cluster.Config) {
		c.Prices = map[string]messages.Price{"test/model": {Input: 1_000_000, Output: 2_000_000}}
	})
	before := w.families(n)
	for _, text := range []string{"go", "again"} {
		w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte(text)))
	}
	w.until(n.Client(), "assistant/a", ofType("turn.failed"))
	p := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}.Partition().String()
	var after map[string]*dto.MetricFamily
	w.eventually("everything is settled, and the agent is seen to owe nothing", func() bool {
		after = w.families(n)
		return w.valueOf(after, "reprise_inputs_applied_total") == 2 && w.valueOf(after, "reprise_agents_known") == 1 &&
			w.valueOf(after, "reprise_turns_finished_total", "kind", "assistant", "outcome", "failed") > 0 &&
			!slices.ContainsFunc(standsStill, func(name string) bool { return w.valueOf(after, name, "partition", p) != 0 })
	})
	for _, c := range []struct {
		name   string
		labels []string
		more   float64
	}{
		{"reprise_turns_started_total", []string{"kind", "assistant"}, 2},
		{"reprise_turns_finished_total", []string{"kind", "assistant", "outcome", "completed"}, 1},
		{"reprise_turns_finished_total", []string{"kind", "assistant", "outcome", "failed"}, 1},
		{"reprise_turns_finished_total", []string{"kind", "other", "outcome", "failed"}, 0},
		{"reprise_tool_starts_total", []string{"kind", "assistant"}, 1},
		{"reprise_tool_calls_total", []string{"kind", "assistant", "outcome", "completed"}, 1},
		{"reprise_model_calls_total", []string{"model", "test/model", "outcome", "completed"}, 2},
		{"reprise_model_calls_total", []string{"model", "test/model", "outcome", "failed"}, 1},
		{"reprise_model_calls_total", []string{"model", "other", "outcome", "failed"}, 0},
		{"reprise_model_call_duration_seconds", []string{"model", "test/model"}, 3},
		{"reprise_model_tokens_total", []string{"direction", "input", "model", "test/model"}, 60},
		{"reprise_model_tokens_total", []string{"direction", "output", "model", "test/model"}, 10},
		{"reprise_model_cached_tokens_total", []string{"model", "test/model"}, 20},
		{"reprise_model_reasoning_tokens_total", []string{"model", "test/model"}, 4},
		{"reprise_model_cost_total", []string{"model", "test/model"}, 80},
		{"reprise_inputs_applied_total", nil, 2},
		{"reprise_agents_known", nil, 1},
		{"reprise_agents_in_memory", nil, 1},
		{"reprise_partitions_held", nil, 0},
	} {
		if got := w.valueOf(after, c.name, c.labels...) - w.valueOf(before, c.name, c.labels...); got != c.more {
			t.Errorf("%s %q went up by %v, want %v", c.name, c.labels, got, c.more)
		}
	}
	if w.valueOf(after, "reprise_appends_total", "result", "unknown") > 0 {
		return // the server took more than two seconds, and a frame was sent twice
	}
	if got := w.valueOf(after, "reprise_appends_total", "result", "conflict"); got != 0 {
		t.Errorf("%v conflicts", got)
	}
	frames := make(map[string]bool)
	for _, e := range w.events(n.Client(), "assistant/a") {
		frames[e.Frame] = true
	}
	if got := w.valueOf(after, "reprise_appends_total", "result", "stored"); got != float64(len(frames)) || got != w.valueOf(after, "reprise_append_duration_seconds") {
		t.Errorf("%v appends of %d frames", got, len(frames))
	}
}

// Dead letters are counted, also of what no partition takes.
func TestDeadLettersAreCounted(t *testing.T) { // A102
	w := newWorld(t)
	n := w.node(served)
	w.ok(w.nc.Publish("reprise.in.nobody", []byte("hello")))
	w.eventually("what no partition takes is counted", func() bool { return w.metric(n, "reprise_dead_letters_total") == 1 })
	w.ok(w.nc.Publish("reprise.ctl.default.assistant.a", []byte("nonsense")))
	w.eventually("what is refused is counted", func() bool { return w.metric(n, "reprise_dead_letters_total") == 2 })
	dlq, err := w.js.Stream(w.ctx, "REPRISE_DLQ")
	w.ok(err)
	if kept := dlq.CachedInfo().State.Msgs; kept != 2 {
		t.Errorf("%d dead letters are kept", kept)
	}
}

var tableLine = regexp.MustCompile("(?m)^\\| `(reprise_[a-z_]+)` \\| (\\w+) \\| ([^|]*) \\| (.*) \\|$")

// docs/reference/metrics.md describes each metric as /metrics does, and no other. With -update its lines
// are written.
func TestMetricsAreWrittenDown(t *testing.T) {
	w := newWorld(t)
	n := w.node(served)
	var told []string
	var families map[string]*dto.MetricFamily
	w.eventually("the index is open", func() bool {
		families = w.families(n)
		return families["reprise_index_behind_messages"] != nil
	})
	for name, f := range families {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		told = append(told, fmt.Sprintf("| `%s` | %s | %s | %s |", name, strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp()))
	}
	slices.Sort(told)
	const name = "../docs/reference/metrics.md"
	page, err := os.ReadFile(name)
	w.ok(err)
	var written []string
	text := tableLine.ReplaceAllStringFunc(string(page), func(line string) string {
		written = append(written, line)
		return lineOf(told, tableLine.FindStringSubmatch(line)[1], line)
	})
	if *update {
		w.ok(os.WriteFile(name, []byte(text), 0o644))
	}
	slices.Sort(written)
	if !*update && !slices.Equal(told, written) || len(told) != len(written) {
		t.Errorf("%s has %d metrics, /metrics %d: run make docs, and add a line for each new one. The page must have these lines, in any order:\n%s", name, len(written), len(told), strings.Join(told, "\n"))
	}
}

// lineOf returns the line of the table for a metric, or line if it is not served.
func lineOf(told []string, metric, line string) string {
	for _, l := range told {
		if strings.HasPrefix(l, "| `"+metric+"` |") {
			return l
		}
	}
	return line
}

func TestReadiness(t *testing.T) { // A93
	w := newWorld(t)
	wi := &wire{}
	n := w.node(served, over(wi))
	w.eventually("a node that has started is ready", func() bool { status, _ := w.readiness(n); return status == http.StatusOK })
	wi.cut()
	w.eventually("it is not ready without NATS", func() bool {
		status, codes := w.readiness(n)
		return status == http.StatusServiceUnavailable && slices.Contains(codes, "nats")
	})
	if status, _ := w.fetch("GET", n, "/healthz"); status != http.StatusOK {
		t.Errorf("a process that lives answers %d", status)
	}
	if w.metric(n, "reprise_ready") != 0 || w.metric(n, "reprise_nats_connected") != 0 {
		t.Error("the metrics say that it is ready")
	}
	wi.heal()
	w.eventually("it is ready again", func() bool { status, _ := w.readiness(n); return status == http.StatusOK })
	if w.metric(n, "reprise_nats_reconnects_total") == 0 {
		t.Error("no connection was made again")
	}
}

func TestHTTPHosts(t *testing.T) {
	w := newWorld(t)
	n := w.node(served, func(c *cluster.Config) { c.HTTPHosts = []string{"node.example"} })
	for host, want := range map[string]int{"node.example": http.StatusOK, "evil.example": http.StatusMisdirectedRequest} {
		r, err := http.NewRequestWithContext(w.ctx, "GET", "http://"+n.HTTP()+"/metrics", nil)
		w.ok(err)
		r.Host = host
		got, err := http.DefaultClient.Do(r)
		w.ok(err)
		w.ok(got.Body.Close())
		if got.StatusCode != want {
			t.Errorf("called %s it answers %s", host, got.Status)
		}
	}
}

func TestHTTPTakesNothing(t *testing.T) { // A102
	w := newWorld(t)
	n := w.node(served)
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
			if status, _ := w.fetch(method, n, path); status != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d", method, path, status)
			}
		}
	}
	if status, _ := w.fetch("GET", n, "/debug/pprof/"); status != http.StatusNotFound {
		t.Errorf("there is more than there should be: %d", status)
	}
	if _, err := cluster.Start(w.ctx, w.config(func(c *cluster.Config) { c.HTTP = n.HTTP() })); !errors.Is(err, cluster.ErrHTTP) {
		t.Errorf("an address that is taken: %v", err)
	}
}

// store reads a view of the whole store.
func store[T any](w *world, n *cluster.Node, view string) (rows []T) {
	w.t.Helper()
	for line, err := range n.Client().QueryStore(w.ctx, messages.Query{View: view}) {
		w.ok(err)
		var row T
		w.ok(json.Unmarshal(line, &row))
		rows = append(rows, row)
	}
	return rows
}

// frozenMember keeps a member's key, receives what is sent to it and says nothing, until it is
// listed as wanted.
func (w *world) frozenMember(id, host string, listed func() bool) {
	w.t.Helper()
	for _, subject := range []string{"_actor.reprise.tell." + id, "_actor.reprise.ping." + id} {
		_, err := w.nc.Subscribe(subject, func(*nats.Msg) {})
		w.ok(err)
	}
	kv, err := w.js.KeyValue(w.ctx, "reprise_members")
	w.ok(err)
	key, err := json.Marshal(ownership.Info{ID: id, Host: host})
	w.ok(err)
	w.eventually("a member that does not answer is listed as such", func() bool {
		_, err := kv.Put(w.ctx, "m."+id, key)
		w.ok(err)
		return listed()
	})
}

func TestNodesAndPartitions(t *testing.T) {
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	gate := scripted.NewGate()
	first := w.node(served, agents(scripted.New(scripted.Held(gate, scripted.Say("done"))), nil))
	second := w.node(agents(echo(), func(d *actors.Definition) { d.Instructions = "Be long." }))
	var partitions []gateway.PartitionRow
	w.eventually("every partition is where it is to be", func() bool {
		partitions = store[gateway.PartitionRow](w, second, "partitions")
		return second.Partitions() == messages.Partitions/2 &&
			!slices.ContainsFunc(partitions, func(p gateway.PartitionRow) bool { return p.Owner == "" || p.Owner != p.MeantFor })
	})
	for i, p := range partitions {
		if p.Partition != messages.Partition(i) || p.Epoch == 0 || len(partitions) != messages.Partitions {
			t.Errorf("partition: %+v", p)
		}
	}
	a := messages.AgentID{Tenant: "default", Kind: "assistant"} // one of the first node's
	for i := 0; a.Key == "" || partitions[a.Partition()].Owner != first.ID(); i++ {
		a.Key = fmt.Sprint("a", i)
	}
	for _, text := range []string{"go", "and then"} {
		w.ok(w.nc.Publish(messages.Subjects{}.In(a), []byte(text)))
	}
	<-gate.Reached()

	var rows []gateway.NodeRow
	w.eventually("both answer and are ready", func() bool {
		rows = store[gateway.NodeRow](w, second, "nodes")
		return !slices.ContainsFunc(rows, func(r gateway.NodeRow) bool { return !r.Answers || !r.Ready })
	})
	if len(rows) != 2 || rows[0].Node != first.ID() || rows[1].Node != second.ID() {
		t.Fatalf("nodes: %+v", rows)
	}
	here := 0
	for _, r := range rows {
		if r.Here {
			here++
		}
		if r.Host == "" || r.Since.IsZero() || !slices.Equal(r.Kinds, []string{"assistant"}) || r.Definitions["assistant"] == "" || r.Time.IsZero() || r.BeatMS < 0 {
			t.Errorf("node: %+v", r)
		}
	}
	if here != 1 || rows[0].Definitions["assistant"] == rows[1].Definitions["assistant"] || rows[0].HTTP != first.HTTP() || rows[1].HTTP != "" {
		t.Errorf("nodes: %+v", rows)
	}
	if rows[0].Partitions != messages.Partitions/2 || rows[1].Partitions != messages.Partitions/2 || w.metric(first, "reprise_members") != 2 {
		t.Errorf("%d and %d partitions", rows[0].Partitions, rows[1].Partitions)
	}
	w.eventually("the partition lists its agent, and what it owes", func() bool {
		p := store[gateway.PartitionRow](w, second, "partitions")[a.Partition()]
		return p.Agents == 1 && p.Owing == 1
	})
	gate.Release()
	w.until(second.Client(), a.String(), ofType("turn.completed"))

	w.frozenMember("01ZZZZZZZZZZZZZZZZZZZZZZZZ", "far", func() bool {
		for _, r := range store[gateway.NodeRow](w, second, "nodes") {
			if r.Node == "01ZZZZZZZZZZZZZZZZZZZZZZZZ" {
				return !r.Answers && strings.Contains(r.Error, "no answer within") && r.NodeTold == nil && r.Host == "far"
			}
		}
		return false
	})
}
