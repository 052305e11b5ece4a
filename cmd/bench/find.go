package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/url"
	"path/filepath"
	"time"

	"github.com/reprise-dev/reprise/cmd/internal/bench"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections/index"
)

// eventsEach is how many events an agent of framesOf has.
const eventsEach = 9

// find measures effects and find over an index of many events, beside SQLite alone on the same
// file: a scan of the same rows, all of them read. Each is the median of five.
func (w *work) find(l *bench.Lab, ctx context.Context) (err error) {
	agents := max(1, w.stored/eventsEach)
	l.Say("find: build the index of %d events", agents*eventsEach)
	path := filepath.Join(l.Folder, "find.db")
	store, err := index.Open(ctx, path, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	built := *w
	built.indexed = agents
	if _, err := built.build(ctx, store); err != nil {
		return err
	}
	bare, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()
	for _, v := range []struct {
		name, scanned, scan string
		rows                func() iter.Seq2[index.Row, error]
	}{
		{"effects, all", "scan of all calls by time", `SELECT at, '', line FROM effects WHERE tenant = 'default' ORDER BY at`, effectsPages(ctx, store)},
		{"find: a word that is once", "scan of all items", `SELECT at, turn, text FROM items`, foundPage(ctx, store, fmt.Sprintf(`"ann %d"`, agents/2))},
		{"find: a word that all have, a page", "scan of all items", `SELECT at, turn, text FROM items`, foundPage(ctx, store, "broken")},
		{"find: a key", "scan of all items", `SELECT at, turn, text FROM items`, foundPage(ctx, store, fmt.Sprintf("call_%d", agents/2))},
	} {
		if err := w.beside(ctx, l, bare, v.name, v.scanned, v.scan, v.rows); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
	}
	return nil
}

// beside adds how long rows take, and as a ratio how long to a scan.
func (w *work) beside(ctx context.Context, l *bench.Lab, bare *sql.DB, name, scanned, scan string, rows func() iter.Seq2[index.Row, error]) error {
	var answers, scans []float64
	for range indexTimes {
		begun := time.Now()
		for _, err := range rows() {
			if err != nil {
				return err
			}
		}
		answers = append(answers, bench.Milliseconds(time.Since(begun)))
		begun = time.Now()
		if err := scanAll(ctx, bare, scan); err != nil {
			return err
		}
		scans = append(scans, bench.Milliseconds(time.Since(begun)))
	}
	value, of := median(answers), median(scans)
	row := bench.Row{Figure: name, Agents: max(1, w.stored/eventsEach), Sync: "cache", Value: value, Unit: "ms"}
	if value > 0 && of > 0 {
		row.Ratio, row.RatioTo = value/of, scanned
	}
	return l.Add(row)
}

// scanAll reads all rows of a query.
func scanAll(ctx context.Context, db *sql.DB, query string) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var at int64
		var turn string
		var text []byte
		if err := rows.Scan(&at, &turn, &text); err != nil {
			return err
		}
	}
	return rows.Err()
}

// effectsPages yields all calls of the tenant, page by page.
func effectsPages(ctx context.Context, store *index.Store) func() iter.Seq2[index.Row, error] {
	return func() iter.Seq2[index.Row, error] {
		return func(yield func(index.Row, error) bool) {
			q := index.Query{Tenant: messages.DefaultTenant, Limit: indexPage}
			for given := indexPage; given == indexPage; {
				given = 0
				for row, err := range store.Effects(ctx, q) {
					given++
					if q.After = row.Cursor; !yield(row, err) {
						return
					}
				}
			}
		}
	}
}

// foundPage yields the first page of what is found.
func foundPage(ctx context.Context, store *index.Store, text string) func() iter.Seq2[index.Row, error] {
	return func() iter.Seq2[index.Row, error] {
		search, err := index.ReadSearch(text)
		if err != nil {
			return func(yield func(index.Row, error) bool) { yield(index.Row{}, err) }
		}
		return store.Find(ctx, index.FindQuery{Tenant: messages.DefaultTenant, Search: search, Limit: indexPage})
	}
}
