package index

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
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
	after, err := readCallKey(q.After)
	return ordered(s.rows(ctx, q.effects(after), err, effectRow), timeDigits, string(after), q.Limit)
}

// effects is the statement of Effects. Its index returns the rows in the order of their times, so
// that a page costs only the rows that it passes.
func (q Query) effects(after callKey) statement {
	index := "effects_at"
	switch {
	case q.Tool != "":
		index = "effects_tool"
	case q.Outcome != "" && q.Outcome != projections.CallCompleted:
		index = "effects_outcome"
	}
	st := q.calls(`e.at, e.kind, e.name, e.n, e.line, e.crc, `+repeats, index)
	if after != "" {
		st.add(` AND e.at >= ?`, after.at())
	}
	st.add(` ORDER BY e.at`)
	return st
}

// effectRow reads a row of Effects.
func effectRow(r *sql.Rows) (row Row, err error) {
	var at position
	var line []byte
	var crc uint32
	var earlier sql.NullInt64
	if err := r.Scan(&at.At, &at.Kind, &at.Key, &at.N, &line, &crc, &earlier); err != nil {
		return Row{}, err
	}
	key := callKeyOf(at)
	row.Key, row.Cursor = string(key), key.cursor()
	row.Line, err = effectLine(line, crc, earlier.Int64)
	return row, err
}

// effectLine returns the line of a call, which has a checksum, with the earlier call that it repeats;
// 0: none.
func effectLine(line []byte, crc uint32, repeats int64) (json.RawMessage, error) {
	if len(line) == 0 || checksum(line) != crc {
		return nil, errLine
	}
	if repeats != 0 { // the last field of projections.Effect
		line = append(strconv.AppendInt(append(line[:len(line)-1:len(line)-1], `,"repeats":`...), repeats, 10), '}')
	}
	return line, nil
}

var errLine = errors.New("the line of a call does not have its checksum")

// readLine decodes the line of a call.
func readLine(line []byte, crc uint32) (e projections.Effect, err error) {
	if line, err = effectLine(line, crc, 0); err == nil {
		err = json.Unmarshal(line, &e)
	}
	return e, err
}

// checksum is that of a line.
func checksum(line []byte) uint32 { return crc32.Checksum(line, castagnoli) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// repeats is the column with the earlier call that a call of effects e repeats, on the terms of
// [projections.MarkRepeats].
const repeats = `(SELECT max(o.n) FROM effects o WHERE o.agent = e.agent AND o.acted = e.same AND o.n < e.n)`

// Approvals yields the calls that wait for a person's approval, agent by agent,
// as messages.Approval. The filter's times bound when the call was asked for.
func (s *Store) Approvals(ctx context.Context, q Query) iter.Seq2[Row, error] {
	var after position
	err := readCursor(q.After, ofApprovals, &after)
	q.Outcome = projections.CallWaiting
	st := q.calls(`e.kind, e.name, e.n, e.line, e.crc`, "effects_outcome")
	if q.After != "" {
		st.add(` AND (e.kind, e.name, e.n) > (?, ?, ?)`, after.Kind, after.Key, after.N)
	}
	st.add(` ORDER BY e.kind, e.name, e.n`)
	st.limit(q.Limit)
	return s.rows(ctx, st, err, approvalRow)
}

// approvalRow reads a row of Approvals.
func approvalRow(r *sql.Rows) (Row, error) {
	var at position
	var line []byte
	var crc uint32
	if err := r.Scan(&at.Kind, &at.Key, &at.N, &line, &crc); err != nil {
		return Row{}, err
	}
	e, err := readLine(line, crc)
	approval, _ := e.AsApproval()
	return Row{cursor(ofApprovals, at), fmt.Sprintf("%s\x00%s\x00%020d", at.Kind, at.Key, at.N), approval}, err
}

// calls begins the statement for columns of calls that the filter chooses, without their order.
// index is the one to search.
func (q Query) calls(columns, index string) (s statement) {
	s.add(`SELECT `+columns+` FROM effects e INDEXED BY `+index+` WHERE e.tenant = ?`, q.Tenant)
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
	s.of(`e.shard`, q.Shards)
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
		found, err := s.read.QueryContext(ctx, claim+st.text, st.args...)
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
		return strangeCursor(s)
	}
	return nil
}

func strangeCursor(cursor string) error {
	return messages.Refuse(messages.BadInput, "cursor %q: this view did not return it; begin without one", cursor)
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
