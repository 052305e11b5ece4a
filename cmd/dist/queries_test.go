package main

import (
	"bufio"
	"encoding/json"
	"fmt"
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
	label    = regexp.MustCompile(`([a-z_]+)(=~|!~|!=|=)"([^"]*)"`)
	named    = regexp.MustCompile(`\b((?:reprise|go|process)_[a-z0-9_]+)(?:\{([^}]*)\})?`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
	// scraped are the labels that Prometheus adds.
	scraped = []string{"job", "instance"}
)

// labelsOf returns the values of each label of each metric of a page.
func labelsOf(page string) map[string]map[string][]string {
	served := make(map[string]map[string][]string)
	for lines := bufio.NewScanner(strings.NewReader(page)); lines.Scan(); {
		m := sample.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		if served[m[1]] == nil {
			served[m[1]] = make(map[string][]string)
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			served[m[1]][l[1]] = append(served[m[1]][l[1]], l[3])
		}
	}
	return served
}

// mistakes returns what of a query no node serves: metrics, labels, and values of labels. A node
// serves its counters from the start, at zero, with all their values.
func mistakes(query string, served map[string]map[string][]string) (list []string) {
	var by []string
	for _, m := range grouping.FindAllStringSubmatch(query, -1) {
		for name := range strings.SplitSeq(m[1], ",") {
			by = append(by, strings.TrimSpace(name))
		}
	}
	for _, m := range named.FindAllStringSubmatch(grouping.ReplaceAllString(query, ""), -1) {
		labels, ok := served[m[1]]
		if !ok {
			list = append(list, "no node serves "+m[1])
			continue
		}
		for _, name := range by {
			if labels[name] == nil && !slices.Contains(scraped, name) {
				list = append(list, m[1]+" has no label "+name)
			}
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if slices.Contains(scraped, l[1]) {
				continue
			}
			for value := range strings.SplitSeq(l[3], "|") {
				if exact := !strings.HasSuffix(l[2], "~"); !matches(labels[l[1]], value, exact) {
					list = append(list, fmt.Sprintf("%s has no %s %q, but %q", m[1], l[1], value, labels[l[1]]))
				}
			}
		}
	}
	return list
}

// matches reports whether one of the values is the wanted one, or matches it as an expression.
func matches(values []string, want string, exact bool) bool {
	if exact {
		return slices.Contains(values, want)
	}
	return slices.ContainsFunc(values, regexp.MustCompile("^(?:"+want+")$").MatchString)
}

// Every metric, label and value of a label in the alerts and the dashboard is one that a node serves.
// That the queries are PromQL is left to TestForeign.
func TestQueries(t *testing.T) {
	t.Parallel()
	served, all := labelsOf(page(t)), queries(t)
	if len(all) < 50 {
		t.Errorf("only %d queries", len(all))
	}
	read := strings.Join(all, "\n")
	if !strings.Contains(read, "reprise_ready") || !strings.Contains(read, "reprise_model_call_duration_seconds_bucket") {
		t.Errorf("the queries are not read: %v", all)
	}
	for _, query := range all {
		for _, mistake := range mistakes(query, served) {
			t.Errorf("%s: %s", query, mistake)
		}
	}
}

// TestQueriesBite shows the check queries with a mistake and some without.
func TestQueriesBite(t *testing.T) {
	served := labelsOf(`reprise_calls_total{kind="a",outcome="failed"} 0` + "\n" + `reprise_calls_total{kind="a",outcome="completed"} 0` + "\n" + "reprise_ready 1\n")
	for query, want := range map[string]int{
		`sum by (kind, job) (rate(reprise_calls_total{job=~".*", outcome="failed"}[5m]))`: 0,
		`reprise_calls_total{outcome=~"failed|comp.*"} > 0 and reprise_ready == 0`:        0,
		`reprise_calls_total{outcome!~"failed"}`:                                          0,
		`reprise_calls{outcome="failed"}`:                                                 1,
		`reprise_calls_total{outcome="fail"}`:                                             1,
		`reprise_calls_total{outcome!="lost"}`:                                            1,
		`reprise_calls_total{outcome=~"failed|lost"}`:                                     1,
		`reprise_calls_total{outcome=~"fail"}`:                                            1,
		`reprise_calls_total{code="failed"}`:                                              1,
		`sum by (model) (reprise_calls_total)`:                                            1,
		`reprise_ready{outcome="failed"}`:                                                 1,
	} {
		if got := mistakes(query, served); len(got) != want {
			t.Errorf("%s: got %q, want %d mistakes", query, got, want)
		}
	}
}
