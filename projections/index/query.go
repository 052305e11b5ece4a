package index

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Row is a line of an answer.
type Row struct {
	// Cursor asks for what comes behind the row. It means the same on every node.
	// Empty: nothing does, and the row does not count towards a limit.
	Cursor string
	// Line is the row's content: JSON, when it is marshalled.
	Line any
}

// Query chooses calls of a tenant's agents. Empty fields choose all.
type Query struct {
	Tenant, Kind string
	projections.EffectFilter
	// After is the cursor of the last row that was seen.
	After string
	// Limit is the most rows to return; 0 means all.
	Limit int
}

// statement is an SQL query under way.
type statement struct {
	text string
	args []any
}

func (s *statement) add(text string, args ...any) {
	s.text += text
	s.args = append(s.args, args...)
}

func (s *statement) limit(n int) {
	if n > 0 {
		s.add(` LIMIT ?`, n)
	}
}

// position is that of a row in the order of its view.
type position struct {
	At        int64 `json:",omitempty"` // or an hour or day of usage
	Kind, Key string
	N         int64 `json:",omitempty"`
}

// Effects yields the calls of tools that q chooses, oldest first by when they
// were asked for.
func (s *Store) Effects(ctx context.Context, q Query) iter.Seq2[Row, error] {
	st, err := q.effects()
	return s.calls(ctx, st, err, ofEffects, func(line []byte) (any, error) {
		if !json.Valid(line) {
			return nil, errStrange
		}
		return json.RawMessage(line), nil
	})
}

// effects is the statement of Effects. Its index returns the rows in their order,
// except those of the same time, so that a page costs only the rows that it passes.
func (q Query) effects() (statement, error) {
	index := "effects_at"
	switch {
	case q.Tool != "":
		index = "effects_tool"
	case q.Outcome != "" && q.Outcome != projections.CallCompleted:
		index = "effects_outcome"
	}
	var after position
	err := readCursor(q.After, ofEffects, &after)
	st := q.calls(`e.at`, index)
	if q.After != "" {
		st.add(` AND e.at >= ? AND (e.at, a.kind, a.key, e.n) > (?, ?, ?, ?)`, after.At, after.At, after.Kind, after.Key, after.N)
	}
	st.add(` ORDER BY e.at, a.kind, a.key, e.n`)
	st.limit(q.Limit)
	return st, err
}

// Approvals yields the calls that wait for a person's approval, agent by agent,
// as messages.Approval. The filter's times bound when the call was asked for.
func (s *Store) Approvals(ctx context.Context, q Query) iter.Seq2[Row, error] {
	var after position
	err := readCursor(q.After, ofApprovals, &after)
	q.Outcome = projections.CallWaiting
	st := q.calls(`0`, "effects_outcome")
	if q.After != "" {
		st.add(` AND (a.kind, a.key, e.n) > (?, ?, ?)`, after.Kind, after.Key, after.N)
	}
	st.add(` ORDER BY a.kind, a.key, e.n`)
	st.limit(q.Limit)
	return s.calls(ctx, st, err, ofApprovals, func(line []byte) (any, error) {
		var e projections.Effect
		err := json.Unmarshal(line, &e)
		approval, _ := e.AsApproval()
		return approval, err
	})
}

// calls runs a statement of [Query.calls]. line reads the line of a row.
func (s *Store) calls(ctx context.Context, st statement, err error, of string, line func([]byte) (any, error)) iter.Seq2[Row, error] {
	return s.rows(ctx, st, err, func(r *sql.Rows) (row Row, err error) {
		var at position
		var raw []byte
		if err := r.Scan(&at.At, &at.Kind, &at.Key, &at.N, &raw); err != nil {
			return Row{}, err
		}
		row.Cursor = cursor(of, at)
		row.Line, err = line(raw)
		return row, err
	})
}

// calls begins the statement for calls that the filter chooses, without their order. at is
// the time by which they are ordered, index the one to search.
func (q Query) calls(at, index string) (s statement) {
	s.add(`SELECT `+at+`, a.kind, a.key, e.n, e.line FROM effects e INDEXED BY `+index+` CROSS JOIN agents a ON a.id = e.agent WHERE e.tenant = ?`, q.Tenant)
	if q.Kind != "" {
		s.add(` AND e.kind = ?`, q.Kind)
	}
	if q.Tool != "" {
		s.add(` AND e.tool = ?`, q.Tool)
	}
	if q.Outcome != "" {
		s.add(` AND e.outcome = ?`, string(q.Outcome))
		if q.Outcome != projections.CallCompleted {
			s.add(` AND e.outcome <> 'completed'`) // so that the index of these is used
		}
	}
	if !q.Since.IsZero() {
		s.add(` AND e.at >= ?`, q.Since.UnixNano())
	}
	if !q.Until.IsZero() {
		s.add(` AND e.at < ?`, q.Until.UnixNano())
	}
	for _, path := range slices.Sorted(maps.Keys(q.Where)) {
		s.add(` AND instr(e.leaves, ?) > 0`, projections.Leaf(path, q.Where[path]))
	}
	return s
}

// rows runs a query, unless err says why it must not. A row that cannot be scanned
// is none that this program wrote.
func (s *Store) rows(ctx context.Context, st statement, err error, scan func(*sql.Rows) (Row, error)) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if err != nil {
			yield(Row{}, err)
			return
		}
		found, err := s.read.QueryContext(ctx, st.text, st.args...)
		if err != nil {
			yield(Row{}, s.met(ctx, err))
			return
		}
		defer found.Close()
		for found.Next() {
			row, err := scan(found)
			if err != nil {
				err = s.met(ctx, fmt.Errorf("%w: %w", errStrange, err))
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
		if err := found.Err(); err != nil {
			yield(Row{}, s.met(ctx, err))
		}
	}
}

// What cursors are of. One of usage is of what it is summed by, too.
const (
	ofEffects   = "effects"
	ofApprovals = "approvals"
	ofUsage     = "usage by "
)

// cursor is a position among the rows of a view.
func cursor(of string, position any) string {
	b, _ := json.Marshal(position) // numbers and strings
	return base64.RawURLEncoding.EncodeToString(append([]byte(of), b...))
}

// readCursor reads a cursor of a view, if there is one.
func readCursor(s, of string, position any) error {
	if s == "" {
		return nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	b, given := bytes.CutPrefix(b, []byte(of))
	if err == nil && given {
		err = json.Unmarshal(b, position)
	}
	if err != nil || !given {
		return messages.Refuse(messages.BadInput, "cursor %q: it is none that this view has given; begin without one", s)
	}
	return nil
}

// UsageQuery chooses what models used.
type UsageQuery struct {
	Tenant, Kind, Model string
	// By is agent, kind, model, day or hour.
	By string
	// Since and Until choose whole hours: from that of Since on, and before that
	// of Until.
	Since, Until time.Time
	After        string
	Limit        int
}

// UsageLine is a line of `reprise usage -o json` for all agents: what the model
// calls of one agent, kind, model, day or hour used, or all of them. Its names
// are promises.
type UsageLine struct {
	// Type is what the query's By is, or total.
	Type  string            `json:"type"`
	Agent *messages.AgentID `json:"agent,omitempty"`
	Kind  string            `json:"kind,omitempty"`
	Model string            `json:"model,omitempty"`
	// From is when a day or hour begins.
	From time.Time `json:"from,omitzero"`
	// Failed is how many of Calls failed.
	Failed int `json:"failed,omitempty"`
	projections.Used
}

// By lists what usage can be summed by.
var By = []string{"agent", "kind", "model", "day", "hour"}

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
	s.add(`SELECT a.kind, a.key, 0, ` + sums + ` FROM agents a CROSS JOIN usage u ON u.agent = a.id`)
	s.where(q, "a")
	if q.After != "" {
		s.add(` AND (a.kind, a.key) > (?, ?)`, after.Kind, after.Key)
	}
	s.add(` GROUP BY a.kind, a.key ORDER BY a.kind, a.key`)
}

// byHours sums the sums of all agents.
func (s *statement) byHours(q UsageQuery, after position) {
	key := map[string]string{"kind": `u.kind, '', 0`, "model": `u.model, '', 0`, "day": `'', '', u.hour / 24`, "hour": `'', '', u.hour`}[q.By]
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
	l := UsageLine{Type: q.By, Failed: int(n[1].Int64), Used: projections.Used{
		Calls: int(n[0].Int64), Lost: int(n[2].Int64),
		Usage: messages.Usage{Input: int(n[3].Int64), Output: int(n[4].Int64), Cached: int(n[5].Int64), Reasoning: int(n[6].Int64)},
		Cost:  wholeCost(n[7].Int64, n[8].Int64),
	}}
	switch q.By {
	case "total":
		return Row{Line: l}, nil
	case "agent":
		l.Agent = &messages.AgentID{Tenant: q.Tenant, Kind: at.Kind, Key: at.Key}
	case "kind":
		l.Kind = at.Kind
	case "model":
		l.Model = at.Kind
	case "day":
		l.From = time.Unix(at.At*24*3600, 0).UTC()
	case "hour":
		l.From = time.Unix(at.At*3600, 0).UTC()
	}
	return Row{cursor(ofUsage+q.By, at), l}, nil
}

// wholeCost is the cost of whole units and nanos, the most there is if it is more.
func wholeCost(units, nanos int64) messages.Cost {
	const most = 9e9
	return messages.Cost(min(max(units+nanos/1e9, -most), most)*1e9 + nanos%1e9)
}

// Unreadable is how many frames of a tenant's agents could not be read and are
// left out, as of the newest batch. It never waits.
func (s *Store) Unreadable(tenant string) int {
	if bad := s.bad.Load(); bad != nil {
		return (*bad)[tenant]
	}
	return 0
}

// queryer is a database or a transaction of it.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// each calls scan with every row of a query. A row that it cannot read is none that this
// program wrote, unless ctx has ended.
func each(ctx context.Context, q queryer, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return cmp.Or(ctx.Err(), fmt.Errorf("%w: %w", errStrange, err))
		}
	}
	return rows.Err()
}

// count counts the frames that could not be read, by tenant.
func count(ctx context.Context, q queryer) (*map[string]int, error) {
	bad := make(map[string]int)
	err := each(ctx, q, func(r *sql.Rows) error {
		var tenant string
		var frames int
		err := r.Scan(&tenant, &frames)
		bad[tenant] = frames
		return err
	}, `SELECT tenant, sum(bad) FROM agents WHERE bad > 0 GROUP BY tenant`)
	return &bad, err
}

// Shards is how far each shard was read, by its number.
func (s *Store) Shards(ctx context.Context) (map[int]Shard, error) {
	list, err := s.positions(ctx)
	return list, s.met(ctx, err)
}

func (s *Store) positions(ctx context.Context) (map[int]Shard, error) {
	list := make(map[int]Shard)
	err := each(ctx, s.read, func(r *sql.Rows) error {
		var shard int
		var stored, applied int64
		var at Shard
		err := r.Scan(&shard, &at.Seq, &at.Agent.Tenant, &at.Agent.Kind, &at.Agent.Key, &at.Frame, &stored, &applied, &at.Unreadable)
		at.Stored, at.Applied = time.Unix(0, stored), time.Unix(0, applied)
		list[shard] = at
		return err
	}, `SELECT shard, seq, tenant, kind, key, frame, stored, applied, (SELECT coalesce(sum(a.bad), 0) FROM agents a WHERE a.shard = shards.shard AND a.bad > 0) FROM shards`)
	return list, err
}
