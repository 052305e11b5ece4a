package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// Cluster reports on all nodes and partitions, as this node sees them. Safe for
// concurrent use.
type Cluster interface {
	// Nodes are the members, sorted by id, without what only they can report.
	Nodes() []NodeRow
	// Self is what this node reports about itself.
	Self() NodeTold
	// Partitions are all of them, in order, without what only their owners can report.
	Partitions(ctx context.Context) ([]PartitionRow, error)
	// Owing is how many agents of a partition that this node owns owe work.
	Owing(p messages.Partition) int
}

// NodeRow is a member: a line of the view nodes.
type NodeRow struct {
	Node string `json:"node"`
	// Host is the name of the machine.
	Host string `json:"host"`
	// Version is the version of the program.
	Version string `json:"version"`
	// Since is when the node started.
	Since time.Time `json:"since"`
	// Kinds are the kinds of agents that it serves. Empty, not null, if there are none.
	Kinds []string `json:"kinds"`
	// Draining reports whether it gives its partitions away.
	Draining bool `json:"draining"`
	// Partitions is how many are leased to it.
	Partitions int `json:"partitions"`
	// BeatMS is how long ago its newest heartbeat was received, in milliseconds.
	BeatMS int64 `json:"beat_ms"`
	// Here reports whether it is the node that answers.
	Here bool `json:"here"`
	// Answers reports whether it has reported on itself. If not, the fields below Error are missing.
	Answers bool `json:"answers"`
	// Error is why it has not reported on itself.
	Error string `json:"error,omitempty"`
	// PingMS is how long its report took, in milliseconds.
	PingMS float64 `json:"ping_ms"`
	// ClockMS is how far its clock is ahead of that of the node that answers, in milliseconds, give or
	// take half of PingMS.
	ClockMS float64 `json:"clock_ms"`
	*NodeTold
}

// NodeTold is what only a node itself can report.
type NodeTold struct {
	// InMemory is how many agents are in its memory.
	InMemory int `json:"in_memory"`
	// Ready reports whether it is ready, as on /readyz.
	Ready bool `json:"ready"`
	// Reasons are why it is not ready.
	Reasons []Reason `json:"reasons,omitempty"`
	// HTTP is where it serves health and metrics. Empty: nowhere.
	HTTP string `json:"http,omitempty"`
	// Definitions are the hashes of its agents' definitions, by kind.
	Definitions map[string]string `json:"definitions"`
	// Time is what its clock shows.
	Time time.Time `json:"time"`
}

// PartitionRow is a partition: a line of the view partitions.
type PartitionRow struct {
	Partition messages.Partition `json:"partition"`
	// Owner is the living member that the partition is leased to. Empty: it has no owner.
	Owner string `json:"owner"`
	// Epoch is that of the lease.
	Epoch messages.Epoch `json:"epoch"`
	// MeantFor is the member that is to own it. Empty: there is none.
	MeantFor string `json:"meant_for"`
	// Agents is how many agents it has.
	Agents int `json:"agents"`
	// Owing is how many of them have open work.
	Owing int `json:"owing"`
	// Waiting is how many inputs and commands are stored for it and not settled.
	Waiting uint64 `json:"waiting"`
	// InHand is how many of them its owner has taken.
	InHand uint64 `json:"in_hand"`
	// Oldest is when the oldest of them was stored. Absent: there is none.
	Oldest time.Time `json:"oldest,omitzero"`
}

// answerWithin is how long a node may take to answer another.
const answerWithin = time.Second

// tells is the subject on which a node reports about itself.
func (g *Gateway) tells(node string) string {
	root, _, _ := strings.Cut(g.Subjects.Any("q"), ".")
	return "_actor." + root + ".tell." + node
}

// tell reports about this node to another.
func (g *Gateway) tell(r *nats.Msg) {
	if g.answerable(r) {
		g.reply(r.Reply, g.Cluster.Self())
	}
}

// nodes lists the members, each asked about itself.
func (g *Gateway) nodes(p *page) error {
	rows := g.Cluster.Nodes()
	var asking sync.WaitGroup
	for i := range rows {
		asking.Go(func() { g.askNode(&rows[i]) })
	}
	asking.Wait()
	for i, row := range rows {
		if !p.line(messages.EventNumber(i+1), row) {
			break
		}
	}
	return nil
}

// askNode asks a member about itself.
func (g *Gateway) askNode(row *NodeRow) {
	if row.Here = row.Node == g.Self; row.Here {
		told := g.Cluster.Self()
		row.Answers, row.NodeTold = true, &told
		return
	}
	ctx, cancel := context.WithTimeout(g.ctx, answerWithin)
	defer cancel()
	asked := time.Now()
	msg, err := g.Conn.RequestWithContext(ctx, g.tells(row.Node), nil)
	took := time.Since(asked)
	told := new(NodeTold)
	if err == nil {
		err = json.Unmarshal(msg.Data, told)
	}
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		row.Error = "it does not serve this request: it has just stopped, or runs an older version"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		row.Error = fmt.Sprintf("no answer within %v", answerWithin)
	case err != nil:
		row.Error = err.Error()
	default:
		row.Answers, row.NodeTold = true, told
		row.PingMS, row.ClockMS = milliseconds(took), milliseconds(told.Time.Sub(asked.Add(took/2)))
	}
}

// milliseconds is d with microseconds behind the point.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// partitions lists the partitions.
func (g *Gateway) partitions(p *page, q messages.Query) error {
	ctx, cancel := context.WithTimeout(g.ctx, 10*time.Second)
	defer cancel()
	rows, err := g.Cluster.Partitions(ctx)
	if err != nil {
		return messages.Refuse(messages.Unavailable, "the inputs that wait cannot be counted now: %v; try again", err)
	}
	answers, uncovered, err := g.askOwners(ownersQuery{Query: q})
	if err != nil {
		return err
	}
	p.uncovered = uncovered
	for _, answer := range answers {
		for _, row := range answer.Rows {
			var has held
			if err := json.Unmarshal(row.Line, &has); err != nil {
				return err
			}
			rows[has.Partition].Agents, rows[has.Partition].Owing = has.Agents, has.Owing
		}
	}
	for i, row := range rows {
		if !p.line(messages.EventNumber(i+1), row) {
			break
		}
	}
	return nil
}
