//go:build unix

package clustertest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/messages"
)

// Agree waits until every living node, asked for the members, lists the living nodes
// alone.
func (w *World) Agree() {
	w.t.Helper()
	lists := make(map[string]string) // what each node has listed last, by its id
	w.eventually(func() string {
		return "every node lists the living ones: " + strings.Join(slices.Sorted(maps.Values(lists)), "; ")
	}, func() bool {
		var living []string
		for _, n := range w.nodes {
			if n.at.alive() {
				living = append(living, n.id)
			}
		}
		slices.Sort(living)
		by, listed := w.listed() // by whom: any of them answers
		if by == "" {
			return false
		}
		lists[by] = listed
		for _, id := range living {
			if lists[id] != strings.Join(living, " ") {
				return false
			}
		}
		return true
	})
	w.note("every node lists the living ones: %v", lists)
}

// listed is whom a node lists as members, and the node that it is; empty if none answers.
func (w *World) listed() (by, list string) {
	var ids []string
	for line, err := range w.client.QueryStore(w.ctx, messages.Query{View: "nodes"}) {
		var row struct {
			Node string
			Here bool
		}
		if err != nil || json.Unmarshal(line, &row) != nil {
			return "", ""
		}
		if ids = append(ids, row.Node); row.Here {
			by = row.Node
		}
	}
	slices.Sort(ids)
	return by, strings.Join(ids, " ")
}
