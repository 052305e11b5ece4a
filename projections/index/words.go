package index

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// item is something that was said: a row of the table items. The table words holds the words of
// its text, and refers to it.
type item struct {
	agent  int64
	n      messages.EventNumber
	tenant string
	at     int64
	turn   messages.TurnID
	what   projections.FoundKind
	input  string
	text   string
}

// withinUnit is the bits of a time that the id of an item does not have: the rest is a unit of 17 ms.
// FTS5 returns what it finds in the order of the ids, and so by time up to these units.
const withinUnit = 1<<unitBits - 1

const unitBits = 24

// say notes what an event says. Words of an encrypted frame are not kept: they would be
// readable here.
func (f *folding) say(n messages.EventNumber, frame *messages.Frame, ev messages.Event) {
	encrypted := frame.KeyID != ""
	f.encrypted = f.encrypted || encrypted
	s := projections.SaidBy(ev)
	if encrypted {
		s.Text = ""
	}
	if s.Text == "" && s.Input == "" {
		return
	}
	f.texts += len(s.Text)
	f.said = append(f.said, item{n: n, at: frame.Time.UnixNano(), turn: messages.TurnOf(ev), what: s.What, input: s.Input, text: s.Text})
}

// said writes what was said, in the order of its ids: words out of order would be written to the
// file one by one. It then erases what is left of the words of deleted agents.
func (w *writer) said() {
	slices.SortFunc(w.items, func(a, b item) int { return cmp.Compare(a.at, b.at) })
	id, end := int64(0), int64(math.MinInt64) // of the unit
	for _, it := range w.items {
		if it.at > end {
			id, end = w.freeID(it.at), it.at|withinUnit
		}
		if id > end {
			continue // an import with so many texts of one time
		}
		w.do(`INSERT INTO items (id, agent, n, tenant, at, what, turn, input, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, id, it.agent, int64(it.n), it.tenant, it.at, string(it.what), string(it.turn), it.input, it.text)
		if it.text != "" {
			w.do(`INSERT INTO words (rowid, text, tenant) VALUES (?, ?, ?)`, id, it.text, it.tenant)
		}
		id++
	}
	if w.gone && w.err == nil {
		w.err = eraseWords(w.ctx, w.tx)
	}
}

// freeID returns the lowest id in the unit of a time behind all that it has.
func (w *writer) freeID(at int64) (id int64) {
	prepared := w.prepared(`SELECT coalesce(max(id) + 1, ?1) FROM items WHERE id BETWEEN ?1 AND ?2`)
	if w.err == nil {
		w.err = prepared.QueryRowContext(w.ctx, at&^withinUnit, at|withinUnit).Scan(&id)
	}
	return id
}

// scratch makes tables in memory: erased holds the words that were deleted in a transaction.
const scratch = `
CREATE VIRTUAL TABLE IF NOT EXISTS temp.erased USING fts5 (text, content = '', columnsize = 0, tokenize = 'unicode61');
CREATE VIRTUAL TABLE IF NOT EXISTS temp.erased_words USING fts5vocab (temp, erased, row);
CREATE VIRTUAL TABLE IF NOT EXISTS temp.kept_words USING fts5vocab (main, words, row);
`

// forgetWords deletes what an agent's events said. The index of words refers to the texts, so
// its rows go first.
func forgetWords(ctx context.Context, tx *sql.Tx, agent int64) error {
	if _, err := tx.ExecContext(ctx, scratch); err != nil {
		return err
	}
	const chosen = ` FROM items WHERE agent = ?`
	for _, statement := range []string{
		`INSERT INTO temp.erased (rowid, text) SELECT id, text || ' ' || tenant` + chosen + ` AND text <> ''`,
		`INSERT INTO words (words, rowid, text, tenant) SELECT 'delete', id, text, tenant` + chosen + ` AND text <> ''`,
		`DELETE` + chosen,
	} {
		if _, err := tx.ExecContext(ctx, statement, agent); err != nil {
			return err
		}
	}
	return nil
}

// separator is an entry of the table words_idx: on its page of a segment and the pages that
// follow it are terms that are not less. A term has a byte in front that names its index.
type separator struct {
	segment int64
	term    []byte
}

// eraseWords erases what is left of the words that forgetWords has deleted. FTS5 deletes a word
// from its pages, but leaves beginnings of words that separate two pages; each of those is
// replaced by the word that is kept and that comes next.
func eraseWords(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, scratch); err != nil {
		return err
	}
	var erased [][]byte
	err := each(ctx, tx, func(r *sql.Rows) error {
		var word []byte
		err := r.Scan(&word)
		erased = append(erased, word)
		return err
	}, `SELECT term FROM temp.erased_words`)
	if err != nil || len(erased) == 0 {
		return err
	}
	slices.SortFunc(erased, bytes.Compare)
	if _, err := nextWord(ctx, tx, []byte{}); err != nil { // what was deleted is written to the pages first
		return err
	}
	var left []separator
	err = each(ctx, tx, func(r *sql.Rows) error {
		var s separator
		err := r.Scan(&s.segment, &s.term)
		if beginsOne(erased, s.term) {
			left = append(left, s)
		}
		return err
	}, `SELECT segid, term FROM words_idx`)
	if err != nil {
		return err
	}
	for _, s := range slices.Backward(left) { // of two that become equal the latter stays: the page of the other has no words
		if err := s.replace(ctx, tx); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO temp.erased (erased) VALUES ('delete-all')`)
	return err
}

// beginsOne reports whether one of the sorted words begins with the word of a term.
func beginsOne(words [][]byte, term []byte) bool {
	if len(term) < 2 {
		return false
	}
	i, _ := slices.BinarySearchFunc(words, term[1:], bytes.Compare)
	return i < len(words) && bytes.HasPrefix(words[i], term[1:])
}

// replace replaces the separator unless a word that is kept begins with it. If another one equals
// the new one, or no word is kept behind it, then its page has no words, and it is deleted.
func (s separator) replace(ctx context.Context, tx *sql.Tx) error {
	word := s.term[1:]
	next, err := nextWord(ctx, tx, word)
	if err != nil || bytes.HasPrefix(next, word) && next != nil {
		return err
	}
	if next == nil {
		return s.remove(ctx, tx)
	}
	done, err := tx.ExecContext(ctx, `UPDATE OR IGNORE words_idx SET term = ? WHERE segid = ? AND term = ?`, append(s.term[:1:1], next...), s.segment, s.term)
	if err != nil {
		return err
	}
	if rows, err := done.RowsAffected(); err != nil || rows > 0 {
		return err
	}
	return s.remove(ctx, tx)
}

func (s separator) remove(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM words_idx WHERE segid = ? AND term = ?`, s.segment, s.term)
	return err
}

// nextWord returns the first word that is kept and not less than word; nil if there is none.
func nextWord(ctx context.Context, tx *sql.Tx, word []byte) (next []byte, err error) {
	err = tx.QueryRowContext(ctx, `SELECT term FROM temp.kept_words WHERE term >= CAST(? AS TEXT) ORDER BY term LIMIT 1`, word).Scan(&next)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return next, err
}
