package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// working is what a person at a terminal sees of a turn besides its answer: what it waits
// for, its tool calls, attempts that failed and what it used.
type working struct {
	line *progress
	// since is when something came last, began when the input was sent.
	since, began time.Time
	calls        map[messages.CallID]toolCall
	// running is the call that began last and runs; nil: none.
	running *toolCall
	cost    messages.Cost
}

// toolCall is a call as far as the stream has it.
type toolCall struct {
	id              messages.CallID
	tool, arguments string
	started         time.Time
}

// text is the call in a few words.
func (c toolCall) text() string {
	return projections.Printable(strings.TrimSpace(c.tool+" "+summary(json.RawMessage(c.arguments))), 120)
}

// newWorking begins with a turn. A spinner turns where line is shown.
func newWorking(line *progress) *working {
	now := time.Now()
	return &working{line: line, since: now, began: now, calls: make(map[messages.CallID]toolCall)}
}

// spinning is how long nothing comes before that is shown, so that nothing flickers.
const spinning = 400 * time.Millisecond

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// spin shows that the turn works, and at what.
func (w *working) spin(now time.Time) {
	waited := now.Sub(w.since)
	if waited < spinning {
		return
	}
	what := "working"
	if w.running != nil {
		what, waited = w.running.text(), now.Sub(w.running.started)
	}
	lasts := fmt.Sprintf(" … %d s", int(waited.Seconds()))
	w.line.show("%c %s%s", spinner[int(waited/redraw)%len(spinner)], w.line.fits(what, len(lasts)), lasts)
}

// heard takes in an event of the turn and returns what a person is shown of it; empty: nothing.
func (w *working) heard(ev client.Event) (shown string) {
	w.since = time.Now()
	switch ev.Type {
	case messages.ToolRequested{}.EventType():
		e := raw[messages.ToolRequested](ev.Data)
		w.calls[e.Call] = toolCall{id: e.Call, tool: e.Tool, arguments: e.Arguments}
	case messages.ToolStarted{}.EventType():
		e := raw[messages.ToolStarted](ev.Data)
		call := w.calls[e.Call]
		call.id, call.tool, call.started = e.Call, e.Tool, time.Now()
		if e.Arguments != "" {
			call.arguments = e.Arguments
		}
		w.calls[e.Call], w.running = call, &call
	case messages.ToolCompleted{}.EventType():
		e := raw[messages.ToolCompleted](ev.Data)
		return w.ended(e.Call, linesText(e.Output))
	case messages.ToolFailed{}.EventType():
		e := raw[messages.ToolFailed](ev.Data)
		return w.ended(e.Call, projections.Printable(fmt.Sprintf("failed (%s): %s", e.Kind, e.Message), 160))
	case messages.ModelCompleted{}.EventType():
		w.cost = w.cost.Plus(raw[messages.ModelCompleted](ev.Data).Cost)
	case messages.ModelFailed{}.EventType():
		e := raw[messages.ModelFailed](ev.Data)
		if w.cost = w.cost.Plus(e.Cost); e.RetryAt != nil {
			return fmt.Sprintf("· model %s: %s; try %d in %s", e.Kind, projections.Printable(e.Message, 160), e.Attempt+1, seconds(time.Until(*e.RetryAt)))
		}
	}
	return ""
}

// ended is a call that is over, with what became of it; empty for one that did not run.
func (w *working) ended(id messages.CallID, what string) string {
	call := w.calls[id]
	if w.running != nil && w.running.id == id {
		w.running = nil
	}
	if call.started.IsZero() {
		return ""
	}
	parts := []string{seconds(time.Since(call.started))}
	if what != "" {
		parts = append(parts, what)
	}
	return "> " + call.text() + " … " + strings.Join(parts, ", ")
}

// used is what a turn used; empty if that is not known.
func (w *working) used(u *messages.Usage) string {
	if u == nil {
		return ""
	}
	text := fmt.Sprintf("· %d tokens", u.Tokens())
	if w.cost != 0 {
		text += fmt.Sprintf(", cost %s", w.cost)
	}
	return text + ", " + seconds(time.Since(w.began))
}

// linesText is how many lines an output has, if it is more than one.
func linesText(output string) string {
	if n := strings.Count(strings.TrimSpace(output), "\n"); n > 0 {
		return fmt.Sprintf("%d lines", n+1)
	}
	return ""
}

// seconds is a duration as people read it: 0.2 s, or 12 ms.
func seconds(d time.Duration) string {
	if d = max(0, d); d < 100*time.Millisecond {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
