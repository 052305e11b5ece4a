package cluster

import "github.com/reprise-dev/reprise/projections"

// Agents returns how many agents this node owns, by phase: idle, running or paused. Right after a
// start, the running ones are those that are being recovered.
func (n *Node) Agents() map[string]int {
	phases := make(map[string]int)
	for _, row := range n.owner.agents.List(projections.AgentFilter{}) {
		phases[string(row.Phase)]++
	}
	return phases
}
