package replay

import (
	"context"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// model is the state of the debugger. Its functions do no I/O: what they ask for is in the commands
// that they return.
type model struct {
	agent  string
	zone   *time.Location
	ask    func(context.Context, wanted) detailMsg
	now    func() time.Time
	width  int
	height int

	rows rows
	// head was the newest row when the debugger began: those before it are still to come. 0:
	// all have come.
	head messages.EventNumber
	// at is the selected row among those shown, -1 if there is none, top the first one on the
	// screen, and n the selected event. fresh counts the rows that came since the person moved.
	at, top int
	n       messages.EventNumber
	fresh   int

	tab  tab
	pane pane
	// detail is what is shown of the selected event; waits reports whether it has not come. stop
	// ends the question for it. known are answers that came before.
	detail detailMsg
	waits  bool
	stop   context.CancelFunc
	known  map[wanted]detailMsg

	prompt prompt
	search string
	note   string
	help   bool
	ended  error // why no more rows come; nil: they do
	broken broken
}

// pane is the part of the screen that shows details.
type pane struct {
	focused bool
	at, top int // lines
}

func newModel(agent string, zone *time.Location, ask func(context.Context, wanted) detailMsg, now func() time.Time) *model {
	return &model{agent: agent, zone: zone, ask: ask, now: now, at: -1, width: 80, height: 24, stop: func() {}, known: make(map[wanted]detailMsg)}
}

// Init implements [tea.Model].
func (m *model) Init() tea.Cmd { return m.look() }

// Update implements [tea.Model].
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(1, msg.Width), max(around+1, msg.Height)
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		m.prompt.add(msg.Content)
	case rowsMsg:
		if m.head <= msg[len(msg)-1].N {
			m.head = 0
		}
		return m, m.take(msg)
	case endMsg:
		m.ended = msg.err
	case restedMsg:
		return m, m.fetch(wanted(msg))
	case detailMsg:
		m.show(msg)
	}
	return m, nil
}

// take takes over rows. The selection stays where it is; without one it is the newest row.
func (m *model) take(batch []projections.Row) tea.Cmd {
	var selected messages.EventNumber
	if m.at >= 0 {
		selected = m.rows.shown[m.at].N
	}
	above := m.at - m.top
	added := m.rows.add(batch)
	if selected == 0 {
		return m.choose(len(m.rows.shown) - 1)
	}
	m.fresh += added
	if m.at = m.rows.near(selected); m.at < 0 || m.rows.shown[m.at].N != selected { // it does not match the filter any more
		return m.choose(max(0, m.at))
	}
	m.top = max(0, m.at-above)
	return nil
}

// begin takes over the rows of the first screen.
func (m *model) begin(first []projections.Row) {
	m.take(first)
	if len(first) > 0 && first[0].N > 1 {
		m.head = first[len(first)-1].N
	}
}

// choose selects a row among those shown.
func (m *model) choose(at int) tea.Cmd {
	if m.at = min(max(at, 0), len(m.rows.shown)-1); m.at < 0 {
		m.n = 0
		return nil
	}
	if m.at == len(m.rows.shown)-1 {
		m.fresh = 0
	}
	m.n = m.rows.shown[m.at].N
	return m.look()
}

// row returns the selected row; nil: there is none.
func (m *model) row() *projections.Row {
	if m.at < 0 || m.at >= len(m.rows.shown) {
		return nil
	}
	return m.rows.shown[m.at]
}

// jump selects event n and the row that it is a part of.
func (m *model) jump(n messages.EventNumber) tea.Cmd {
	if newest := m.rows.newest(); n == 0 || n > newest {
		m.note = fmt.Sprintf("there is no event %d: the newest one here is %d", n, newest)
		return nil
	}
	if len(m.rows.all) > 0 && n < m.rows.all[0].N && m.head != 0 {
		m.note = fmt.Sprintf("event %d is not loaded yet", n)
		return nil
	}
	if m.rows.filter != "" {
		m.rows.apply("")
	}
	m.choose(m.rows.near(n))
	m.n = n
	return m.look()
}

// rest is how long the selection must stay before details are asked for.
const rest = 60 * time.Millisecond

// restedMsg reports that the selection may have stayed where it was.
type restedMsg wanted

// look has the details of the selected event shown: at once if they are known, else when the
// selection has rested.
func (m *model) look() tea.Cmd {
	w := wanted{m.tab, m.n}
	m.stop()
	m.stop = func() {}
	if w.n == 0 || m.detail.of == w && !m.waits {
		return nil
	}
	m.pane.at, m.pane.top, m.help = 0, 0, false
	if known, ok := m.known[w]; ok {
		m.detail, m.waits = known, false
		return nil
	}
	m.waits, m.detail = true, detailMsg{of: w}
	return tea.Tick(rest, func(time.Time) tea.Msg { return restedMsg(w) })
}

// fetch asks for details, if they are still wanted.
func (m *model) fetch(w wanted) tea.Cmd {
	if !m.waits || m.detail.of != w {
		return nil
	}
	m.stop()
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	return func() tea.Msg { return m.ask(ctx, w) }
}

// mostKnown is how many answers are kept.
const mostKnown = 64

// show shows an answer, if it is still wanted. Why an event happened grows with
// later events, and a failure may have passed: these are asked for again.
func (m *model) show(d detailMsg) {
	if !m.waits || m.detail.of != d.of {
		return
	}
	if m.detail, m.waits = d, false; d.failed || d.of.tab == tabWhy {
		return
	}
	if len(m.known) >= mostKnown {
		clear(m.known)
	}
	m.known[d.of] = d
}
