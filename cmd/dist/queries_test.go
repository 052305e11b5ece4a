package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
)

// queries returns the PromQL queries of the alerts and of the dashboard, its variables replaced.
func queries(t *testing.T) []string {
	t.Helper()
	var alerts struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "alerts.yaml")), &alerts); err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(read(t, "grafana.json")), &board); err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, g := range alerts.Groups {
		for _, r := range g.Rules {
			list = append(list, r.Expr)
		}
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$instance", ".*")
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			list = append(list, variables.Replace(target.Expr))
		}
	}
	return list
}

// docs/operate/monitoring.md lists the alerts with the same queries.
func TestAlertsAreOnThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operate/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	var alerts struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "alerts.yaml")), &alerts); err != nil {
		t.Fatal(err)
	}
	for _, g := range alerts.Groups {
		for _, r := range g.Rules {
			if query := strings.Join(strings.Fields(r.Expr), " "); !strings.Contains(string(page), "`"+query+"`") {
				t.Errorf("the page lacks %s: %s", r.Alert, query)
			}
		}
	}
}

// page returns the metrics of a node that serves one agent, once its index is open.
func page(t *testing.T) string {
	t.Helper()
	node, err := cluster.Start(t.Context(), cluster.Config{Data: t.TempDir(), Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0",
		Providers: providers.Set{"demo": demo.New()}, Agents: []actors.Definition{{Kind: "assistant", Model: "demo/demo"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Close() })
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		response, err := http.Get("http://" + node.HTTP() + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(body), "reprise_index_behind_messages") {
			return string(body)
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the index does not open")
		}
	}
}

var (
	sample   = regexp.MustCompile(`^([a-z][a-z0-9_]*)(?:\{(.*)\})? `)
	label    = regexp.MustCompile(`([a-z_]+)=~?"`)
	named    = regexp.MustCompile(`\b((?:reprise|go|process)_[a-z0-9_]+)(?:\{([^}]*)\})?`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
	// scraped are the labels that Prometheus adds.
	scraped = []string{"job", "instance"}
)

// labelsOf returns the labels of each metric of a page.
func labelsOf(page string) map[string][]string {
	labels := make(map[string][]string)
	for lines := bufio.NewScanner(strings.NewReader(page)); lines.Scan(); {
		if m := sample.FindStringSubmatch(lines.Text()); m != nil {
			labels[m[1]] = append(slices.Clone(scraped), names(m[2])...)
		}
	}
	return labels
}

// names returns the labels of a selector.
func names(selector string) (list []string) {
	for _, m := range label.FindAllStringSubmatch(selector, -1) {
		list = append(list, m[1])
	}
	return list
}

// Every metric and label of the alerts and of the dashboard is one that a node serves. That the
// queries are PromQL is left to TestForeign.
func TestQueries(t *testing.T) {
	t.Parallel()
	served, used := labelsOf(page(t)), make(map[string]bool)
	all := queries(t)
	if len(all) < 50 {
		t.Errorf("only %d queries", len(all))
	}
	for _, query := range all {
		var wanted []string
		for _, m := range grouping.FindAllStringSubmatch(query, -1) {
			for name := range strings.SplitSeq(m[1], ",") {
				wanted = append(wanted, strings.TrimSpace(name))
			}
		}
		for _, m := range named.FindAllStringSubmatch(grouping.ReplaceAllString(query, ""), -1) {
			used[m[1]] = true
			for _, name := range append(names(m[2]), wanted...) {
				if labels, ok := served[m[1]]; !ok || !slices.Contains(labels, name) {
					t.Errorf("%s: %s has labels %v, not %s", query, m[1], labels, name)
				}
			}
			if served[m[1]] == nil {
				t.Errorf("%s: no node serves %s", query, m[1])
			}
		}
	}
	if !used["reprise_ready"] || !used["reprise_model_call_duration_seconds_bucket"] {
		t.Errorf("the queries are not read: %v", used)
	}
}
