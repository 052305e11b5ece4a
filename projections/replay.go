package projections

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Change is what one event did to an agent. Its lines are whole and hold what
// users and models wrote, as they wrote it: show them with WriteText, or
// through Printable.
type Change struct {
	N       messages.EventNumber `json:"n"`
	Seq     uint64               `json:"seq"`
	At      time.Time            `json:"at"`
	Type    string               `json:"type"`
	Summary string               `json:"summary"`
	// History begins each line with + for a new item and * for a mark.
	History []string `json:"history,omitempty"`
	State   []string `json:"state,omitempty"` // as path: old -> new
	Turn    []string `json:"turn,omitempty"`
	Queue   []string `json:"queue,omitempty"`
}

// Replay tells the story of one agent event by event. Its views are as of the
// last event that was told. The zero value begins before the first.
type Replay struct {
	History History
	State   State
	Turns   Turns
	Queue   Queue
	Usage   Usage
}

// Step folds event number n, recorded at a time under a sequence of the log,
// and says what it changed. It acts on nothing.
func (r *Replay) Step(n messages.EventNumber, at time.Time, seq uint64, ev messages.Event) Change {
	c := Change{N: n, Seq: seq, At: at.UTC(), Type: ev.EventType(), Summary: summarize(ev)}
	turnID, _ := placeOf(ev)
	turnBefore, _ := r.Turns.Turn(turnID)
	stateBefore, inputsBefore, waitingBefore := r.State.current(), r.Queue.Inputs(), r.Queue.Waiting()
	entriesBefore, openBefore := len(r.History.entries), slices.Clone(r.History.open)

	r.Turns.At(at)
	for _, v := range [...]View{&r.History, &r.State, &r.Turns, &r.Queue, &r.Usage} {
		v.Apply(n, ev)
	}
	c.History = r.newItems(n, entriesBefore, openBefore)
	c.State = stateChanges(nil, "", stateBefore, r.State.current())
	if turn, ok := r.Turns.Turn(turnID); ok {
		c.Turn = turnChanges(turnBefore, turn)
		if m := turn.Phase; turnBefore.Ended == 0 && (m == Failed || m == Aborted) {
			c.History = append(c.History, fmt.Sprintf("* items of turn %s are marked %s", turn.Turn, m))
		}
	}
	c.Queue = slices.Concat(
		listChanges("queued", "left the queue", inputsBefore, r.Queue.Inputs()),
		listChanges("waits for a decision", "waits no more", callsOf(waitingBefore), callsOf(r.Queue.Waiting())))
	return c
}

// newItems is what event n added: entries at the end, and a result in the
// place that was kept for it.
func (r *Replay) newItems(n messages.EventNumber, before int, open []openCall) []string {
	var lines []string
	for _, o := range open {
		if e := &r.History.entries[o.index]; e.n == n {
			lines = append(lines, "+ "+itemText(e.view().Item))
		}
	}
	for i := before; i < len(r.History.entries); i++ {
		if e := &r.History.entries[i]; e.n == n {
			lines = append(lines, "+ "+itemText(e.view().Item))
		}
	}
	return lines
}

func turnChanges(before, after Turn) []string {
	was, is := turnText(before), turnText(after)
	if was == is {
		return nil
	}
	return []string{is}
}

func turnText(t Turn) string {
	text := fmt.Sprintf("turn %s %s", t.Turn, t.Phase)
	if t.Reason != "" {
		text += " (" + t.Reason + ")"
	}
	if t.Continues != "" {
		text += ", continues " + string(t.Continues)
	}
	if t.Steps > 0 {
		text += fmt.Sprintf(", step %d", t.Steps)
	}
	if t.Usage != (messages.Usage{}) {
		text += fmt.Sprintf(", tokens %d in %d out", t.Usage.Input, t.Usage.Output)
	}
	return text
}

// stateChanges compares two states that share what did not change.
func stateChanges(lines []string, path string, before, after any) []string {
	old, wasObject := before.(map[string]any)
	now, isObject := after.(map[string]any)
	if !wasObject || !isObject {
		was, is := string(encodeJSON(before)), string(encodeJSON(after))
		if was != is {
			lines = append(lines, fmt.Sprintf("%s: %s -> %s", pathOr(path, "(all)"), was, is))
		}
		return lines
	}
	names := maps.Clone(old)
	if names == nil {
		names = make(map[string]any)
	}
	maps.Copy(names, now)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		was, had := old[name]
		is, has := now[name]
		switch {
		case !had:
			lines = append(lines, fmt.Sprintf("%s: %s added", at, encodeJSON(is)))
		case !has:
			lines = append(lines, fmt.Sprintf("%s: %s removed", at, encodeJSON(was)))
		default:
			lines = stateChanges(lines, at, was, is)
		}
	}
	return lines
}

func pathOr(path, other string) string {
	if path == "" {
		return other
	}
	return path
}

func listChanges(came, went string, before, after []string) []string {
	if slices.Equal(before, after) { // as nearly always
		return nil
	}
	return append(missing(before, after, went), missing(after, before, came)...)
}

// missing says of each entry of list that is not in other what it did.
func missing(list, other []string, did string) (lines []string) {
	known := make(map[string]bool, len(other))
	for _, s := range other {
		known[s] = true
	}
	for _, s := range list {
		if !known[s] {
			lines = append(lines, s+" "+did)
		}
	}
	return lines
}

func callsOf(waiting []Waiting) []string {
	var calls []string
	for _, w := range waiting {
		calls = append(calls, "call "+string(w.Call))
	}
	return calls
}

// The most bytes of a text that WriteText shows.
const (
	summaryLimit = 160
	lineLimit    = 400
)

// WriteText writes the change as `reprise replay` prints it: number, time,
// type and summary on one line, and below it, indented, what changed. Long
// texts are cut visibly; nothing in them can steer a terminal.
func (c Change) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%6d  %s  %-16s  %s\n", c.N, c.At.UTC().Format("2006-01-02 15:04:05.000"), Printable(c.Type, lineLimit), Printable(c.Summary, summaryLimit))
	for _, part := range [...]struct {
		prefix string
		lines  []string
	}{{"", c.Queue}, {"", c.Turn}, {"", c.History}, {"state: ", c.State}} {
		for _, line := range part.lines {
			b.WriteString("        " + part.prefix + Printable(line, lineLimit) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
