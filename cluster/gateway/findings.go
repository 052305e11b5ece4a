package gateway

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// StoreFindings look at what all agents depend on: streams that cannot be trusted or written to,
// partitions without an owner, and agents that are kept for longer than they should be.
type StoreFindings struct {
	Unsound func(context.Context) []error
	// Unwritable are streams that take nothing more until their server is started again.
	Unwritable func(context.Context) []error
	Oldest     func(context.Context) (since time.Time, waiting uint64, err error)
	// Lost returns findings about streams of the log that have lost messages, and about messages
	// that cannot be read.
	Lost func(context.Context) []doctor.Finding
	// Locked reports whether agents are encrypted and their keys are missing.
	Locked func(context.Context) error
	// Copies returns findings of its own, about streams of which copies are missing.
	Copies func(context.Context) []doctor.Finding
	// Retention returns findings of its own.
	Retention func(context.Context) []doctor.Finding
}

// stuck is how long an input may wait in the queue before it is a finding.
const stuck = time.Minute

// storeFindings returns what is wrong.
func (g *Gateway) storeFindings(ctx context.Context) (found []doctor.Finding) {
	s := g.Store
	add := func(status, remedy, format string, args ...any) {
		found = append(found, doctor.Finding{Check: "store", Status: status, Detail: fmt.Sprintf(format, args...), Remedy: remedy})
	}
	found = append(found, s.Lost(ctx)...)
	for _, err := range s.Unsound(ctx) {
		add(doctor.Fail, "", "%v", err)
	}
	for _, err := range s.Unwritable(ctx) {
		add(doctor.Fail, "make room on its disk: a node then starts its own embedded server again; another NATS server must be started again by hand. Nothing that was acknowledged is lost", "%v", err)
	}
	if err := s.Locked(ctx); err != nil {
		add(doctor.Fail, "put the keys back from a copy with `reprise restore --keys`; nodes continue with those that they have in memory until they stop", "%v", err)
	}
	free := 0
	for p := range messages.Partitions {
		if g.OwnerOf(messages.Partition(p)) == "" {
			free++
		}
	}
	if free > 0 {
		add(doctor.Warn, "this is usual for a moment after a node has died; if it lasts, read the nodes' logs", "%d of %d partitions have no owner: their agents do not work", free, messages.Partitions)
	}
	switch since, waiting, err := s.Oldest(ctx); {
	case err != nil:
		add(doctor.Fail, "", "%v", err)
	case waiting > 0 && time.Since(since) > stuck:
		add(doctor.Warn, "see that a node serves their kinds, and that their agents are sound", "inputs and commands wait: %d, the oldest since %s", waiting, since.UTC().Format(time.DateTime))
	}
	return slices.Concat(found, s.Copies(ctx), g.unisolated(ctx), g.failedTurns(), s.Retention(ctx))
}

// failedLately is how recently an agent whose last turn has failed must have changed for
// doctor to count it.
const failedLately = time.Hour

// failedTurns warns of agents of any tenant that changed lately, have no turn now, and whose
// last turn has failed, by reason.
func (g *Gateway) failedTurns() []doctor.Finding {
	count, all := make(map[string]int), 0
	var first messages.AgentID
	for row, err := range g.AllAgents(messages.Query{Last: string(projections.Failed), Phase: messages.PhaseIdle, Since: time.Now().Add(-failedLately)}) {
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

// tenantAfter is the tenant of the first agent behind a cursor; empty if there is none.
func (g *Gateway) tenantAfter(cursor string) string {
	for row, err := range g.AllAgents(messages.Query{Cursor: cursor, Limit: 1}) {
		if err == nil {
			return row.Agent.Tenant
		}
	}
	return ""
}

// unisolated returns a finding about tenants that share the server's default account with the
// nodes. Who else logs in to a named account cannot be known here.
func (g *Gateway) unisolated(ctx context.Context) []doctor.Finding {
	first := g.tenantAfter("")
	if first == "" {
		return nil
	}
	last := strings.Repeat("z", 128) // no kind and no key is behind it
	second := g.tenantAfter(messages.AgentID{Tenant: first, Kind: last, Key: last}.Full())
	if second == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	who, err := client.New(g.Conn, g.Subjects.Root).Login(ctx)
	if err != nil || who.Account != client.GlobalAccount {
		return nil
	}
	return []doctor.Finding{{
		Check: "store", Status: doctor.Warn,
		Detail: fmt.Sprintf("there are several tenants, such as %s and %s, and the nodes are in the NATS account %s, the default: every user in it can read and write the agents of all tenants", first, second, who.Account),
		Remedy: "to isolate them, give the nodes and each tenant an account: `reprise permissions --tenant " + second + "` prints the configuration that the NATS server needs",
	}}
}
