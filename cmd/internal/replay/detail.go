package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// tab is what is shown of an event.
type tab int

// The tabs, in the order of their keys.
const (
	tabChange tab = iota
	tabHistory
	tabState
	tabRequest
	tabEvent
	tabWhy
)

// tabNames are those of the tabs.
var tabNames = [...]string{"change", "history", "state", "request", "event", "why"}

// mostItems is how many of the newest items of a history are shown.
const mostItems = 200

// query returns the query for what a tab shows of event n.
func (t tab) query(n messages.EventNumber) messages.Query {
	switch t {
	case tabChange:
		return messages.Query{View: "replay", From: n, At: n}
	case tabHistory:
		return messages.Query{View: "history", At: n, Tail: mostItems}
	case tabEvent:
		return messages.Query{View: "events", From: n, Limit: 1}
	}
	return messages.Query{View: tabNames[t], At: n}
}

// wanted is what is shown of an event.
type wanted struct {
	tab tab
	n   messages.EventNumber
}

// detailMsg is what was asked for, as lines of text.
type detailMsg struct {
	of    wanted
	lines []string
	// failed reports whether the lines are why there is no answer.
	failed bool
}

// mostText is the most bytes of an answer that are shown.
const mostText = 256 << 10

// detailOf returns a function that asks for what is shown of an event, until its context or that of
// the debugger ends.
func detailOf(ctx context.Context, c Config) func(context.Context, wanted) detailMsg {
	return func(until context.Context, w wanted) detailMsg {
		within, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(until, cancel)()
		var text strings.Builder
		for line, err := range c.Source(within, w.tab.query(w.n)) {
			if err != nil {
				return detailMsg{of: w, lines: []string{err.Error()}, failed: true}
			}
			if text.WriteString(w.tab.text(line, c)); text.Len() > mostText {
				text.WriteString("… the rest is left out here\n")
				break
			}
		}
		lines := strings.ReplaceAll(strings.TrimRight(text.String(), "\n"), "\r\n", "\n")
		return detailMsg{of: w, lines: strings.Split(lines, "\n")}
	}
}

// text returns a line of the tab's view as a person reads it. It is as users and models wrote it.
func (t tab) text(line json.RawMessage, of Config) string {
	switch t {
	case tabChange:
		var c projections.Change
		if json.Unmarshal(line, &c) == nil {
			return changeText(c, of.zone())
		}
	case tabHistory:
		var item projections.HistoryItem
		if json.Unmarshal(line, &item) == nil {
			return itemText(item)
		}
	case tabWhy:
		var w projections.Why
		if json.Unmarshal(line, &w) == nil && w.Chain != nil {
			return whyText(w)
		}
	case tabRequest:
		var r projections.ModelRequest
		if json.Unmarshal(line, &r) == nil && of.Request != nil {
			return of.Request(r)
		}
	}
	var indented bytes.Buffer
	if json.Indent(&indented, line, "", "  ") != nil {
		return string(line) + "\n"
	}
	return indented.String() + "\n"
}

// whyText returns a line for each cause, behind what was found. A cause of another agent is not named as
// an event, to which the debugger could not jump.
func whyText(w projections.Why) string {
	var b strings.Builder
	for _, f := range w.Findings {
		b.WriteString(f.Text + "\n\n")
	}
	for _, c := range w.Chain {
		name := fmt.Sprintf("event %d", c.N)
		if c.Agent != w.Agent {
			name = fmt.Sprintf("%s at %d", c.Agent, c.N)
		}
		fmt.Fprintf(&b, "%s  %s  %s\n", name, c.Relation, Cause(c))
	}
	return b.String()
}

// changeText returns what an event changed.
func changeText(c projections.Change, zone *time.Location) string {
	var b strings.Builder
	fmt.Fprintf(&b, "event %d  %s  %s\n", c.N, c.Type, c.At.In(zone).Format("2006-01-02 15:04:05.000 MST"))
	if c.Summary != "" {
		b.WriteString(c.Summary + "\n")
	}
	for _, part := range [...]struct {
		name  string
		lines []string
	}{{"queue", c.Queue}, {"turn", c.Turn}, {"history", c.History}, {"state", c.State}} {
		if len(part.lines) > 0 {
			fmt.Fprintf(&b, "\n%s\n  %s\n", part.name, strings.Join(part.lines, "\n  "))
		}
	}
	return b.String()
}

// itemText returns an item of history with its event.
func itemText(item projections.HistoryItem) string {
	title, text := Item(item)
	return fmt.Sprintf("event %d  %s\n  %s\n", item.N, title, strings.ReplaceAll(text, "\n", "\n  "))
}
