package cluster

import (
	"fmt"
	"sync"

	"github.com/asynkron/protoactor-go/cluster"

	"github.com/reprise-dev/reprise/cluster/member"
	"github.com/reprise-dev/reprise/cluster/transport"
)

// provider tells protoactor who is there, as the members in NATS KV say. It
// implements cluster.ClusterProvider. Safe for concurrent use.
type provider struct {
	mu sync.Mutex // topologies must be told one after the other
	to *cluster.Cluster
	// there are the ids under which protoactor knows the nodes that are there. It never
	// takes one back that has left, so that each has the number of a coming, of which
	// there were so many.
	there   map[string]string
	comings int
}

// StartMember begins to tell a cluster of its members.
func (p *provider) StartMember(c *cluster.Cluster) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = c
	return nil
}

// StartClient is the same: a node without partitions is a member that owns none.
func (p *provider) StartClient(c *cluster.Cluster) error { return p.StartMember(c) }

// Shutdown ends the telling: the node leaves NATS by itself.
func (p *provider) Shutdown(bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = nil
	return nil
}

// update tells who is there now.
func (p *provider) update(members []member.Info) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.to == nil {
		return
	}
	there := make(map[string]string, len(members))
	topology := make(cluster.Members, 0, len(members))
	for _, m := range members {
		id, known := p.there[m.ID]
		if !known {
			p.comings++
			id = fmt.Sprintf("%s#%d", m.ID, p.comings)
		}
		there[m.ID] = id
		topology = append(topology, transport.MemberOf(m.ID, id, []string{agentKind}))
	}
	p.there = there
	p.to.MemberList.UpdateClusterTopology(topology)
}
