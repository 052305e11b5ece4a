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
	ready       = gauge("reprise_ready", "1 if the node is ready, as /readyz says.")
	connected   = gauge("reprise_nats_connected", "1 if NATS is reached.")
	reconnects  = gauge("reprise_nats_reconnects_total", "Times that a connection to NATS was made again.")
	members     = gauge("reprise_members", "Nodes that this one believes to be there, itself among them.")
	held        = gauge("reprise_partitions_held", "Partitions that are this node's.")
	inMemory    = gauge("reprise_agents_in_memory", "Agents in this node's memory.")
	payloadHeld = gauge("reprise_payload_memory_held_bytes", "Memory that is claimed for answers, tool outputs and payloads in flight.")
	payloadWait = gauge("reprise_payload_memory_waiting", "Calls that wait for room there.")
	payloadMost = gauge("reprise_payload_memory_bytes", "How much of it may be claimed; what does not fit waits.")
	known       = gauge("reprise_agents_known", "Agents of the partitions that this node owns.")
	streams     = gauge("reprise_streams_open", "Streamed replies that are under way through this node.")
	prompts     = gauge("reprise_prompts_total", "Prompts that have come to this node's door.")
	askedAfar   = gauge("reprise_asks_remote_total", "Commands from this node's doors for agents of other nodes.")
	askedAgain  = gauge("reprise_asks_retried_total", "Times that a command from this node's doors was sent again: its agent changed hands, or its node did not answer.")
	indexBehind = gauge("reprise_index_behind_messages", "Messages of the log that this node's index has not read yet.")
	scrubBehind = gauge("reprise_scrub_behind_messages", "Messages of the stream of the log that this node reads through in the background that are still to be read; 0 if none is.")
	turnsLost   = gauge("reprise_telemetry_turns_dropped_total", "Turns that ended and whose spans were not sent: too many waited for the collector, their log could not be read, or the node ended.")
	spansLost   = gauge("reprise_telemetry_spans_lost_total", "Spans that the collector did not take, or rejected.")
	epoch       = gauge("reprise_partition_epoch", "The epoch under which a partition is this node's.", "partition")
	owing       = gauge("reprise_agents_owing_work", "Agents of a partition of this node that owe work.", "partition")
	pending     = gauge("reprise_inputs_pending", "Inputs and commands of a partition of this node that are stored and that it has not taken yet.", "partition")
	inHand      = gauge("reprise_inputs_in_hand", "Those that it has taken and not settled.", "partition")
	waiting     = gauge("reprise_inputs_waiting", "Those in hand that wait behind others for their agent, or to be tried again.", "partition")
	unserved    = gauge("reprise_inputs_held", "Those in hand that wait for a node that serves their kind.", "partition")
	oldest      = gauge("reprise_inputs_oldest_age_seconds", "Age of the oldest in hand; 0 if there is none.", "partition")
	applied     = gauge("reprise_inputs_applied_total", "Inputs and commands from the input subjects that agents took.")
	repeated    = gauge("reprise_inputs_repeated_total", "Those of them that had been applied before and changed nothing.")
	letters     = gauge("reprise_dead_letters_total", "Inputs and commands that were refused and kept as dead letters.")
	lost        = gauge("reprise_inbox_consumers_lost_total", "Times that a consumer of inputs was lost and made again.")
)

// state looks up what State tells whenever the metrics are read.
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
