package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reprise-dev/reprise/messages"
)

// State is what is not counted but looked up.
type State struct {
	// Ready is what the readiness check says, Connected that NATS is reached.
	Ready, Connected bool
	// Reconnects is how often connections to NATS were made again.
	Reconnects uint64
	// Members is how many nodes are believed to be there, this one among them.
	Members int
	// InMemory is how many agents are in memory, Known how many there are in the
	// whole store.
	InMemory, Known int
	// PayloadHeld is how much of PayloadMemory running calls hold, in bytes.
	PayloadHeld, PayloadMemory int64
	// PayloadWaiting is how many calls wait for room there.
	PayloadWaiting int
	// Streams is how many streamed replies are under way; Prompts how many prompts
	// have come; AskedAfar how many commands from the endpoints were for agents of other
	// nodes, AskedAgain how often one was sent again.
	Streams                        int
	Prompts, AskedAfar, AskedAgain int64
	// IndexBehind is how far the index is behind the log of this node's partitions.
	IndexBehind uint64
	// ScrubBehind is how many sequences of the stream of the log that is read through now
	// are still to be read.
	ScrubBehind uint64
	// TurnsDropped is how many turns ended whose spans were not sent, SpansLost how many spans
	// the collector did not take.
	TurnsDropped, SpansLost int64
	// Held are the partitions that are this node's.
	Held []Partition
	// Applied is how many inputs and commands from the inbox agents took, Repeated
	// how many of them changed nothing since they had been applied before,
	// DeadLetters how many were refused and kept, Lost how often a consumer was made
	// again.
	Applied, Repeated, DeadLetters, Lost uint64
}

// Partition is what is looked up of a partition that is the node's.
type Partition struct {
	Number messages.Partition
	Epoch  messages.Epoch
	// Owing is how many of its agents owe work.
	Owing int
	// Pending is how many inputs and commands are stored that the node has not taken,
	// InHand how many it has taken and not settled, Waiting how many of these no
	// agent looks at now, Held how many of those are for a kind that is not served here.
	Pending               uint64
	InHand, Waiting, Held int
	// Oldest is the age of the oldest in hand. Zero: there is none.
	Oldest time.Duration
}

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	ready       = gauge("reprise_ready", "1 if the node is ready, as on /readyz.")
	connected   = gauge("reprise_nats_connected", "1 if the node is connected to NATS.")
	reconnects  = gauge("reprise_nats_reconnects_total", "Reconnections to NATS.")
	members     = gauge("reprise_members", "Members of the cluster as this node sees them, itself included.")
	held        = gauge("reprise_partitions_held", "Partitions that this node owns.")
	inMemory    = gauge("reprise_agents_in_memory", "Agents in the memory of this node.")
	payloadHeld = gauge("reprise_payload_memory_held_bytes", "Memory in use for requests, answers, tool outputs and payloads.")
	payloadWait = gauge("reprise_payload_memory_waiting", "Calls that wait for payload memory.")
	payloadMost = gauge("reprise_payload_memory_bytes", "Limit of payload memory; calls beyond it wait.")
	known       = gauge("reprise_agents_known", "Agents of the partitions that this node owns.")
	streams     = gauge("reprise_streams_open", "Streamed replies that this node is sending.")
	prompts     = gauge("reprise_prompts_total", "Prompts that this node has received.")
	askedAfar   = gauge("reprise_asks_remote_total", "Commands that this node has received and sent to the owner of their agent on another node.")
	askedAgain  = gauge("reprise_asks_retried_total", "Times that such a command was sent again, because the partition moved or the owner did not answer.")
	indexBehind = gauge("reprise_index_behind_messages", "Messages of the log that the index of this node has not read yet.")
	scrubBehind = gauge("reprise_scrub_behind_messages", "Messages that the background check of the log has yet to read in the stream at hand; 0 if it reads none.")
	turnsLost   = gauge("reprise_telemetry_turns_dropped_total", "Turns whose spans were not sent, because too many waited for the collector, the log could not be read, or the node stopped.")
	spansLost   = gauge("reprise_telemetry_spans_lost_total", "Spans that the collector did not accept.")
	epoch       = gauge("reprise_partition_epoch", "Epoch under which this node owns the partition.", "partition")
	owing       = gauge("reprise_agents_owing_work", "Agents of the partition that have open work.", "partition")
	pending     = gauge("reprise_inputs_pending", "Inputs and commands of the partition that are stored and that the owner has not taken yet.", "partition")
	inHand      = gauge("reprise_inputs_in_hand", "Inputs and commands that the owner has taken and not settled.", "partition")
	waiting     = gauge("reprise_inputs_waiting", "Of those in hand: inputs and commands that wait behind others for their agent, or for a retry.", "partition")
	unserved    = gauge("reprise_inputs_held", "Of those in hand: inputs and commands that wait for a node that serves their kind.", "partition")
	oldest      = gauge("reprise_inputs_oldest_age_seconds", "Age of the oldest input or command in hand; 0 if there is none.", "partition")
	applied     = gauge("reprise_inputs_applied_total", "Inputs and commands from the input and command subjects that agents have applied.")
	repeated    = gauge("reprise_inputs_repeated_total", "Of those applied: repetitions of an id that was applied before, which changed nothing.")
	letters     = gauge("reprise_dead_letters_total", "Inputs and commands that were refused and stored as dead letters.")
	lost        = gauge("reprise_inbox_consumers_lost_total", "Times that a JetStream consumer of inputs was lost and created again.")
)

// state looks up what State returns whenever the metrics are read.
type state struct {
	read func(context.Context) State
}

// lookUpWithin bounds one look.
const lookUpWithin = 3 * time.Second

// Describe names what there is.
func (*state) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		ready, connected, reconnects, members, held, inMemory, known, payloadHeld, payloadMost, payloadWait, streams, prompts, askedAfar, askedAgain, indexBehind, scrubBehind, turnsLost, spansLost, epoch, owing,
		pending, inHand, waiting, unserved, oldest, applied, repeated, letters, lost,
	} {
		to <- d
	}
}

// Collect looks it up.
func (s *state) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), lookUpWithin)
	defer cancel()
	now := s.read(ctx)
	is := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	is(ready, prometheus.GaugeValue, truth(now.Ready))
	is(connected, prometheus.GaugeValue, truth(now.Connected))
	is(reconnects, prometheus.CounterValue, float64(now.Reconnects))
	is(members, prometheus.GaugeValue, float64(now.Members))
	is(held, prometheus.GaugeValue, float64(len(now.Held)))
	is(inMemory, prometheus.GaugeValue, float64(now.InMemory))
	is(known, prometheus.GaugeValue, float64(now.Known))
	is(payloadHeld, prometheus.GaugeValue, float64(now.PayloadHeld))
	is(payloadMost, prometheus.GaugeValue, float64(now.PayloadMemory))
	is(payloadWait, prometheus.GaugeValue, float64(now.PayloadWaiting))
	is(streams, prometheus.GaugeValue, float64(now.Streams))
	is(prompts, prometheus.CounterValue, float64(now.Prompts))
	is(askedAfar, prometheus.CounterValue, float64(now.AskedAfar))
	is(askedAgain, prometheus.CounterValue, float64(now.AskedAgain))
	is(indexBehind, prometheus.GaugeValue, float64(now.IndexBehind))
	is(scrubBehind, prometheus.GaugeValue, float64(now.ScrubBehind))
	is(turnsLost, prometheus.CounterValue, float64(now.TurnsDropped))
	is(spansLost, prometheus.CounterValue, float64(now.SpansLost))
	is(applied, prometheus.CounterValue, float64(now.Applied))
	is(repeated, prometheus.CounterValue, float64(now.Repeated))
	is(letters, prometheus.CounterValue, float64(now.DeadLetters))
	is(lost, prometheus.CounterValue, float64(now.Lost))
	for _, p := range now.Held {
		label := p.Number.String()
		is(epoch, prometheus.GaugeValue, float64(p.Epoch), label)
		is(owing, prometheus.GaugeValue, float64(p.Owing), label)
		is(pending, prometheus.GaugeValue, float64(p.Pending), label)
		is(inHand, prometheus.GaugeValue, float64(p.InHand), label)
		is(waiting, prometheus.GaugeValue, float64(p.Waiting), label)
		is(unserved, prometheus.GaugeValue, float64(p.Held), label)
		is(oldest, prometheus.GaugeValue, p.Oldest.Seconds(), label)
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
