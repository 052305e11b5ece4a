package metrics

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// heard is an observer that counts what it is notified of.
type heard struct {
	actors.Observer
	commits, fenced int
}

func (h *heard) Committed(actors.Commit)                 { h.commits++ }
func (h *heard) Fenced(messages.AgentID, messages.Epoch) { h.fenced++ }

var a = messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}

// page is what is served.
func page(t *testing.T, m *Metrics) string {
	t.Helper()
	server := httptest.NewServer(m.Handler())
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func newMetrics(definitions ...actors.Definition) *Metrics {
	return New(Config{Version: "v1", Definitions: definitions, Logger: slog.New(slog.DiscardHandler)})
}

func wants(t *testing.T, m *Metrics, lines ...string) {
	t.Helper()
	got := page(t, m)
	for _, line := range lines {
		if !strings.Contains(got, "\n"+line+"\n") {
			t.Errorf("%s is missing in\n%s", line, got)
		}
	}
}

// A call counts for the model that its request names, which the answer does not;
// one whose request another node wrote counts for none of the configuration.
func TestCallsOfModels(t *testing.T) {
	m := newMetrics(actors.Definition{Kind: "assistant", Model: "p/big", Fallbacks: []string{"p/small"}})
	next := &heard{}
	o := m.Observer(next)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	commit := func(events ...messages.Event) {
		at = at.Add(2 * time.Second)
		o.Committed(actors.Commit{Agent: a, Frame: &messages.Frame{Time: at, Events: events}})
	}
	used := messages.Usage{Input: 10, Output: 4, Cached: 20} // more than there is
	commit(messages.ModelCompleted{Call: "m1", Usage: used, Cost: messages.CostOf(0.5)})
	commit(messages.TurnStarted{}, messages.ModelRequested{Model: "p/big"})
	commit(messages.ModelRestarted{Call: "m1"}, messages.ModelRequested{Model: "p/small"})
	commit(messages.CompactionRequested{Model: "p/big"})
	commit(messages.ModelCompleted{Call: "m1", Model: "small-2026-01", Usage: used, Cost: messages.CostOf(0.25)}, messages.TurnCompleted{})
	commit(messages.HistoryCompacted{How: messages.CompactSummary, Call: "s1", Model: "big-2026-01", Usage: messages.Usage{Input: 7}})
	commit(messages.TurnStarted{}, messages.ModelRequested{Model: "p/big"})
	commit(messages.TurnAborted{})
	wants(t, m,
		`reprise_model_calls_total{model="other",outcome="completed"} 1`, `reprise_model_cost_total{model="other"} 0.5`,
		`reprise_model_calls_total{model="p/big",outcome="lost"} 1`, `reprise_model_calls_total{model="p/big",outcome="completed"} 1`,
		`reprise_model_calls_total{model="p/small",outcome="completed"} 1`, `reprise_model_cost_total{model="p/small"} 0.25`,
		`reprise_model_tokens_total{direction="input",model="p/small"} 10`, `reprise_model_cached_tokens_total{model="p/small"} 10`,
		`reprise_model_tokens_total{direction="input",model="p/big"} 7`,
		`reprise_model_call_duration_seconds_sum{model="p/small"} 4`, `reprise_model_call_duration_seconds_count{model="other"} 0`,
		`reprise_turns_finished_total{kind="assistant",outcome="aborted"} 1`, `reprise_histories_compacted_total{kind="assistant"} 1`,
	)
	if left := len(m.underWay[a.Partition()].calls); left != 0 {
		t.Errorf("%d agents are remembered whose turns are over", left)
	}
	commit(messages.ModelRequested{Model: "p/big"})
	o.Fenced(a, 9)
	commit(messages.ModelRequested{Model: "p/big"})
	m.Lost(a.Partition())
	if left := len(m.underWay[a.Partition()].calls); left != 0 {
		t.Errorf("%d agents are remembered that are another node's", left)
	}
	if next.commits != 10 || next.fenced != 1 {
		t.Errorf("passed on: %+v", next)
	}
	wants(t, m, `reprise_agents_fenced_total 1`, `reprise_partition_moves_total{direction="lost"} 1`)
}

// Inputs are counted by how they were accepted; other events of an input count for none.
func TestAcceptedInputs(t *testing.T) {
	m := newMetrics(actors.Definition{Kind: "assistant", Model: "p/big"})
	var events []messages.Event
	for _, d := range []messages.Disposition{messages.Started, messages.Queued, messages.Queued, messages.Steered} {
		events = append(events, messages.InputAccepted{Disposition: d})
	}
	m.Observer(&heard{}).Committed(actors.Commit{Agent: a, Frame: &messages.Frame{Events: append(events, messages.InputCancelled{})}})
	wants(t, m,
		`reprise_inputs_accepted_total{disposition="started",kind="assistant"} 1`,
		`reprise_inputs_accepted_total{disposition="queued",kind="assistant"} 2`,
		`reprise_inputs_accepted_total{disposition="steered",kind="assistant"} 1`,
	)
}

// Kinds and models that the configuration does not have share one label.
func TestLabelsAreBounded(t *testing.T) {
	m := newMetrics(actors.Definition{Kind: "assistant", Model: "p/big"})
	o := m.Observer(&heard{})
	for i := range 100 {
		b := messages.AgentID{Tenant: "default", Kind: fmt.Sprint("kind", i), Key: "x"}
		o.Committed(actors.Commit{Agent: b, Frame: &messages.Frame{Events: []messages.Event{messages.TurnStarted{}, messages.ModelRequested{Model: fmt.Sprint("m", i)}, messages.ModelFailed{Call: "m1"}}}})
	}
	wants(t, m, `reprise_turns_started_total{kind="other"} 100`, `reprise_model_calls_total{model="other",outcome="failed"} 100`)
	if got := page(t, m); strings.Contains(got, "kind7") || strings.Contains(got, `"m7"`) {
		t.Error("a name that is not of the configuration is a label")
	}
}

// failing is a log whose appends return what they are set to.
type failing struct {
	eventlog.Log
	with error
}

func (f *failing) Append(context.Context, eventlog.Entry) (eventlog.Position, error) {
	return eventlog.Position{}, f.with
}

func TestAppends(t *testing.T) {
	m := newMetrics()
	f := &failing{}
	log := m.Store(eventlog.Store{Log: f})
	for _, err := range []error{nil, &eventlog.ConflictError{}, fmt.Errorf("refused: %w", eventlog.ErrTooLarge), eventlog.ErrUnavailable, nil} {
		f.with = err
		if _, got := log.Append(t.Context(), eventlog.Entry{}); got != err {
			t.Errorf("%v came as %v", err, got)
		}
	}
	wants(t, m,
		`reprise_appends_total{result="stored"} 2`, `reprise_appends_total{result="conflict"} 1`, `reprise_appends_total{result="too_large"} 1`,
		`reprise_appends_total{result="unknown"} 1`, `reprise_append_duration_seconds_count 2`,
	)
}

// What is counted at each commit makes no garbage.
func BenchmarkCommitted(b *testing.B) {
	m := newMetrics(actors.Definition{Kind: "assistant", Model: "p/big"})
	o := m.Observer(&heard{})
	c := actors.Commit{Agent: a, Frame: &messages.Frame{Time: time.Now(), Events: []messages.Event{
		messages.ModelRequested{Model: "p/big"}, messages.ModelCompleted{Call: "m1", Usage: messages.Usage{Input: 3}}, messages.ToolStarted{}, messages.ToolCompleted{},
	}}}
	b.ReportAllocs()
	for b.Loop() {
		o.Committed(c)
	}
}
