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
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

const (
	// eventsEach is how many events an agent of framesOf has.
	eventsEach = 9
	// longTurns is how many turns the agent with a long log has at most: 100,000 events.
	longTurns = 12_500
	// fillers is how many agents' frames are appended at the same time.
	fillers = 64
	// fillWithin is how long the index may take for the store.
	fillWithin = 30 * time.Minute
)

// kinds are those of the agents of framesOf.
var kinds = []string{"support", "billing", "sales", "ops"}

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
		return w.found(ctx, l, node.Client(), bare, long)
	})
}

// fill appends the frames of many agents, and those of one with a long log, whose last call it returns.
func (w *work) fill(l *bench.Lab, ctx context.Context, s *bench.Store) (long messages.EventNumber, err error) {
	agents := w.storedAgents()
	turns := min(longTurns, agents)
	l.Say("find: append %d events", agents*eventsEach+turns*eventsOfTurn)
	log, err := natslog.Open(ctx, natslog.Config{Conns: s.Conns, Logger: s.Logger})
	if err != nil {
		return 0, err
	}
	now := time.Now().UTC()
	err = bench.Deal(ctx, fillers, 1+agents, func(ctx context.Context, _, i int) error {
		if i == 0 {
			frames := longFrames(turns, now)
			long = frames[len(frames)-1].First - 2
			return appendAll(ctx, log, longAgent, frames)
		}
		a, frames := framesOf(i-1, now)
		return appendAll(ctx, log, a, frames)
	})
	return long, err
}

// appendAll appends frames as those of an agent that has none.
func appendAll(ctx context.Context, log eventlog.Log, a messages.AgentID, frames []*messages.Frame) error {
	var at eventlog.Position
	for i, frame := range frames {
		f := *frame
		f.ID, f.Prev, f.PrevDigest = messages.FrameID(fmt.Sprintf("%026d", i+1)), at.Frame, at.Digest
		b, err := messages.EncodeFrame(a, &f)
		if err != nil {
			return err
		}
		if at, err = eventlog.Commit(ctx, log, eventlog.Entry{Agent: a, Expect: at, Frame: &f, Bytes: b, Summary: eventlog.Summary{Phase: messages.PhaseIdle}}); err != nil {
			return err
		}
	}
	return nil
}

// longAgent has a long log.
var longAgent = messages.AgentID{Tenant: messages.DefaultTenant, Kind: "support", Key: "long"}

// eventsOfTurn is how many events a turn of longFrames has.
const eventsOfTurn = 8

// longFrames are turns of an agent with one call each. Each call is equal to one of a hundred turns before.
func longFrames(turns int, at time.Time) (frames []*messages.Frame) {
	for i := range turns {
		n := messages.EventNumber(i * eventsOfTurn)
		turn, input, model := messages.TurnID(fmt.Sprint("t", n+2)), fmt.Sprint("u", i), messages.CallID(fmt.Sprint("m", i))
		call, arguments := messages.CallID(fmt.Sprint("long_", i)), fmt.Sprintf(`{"order":%d}`, i%100)
		at = at.Add(time.Millisecond)
		frames = append(frames, &messages.Frame{Epoch: 1, First: n + 1, Time: at, Events: []messages.Event{
			messages.InputAccepted{Input: input, Disposition: messages.Started, Turn: turn, Content: messages.TextContent(fmt.Sprint("order ", i, " came late"))},
			messages.TurnStarted{Turn: turn, Inputs: []string{input}, MaxSteps: 20},
			messages.ModelRequested{Turn: turn, Step: 1, Attempt: 1, Call: model, Model: bench.ModelName, Inputs: []string{input}},
			messages.ModelCompleted{Turn: turn, Step: 1, Call: model, Items: []messages.Item{{Type: messages.ItemCall, CallID: call, Name: "refund", Arguments: arguments}}},
			messages.ToolRequested{Turn: turn, Step: 1, Call: call, Tool: "refund", Arguments: arguments},
			messages.ToolStarted{Turn: turn, Call: call, Tool: "refund", OnUnknown: messages.Pause, Key: string(call), Attempt: 1},
		}}, &messages.Frame{Epoch: 1, First: n + 7, Time: at, Events: []messages.Event{
			messages.ToolCompleted{Turn: turn, Call: call, Output: "done"},
			messages.TurnCompleted{Turn: turn, Inputs: []string{input}, Output: "It is on its way.", Steps: 1},
		}})
	}
	return frames
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

// storedAgents returns how many agents with few events the store has.
func (w *work) storedAgents() int { return max(1, w.stored/eventsEach) }
