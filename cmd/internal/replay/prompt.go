package replay

import (
	"strconv"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"github.com/reprise-dev/reprise/messages"
)

// prompt is a line that is typed. The zero value is closed.
type prompt struct {
	kind rune // : jumps, / searches, f filters; 0: closed
	text []rune
}

// mostPrompt is the most characters of a line.
const mostPrompt = 200

// add adds printable characters of a text, if the prompt is open.
func (p *prompt) add(text string) {
	for _, r := range text {
		if p.kind != 0 && unicode.IsPrint(r) && len(p.text) < mostPrompt {
			p.text = append(p.text, r)
		}
	}
}

// typed handles a key while the prompt is open.
func (m *model) typed(key tea.KeyPressMsg) tea.Cmd {
	switch key.String() {
	case "esc", "ctrl+c":
		m.prompt = prompt{}
	case "enter":
		kind, text := m.prompt.kind, strings.TrimSpace(string(m.prompt.text))
		m.prompt = prompt{}
		return m.entered(kind, text)
	case "backspace":
		if n := len(m.prompt.text); n > 0 {
			m.prompt.text = m.prompt.text[:n-1]
		}
	case "ctrl+u":
		m.prompt.text = nil
	default:
		m.prompt.add(key.Text)
	}
	return nil
}

// entered does what a line is for.
func (m *model) entered(kind rune, text string) tea.Cmd {
	switch kind {
	case ':':
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			m.note = "type the number of an event, such as :7"
			return nil
		}
		return m.jump(messages.EventNumber(n))
	case '/':
		m.search = text
		return m.find(1)
	}
	n := m.n
	if m.rows.apply(text); len(m.rows.shown) == 0 {
		m.rows.apply("")
		m.note = "no row has all of: " + text
	}
	m.choose(m.rows.near(n))
	return m.look()
}
