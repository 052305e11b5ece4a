package replay

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/reprise-dev/reprise/projections"
)

// Depth returns how far a row is indented below others: a model call below its turn, a child below
// its call.
func Depth(r projections.Row) int {
	switch r.Kind {
	case projections.RowApproval, projections.RowChild:
		return 2
	case projections.RowInput, projections.RowTurn, projections.RowOwner:
		return 0
	}
	if r.Turn == "" {
		return 0
	}
	return 1
}

// Words returns a row's title, status and text on one line, safe on a terminal.
func Words(r projections.Row) string {
	text := projections.Printable(r.Title, 0)
	if r.Status != "" {
		text += "  " + projections.Printable(r.Status, 0)
	}
	if r.Text != "" {
		text += "  " + projections.Printable(r.Text, 0)
	}
	return text
}

// Took returns the time between two moments, to a sensible digit.
func Took(from, to time.Time) string {
	d := to.Sub(from)
	switch {
	case d < 10*time.Millisecond:
		return d.Round(time.Millisecond / 10).String()
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// The columns of the timeline, shown if there is room.
const (
	barWidth  = 16
	barsFrom  = 72
	timesFrom = 56
	tookFrom  = 44
)

// line returns a row of the timeline: number, time, bar, duration and what it is.
func (m *model) line(r *projections.Row, width int) string {
	line := fmt.Sprintf("%6d ", r.N)
	if width >= timesFrom {
		line += r.At.In(m.zone).Format("15:04:05.000 ")
	}
	if width >= barsFrom {
		line += m.bar(r) + " "
	}
	if width >= tookFrom {
		line += fmt.Sprintf("%8s ", m.took(r))
	}
	return line + strings.Repeat("  ", Depth(*r)) + painted(r, string(r.Kind)) + " " + Words(*r)
}

// took is how long a row took, so far if it has not ended. Empty: it takes no time.
func (m *model) took(r *projections.Row) string {
	switch {
	case r.Open:
		return Took(r.At, m.now()) + "…"
	case r.Until.IsZero():
		return ""
	}
	return Took(r.At, r.Until)
}

// bar shows when in its turn a row was under way, and when it waited.
func (m *model) bar(r *projections.Row) string {
	scale := m.rows.turns[r.Turn]
	if scale == nil || r.Turn == "" || r.Kind == projections.RowInput {
		return strings.Repeat(" ", barWidth)
	}
	from, to := scale.At, m.end(scale)
	var b strings.Builder
	for i := range barWidth {
		b.WriteRune(m.cell(r, from, to, i))
	}
	return b.String()
}

// end returns when a row ended, or now.
func (m *model) end(r *projections.Row) time.Time {
	switch {
	case r.Open:
		return m.now()
	case r.Until.IsZero():
		return r.At
	}
	return r.Until
}

// cell returns what a row did in one part of the time from a moment to another.
func (m *model) cell(r *projections.Row, from, to time.Time, i int) rune {
	whole := max(to.Sub(from), 1)
	part := projections.Period{From: from.Add(whole * time.Duration(i) / barWidth), Until: from.Add(whole * time.Duration(i+1) / barWidth)}
	last := i == barWidth-1 && !r.At.Before(to)
	row := projections.Period{From: r.At, Until: m.end(r)}
	if !last && !overlap(part, row) {
		return '·'
	}
	for _, w := range r.Waits {
		if w.Until.IsZero() {
			w.Until = m.now()
		}
		if overlap(w, middle(part, row)) {
			return '░'
		}
	}
	if r.Until.IsZero() && !r.Open {
		return '│'
	}
	return '█'
}

// overlap reports whether some of a span, or the moment that it is, is in part.
func overlap(part, s projections.Period) bool {
	if s.From.Equal(s.Until) {
		return !s.From.Before(part.From) && s.From.Before(part.Until)
	}
	return s.From.Before(part.Until) && s.Until.After(part.From)
}

// middle returns the moment in the middle of what two spans share.
func middle(a, b projections.Period) projections.Period {
	if b.From.After(a.From) {
		a.From = b.From
	}
	if b.Until.Before(a.Until) {
		a.Until = b.Until
	}
	at := a.From.Add(a.Until.Sub(a.From) / 2)
	return projections.Period{From: at, Until: at}
}

// fit returns text cut or filled to a width.
func fit(text string, width int) string {
	text = ansi.Truncate(text, max(0, width), "…")
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// painted colours the name of a row's kind by how the row stands.
func painted(r *projections.Row, text string) string {
	text = fmt.Sprintf("%-8s", text)
	switch {
	case strings.HasPrefix(r.Status, "failed") || strings.HasPrefix(r.Status, "lost") || strings.HasPrefix(r.Status, "aborted") || r.Kind == projections.RowOwner && r.Text != "":
		return red(text)
	case len(r.Waits) > 0 && r.Open:
		return yellow(text)
	case r.Kind == projections.RowTurn:
		return bold(text)
	}
	return text
}

func styled(code, text string) string { return "\x1b[" + code + "m" + text + "\x1b[m" }

func bold(text string) string    { return styled("1", text) }
func dim(text string) string     { return styled("2", text) }
func reverse(text string) string { return styled("7", text) }
func red(text string) string     { return styled("31", text) }
func yellow(text string) string  { return styled("33", text) }

// selected shows that a line is selected, where the keys move it if focused.
func selected(line string, focused bool) string {
	if line = ansi.Strip(line); focused {
		return reverse(line)
	}
	return styled("4", line)
}
