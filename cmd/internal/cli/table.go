package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
)

// printed prints each line of a view as text does it, or as it is with -o json, and counts them.
func printed[T any](a *app, v view, text func(T)) (lines int, err error) {
	err = v(func(line json.RawMessage) error {
		if lines++; a.json() {
			a.printf("%s", jsonLine(line))
		} else {
			text(raw[T](line))
		}
		return nil
	})
	return lines, err
}

// table prints the lines of a view below a head, or as they are with -o json, and counts
// them. head and row have a tab between two cells; a line without a row is not shown.
func table[T any](a *app, head string, v view, row func(T) string) (lines int, err error) {
	cells := [][]string{strings.Split(head, "\t")}
	lines, err = printed(a, v, func(line T) {
		if text := row(line); text != "" {
			cells = append(cells, strings.Split(text, "\t"))
		}
	})
	if len(cells) > 1 {
		a.columns(cells)
	}
	return lines, err
}

// listed ends a list with a remark on standard error: none if it is empty, some if it is not.
// It returns err; with an error, or -o json, there is no remark.
func (a *app) listed(rows int, err error, none, some string) error {
	switch {
	case err != nil || a.json():
	case rows == 0:
		a.note("%s", none)
	case some != "":
		a.note("%s", some)
	}
	return err
}

// columns prints rows of cells, the first of which is the head. On a terminal texts
// are cut for rows to fit its width, unless --wide is given.
func (a *app) columns(rows [][]string) {
	if writeColumns(a.out, rows, a.width()) {
		a.noteCut()
	}
}

// noteCut notes how to see what was cut.
func (a *app) noteCut() { a.note("texts are cut for the width of the terminal: --wide shows more") }

// width is what lines are cut to; 0: they are not.
func (a *app) width() int {
	if a.wide {
		return 0
	}
	width, _ := terminalSize(a.out)
	return width
}

// fits is text that is cut, on a terminal, to what is left of its width after before.
func (a *app) fits(text, before string) string {
	width := a.width()
	if width == 0 {
		return text
	}
	return runewidth.Truncate(text, max(16, width-runewidth.StringWidth(before)), "…")
}

// gap is the space between two columns.
const gap = 2

// writeColumns writes rows of cells in columns that are together no wider than width
// if cutting texts makes that possible; 0: as wide as they are. The first row is the head. It reports whether
// something was cut.
func writeColumns(w io.Writer, rows [][]string, width int) (cut bool) {
	head := rows[0]
	widths := make([]int, len(head))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], runewidth.StringWidth(cell))
		}
	}
	if width > 0 {
		cut = narrow(head, widths, width)
	}
	for n, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if cut {
				cell = runewidth.Truncate(cell, widths[i], "…")
			}
			pad := widths[i] + gap - runewidth.StringWidth(cell)
			switch {
			case n == 0:
				cell = colour(w, "1", cell)
			case slices.Contains(stated, head[i]):
				cell = colour(w, colours[firstWord(cell)], cell)
			}
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", pad))
			}
		}
		_, _ = fmt.Fprintln(w, line.String())
	}
	return cut
}

// prose are the columns that are cut first; stated are those that say how something is, which
// are cut next. All others are addresses, ids and names to be typed, numbers and times.
var (
	prose  = []string{"ANSWER", "ARGUMENTS", "HOST", "INPUTS", "KINDS", "OUTPUT", "PERSON", "QUESTION", "REASON", "SNIPPET", "SUBJECT", "TEXT", "VERSION", "WAITS FOR"}
	stated = []string{"CODE", "LAST", "OUTCOME", "PHASE", "STATE"}
)

// narrow takes from the widest columns until they fit into width: first from those
// of prose, then from those that are stated. What is left is wider if it must be. No column
// becomes narrower than its head. It reports whether it took something.
func narrow(head []string, widths []int, width int) (cut bool) {
	over := gap*(len(widths)-1) - width
	for _, w := range widths {
		over += w
	}
	for _, names := range [][]string{prose, stated} {
		for ; over > 0; over-- {
			widest := -1
			for i, w := range widths {
				cuts := w > max(8, runewidth.StringWidth(head[i])) && slices.Contains(names, head[i])
				if cuts && (widest < 0 || w > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
			cut = true
		}
	}
	return cut
}

// colours are those of words in columns that are stated.
var colours = map[string]string{
	"running": "36", "paused": "33", "waiting": "33", "unknown": "33", "draining": "33", "not": "33",
	"failed": "31", "denied": "31", "aborted": "31", "silent": "31", "completed": "32", "ready": "32",
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// fields prints names and values, one pair a line.
func (a *app) fields(rows [][2]string) {
	width := 0
	for _, row := range rows {
		width = max(width, runewidth.StringWidth(row[0]))
	}
	for _, row := range rows {
		a.printf("%s  %s\n", runewidth.FillRight(row[0], width), row[1])
	}
}

// time is a moment for a person: with its zone on a terminal, in UTC elsewhere.
func (a *app) time(t time.Time) string { return a.moment(t, time.DateTime) }

// toMillisecond is the layout of when an event was written.
const toMillisecond = "2006-01-02 15:04:05.000"

// inUTC are times in UTC in what a node says.
var inUTC = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)

// timed is what a node says, with its times as time has them.
func (a *app) timed(text string) string {
	return inUTC.ReplaceAllStringFunc(text, func(utc string) string {
		if at, err := time.Parse(time.DateTime, utc); err == nil {
			return a.time(at)
		}
		return utc
	})
}

// moment is time in a layout of its own.
func (a *app) moment(t time.Time, layout string) string {
	switch {
	case t.IsZero():
		return ""
	case !isTerminal(a.out):
		return t.UTC().Format(layout)
	case a.utc:
		return t.UTC().Format(layout + " MST")
	}
	return t.Local().Format(layout + " MST")
}

// age is time for lists: on a terminal how long ago or how far away it is, unless --utc
// or --wide is given.
func (a *app) age(t time.Time) string {
	switch now := time.Now(); {
	case t.IsZero() || !isTerminal(a.out) || a.utc || a.wide:
		return a.time(t)
	case t.After(now):
		return "in " + since(now, t)
	default:
		return since(t, now)
	}
}

// since is how long ago a time was, in one or two units.
func since(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	switch d := now.Sub(at); {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	}
}
