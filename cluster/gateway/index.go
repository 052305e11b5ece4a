package gateway

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/projections/index"
)

// Index is the index of the agents of this node's partitions. It is safe for concurrent use.
type Index interface {
	// Index returns the index, those of some partitions that it can answer for, and what it
	// lacks. With fresh that is of all that they hold when it is called, which it waits for, but not for long;
	// else those that it cannot answer for.
	Index(ctx context.Context, of []messages.Partition, fresh bool) (agents *index.Store, ready []messages.Partition, lacks []messages.Uncovered, err error)
	// Unreadable is how many frames of a tenant's agents could not be read, as far as
	// the index has read. It never waits.
	Unreadable(tenant string) int
	// Positions returns how far some partitions were read.
	Positions(ctx context.Context, of []messages.Partition) ([]IndexPosition, error)
}

// IndexPosition is how far the index of its owner has read a partition of the log: a line of the
// view index.
type IndexPosition struct {
	Node string `json:"node"`
	// File is where the index is stored.
	File      string             `json:"file"`
	Partition messages.Partition `json:"partition"`
	// Position is the sequence of the newest message of the log that the index has read.
	Position uint64 `json:"position"`
	// End is the sequence of the newest message of the log.
	End uint64 `json:"end"`
	// Behind is how many messages are between the two.
	Behind uint64 `json:"behind"`
	// Stored is when the log stored the message at Position. Zero: there is none.
	Stored time.Time `json:"stored,omitzero"`
	// Applied is when the index read that message. Zero: there is none.
	Applied time.Time `json:"applied,omitzero"`
	// Unreadable is how many frames could not be read.
	Unreadable int `json:"unreadable,omitempty"`
}

// filters are the names of a query's filters that are set.
func filters(q messages.Query) (set []string) {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"kind", q.Kind != ""}, {"phase", q.Phase != ""}, {"last", q.Last != ""}, {"tool", q.Tool != ""}, {"outcome", q.Outcome != ""}, {"model", q.Model != ""},
		{"since", !q.Since.IsZero()}, {"until", !q.Until.IsZero()}, {"where", len(q.Where) > 0}, {"repeated", q.Repeated}, {"text", q.Text != ""}, {"by", q.By != ""},
		{"remembered", q.Remembered}, {"at", q.At != 0}, {"cursor", q.Cursor != ""}, {"from", q.From != 0}, {"follow", q.Follow},
		{"tail", q.Tail != 0}, {"turn", q.Turn != ""},
		{"whole", q.Whole}, {"deleted", q.Deleted}, {"blob", q.Blob != messages.Blob{}},
	} {
		if f.set {
			set = append(set, f.name)
		}
	}
	return set
}

// filterable are the filters that views take. One that a view would pass over
// is refused.
var (
	filterableOfTenant = map[string][]string{
		"agents":    {"kind", "phase", "last", "since", "deleted", "cursor"},
		"approvals": {"kind", "tool", "since", "until", "where", "cursor"},
		"effects":   {"kind", "tool", "outcome", "since", "until", "where", "repeated", "cursor"},
		"find":      {"text", "kind", "since", "until", "cursor"},
		"usage":     {"kind", "model", "since", "until", "by", "cursor"},
		"dlq":       {"from", "cursor"},
	}
	filterableOfStore = map[string][]string{
		"nodes":      {},
		"partitions": {},
		"index":      {},
	}
	filterableOfAgent = map[string][]string{
		"show":      {"at"},
		"events":    {"from", "tail", "follow", "whole", "turn", "cursor"},
		"history":   {"at", "whole", "turn", "from", "tail", "cursor"},
		"state":     {"at"},
		"turn":      {"at", "turn"},
		"turns":     {"at", "last", "whole", "from", "tail", "cursor"},
		"usage":     {"at", "from", "cursor"},
		"approvals": {"at", "remembered", "from", "cursor"},
		"effects":   {"at", "tool", "outcome", "since", "until", "where", "repeated", "turn", "from", "cursor"},
		"children":  {"at", "from", "cursor"},
		"forks":     {"at", "from", "cursor"},
		"timers":    {"at", "from", "cursor"},
		"timeline":  {"at", "from", "tail", "follow", "turn", "cursor"},
		"why":       {"at"},
		"request":   {"at"},
		"replay":    {"at", "whole", "turn", "from", "cursor"},
		"traces":    {"at", "whole", "turn", "since", "until", "from", "cursor"},
		"frames":    {"at", "from", "cursor"},
		"blob":      {"blob", "from", "cursor"},
		"inventory": {},
		"verify":    {},
		"doctor":    {},
	}
)

// mostWhere is the most paths that a query may name: a statement has its limits.
const mostWhere = 100

// fits returns an error unless a view takes the filters of q, and their values.
func fits(q messages.Query, takes map[string][]string) error {
	names, known := takes[q.View]
	if !known {
		return nil
	}
	for _, f := range filters(q) {
		if !slices.Contains(names, f) {
			return messages.Refuse(messages.BadInput, "view %s takes %s: %s is not among them", q.View, list(names), f)
		}
	}
	if q.Outcome != "" && !slices.Contains(projections.Outcomes, projections.Outcome(q.Outcome)) {
		return messages.Refuse(messages.BadInput, "outcome %q: write %s", q.Outcome, list(projections.Outcomes))
	}
	if phases := messages.AgentPhases(); q.Phase != "" && !slices.Contains(phases, q.Phase) {
		return messages.Refuse(messages.BadInput, "phase %q: write %s", q.Phase, list(phases))
	}
	if q.Last != "" && q.Last != string(projections.Failed) {
		return messages.Refuse(messages.BadInput, "last %q: write %s", q.Last, projections.Failed)
	}
	if q.By != "" && !slices.Contains(index.By, q.By) {
		return messages.Refuse(messages.BadInput, "by %q: write %s", q.By, list(index.By))
	}
	if q.View == "find" {
		if _, err := index.ReadSearch(q.Text); err != nil {
			return err
		}
	}
	if q.Kind != "" {
		if err := messages.ValidateToken("kind", q.Kind); err != nil {
			return err
		}
	}
	if !q.Since.IsZero() && !q.Until.IsZero() && !q.Since.Before(q.Until) {
		return messages.Refuse(messages.BadInput, "since %s is not before until %s", q.Since.Format(time.RFC3339), q.Until.Format(time.RFC3339))
	}
	for _, at := range []time.Time{q.Since, q.Until} {
		if !at.IsZero() && (at.Year() < 1970 || at.Year() > 2200) {
			return messages.Refuse(messages.BadInput, "time %s: write one between the years 1970 and 2200", at.Format(time.RFC3339))
		}
	}
	if len(q.Where) > mostWhere {
		return messages.Refuse(messages.BadInput, "where names %d paths: a view takes at most %d", len(q.Where), mostWhere)
	}
	if _, empty := q.Where[""]; empty {
		return messages.Refuse(messages.BadInput, "where names no path: write one such as order or customer.name")
	}
	return nil
}

// list is names for a person: "a, b or c".
func list[S ~string](names []S) string {
	if len(names) == 0 {
		return "no filters"
	}
	var b strings.Builder
	for i, name := range names {
		switch {
		case i == 0:
		case i == len(names)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(string(name))
	}
	return b.String()
}

func effectFilter(q messages.Query) projections.EffectFilter {
	return projections.EffectFilter{Tool: q.Tool, Outcome: projections.Outcome(q.Outcome), Since: q.Since, Until: q.Until, Where: q.Where, Repeated: q.Repeated}
}

// effects lists an agent's calls of tools, from its log.
func (g *Gateway) effects(p *page, a messages.AgentID, q messages.Query) error {
	var e projections.Effects
	filter := effectFilter(q)
	return lines(p, a, q, func() []projections.Effect {
		calls := e.List(a)
		projections.MarkRepeats(calls)
		return slices.DeleteFunc(calls, func(c projections.Effect) bool {
			return !filter.Admits(&c) || !ofTurn(q, c.Turn)
		})
	}, &e)
}

// ownedRows adds rows of the index for the partitions.
func (g *Gateway) ownedRows(ctx context.Context, answer *owned, q ownersQuery) error {
	agents, ready, lacks, err := g.Index.Index(ctx, answer.Partitions, q.Cursor == "") // one wait for all pages
	if err != nil {
		return unseen(err)
	}
	answer.Lacks = lacks
	shards := shardsOf(ready)
	if q.View == "find" && q.Cursor == "" {
		if answer.Encrypted, err = agents.Encrypted(ctx, q.Tenant, shards); err != nil {
			return unseen(err)
		}
	}
	most := mostLines(q.Limit)
	size := 0
	for row, err := range rowsOf(ctx, agents, q, shards, most+1) {
		if err != nil {
			return unseen(err)
		}
		if row.Cursor != "" && (len(answer.Rows) == most || size >= pageSize) {
			answer.More = true
			return nil
		}
		if err := answer.add(row.Key, row.Cursor, row.Line); err != nil {
			return unseen(err)
		}
		size += len(answer.Rows[len(answer.Rows)-1].Line)
	}
	return nil
}

// shardsOf returns the shards of the index that hold partitions; nil: all.
func shardsOf(of []messages.Partition) (shards []int) {
	if len(of) == messages.Partitions {
		return nil
	}
	shards = make([]int, len(of))
	for i, p := range of {
		shards[i] = int(p)
	}
	return shards
}

// rowsOf yields the rows of a view of the index.
func rowsOf(ctx context.Context, agents *index.Store, q ownersQuery, shards []int, limit int) iter.Seq2[index.Row, error] {
	calls := index.Query{Tenant: q.Tenant, Kind: q.Kind, EffectFilter: effectFilter(q.Query), Shards: shards, After: q.Cursor, Limit: limit}
	switch q.View {
	case "effects":
		return agents.Effects(ctx, calls)
	case "approvals":
		return agents.Approvals(ctx, calls)
	case "find":
		search, _ := index.ReadSearch(q.Text) // fits has read it
		return agents.Find(ctx, index.FindQuery{
			Tenant: q.Tenant, Kind: q.Kind, Search: search, Since: q.Since, Until: q.Until, Shards: shards, After: q.Cursor, Limit: limit,
		})
	}
	return agents.Usage(ctx, index.UsageQuery{
		Tenant: q.Tenant, Kind: q.Kind, Model: q.Model, By: cmp.Or(q.By, "model"), Since: q.Since, Until: q.Until, Shards: shards, After: q.Cursor, Limit: limit,
	})
}

// summed is one line of usage in place of those of several owners.
func summed(rows []ownedRow) (json.RawMessage, error) {
	if len(rows) == 1 {
		return rows[0].Line, nil
	}
	var sum projections.UsageSum
	for i, row := range rows {
		var l projections.UsageSum
		if err := json.Unmarshal(row.Line, &l); err != nil {
			return nil, err
		}
		if i == 0 {
			sum = l
			continue
		}
		sum.Failed += l.Failed
		sum.Calls, sum.Lost, sum.Usage, sum.Cost = sum.Calls+l.Calls, sum.Lost+l.Lost, sum.Usage.Add(l.Usage), sum.Cost.Plus(l.Cost)
	}
	return json.Marshal(sum)
}

// unseen is the refusal that a caller gets for an error of the index.
func unseen(err error) error {
	switch {
	case index.Damaged(err):
		return messages.Refuse(messages.Unavailable, "this node's index is damaged and is built again from the log: try again")
	case errors.Is(err, context.DeadlineExceeded):
		return messages.Refuse(messages.Unavailable, "the index has too much to search for an answer in time: narrow the query, such as by a kind or a time")
	case errors.Is(err, sql.ErrConnDone) || strings.Contains(err.Error(), "database is closed"):
		return messages.Refuse(messages.Unavailable, "the index is being opened again: try again")
	}
	return err
}

// ownedPositions adds how far the index has read the partitions.
func (g *Gateway) ownedPositions(answer *owned) error {
	positions, err := g.Index.Positions(g.ctx, answer.Partitions)
	if err != nil {
		return fmt.Errorf("report how far the index has read: %w", unseen(err))
	}
	for _, place := range positions {
		place.Node = g.Self
		if err := answer.add(keyOf(place.Partition), "", place); err != nil {
			return err
		}
	}
	return nil
}
