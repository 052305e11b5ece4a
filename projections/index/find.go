package index

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
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
// The cost is that of all rows that are found, also for one page of them.
func (s *Store) Find(ctx context.Context, q FindQuery) iter.Seq2[Row, error] {
	var after position
	err := readCursor(q.After, ofFind, &after)
	return s.rows(ctx, q.statement(after), err, func(r *sql.Rows) (Row, error) { return foundRow(r, q.Tenant) })
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

// foundOrder is the order of what is found, by columns that all parts of the statement have.
const foundOrder = `at DESC, kind, key, n DESC, what`

// statement is the statement of Find. The text around the words is made for the rows of the
// page alone, in the marks that snippetOf removes, by a second pass over what matches: a search for
// each row would read what matches up to that row.
func (q FindQuery) statement(after position) (s statement) {
	s.add(`WITH found AS MATERIALIZED (`)
	q.part(&s, after, `SELECT i.at AS at, a.kind AS kind, a.key AS key, i.id & 4294967295 AS n, 'input id' AS what, i.input AS name, i.turn AS turn, i.text AS text, NULL AS line, NULL AS item
		FROM items i CROSS JOIN agents a ON a.id = i.id >> 32 WHERE i.tenant = ? AND i.input <> ''`, "i", "i.input")
	for _, column := range []struct{ name, what string }{{"call", "call id"}, {"key", "key"}} {
		s.add(` UNION ALL `)
		q.part(&s, after, `SELECT e.at AS at, a.kind AS kind, a.key AS key, e.n AS n, '`+column.what+`' AS what, e.`+column.name+` AS name, '' AS turn, '' AS text, e.line AS line, NULL AS item
		FROM effects e CROSS JOIN agents a ON a.id = e.agent WHERE e.tenant = ? AND e.`+column.name+` <> ''`, "e", "e."+column.name)
	}
	s.add(` UNION ALL `)
	q.part(&s, after, `SELECT i.at AS at, a.kind AS kind, a.key AS key, i.id & 4294967295 AS n, i.what AS what, '' AS name, i.turn AS turn, '' AS text, NULL AS line, i.id AS item
		FROM words CROSS JOIN items i ON i.id = words.rowid CROSS JOIN agents a ON a.id = i.id >> 32 WHERE i.tenant = ?`, "i", "")
	s.add(` ORDER BY ` + foundOrder)
	s.limit(q.Limit)
	s.add(`), shown AS MATERIALIZED (SELECT rowid AS item, snippet(words, 0, char(2), char(3), '…', 24) AS snippet FROM words WHERE words MATCH ? AND +rowid IN (SELECT item FROM found))
		SELECT at, kind, key, n, what, name, turn, line, coalesce(snippet, text) FROM found LEFT JOIN shown ON shown.item = found.item ORDER BY `+foundOrder, q.Search.words)
	return s
}

// part adds a part of the statement: the rows of table whose id matches, or that hold the words
// if there is no id.
func (q FindQuery) part(s *statement, after position, selected, table, id string) {
	s.add(selected, q.Tenant)
	switch {
	case id == "":
		s.add(` AND words MATCH ?`, q.Search.words)
	case len(q.Search.id) >= MinPrefix:
		s.add(` AND `+id+` >= ? AND `+id+` < ?`, q.Search.id, q.Search.id+"\U0010ffff")
	default:
		s.add(` AND `+id+` = ?`, q.Search.id)
	}
	if q.Kind != "" {
		s.add(` AND a.kind = ?`, q.Kind)
	}
	at := table + `.at`
	if !q.Since.IsZero() {
		s.add(` AND `+at+` >= ?`, q.Since.UnixNano())
	}
	if !q.Until.IsZero() {
		s.add(` AND `+at+` < ?`, q.Until.UnixNano())
	}
	s.of(`a.shard`, q.Shards)
	if q.After != "" {
		s.add(` AND `+at+` <= ? AND (-at, a.kind, a.key, -n, what) > (?, ?, ?, ?, ?)`, after.At, -after.At, after.Kind, after.Key, -after.N, after.What)
	}
}

// foundRow reads a row of Find.
func foundRow(r *sql.Rows, tenant string) (Row, error) {
	var at position
	var f projections.Found
	var text string
	var line []byte
	if err := r.Scan(&at.At, &at.Kind, &at.Key, &at.N, &at.What, &f.ID, &f.Turn, &line, &text); err != nil {
		return Row{}, err
	}
	f.Agent, f.N = messages.AgentID{Tenant: tenant, Kind: at.Kind, Key: at.Key}, messages.EventNumber(at.N)
	f.At, f.What, f.Snippet = time.Unix(0, at.At).UTC(), projections.FoundKind(at.What), snippetOf(text)
	if line != nil {
		var e projections.Effect
		if err := json.Unmarshal(line, &e); err != nil {
			return Row{}, err
		}
		f.Turn, f.Snippet = e.Turn, snippetOf(e.Tool+" "+e.Arguments)
	}
	key := fmt.Sprintf("%020d\x00%s\x00%s\x00%020d\x00%s", descending(at.At), at.Kind, at.Key, descending(at.N), at.What)
	return Row{cursor(ofFind, at), key, f}, nil
}

// descending returns a number that is less the greater n is.
func descending(n int64) uint64 { return ^(uint64(n) ^ 1<<63) }

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
