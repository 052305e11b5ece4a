// Package metrics counts what a node does and writes it as Prometheus reads it.
//
// # Guarantees
//
//   - A registry of its own: nodes in one process do not meet in it.
//   - Labels are partitions, the kinds and models of the configuration, and words
//     of this package; never an agent, a tenant or a tool. What has another name
//     is counted as "other".
//   - Counting costs a commit a few atomic additions and no memory that stays when
//     its turn is over.
//   - Counters begin at zero, all of them at once; what another node did before is
//     that node's.
package metrics

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// Config says what is counted.
type Config struct {
	// Version is what the node says of itself.
	Version string
	// Definitions are those of the agents: their kinds and models are labels.
	Definitions []actors.Definition
	// State returns what is not counted but looked up, whenever the metrics are read. ctx bounds
	// it. Nil: those metrics are left out.
	State  func(ctx context.Context) State
	Logger *slog.Logger
}

// other stands for a kind or model that the configuration does not have.
const other = "other"

// Metrics counts. Safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	logger   *slog.Logger

	appends  map[string]prometheus.Counter // by result
	took     prometheus.Histogram
	fenced   prometheus.Counter
	moves    map[string]prometheus.Counter // by direction
	kinds    map[string]*ofKind
	models   map[string]*ofModel
	underWay [messages.Partitions]underWay
}

// ofKind counts what agents of a kind do.
type ofKind struct {
	inputs map[messages.Disposition]prometheus.Counter
	events map[string]prometheus.Counter // by type
}

// ofModel counts what is asked of a model.
type ofModel struct {
	calls           map[string]prometheus.Counter // by outcome
	took            prometheus.Observer
	input, output   prometheus.Counter
	cached, thought prometheus.Counter
	cost            prometheus.Counter
}

// The values of labels.
var (
	appendResults = []string{"stored", "conflict", "too_large", "unknown"}
	directions    = []string{"taken", "lost"}
	dispositions  = []messages.Disposition{messages.Started, messages.Queued, messages.Steered}
	modelOutcomes = []string{"completed", "failed", "lost"}
)

// countedEvents are the types of events that have a counter each.
var countedEvents = []struct {
	event      messages.Event
	name, help string
}{
	{messages.TurnStarted{}, "reprise_turns_started_total", "Turns that have started."},
	{messages.TurnPaused{}, "reprise_turns_paused_total", "Times that a turn was paused to wait for a person."},
	{messages.ToolStarted{}, "reprise_tool_starts_total", "Runs of tools that have started, repeated ones included."},
	{messages.ApprovalRequested{}, "reprise_approvals_requested_total", "Calls for which approval was requested."},
	{messages.AgentActivated{}, "reprise_agents_taken_over_total", "Agents that were activated after another node had owned them."},
	{messages.HistoryCompacted{}, "reprise_histories_compacted_total", "Context compactions."},
}

// The buckets of what takes time, in seconds.
var (
	appendBuckets = []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	modelBuckets  = []float64{.1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300}
)

// New makes metrics that are all zero.
func New(cfg Config) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), logger: cfg.Logger, kinds: make(map[string]*ofKind), models: make(map[string]*ofModel)}
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), built(cfg.Version),
	)
	if cfg.State != nil {
		m.registry.MustRegister(&state{read: cfg.State})
	}
	m.appends = m.counters("reprise_appends_total", "Appends to the log by result: stored, conflict (a newer owner has written), too_large, unknown (tried again).", "result", appendResults)
	m.took = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "reprise_append_duration_seconds", Help: "Time to store a frame.", Buckets: appendBuckets})
	m.fenced = m.counter("reprise_agents_fenced_total", "Agents that stopped on this node because a newer owner had written to their log.")
	m.moves = m.counters("reprise_partition_moves_total", "Partitions that this node has taken or lost, by direction.", "direction", directions)
	m.registry.MustRegister(m.took)
	m.countKinds(cfg.Definitions)
	m.countModels(cfg.Definitions)
	for p := range m.underWay {
		m.underWay[p].calls = make(map[messages.AgentID]calls)
	}
	return m
}

// built returns the metric of the versions.
func built(version string) prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "reprise_build_info", Help: "Always 1. The labels are the versions of Reprise and Go.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()},
	})
	info.Set(1)
	return info
}

func (m *Metrics) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(vec)
	return vec
}

// counters are those of one label, by its values.
func (m *Metrics) counters(name, help, label string, values []string) map[string]prometheus.Counter {
	return each(m.counterVec(name, help, label), values)
}

// each takes the counters of a label's values out of vec; labels come before it.
func each(vec *prometheus.CounterVec, values []string, labels ...string) map[string]prometheus.Counter {
	of := make(map[string]prometheus.Counter, len(values))
	for _, v := range values {
		of[v] = vec.WithLabelValues(append(slices.Clone(labels), v)...)
	}
	return of
}

func (m *Metrics) countKinds(definitions []actors.Definition) {
	inputs := m.counterVec("reprise_inputs_accepted_total", "Inputs that agents have accepted, by disposition.", "kind", "disposition")
	ended := m.counterVec("reprise_turns_finished_total", "Turns that have ended, by outcome.", "kind", "outcome")
	tools := m.counterVec("reprise_tool_calls_total", "Calls of tools that have an outcome; unknown means that a person must decide.", "kind", "outcome")
	counted := make(map[string]*prometheus.CounterVec)
	for _, e := range countedEvents {
		counted[e.event.EventType()] = m.counterVec(e.name, e.help, "kind")
	}
	kinds := []string{other}
	for _, d := range definitions {
		kinds = append(kinds, d.Kind)
	}
	for _, kind := range kinds {
		k := &ofKind{inputs: make(map[messages.Disposition]prometheus.Counter), events: make(map[string]prometheus.Counter)}
		for _, d := range dispositions {
			k.inputs[d] = inputs.WithLabelValues(kind, string(d))
		}
		for eventType, vec := range counted {
			k.events[eventType] = vec.WithLabelValues(kind)
		}
		k.outcomes(ended, kind, messages.EndsTurn)
		k.outcomes(tools, kind, messages.EndsTool)
		m.kinds[kind] = k
	}
}

// outcomes counts the events that have the trait under the last word of their type.
func (k *ofKind) outcomes(vec *prometheus.CounterVec, kind string, trait messages.Trait) {
	for _, eventType := range messages.EventTypes(trait) {
		_, outcome, _ := strings.Cut(eventType, ".")
		k.events[eventType] = vec.WithLabelValues(kind, outcome)
	}
}

func (m *Metrics) countModels(definitions []actors.Definition) {
	outcomes := m.counterVec("reprise_model_calls_total", "Model calls that have ended, summaries included, by outcome; lost means that the process stopped before the answer.", "model", "outcome")
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "reprise_model_call_duration_seconds", Help: "Duration of model calls that were answered or failed, from the frame before the call to the frame of its outcome.", Buckets: modelBuckets}, []string{"model"})
	m.registry.MustRegister(took)
	tokens := m.counterVec("reprise_model_tokens_total", "Tokens of model calls, by direction: input or output.", "model", "direction")
	cached := m.counterVec("reprise_model_cached_tokens_total", "Input tokens that the provider had cached.", "model")
	thought := m.counterVec("reprise_model_reasoning_tokens_total", "Output tokens that were used for reasoning.", "model")
	cost := m.counterVec("reprise_model_cost_total", "Cost of model calls, in whole units of the price table.", "model")
	models := []string{other}
	for _, d := range definitions {
		models = append(append(models, d.Model, d.Compact.Model), d.Fallbacks...)
	}
	for _, model := range models {
		if model == "" {
			continue
		}
		m.models[model] = &ofModel{
			calls: each(outcomes, modelOutcomes, model), took: took.WithLabelValues(model),
			input: tokens.WithLabelValues(model, "input"), output: tokens.WithLabelValues(model, "output"),
			cached: cached.WithLabelValues(model), thought: thought.WithLabelValues(model), cost: cost.WithLabelValues(model),
		}
	}
}

func (m *Metrics) kind(name string) *ofKind {
	if k := m.kinds[name]; k != nil {
		return k
	}
	return m.kinds[other]
}

func (m *Metrics) model(name string) *ofModel {
	if of := m.models[name]; of != nil {
		return of
	}
	return m.models[other]
}

// Taken counts a partition that has become this node's.
func (m *Metrics) Taken(messages.Partition) { m.moves["taken"].Inc() }

// Lost counts a partition that is this node's no more.
func (m *Metrics) Lost(p messages.Partition) {
	m.moves["lost"].Inc()
	m.underWay[p].clear()
}

// Store returns the store with the appends to its log counted.
func (m *Metrics) Store(store eventlog.Store) eventlog.Store {
	store.Log = counted{store.Log, m}
	return store
}

type counted struct {
	eventlog.Log
	m *Metrics
}

// Append appends and counts.
func (c counted) Append(ctx context.Context, e eventlog.Entry) (eventlog.Position, error) {
	began := time.Now()
	tail, err := c.Log.Append(ctx, e)
	switch {
	case err == nil:
		c.m.took.Observe(time.Since(began).Seconds())
		c.m.appends["stored"].Inc()
	case errors.As(err, new(*eventlog.ConflictError)):
		c.m.appends["conflict"].Inc()
	case errors.Is(err, eventlog.ErrTooLarge):
		c.m.appends["too_large"].Inc()
	default:
		c.m.appends["unknown"].Inc()
	}
	return tail, err
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(m.logger.Handler(), slog.LevelWarn), MaxRequestsInFlight: 4, Timeout: 10 * time.Second,
	})
}
