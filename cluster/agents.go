package cluster

import "github.com/reprise-dev/reprise/projections"

// Agents is how many agents this node owns, by phase: idle, running or
// paused. Right after a start those that run are the ones being recovered.
func (n *Node) Agents() map[string]int {
	phases := make(map[string]int)
	for _, row := range n.owner.agents.List(projections.AgentFilter{}) {
		phases[string(row.Phase)]++
	}
	return phases
}
