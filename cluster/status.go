package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/cluster/gateway/metrics"
	"github.com/reprise-dev/reprise/messages"
)

// ErrHTTP is wrapped by Start's error if Config.HTTP cannot be listened on. Nothing
// else was begun then.
var ErrHTTP = errors.New("the HTTP address cannot be used")

// openHTTP opens the HTTP address first of all, so that who watches the process sees
// it start.
func (n *Node) openHTTP(context.Context) error {
	n.metrics = metrics.New(metrics.Config{Version: n.cfg.Version, Definitions: n.cfg.Agents, State: n.state, Logger: n.cfg.Logger})
	if n.cfg.HTTP == "" {
		return nil
	}
	var err error
	n.http, err = gateway.ListenHTTP(gateway.HTTPConfig{Address: n.cfg.HTTP, Hosts: n.cfg.HTTPHosts, Unready: n.unready, Metrics: n.metrics.Handler(), Logger: n.cfg.Logger})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrHTTP, err)
	}
	n.onClose(n.http.Close)
	return nil
}

// HTTP is the address, host:port, where health, readiness and metrics are served;
// empty if they are not.
func (n *Node) HTTP() string {
	if n.http == nil {
		return ""
	}
	return n.http.Address()
}

// unready returns the reasons why the node should not be given work; none: it is ready. A node
// without partitions is ready: it passes requests on and takes over.
func (n *Node) unready() (why []gateway.Reason) {
	add := func(code, format string, args ...any) {
		why = append(why, gateway.Reason{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	if err := n.Err(); err != nil {
		add("ending", "the node has ended: %v", err)
	}
	if n.ending.Load() {
		add("ending", "the node stops")
	}
	if !n.up.Load() {
		add("starting", "the node starts")
		return why
	}
	if away, refused := n.away(); away > 0 {
		text := fmt.Sprintf("%d of %d connections to NATS are down", away, len(n.conns)+1)
		if refused != nil {
			text += fmt.Sprintf(": the login is refused: %v; %s", refused, client.Advice(refused))
		}
		add("nats", "%s", text)
	}
	if !n.ownership.Trusted() {
		add("membership", "the node does not know whether it is still a member, and acts for no agent until it does")
	}
	for _, text := range n.integrity.Reasons() {
		add("damage", "%s", text)
	}
	if err := n.unwritable(); err != nil {
		add("store", "the embedded NATS server does not store what it is given: %v; the node must be able to write to %s, and there must be room on its disk", err, n.cfg.Data)
	}
	if n.unowned() {
		add("store", "no partition has an owner: the streams or the leases may be gone, see `reprise doctor`; a node that is started makes missing streams again, empty")
	}
	if n.ownership.Draining() {
		add("draining", "the node gives its partitions away")
	}
	return why
}

// unowned reports whether no partition has an owner.
func (n *Node) unowned() bool {
	for p := range messages.Partition(messages.Partitions) {
		if n.ownerOf(p) != "" {
			return false
		}
	}
	return true
}

// away is how many connections to NATS are broken; if it is known that the server
// refuses the login of one, why.
func (n *Node) away() (broken int, refused error) {
	for _, nc := range n.connections() {
		if nc.IsConnected() {
			continue
		}
		broken++
		refused = cmp.Or(refused, refusal(nc))
	}
	return broken, refused
}

func (n *Node) connected() bool {
	broken, _ := n.away()
	return broken == 0
}

func (n *Node) connections() []*nats.Conn { return append([]*nats.Conn{n.nc}, n.conns...) }

// state looks up the metrics. Of a node that still starts it has few.
func (n *Node) state(ctx context.Context) (s metrics.State) {
	if !n.up.Load() {
		return s
	}
	s.Ready, s.Connected = len(n.unready()) == 0, n.connected()
	for _, nc := range n.connections() {
		s.Reconnects += nc.Stats().Reconnects
	}
	s.PayloadHeld, s.PayloadMemory, s.PayloadWaiting = n.memory.Held(), n.memory.Total(), n.memory.Waiting()
	s.Members, s.InMemory, s.Known = len(n.ownership.List()), n.InMemory(), n.agents.Len()
	s.Streams, s.Prompts = n.gateway.Load()
	s.AskedAfar, s.AskedAgain = n.host.router.routed.Load(), n.host.router.repeated.Load()
	s.IndexBehind = n.index.behind()
	s.ScrubBehind = n.integrity.ScrubBehind()
	if n.traces != nil {
		s.TurnsDropped, s.SpansLost = n.traces.Dropped(), n.traces.Lost()
	}
	for _, in := range n.inbox.Stats() {
		s.Applied, s.Repeated, s.DeadLetters, s.Lost = s.Applied+in.Applied, s.Repeated+in.Again, s.DeadLetters+in.DeadLetters, s.Lost+in.Lost
		epoch := n.owner.epoch(in.Partition)
		if epoch == 0 {
			continue
		}
		p := metrics.Partition{
			Number: in.Partition, Epoch: epoch, Owing: n.owner.openAgents(in.Partition),
			Pending: in.Pending, InHand: in.InHand, Waiting: in.Waiting, Held: in.Held,
		}
		if !in.Oldest.IsZero() {
			p.Oldest = max(0, time.Since(in.Oldest))
		}
		s.Held = append(s.Held, p)
	}
	return s
}

// members is the cluster as a node sees it. It implements gateway.Cluster.
type members struct{ n *Node }

// Nodes are the members.
func (s members) Nodes() []gateway.NodeRow {
	leased := make(map[string]int)
	for p := range messages.Partition(messages.Partitions) {
		leased[s.n.ownerOf(p)]++
	}
	var rows []gateway.NodeRow
	for _, m := range s.n.ownership.List() {
		row := gateway.NodeRow{
			Node: m.ID, Host: m.Host, Version: m.Version, Since: m.Started, Kinds: append([]string{}, m.Kinds...), Draining: m.Draining,
			Partitions: leased[m.ID],
		}
		row.BeatMS = time.Since(m.Heard).Milliseconds()
		rows = append(rows, row)
	}
	return rows
}

// Self is what this node reports about itself.
func (s members) Self() gateway.NodeTold {
	why := s.n.unready()
	return gateway.NodeTold{
		InMemory: s.n.InMemory(), Ready: len(why) == 0, Reasons: why, HTTP: s.n.HTTP(),
		Definitions: s.n.host.runtime.Digests(), Time: time.Now().UTC(),
	}
}

// Owing is how many agents of a partition owe work.
func (s members) Owing(p messages.Partition) int { return s.n.owner.openAgents(p) }

// Partitions are all partitions.
func (s members) Partitions(ctx context.Context) ([]gateway.PartitionRow, error) {
	backlogs, err := s.n.inbox.Backlogs(ctx)
	if err != nil {
		return nil, err
	}
	meant := s.n.ownership.Meant()
	rows := make([]gateway.PartitionRow, messages.Partitions)
	for i := range rows {
		p := messages.Partition(i)
		owner, epoch := s.n.owned(p)
		rows[i] = gateway.PartitionRow{
			Partition: p, Owner: owner, Epoch: epoch, MeantFor: meant[p],
			Waiting: backlogs[p].Waiting, InHand: backlogs[p].InHand, Oldest: backlogs[p].Oldest,
		}
	}
	return rows, nil
}
