package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) nodes() *cobra.Command {
	return a.connects(&cobra.Command{
		Use: "nodes", GroupID: groupCheck, Args: cobra.NoArgs,
		Short: "List the nodes of the cluster and their condition",
		Long: `List the nodes of the cluster and their condition.

Any node answers, marked by *, and asks each of the others. A node that does not answer within a
second is listed as such. NAME is the --name of the node, or its host. The list is requested on the
subject <root>.q, which an administrator may use. "reprise doctor" reports what is wrong in it.`,
		Example: `  reprise nodes
  reprise nodes --watch`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runNodes(cmd.Context()) },
	}, defaultTimeout)
}

func (a *app) runNodes(ctx context.Context) error {
	var silent []string
	_, err := table(a, "NODE\tNAME\tVERSION\tUP\tPARTITIONS\tIN MEMORY\tBEAT\tSTATE\tKINDS", a.ofStore(ctx, "nodes"), func(n gateway.NodeRow) string {
		name, memory := projections.Printable(n.Node, 64), "?"
		if n.Here {
			name += " *"
		}
		if n.NodeTold != nil {
			memory = fmt.Sprint(n.InMemory)
		}
		if !n.Answers {
			silent = append(silent, n.Node+": "+n.Error)
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s", name, projections.Printable(n.Host, 64), projections.Printable(n.Version, 40), since(n.Since, time.Now()),
			n.Partitions, memory, time.Duration(n.BeatMS)*time.Millisecond, stateOf(n), projections.Printable(strings.Join(n.Kinds, " "), 120))
	})
	if err == nil && !a.json() {
		for _, s := range silent {
			a.note("%s", projections.Printable(s, 300))
		}
	}
	return err
}

// stateOf is a node's state in a word or few.
func stateOf(n gateway.NodeRow) string {
	switch {
	case !n.Answers:
		return "silent"
	case n.Draining:
		return "draining"
	case !n.Ready:
		codes := each(n.Reasons, func(r gateway.Reason) string { return r.Code })
		return "not ready: " + projections.Printable(strings.Join(codes, ", "), 80)
	}
	return "ready"
}

// judgeNodes is what doctor says of the nodes.
func judgeNodes(nodes []gateway.NodeRow) (found []finding) {
	add := func(status, format string, args ...any) {
		found = append(found, finding{"nodes", status, fmt.Sprintf(format, args...)})
	}
	here := slices.IndexFunc(nodes, func(n gateway.NodeRow) bool { return n.Here })
	known, versions := make(map[string]bool), make(map[string][]string)
	for _, n := range nodes {
		versions[n.Version] = append(versions[n.Version], n.Node)
		for _, k := range n.Kinds {
			known[k] = true
		}
	}
	for _, n := range nodes {
		switch {
		case !n.Answers:
			add("warn", "node %s on %s does not answer (%s): it is frozen or cut off, or has just stopped; its partitions move when its key expires", n.Node, n.Host, n.Error)
		case !n.Ready && !n.Draining:
			status := "warn"
			if slices.ContainsFunc(n.Reasons, func(r gateway.Reason) bool { return r.Code == "damage" || r.Code == "store" }) {
				status = "fail"
			}
			add(status, "node %s on %s is not ready: %s", n.Node, n.Host, strings.Join(each(n.Reasons, func(r gateway.Reason) string { return r.Text }), "; "))
		}
		if n.Answers && max(n.ClockMS, -n.ClockMS)-n.PingMS/2 > mostSkew.Seconds()*1000 {
			add("warn", "the clock of node %s on %s is %.1f s off that of the node that answers: timers and deadlines move with their owner; synchronize both with NTP", n.Node, n.Host, n.ClockMS/1000)
		}
		if lacks := missing(known, n.Kinds); len(lacks) > 0 {
			add("warn", "node %s on %s does not serve %s, which others do: their agents do not work in its partitions; every node of a cluster should serve every kind", n.Node, n.Host, words(lacks))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(known)) {
		if apart := definedApart(nodes, kind); len(apart) > 1 {
			add("warn", "kind %s is defined in %d ways (by %s): an agent's next turn depends on which node has it; give all nodes one configuration", kind, len(apart), strings.Join(apart, "; "))
		}
	}
	if len(versions) > 1 {
		var each []string
		for _, v := range slices.Sorted(maps.Keys(versions)) {
			each = append(each, fmt.Sprintf("%s: %s", cmp.Or(v, "without one"), strings.Join(versions[v], ", ")))
		}
		add("note", "the nodes have %d versions (%s): usual during a rolling upgrade", len(versions), strings.Join(each, "; "))
	}
	if len(found) == 0 && here >= 0 {
		add("ok", "%d there, all answer", len(nodes))
	}
	return found
}

// mostSkew is how far two clocks may be apart before it is reported.
const mostSkew = time.Second

// missing are the kinds that are known and not among those of a node.
func missing(known map[string]bool, kinds []string) (lacks []string) {
	for _, k := range slices.Sorted(maps.Keys(known)) {
		if !slices.Contains(kinds, k) {
			lacks = append(lacks, k)
		}
	}
	return lacks
}

// definedApart groups the nodes by how they define a kind.
func definedApart(nodes []gateway.NodeRow, kind string) (groups []string) {
	by := make(map[string][]string)
	for _, n := range nodes {
		if n.NodeTold != nil && n.Definitions[kind] != "" {
			by[n.Definitions[kind]] = append(by[n.Definitions[kind]], n.Node)
		}
	}
	for _, digest := range slices.Sorted(maps.Keys(by)) {
		groups = append(groups, strings.Join(by[digest], ", "))
	}
	return groups
}
