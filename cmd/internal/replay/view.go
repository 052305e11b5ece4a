package replay

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/reprise-dev/reprise/projections"
)

// The screen: a title, the rows beside the details, and a line for the prompt, a note or the keys.
const (
	twoPanes = 90 // columns from which both are shown
	around   = 2  // lines that are neither
)

// View implements [tea.Model].
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.screen(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "reprise replay " + projections.Printable(m.agent, 200)
	return v
}

// narrow reports whether there is room for the rows or the details alone.
func (m *model) narrow() bool { return m.width < twoPanes }

// page returns how many lines there are for rows.
func (m *model) page() int { return max(1, m.height-around) }

// paneWidth returns the columns of the details.
func (m *model) paneWidth() int {
	if m.narrow() {
		return max(1, m.width)
	}
	return m.width - m.rowsWidth() - 1
}

func (m *model) rowsWidth() int {
	if m.narrow() {
		return max(1, m.width)
	}
	return m.width * 11 / 20
}

// screen returns the lines of the screen.
func (m *model) screen() []string {
	lines := []string{fit(m.title(), m.width)}
	var left, right []string
	if !m.narrow() || !m.pane.focused {
		left = m.timeline()
	}
	if !m.narrow() || m.pane.focused {
		right = m.details()
	}
	for i := range m.page() {
		switch {
		case left == nil:
			lines = append(lines, right[i])
		case right == nil:
			lines = append(lines, left[i])
		default:
			lines = append(lines, left[i]+dim("│")+right[i])
		}
	}
	return append(lines, fit(m.footer(), m.width))
}

// title says whose timeline it is and how much of it is here.
func (m *model) title() string {
	text := bold(projections.Printable(m.agent, 200)) + fmt.Sprintf("  %d of %d rows", m.at+1, len(m.rows.shown))
	if m.rows.filter != "" {
		text += "  filter: " + projections.Printable(m.rows.filter, 100)
	}
	if m.head != 0 && m.ended == nil {
		text += "  older rows are coming"
	}
	if m.fresh > 0 {
		text += fmt.Sprintf("  %d new below", m.fresh)
	}
	if r := m.row(); r != nil && r.Node != "" {
		text += dim("  node " + projections.Printable(r.Node, 60))
	}
	return text
}

// footer is the prompt, a note or the keys.
func (m *model) footer() string {
	switch {
	case m.prompt.kind == 'f':
		return "filter: " + string(m.prompt.text) + "█"
	case m.prompt.kind != 0:
		return string(m.prompt.kind) + string(m.prompt.text) + "█"
	case m.note != "":
		return projections.Printable(m.note, 400)
	case m.ended != nil:
		return red("no new rows come: " + projections.Printable(m.ended.Error(), 400))
	}
	return dim("? keys  q quit  [ ] turns  ← → events  / search  f filter  : jump  w why  tab details  y copy")
}

// timeline returns the lines of the rows.
func (m *model) timeline() []string {
	height, width := m.page(), m.rowsWidth()
	m.top = scrolled(m.top, m.at, height, len(m.rows.shown))
	lines := make([]string, height)
	for i := range lines {
		at := m.top + i
		if at >= len(m.rows.shown) {
			lines[i] = fit("", width)
			continue
		}
		line := fit(m.line(m.rows.shown[at], width), width)
		if at == m.at {
			line = selected(line, !m.pane.focused)
		}
		lines[i] = line
	}
	return lines
}

// details returns the lines of what is known of the selected event.
func (m *model) details() []string {
	height, width := m.page(), m.paneWidth()
	head := []string{fit(m.tabs(), width), fit(m.event(), width)}
	text := m.lines(width)
	m.pane.top = scrolled(m.pane.top, m.pane.at, height-len(head), len(text))
	lines := head
	for i := m.pane.top; len(lines) < height; i++ {
		line := ""
		if i < len(text) {
			line = text[i]
		}
		line = fit(line, width)
		if m.pane.focused && i == m.pane.at {
			line = selected(line, true)
		}
		lines = append(lines, line)
	}
	return lines[:height]
}

// tabs names the tabs.
func (m *model) tabs() string {
	var names []string
	for i, name := range tabNames {
		name = fmt.Sprintf("%d %s", i+1, name)
		if m.narrow() && m.width < 60 && tab(i) != m.tab {
			name = name[:1]
		}
		if tab(i) == m.tab {
			name = reverse(name)
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// event says which event of the row is selected.
func (m *model) event() string {
	r := m.row()
	if r == nil {
		return ""
	}
	text := fmt.Sprintf("event %d", m.n)
	for i, n := range r.Events {
		if n == m.n && len(r.Events) > 1 {
			text += fmt.Sprintf(", %d of the %d of this row", i+1, len(r.Events))
		}
	}
	return dim(text)
}

// broken are lines broken at a width, and what they were made of.
type broken struct {
	of    wanted
	help  bool
	waits bool
	width int
	lines []string
}

// lines returns the details, none wider than width and all safe on a terminal.
func (m *model) lines(width int) []string {
	now := broken{m.detail.of, m.help, m.waits, width, nil}
	if b := m.broken; b.lines != nil && b.of == now.of && b.help == now.help && b.waits == now.waits && b.width == width {
		return b.lines
	}
	lines := m.detail.lines
	if m.help {
		lines = helpText
	} else if m.waits {
		lines = []string{"…"}
	}
	for _, line := range lines {
		line = projections.Printable(strings.ReplaceAll(line, "\t", "  "), 0)
		now.lines = append(now.lines, strings.Split(ansi.Hardwrap(line, max(1, width), true), "\n")...)
	}
	m.broken = now
	return now.lines
}

// scrolled returns the first line on a screen of height lines that has line at on it, of count.
func scrolled(top, at, height, count int) int {
	top = min(top, max(0, count-height))
	return max(0, min(max(top, at-height+1), max(at, 0)))
}
