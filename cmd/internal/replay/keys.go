package replay

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// helpText is shown for the key ?.
var helpText = []string{
	"up, down      the row before or behind; k, j do the same",
	"left, right   the event of the row before or behind",
	"[, ]          the turn before or behind",
	"home, end     the oldest or newest row; g, G do the same",
	":n            jump to event n",
	"/text         search rows that have all words; n, N for more",
	"f             show only rows that have all words; f and enter for all",
	"1 to 5        change, history, state, request, event",
	"6 or w        why it happened: the chain of causes",
	"tab           move in these details, or in the rows again",
	"enter         move in the details; on a line that names an event: jump to it",
	"y             copy the row, or the details while you move in them",
	"q             leave",
}

// key handles a key and returns what is to be done for it.
func (m *model) key(key tea.KeyPressMsg) tea.Cmd {
	if m.note = ""; m.prompt.kind != 0 {
		return m.typed(key)
	}
	switch name := key.String(); name {
	case "q", "ctrl+c":
		m.stop()
		return tea.Quit
	case ":", "/", "f":
		m.prompt = prompt{kind: rune(name[0])}
	case "n":
		return m.find(1)
	case "N":
		return m.find(-1)
	case "1", "2", "3", "4", "5", "6":
		m.tab = tab(name[0] - '1')
		return m.look()
	case "w":
		m.tab = tabWhy
		return m.look()
	case "tab":
		m.pane.focused = !m.pane.focused
	case "?":
		m.help, m.pane = !m.help, pane{focused: m.pane.focused || m.narrow()}
	case "y":
		return m.copy()
	default:
		if m.pane.focused {
			return m.paneKey(name)
		}
		return m.rowKey(name)
	}
	return nil
}

// rowKey handles a key that moves in the rows.
func (m *model) rowKey(name string) tea.Cmd {
	isTurn := func(r *projections.Row) bool { return r.Kind == projections.RowTurn }
	switch name {
	case "up", "k":
		return m.choose(m.at - 1)
	case "down", "j":
		return m.choose(m.at + 1)
	case "pgup":
		return m.choose(m.at - m.page())
	case "pgdown", "space":
		return m.choose(m.at + m.page())
	case "home", "g":
		return m.choose(0)
	case "end", "G":
		return m.choose(len(m.rows.shown) - 1)
	case "[":
		return m.choose(m.rows.next(m.at, -1, false, isTurn))
	case "]":
		return m.choose(m.rows.next(m.at, 1, false, isTurn))
	case "left":
		return m.step(-1)
	case "right":
		return m.step(1)
	case "enter":
		m.pane.focused = true
	}
	return nil
}

// step selects the event of the row before the selected one, or behind it.
func (m *model) step(by int) tea.Cmd {
	r := m.row()
	if r == nil {
		return nil
	}
	at, found := slices.BinarySearch(r.Events, m.n)
	if !found && by > 0 {
		by = 0
	}
	m.n = r.Events[min(max(at+by, 0), len(r.Events)-1)]
	return m.look()
}

// find selects the next row that has the words that are searched for.
func (m *model) find(step int) tea.Cmd {
	if m.search == "" {
		m.note = "type / and what to search for"
		return nil
	}
	found := m.rows.next(m.at, step, true, func(r *projections.Row) bool { return matches(r, m.search) })
	if r := m.row(); found == m.at && r != nil && !matches(r, m.search) {
		m.note = "no row has all of: " + m.search
		return nil
	}
	return m.choose(found)
}

// paneKey handles a key that moves in the details.
func (m *model) paneKey(name string) tea.Cmd {
	last := len(m.lines(m.paneWidth())) - 1
	to := m.pane.at
	switch name {
	case "up", "k":
		to--
	case "down", "j":
		to++
	case "pgup":
		to -= m.page()
	case "pgdown", "space":
		to += m.page()
	case "home", "g":
		to = 0
	case "end", "G":
		to = last
	case "esc", "left":
		m.pane.focused, m.help = false, false
	case "enter":
		return m.cause()
	}
	m.pane.at = max(0, min(to, last))
	return nil
}

// named finds the number of an event in a line, as views name it.
var named = regexp.MustCompile(`(?:\bevents? |"n": ?|^ *#?)(\d+)\b`)

// cause jumps to the event that the line of the details names.
func (m *model) cause() tea.Cmd {
	lines := m.lines(m.paneWidth())
	if m.pane.at >= len(lines) {
		return nil
	}
	found := named.FindStringSubmatch(lines[m.pane.at])
	if found == nil {
		m.note = "this line names no event"
		return nil
	}
	n, err := strconv.ParseUint(found[1], 10, 64)
	if err != nil {
		m.note = "this line names no event"
		return nil
	}
	if m.pane.focused = false; m.tab == tabWhy {
		m.tab = tabChange // else why would show the chain of the cause alone
	}
	return m.jump(messages.EventNumber(n))
}

// copy has the terminal copy the details while the person moves in them, else the row.
func (m *model) copy() tea.Cmd {
	text := ""
	if r := m.row(); m.pane.focused {
		text = strings.Join(m.detail.lines, "\n")
	} else if r != nil {
		text = strings.Join([]string{fmt.Sprintf("%s event %d", m.agent, m.n), string(r.Kind), r.Title, r.Status, r.Text}, "\t")
	}
	if text == "" {
		return nil
	}
	m.note = fmt.Sprintf("%d bytes copied, if the terminal allows it", len(text))
	return tea.SetClipboard(text)
}
