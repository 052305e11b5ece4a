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
	"strconv"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Row is a line of an answer.
type Row struct {
	// Cursor asks for what comes behind the row. It means the same on every node.
	// Empty: nothing does, and the row does not count towards a limit.
	Cursor string
	// Key orders the rows of several stores as each has them.
	Key string
	// Line is the row's content: JSON, when it is marshalled.
	Line any
}

// Query chooses calls of a tenant's agents. Empty fields choose all.
type Query struct {
	Tenant, Kind string
	projections.EffectFilter
	// Shards are those of the agents. Nil: all.
	Shards []int
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

// of adds that a shard is one of some.
func (s *statement) of(column string, shards []int) {
	if shards == nil {
		return
	}
	s.add(` AND ` + column + ` IN (`)
	for i, shard := range shards {
		if i > 0 {
			s.add(`, `)
		}
		s.add(`?`, shard)
	}
	s.add(`)`)
}

// position is that of a row in the order of its view.
type position struct {
	At        int64 `json:",omitempty"` // or an hour or day of usage
	Kind, Key string
	N         int64  `json:",omitempty"`
	What      string `json:",omitempty"` // of what was found
}

// Effects yields the calls of tools that q chooses, oldest first by when they
// were asked for.
func (s *Store) Effects(ctx context.Context, q Query) iter.Seq2[Row, error] {
	st, err := q.effects()
	return s.calls(ctx, st, err, ofEffects, func(line []byte, repeats int64) (any, error) { return effectLine(line, repeats) })
}

// effectLine returns the line of a call with the earlier call that it repeats; 0: none. Only the
// ends of the line are looked at: all of it is when it is marshalled.
func effectLine(line []byte, repeats int64) (json.RawMessage, error) {
	if !bytes.HasPrefix(line, []byte("{")) || !bytes.HasSuffix(line, []byte("}")) {
		return nil, errStrange
	}
	if repeats != 0 { // the last field of projections.Effect
		line = append(strconv.AppendInt(append(line[:len(line)-1:len(line)-1], `,"repeats":`...), repeats, 10), '}')
	}
	return line, nil
}

// repeats is the column with the earlier call that a call of effects e repeats, on the terms of
// [projections.MarkRepeats].
const repeats = `(SELECT max(o.n) FROM effects o WHERE o.agent = e.agent AND o.acted = e.same AND o.n < e.n)`

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
	return s.calls(ctx, st, err, ofApprovals, func(line []byte, _ int64) (any, error) {
		var e projections.Effect
		err := json.Unmarshal(line, &e)
		approval, _ := e.AsApproval()
		return approval, err
	})
}

// calls runs a statement of [Query.calls]. line reads the line of a row.
func (s *Store) calls(ctx context.Context, st statement, err error, of string, line func(line []byte, repeats int64) (any, error)) iter.Seq2[Row, error] {
	return s.rows(ctx, st, err, func(r *sql.Rows) (row Row, err error) {
		var at position
		var raw []byte
		var earlier sql.NullInt64
		if err := r.Scan(&at.At, &at.Kind, &at.Key, &at.N, &raw, &earlier); err != nil {
			return Row{}, err
		}
		row.Cursor, row.Key = cursor(of, at), fmt.Sprintf("%020d\x00%s\x00%s\x00%020d", at.At, at.Kind, at.Key, at.N)
		row.Line, err = line(raw, earlier.Int64)
		return row, err
	})
}

// calls begins the statement for calls that the filter chooses, without their order. at is
// the time by which they are ordered, index the one to search.
func (q Query) calls(at, index string) (s statement) {
	s.add(`SELECT `+at+`, a.kind, a.key, e.n, e.line, `+repeats+` FROM effects e INDEXED BY `+index+` CROSS JOIN agents a ON a.id = e.agent WHERE e.tenant = ?`, q.Tenant)
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
	if q.Repeated {
		s.add(` AND ` + repeats + ` IS NOT NULL`)
	}
	s.of(`a.shard`, q.Shards)
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
	ofFind      = "find"
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
