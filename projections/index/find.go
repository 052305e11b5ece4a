package index

import (
	"context"
	"database/sql"
	"iter"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// FindQuery chooses what holds a text, of a tenant's agents. Empty fields choose all.
type FindQuery struct {
	Tenant, Kind string
	Search       Search
	// Since and Until bound when the event was recorded: from Since on, before Until.
	Since, Until time.Time
	// Shards are those of the agents. Nil: all.
	Shards []int
	// After is the cursor of the last row that was seen.
	After string
	// Limit is the most rows to return; 0 means all.
	Limit int
}

// Find yields the events that hold what is searched for, as [projections.Found]: newest first,
// those of the same time by agent. An event is found by all words of the search in one text,
// in any order, in any case and without regard to accents, and by an id or key that equals the
// search, or begins with it if that has at least MinPrefix bytes.
//
// A page costs what the tenant's texts with the words do that are newer than its last row, and all ids that are
// found.
func (s *Store) Find(ctx context.Context, q FindQuery) iter.Seq2[Row, error] {
	var after position
	var key string
	err := readCursor(q.After, ofFind, &after)
	if q.After != "" {
		key = foundKey(after)
	}
	rows := s.rows(ctx, q.statement(after), err, func(r *sql.Rows) (Row, error) { return foundRow(r, q.Tenant) })
	return ordered(rows, unitDigits, key, q.Limit)
}

// Encrypted returns how many encrypted agents of a tenant in some shards there are, whose words
// are not searched.
func (s *Store) Encrypted(ctx context.Context, tenant string, shards []int) (agents int, err error) {
	var st statement
	st.add(`SELECT count(*) FROM agents WHERE encrypted AND tenant = ?`, tenant)
	st.of(`shard`, shards)
	err = each(ctx, s.read, func(r *sql.Rows) error { return r.Scan(&agents) }, st.text, st.args...)
	return agents, s.met(ctx, err)
}

// statement is the statement of Find. It returns the rows in the order of the units of their times:
// FTS5 finds texts in the order of their ids, and a page ends the search. Of ids there are few, and
// the first of them in the order of the view are enough for a page.
func (q FindQuery) statement(after position) (s statement) {
	q.texts(&s, after)
	s.add(` UNION ALL SELECT * FROM (`)
	for i, of := range []struct{ table, column, what, shown string }{
		{"items", "input", "input id", `t.turn AS turn, t.text AS text, NULL AS line, 0 AS crc`},
		{"effects", "call", "call id", `'' AS turn, '' AS text, t.line AS line, t.crc AS crc`},
		{"effects", "key", "key", `'' AS turn, '' AS text, t.line AS line, t.crc AS crc`},
	} {
		if i > 0 {
			s.add(` UNION ALL `)
		}
		s.add(`SELECT t.at AS id, t.at AS at, a.kind AS kind, a.key AS key, t.n AS n, '` + of.what + `' AS what, t.` + of.column + ` AS name, ` + of.shown + `, t.n <= a.forked AS before_fork
		FROM ` + of.table + ` t INDEXED BY ` + of.table + `_` + of.column + ` CROSS JOIN agents a ON a.id = t.agent WHERE t.` + of.column + ` <> ''`)
		q.named(&s, "t."+of.column)
		q.filter(&s)
		if q.After != "" {
			s.add(` AND t.at <= ? AND (-t.at, a.kind, a.key, -t.n, '`+of.what+`') > (?, ?, ?, ?, ?)`, after.At, -after.At, after.Kind, after.Key, -after.N, after.What)
		}
	}
	s.add(` ORDER BY at DESC, kind, key, n DESC, what`)
	s.limit(q.Limit)
	s.add(`) ORDER BY id DESC`)
	return s
}

// texts adds the part of the statement for texts with the words, each with what is around
// them, in the marks that snippetOf removes.
func (q FindQuery) texts(s *statement, after position) {
	s.add(`SELECT words.rowid AS id, t.at AS at, a.kind AS kind, a.key AS key, t.n AS n, t.what AS what, '' AS name, t.turn AS turn, snippet(words, 0, char(2), char(3), '…', 24) AS text, NULL AS line, 0 AS crc, t.n <= a.forked AS before_fork
		FROM words CROSS JOIN items t ON t.id = words.rowid CROSS JOIN agents a ON a.id = t.agent WHERE words MATCH ?`, q.match())
	if !q.Since.IsZero() {
		s.add(` AND words.rowid >= ?`, q.Since.UnixNano()&^withinUnit)
	}
	switch {
	case q.After != "":
		s.add(` AND words.rowid <= ?`, after.At|withinUnit)
	case !q.Until.IsZero():
		s.add(` AND words.rowid <= ?`, q.Until.UnixNano()|withinUnit)
	}
	q.filter(s)
}

// match returns the expression of FTS5 for texts of the tenant with the words. By words alone a page would read
// the newer texts of all other tenants, too. Names of tenants that have the same words are left to filter.
func (q FindQuery) match() string {
	if !strings.ContainsFunc(q.Tenant, inWord) { // to FTS5 it is empty
		return "text : (" + q.Search.words + ")"
	}
	return "text : (" + q.Search.words + `) AND tenant : "` + strings.ReplaceAll(q.Tenant, `"`, `""`) + `"`
}

// named adds that a column is the id, or begins with it.
func (q FindQuery) named(s *statement, column string) {
	if len(q.Search.id) >= MinPrefix {
		s.add(` AND `+column+` >= ? AND `+column+` < ?`, q.Search.id, q.Search.id+"\U0010ffff")
	} else {
		s.add(` AND `+column+` = ?`, q.Search.id)
	}
}

// filter adds what all rows of table t must be.
func (q FindQuery) filter(s *statement) {
	s.add(` AND t.tenant = ?`, q.Tenant)
	if q.Kind != "" {
		s.add(` AND a.kind = ?`, q.Kind)
	}
	if !q.Since.IsZero() {
		s.add(` AND t.at >= ?`, q.Since.UnixNano())
	}
	if !q.Until.IsZero() {
		s.add(` AND t.at < ?`, q.Until.UnixNano())
	}
	s.of(`a.shard`, q.Shards)
}

// unitDigits is how many of the first digits of a foundKey are those of the unit of its time.
const unitDigits = timeDigits - unitBits/4

// foundKey orders what is found as Find does.
func foundKey(at position) string {
	b := append(appendDigits(nil, ^at.At), '\x00')
	b = append(append(b, at.Kind...), '\x00')
	b = append(append(b, at.Key...), '\x00')
	b = append(appendDigits(b, ^at.N), '\x00')
	return string(append(b, at.What...))
}

// foundRow reads a row of Find.
func foundRow(r *sql.Rows, tenant string) (Row, error) {
	var at position
	var f projections.Found
	var id int64
	var text string
	var line []byte
	var crc uint32
	if err := r.Scan(&id, &at.At, &at.Kind, &at.Key, &at.N, &at.What, &f.ID, &f.Turn, &text, &line, &crc, &f.BeforeFork); err != nil {
		return Row{}, err
	}
	f.Agent, f.N = messages.AgentID{Tenant: tenant, Kind: at.Kind, Key: at.Key}, messages.EventNumber(at.N)
	f.At, f.What, f.Snippet = time.Unix(0, at.At).UTC(), projections.FoundKind(at.What), snippetOf(text)
	if line != nil {
		e, err := readLine(line, crc)
		if err != nil {
			return Row{}, err
		}
		f.Turn, f.Snippet = e.Turn, snippetOf(e.Tool+" "+e.Arguments)
	}
	return Row{cursor(ofFind, at), foundKey(at), f}, nil
}

// The bounds of a snippet, in bytes: of all of it, and of what comes before the first word that
// was found.
const (
	maxSnippet = 240
	maxBefore  = 80
)

// snippetOf returns a part of a text with its first mark, without the marks; the beginning of a
// text without a mark.
func snippetOf(text string) string {
	before, _, marked := strings.Cut(text, "\x02")
	text = strings.NewReplacer("\x02", "", "\x03", "").Replace(text)
	from := 0
	if marked {
		from = max(0, len(before)-maxBefore)
	}
	cut := text[from:min(len(text), from+maxSnippet)]
	if from > 0 {
		cut = "…" + cut
	}
	if from+maxSnippet < len(text) {
		cut += "…"
	}
	return strings.ToValidUTF8(cut, "")
}
