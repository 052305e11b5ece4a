// Package replay is the terminal debugger of `reprise replay`: the timeline of an agent beside what
// is known of the event that is selected.
//
// # Guarantees
//
//   - Nothing is run and nothing is written: it reads views of a node and copies text if asked to.
//   - The first screen waits for the newest rows alone; older ones come while it is used.
//   - A key is answered at once. What is known of an event is asked for when the selection rests, and
//     an answer that comes too late is dropped.
//   - New rows never move the selection.
//   - Nothing that users, models or tools wrote reaches the terminal raw.
package replay

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Source yields the JSON lines of a view of one agent, until ctx ends.
type Source func(ctx context.Context, q messages.Query) iter.Seq2[json.RawMessage, error]

// Config is what a debugger is made of.
type Config struct {
	// Agent is shown as the title.
	Agent  string
	Source Source
	// Rows selects rows by From, At and Turn. The zero value: all, and those that come.
	Rows messages.Query
	// Request returns a request as text. Nil: requests are shown as JSON.
	Request func(projections.ModelRequest) string
	// Zone is that of the times shown. Nil: UTC.
	Zone *time.Location
	In   io.Reader
	Out  io.Writer
}

// zone returns that of the times shown.
func (c Config) zone() *time.Location {
	if c.Zone == nil {
		return time.UTC
	}
	return c.Zone
}

// newest is how many of the newest events the first screen is made of.
const newest = 2000

// Run shows the debugger until the person leaves it. It returns an error if there is no first screen
// to show. Once ctx has ended it shows what it has.
func Run(ctx context.Context, c Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q := c.Rows
	if q.View, q.Tail = "timeline", newest; q.From != 0 {
		q.Tail = 0
	}
	first, err := rowsOf(c.Source(ctx, q))
	if err != nil {
		return err
	}
	m := newModel(c.Agent, c.zone(), detailOf(ctx, c), time.Now)
	m.begin(first)
	p := tea.NewProgram(m, tea.WithInput(c.In), tea.WithOutput(c.Out))
	q.Tail, q.Follow = 0, q.At == 0
	go follow(c.Source(ctx, q), p.Send)
	_, err = p.Run()
	if errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}

// rowsOf returns all rows of a view.
func rowsOf(lines iter.Seq2[json.RawMessage, error]) (rows []projections.Row, err error) {
	for line, err := range lines {
		if err != nil {
			return nil, err
		}
		if r, ok := rowIn(line); ok {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// rowIn returns the row that a line holds; false if it holds none, such as one of a later version.
func rowIn(line json.RawMessage) (r projections.Row, ok bool) {
	err := json.Unmarshal(line, &r)
	return r, err == nil && r.N != 0 && len(r.Events) > 0
}

// rowsMsg are rows that are new or have changed.
type rowsMsg []projections.Row

// endMsg reports why no more rows come.
type endMsg struct{ err error }

// most is how many rows are taken over between two keys.
const most = 2000

// follow sends rows as they come, those together that have come together.
func follow(lines iter.Seq2[json.RawMessage, error], send func(tea.Msg)) {
	rows := make(chan projections.Row, most)
	failed := make(chan error, 1)
	go func() {
		defer close(rows)
		for line, err := range lines {
			if err != nil {
				failed <- err
				return
			}
			if r, ok := rowIn(line); ok {
				rows <- r
			}
		}
	}()
	for r := range rows {
		batch := rowsMsg{r}
		for len(batch) < most && len(rows) > 0 {
			batch = append(batch, <-rows)
		}
		send(batch)
	}
	select {
	case err := <-failed:
		send(endMsg{err})
	default:
	}
}
