package index

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// UsageQuery chooses what models used.
type UsageQuery struct {
	Tenant, Kind, Model string
	// By is agent, kind, model, day or hour.
	By string
	// Since and Until choose whole hours: from that of Since on, and before that
	// of Until.
	Since, Until time.Time
	// Shards are those of the agents. Nil: all.
	Shards []int
	After  string
	Limit  int
}

// By lists what usage can be summed by.
var By = []string{"agent", "kind", "model", "day", "hour"}

// keys are the columns of what usage is summed by, in their order. line says in a line what
// they hold.
var keys = map[string]struct {
	columns string
	line    func(l *projections.UsageSum, tenant string, at position)
}{
	"agent": {`a.kind, a.key, 0`, func(l *projections.UsageSum, tenant string, at position) {
		l.Agent = &messages.AgentID{Tenant: tenant, Kind: at.Kind, Key: at.Key}
	}},
	"kind":  {`u.kind, '', 0`, func(l *projections.UsageSum, _ string, at position) { l.Kind = at.Kind }},
	"model": {`u.model, '', 0`, func(l *projections.UsageSum, _ string, at position) { l.Model = at.Kind }},
	"day":   {`'', '', u.hour / 24`, func(l *projections.UsageSum, _ string, at position) { l.From = time.Unix(at.At*24*3600, 0).UTC() }},
	"hour":  {`'', '', u.hour`, func(l *projections.UsageSum, _ string, at position) { l.From = time.Unix(at.At*3600, 0).UTC() }},
}

// sums are the columns of what was used, summed; a cost in two parts, so that
// no sum is too large.
const sums = `sum(u.calls), sum(u.failed), sum(u.lost), sum(u.input), sum(u.output), sum(u.cached), sum(u.reasoning), sum(u.cost / 1000000000), sum(u.cost % 1000000000)`

// Usage yields the sums, in the order of what they are of, and behind the last
// of them the total over all, which is there even if nothing was called.
func (s *Store) Usage(ctx context.Context, q UsageQuery) iter.Seq2[Row, error] {
	var after position
	err := readCursor(q.After, ofUsage+q.By, &after)
	var st statement
	if q.By == "agent" {
		st.byAgent(q, after)
	} else {
		st.byHours(q, after)
	}
	st.limit(q.Limit)
	return func(yield func(Row, error) bool) {
		given := 0
		for row, err := range s.rows(ctx, st, err, func(r *sql.Rows) (Row, error) { return sum(r, q) }) {
			given++
			if !yield(row, err) || err != nil {
				return
			}
		}
		if q.Limit > 0 && given == q.Limit {
			return // there may be more
		}
		var total statement
		total.add(`SELECT '', '', 0, ` + sums + ` FROM hours u`)
		total.where(q, "u")
		for row, err := range s.rows(ctx, total, nil, func(r *sql.Rows) (Row, error) { return sum(r, UsageQuery{By: "total"}) }) {
			yield(row, err)
		}
	}
}

// byAgent walks the agents in their order and sums what each used, so that a
// page costs only its own rows.
func (s *statement) byAgent(q UsageQuery, after position) {
	s.add(`SELECT ` + keys[q.By].columns + `, ` + sums + ` FROM agents a CROSS JOIN usage u ON u.agent = a.id`)
	s.where(q, "a")
	if q.After != "" {
		s.add(` AND (a.kind, a.key) > (?, ?)`, after.Kind, after.Key)
	}
	s.add(` GROUP BY a.kind, a.key ORDER BY a.kind, a.key`)
}

// byHours sums the sums of all agents.
func (s *statement) byHours(q UsageQuery, after position) {
	key := keys[q.By].columns
	s.add(`SELECT ` + key + `, ` + sums + ` FROM hours u`)
	s.where(q, "u")
	if q.After != "" {
		s.add(` AND (`+key+`) > (?, ?, ?)`, after.Kind, after.Key, after.At)
	}
	s.add(` GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`)
}

// where adds the conditions of q; of is the table with tenant and kind.
func (s *statement) where(q UsageQuery, of string) {
	s.add(` WHERE `+of+`.tenant = ?`, q.Tenant)
	if q.Kind != "" {
		s.add(` AND `+of+`.kind = ?`, q.Kind)
	}
	if q.Model != "" {
		s.add(` AND u.model = ?`, q.Model)
	}
	if !q.Since.IsZero() {
		s.add(` AND u.hour >= ?`, q.Since.Unix()/3600)
	}
	if !q.Until.IsZero() {
		s.add(` AND u.hour < ?`, q.Until.Unix()/3600)
	}
	s.of(of+`.shard`, q.Shards)
}

// sum reads a row of sums.
func sum(r *sql.Rows, q UsageQuery) (Row, error) {
	var at position
	var n [9]sql.NullInt64 // there are none if nothing was called
	scan := []any{&at.Kind, &at.Key, &at.At}
	for i := range n {
		scan = append(scan, &n[i])
	}
	if err := r.Scan(scan...); err != nil {
		return Row{}, err
	}
	l := projections.UsageSum{Type: q.By, Failed: int(n[1].Int64), Used: projections.Used{
		Calls: int(n[0].Int64), Lost: int(n[2].Int64),
		Usage: messages.Usage{Input: int(n[3].Int64), Output: int(n[4].Int64), Cached: int(n[5].Int64), Reasoning: int(n[6].Int64)},
		Cost:  wholeCost(n[7].Int64, n[8].Int64),
	}}
	key, known := keys[q.By]
	if !known { // the total
		return Row{Key: "\U0010ffff", Line: l}, nil // behind all others
	}
	key.line(&l, q.Tenant, at)
	return Row{cursor(ofUsage+q.By, at), fmt.Sprintf("%s\x00%s\x00%020d", at.Kind, at.Key, at.At), l}, nil
}

// wholeCost is the cost of whole units and nanos, the most there is if it is more.
func wholeCost(units, nanos int64) messages.Cost {
	const most = 9e9
	return messages.Cost(min(max(units+nanos/1e9, -most), most)*1e9 + nanos%1e9)
}
