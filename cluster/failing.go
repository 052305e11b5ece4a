package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// failedLately is how recently an agent whose last turn has failed must have changed for
// doctor to count it.
const failedLately = time.Hour

// failedTurns warns of agents of any tenant that changed lately, have no turn now, and whose
// last turn has failed, by reason.
func (n *Node) failedTurns() []doctor.Finding {
	count, all := make(map[string]int), 0
	var first messages.AgentID
	for row, err := range n.gateway.AllAgents(messages.Query{Last: string(projections.Failed), Phase: messages.PhaseIdle, Since: time.Now().Add(-failedLately)}) {
		if err != nil {
			break // what is wrong with the owners is another finding
		}
		if all++; all == 1 {
			first = row.Agent
		}
		count[row.LastFailed]++
	}
	if all == 0 {
		return nil
	}
	var reasons []string
	for _, reason := range slices.Sorted(maps.Keys(count)) {
		reasons = append(reasons, fmt.Sprintf("%s: %d", reason, count[reason]))
	}
	return []doctor.Finding{{
		Check: "store", Status: doctor.Warn,
		Detail: fmt.Sprintf("agents whose last turn has failed, among those that were active in the last hour: %d (%s), such as %s", all, strings.Join(reasons, ", "), first),
		Remedy: "`reprise ls --last failed` lists them and `reprise show AGENT` says why; when the cause is gone, `reprise resume AGENT` continues the turn",
	}}
}
