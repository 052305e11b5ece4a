package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"path/filepath"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/cmd/internal/bench"
	"github.com/reprise-dev/reprise/messages"
)

// fillWithin is how long the index may take for the store.
const fillWithin = 30 * time.Minute

// find measures effects, find and why over a store of many events, as a client asks a node for them
// once its index has all, beside SQLite alone on the file of that index: a scan of the same rows, all of
// them read. Each is the CPU of this process, client and server in it, the median of five.
func (w *work) find(l *bench.Lab, ctx context.Context) error {
	return l.With(ctx, "relaxed", func(ctx context.Context, s *bench.Store) (err error) {
		long, err := w.fill(l, ctx, s)
		if err != nil {
			return err
		}
		dir := filepath.Join(s.Dir, "index")
		node, err := s.Node(ctx, bench.TwoStep, func(c *cluster.Config) {
			c.IndexDir = dir
			for _, kind := range kinds {
				c.Agents = append(c.Agents, actors.Definition{Kind: kind, Model: bench.ModelName})
			}
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, node.Close()) }()
		l.Say("find: wait for the index")
		if err := caughtUp(ctx, node.Client()); err != nil {
			return err
		}
		bare, err := sql.Open("sqlite", "file:"+(&url.URL{Path: filepath.Join(dir, "index.db")}).EscapedPath()+"?mode=ro")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, bare.Close()) }()
		bare.SetMaxIdleConns(0) // each scan has a cache of its own, and leaves the node its own
		return w.found(ctx, l, node.Client(), bare, long)
	})
}

// caughtUp waits until the index has all that the store holds.
func caughtUp(ctx context.Context, c *client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, fillWithin)
	defer cancel()
	for {
		behind := uint64(0)
		for line, err := range c.QueryStore(ctx, messages.Query{View: "index"}) {
			var at gateway.IndexPosition
			if err == nil {
				err = json.Unmarshal(line, &at)
			}
			if err != nil {
				return err
			}
			behind += at.Behind
		}
		if behind == 0 {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// found adds how long each view takes.
func (w *work) found(ctx context.Context, l *bench.Lab, c *client.Client, bare *sql.DB, long messages.EventNumber) error {
	const (
		calls = `SELECT at, '', line FROM effects WHERE tenant = 'default' ORDER BY at`
		items = `SELECT at, turn, text FROM items`
	)
	tenant := func(q messages.Query) func() iter.Seq2[json.RawMessage, error] {
		return func() iter.Seq2[json.RawMessage, error] { return c.QueryTenant(ctx, messages.DefaultTenant, q) }
	}
	why := func(a messages.AgentID, n messages.EventNumber) func() iter.Seq2[json.RawMessage, error] {
		return func() iter.Seq2[json.RawMessage, error] {
			return c.Query(ctx, a.String(), messages.Query{View: "why", At: n})
		}
	}
	middle := w.storedAgents() / 2
	short, _ := framesOf(middle, time.Time{})
	for _, v := range []struct {
		name, scanned, scan string
		rows                func() iter.Seq2[json.RawMessage, error]
	}{
		{"effects, all", "scan of all calls by time", calls, tenant(messages.Query{View: "effects"})},
		{"effects, a page", "scan of all calls by time", calls, tenant(messages.Query{View: "effects", Limit: indexPage})},
		{"find: a word that is once", "scan of all items", items, tenant(messages.Query{View: "find", Text: fmt.Sprintf(`"ann %d"`, middle)})},
		{"find: a word that all have, a page", "scan of all items", items, tenant(messages.Query{View: "find", Text: "order", Limit: indexPage})},
		{"find: a key", "scan of all items", items, tenant(messages.Query{View: "find", Text: fmt.Sprintf("call_%d", middle)})},
		{"why, of an agent with few events", "scan of all items", items, why(short, 6)},
		{"why, of an agent with a long log", "scan of all items", items, why(longAgent, long)},
	} {
		if err := w.beside(ctx, l, bare, v.name, v.scanned, v.scan, v.rows); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
	}
	return nil
}

// beside adds what lines take, and the ratio to what a scan takes.
func (w *work) beside(ctx context.Context, l *bench.Lab, bare *sql.DB, name, scanned, scan string, lines func() iter.Seq2[json.RawMessage, error]) error {
	var answers, scans []time.Duration
	for range indexTimes {
		answer, err := usedBy(func() error {
			for _, err := range lines() {
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		scan, err := usedBy(func() error { return scanAll(ctx, bare, scan) })
		if err != nil {
			return err
		}
		answers, scans = append(answers, answer), append(scans, scan)
	}
	value, of := medianOf(answers), medianOf(scans)
	row := bench.Row{Figure: name, Agents: w.storedAgents(), Sync: "cache", Value: value, Unit: "ms CPU"}
	if value > 0 && of > 0 {
		row.Ratio, row.RatioTo = value/of, scanned
	}
	return l.Add(row)
}

// usedBy returns the CPU that this process uses meanwhile.
func usedBy(f func() error) (time.Duration, error) {
	begun := bench.CPUTime()
	err := f()
	return bench.CPUTime() - begun, err
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
