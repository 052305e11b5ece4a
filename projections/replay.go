package projections

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Change is what one event changed of an agent. Its lines hold what users and models wrote, as
// they wrote it: show them with WriteText, or through Printable.
type Change struct {
	N messages.EventNumber `json:"n"`
	// Seq is the log's own number of the frame: a hint, copies renumber.
	Seq  uint64    `json:"seq"`
	At   time.Time `json:"at"`
	Type string    `json:"type"`
	// Summary is the event in one line.
	Summary string `json:"summary"`
	// History are the changes of the history: + begins a new item, * a mark on an item.
	History []string `json:"history,omitempty"`
	// State are the changes of the state, each as `path: old -> new`.
	State []string `json:"state,omitempty"`
	// Turn are the changes of the turn, of its limits and of those of the agent.
	Turn []string `json:"turn,omitempty"`
	// Queue are the changes of waiting inputs, of calls that wait for a person, and of remembered
	// decisions.
	Queue []string `json:"queue,omitempty"`
}

// Replay folds the events of one agent one by one and reports what each changed. Its views are
// as of the newest event. The zero value begins before the first.
type Replay struct {
	History   History
	State     State
	Work      Work
	Decisions Decisions
}

// Step folds event number n, recorded at a time under a sequence of the log, and returns what it
// changed.
func (r *Replay) Step(n messages.EventNumber, at time.Time, seq uint64, ev messages.Event) Change {
	c := Change{N: n, Seq: seq, At: at.UTC(), Type: ev.EventType(), Summary: summarize(ev)}
	turnID := messages.TurnOf(ev)
	turnBefore := r.Work.turn(turnID)
	stateBefore, queueBefore := r.State.current(), r.queueText()
	itemsBefore, from := r.History.Len(), len(r.History.entries)
	if len(r.History.open) > 0 {
		from = r.History.open[0].index // results may come from here on
	}
	removedBefore, agentLimits := r.History.removed, r.Work.Overrides

	r.Work.At(at, nil)
	for _, v := range [...]View{&r.History, &r.State, &r.Work, &r.Decisions} {
		v.Apply(n, ev)
	}
	gone, withheld := r.withheld(removedBefore, ev)
	c.History = append(withheld, r.newItems(n, from-gone)...)
	c.State = stateChanges(nil, "", stateBefore, r.State.current())
	if turn := r.Work.turn(turnID); turn.ID != "" {
		c.Turn = turnChanges(turnBefore, turn)
		if m := turn.Phase; turnBefore.Ended == 0 && (m == Failed || m == Aborted) {
			c.History = append(c.History, fmt.Sprintf("* items of turn %s are marked %s", turn.ID, m))
		}
	}
	if now := r.Work.Overrides; now != agentLimits {
		c.Turn = append(c.Turn, "limits of the agent: "+limitsText(now))
	}
	if compacted, ok := ev.(messages.HistoryCompacted); ok {
		c.History = []string{fmt.Sprintf("* %d items are gone, the message stands for them", compacted.Dropped), "+ " + itemText(messages.Text(messages.RoleDeveloper, compacted.Text))}
	}
	if itemsBefore > 0 && len(r.History.entries) == 0 {
		c.History = []string{fmt.Sprintf("* all %d items are gone", itemsBefore)}
	}
	for i, now := range r.queueText() {
		c.Queue = append(c.Queue, listChanges(now.came, now.went, queueBefore[i].list, now.list)...)
	}
	return c
}

// shown is a list, with the words for what is new in it and for what has left it.
type shown struct {
	came, went string
	list       []string
}

// queueText returns what the queue holds, in the order of [Change.Queue].
func (r *Replay) queueText() [5]shown {
	var approvals, unknown, remembered []string
	for _, w := range r.Work.Waiting() {
		if w.Kind == messages.WaitApproval {
			approvals = append(approvals, "call "+string(w.Call))
		} else {
			unknown = append(unknown, "call "+string(w.Call))
		}
	}
	for _, d := range r.Decisions.List {
		remembered = append(remembered, d.Decision+" for all calls of "+d.Tool)
	}
	return [...]shown{
		{"queued", "left the queue", r.Work.Inputs.QueuedIDs()},
		{"steered the turn", "no longer waits to steer", r.Work.Inputs.SteeredIDs()},
		{"waits for approval", "waits for approval no more", approvals},
		{"waits for a decision", "waits no more", unknown},
		{"is remembered", "is forgotten", remembered},
	}
}

// withheld returns how many items the event took out because a model's server refused them, and
// the lines about these and about those that it brought back.
func (r *Replay) withheld(before *withheld, ev messages.Event) (gone int, lines []string) {
	switch ev := ev.(type) {
	case messages.TurnFailed:
		if now := r.History.removed; now != before && now != nil {
			return len(now.entries), []string{fmt.Sprintf("* %d items are withheld from the model", len(now.entries))}
		}
	case messages.TurnStarted:
		if before != nil && ev.Continues != "" && before.turn == ev.Continues {
			return 0, []string{fmt.Sprintf("* %d items that were withheld are back, and the note is gone", len(before.entries))}
		}
	}
	return 0, nil
}

// newItems returns what event n added from an entry on: new ones, and results in the entries that
// were kept for them.
func (r *Replay) newItems(n messages.EventNumber, from int) (lines []string) {
	for i := from; i < len(r.History.entries); i++ {
		if e := &r.History.entries[i]; e.n == n {
			lines = append(lines, "+ "+itemText(e.view().Item))
		}
	}
	return lines
}

func turnChanges(before, after Turn) []string {
	var lines []string
	if is := turnText(after); is != turnText(before) {
		lines = append(lines, is)
	}
	if after.Limits != before.Limits && before.ID != "" { // turn.started has the first ones
		lines = append(lines, fmt.Sprintf("limits of turn %s: %s", after.ID, limitsText(after.Limits)))
	}
	return lines
}

// limitsText returns limits as a person writes them.
func limitsText(l messages.Limits) string {
	var parts []string
	if l.MaxSteps != 0 {
		parts = append(parts, fmt.Sprintf("%d steps", l.MaxSteps))
	}
	if l.MaxTokens != 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", l.MaxTokens))
	}
	if l.MaxCost != 0 {
		parts = append(parts, "cost "+l.MaxCost.String())
	}
	if l.MaxDuration != 0 {
		parts = append(parts, (time.Duration(l.MaxDuration) * time.Millisecond).String())
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func turnText(t Turn) string {
	text := fmt.Sprintf("turn %s %s", t.ID, t.Phase)
	if why := cmp.Or(t.Reason, t.By); why != "" {
		text += " (" + why + ")"
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
	if t.Cost != 0 {
		text += ", cost " + t.Cost.String()
	}
	return text
}

// stateChanges returns how two states differ. They share what did not change.
func stateChanges(lines []string, path string, before, after any) []string {
	old, wasObject := before.(map[string]any)
	now, isObject := after.(map[string]any)
	if !wasObject || !isObject {
		was, is := string(encodeJSON(before)), string(encodeJSON(after))
		if was != is {
			lines = append(lines, fmt.Sprintf("%s: %s -> %s", cmp.Or(path, "(all)"), was, is))
		}
		return lines
	}
	names := maps.Clone(old)
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

func listChanges(came, went string, before, after []string) []string {
	if slices.Equal(before, after) { // as nearly always
		return nil
	}
	return append(missing(before, after, went), missing(after, before, came)...)
}

// missing returns the entries of list that are not in other, each with what it did.
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

// The most bytes of a text that WriteText shows.
const (
	summaryLimit = 160
	lineLimit    = 400
)

// WriteText writes the change as `reprise replay` prints it: number, time,
// type and summary on one line, and below it, indented, what changed. Long
// texts are cut visibly; nothing in them can steer a terminal.
func (c Change) WriteText(w io.Writer) error {
	return c.WriteTextAt(w, c.At.UTC().Format("2006-01-02 15:04:05.000"))
}

// WriteTextAt is WriteText with at for the time, such as that in another zone.
func (c Change) WriteTextAt(w io.Writer, at string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%6d  %s  %-16s  %s\n", c.N, at, Printable(c.Type, lineLimit), Printable(c.Summary, summaryLimit))
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
