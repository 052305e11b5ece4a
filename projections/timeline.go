package projections

import (
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// RowKind is what a row of a timeline is about.
type RowKind string

// The kinds.
const (
	RowInput      RowKind = "input"      // from its acceptance to the model call or turn that took it
	RowTurn       RowKind = "turn"       // waits are those for a person
	RowModel      RowKind = "model"      // one attempt at a model call
	RowTool       RowKind = "tool"       // waits are those for an approval
	RowApproval   RowKind = "approval"   // from the request to the decision
	RowChild      RowKind = "child"      // a child that does the task of a call
	RowOwner      RowKind = "owner"      // a node has become the agent's owner
	RowCompaction RowKind = "compaction" // of the history; one attempt at a summary
	RowTimer      RowKind = "timer"      // a scheduled input
	RowHook       RowKind = "hook"       // a hook decided other than to continue
	RowState      RowKind = "state"      // the agent's own data was changed
	RowLimit      RowKind = "limit"      // a limit was exceeded or changed
	RowAgent      RowKind = "agent"      // the agent was created, forked, imported, configured, cleared or deleted
)

// Row is what a person thinks of as one thing that happened to an agent: a line of the view
// timeline. Its names are promises. Its texts are as users and models wrote them, at most MaxPreview
// bytes of each: show them through Printable.
type Row struct {
	// N is the event that begins it, which names the row within its agent.
	N messages.EventNumber `json:"n"`
	// Events are the events that it is made of, N first.
	Events []messages.EventNumber `json:"events"`
	// Kind is what the row is about.
	Kind RowKind `json:"kind"`
	// Parent is the row that it is a part of: a call of a tool, or a turn. 0: none, or one that
	// begins before the first event of the timeline.
	Parent messages.EventNumber `json:"parent,omitempty"`
	Turn   messages.TurnID      `json:"turn,omitempty"`
	Step   int                  `json:"step,omitempty"`
	Call   messages.CallID      `json:"call,omitempty"`
	// At is when it began.
	At time.Time `json:"at"`
	// Until is when it ended. Zero: it has not. A row of one event has none.
	Until time.Time `json:"until,omitzero"`
	// Waits are the times in which it waited, for a person or for a turn.
	Waits []Period `json:"waits,omitempty"`
	// Title is what it is, such as a call with its arguments.
	Title string `json:"title"`
	// Status is how it stands or ended, in a word or two.
	Status string `json:"status,omitempty"`
	// Text is what came of it, such as an answer or why it failed.
	Text string `json:"text,omitempty"`
	// Open reports whether it may still change.
	Open bool `json:"open,omitempty"`
	// Person is who sent, decided or changed it. Nil: no one is named.
	Person *messages.Person `json:"person,omitempty"`
	// Node is the owner when it began. Empty: it is not known.
	Node string `json:"node,omitempty"`
}

// Last returns the newest event of the row.
func (r *Row) Last() messages.EventNumber { return r.Events[len(r.Events)-1] }

// Period is a time from one moment to another.
type Period struct {
	// From is when it began.
	From time.Time `json:"from"`
	// Until is when it ended. Zero: it has not.
	Until time.Time `json:"until,omitzero"`
}

// Waited returns how long the row has waited in all, up to now where it still does.
func (r *Row) Waited(now time.Time) (sum time.Duration) {
	for _, w := range r.Waits {
		until := w.Until
		if until.IsZero() {
			until = now
		}
		sum += max(0, until.Sub(w.From))
	}
	return sum
}

// wait begins a wait, unless one has begun.
func (r *Row) wait(at time.Time) {
	if n := len(r.Waits); n == 0 || !r.Waits[n-1].Until.IsZero() {
		r.Waits = append(r.Waits, Period{From: at})
	}
}

// waited ends the wait that has begun, if one has.
func (r *Row) waited(at time.Time) {
	if n := len(r.Waits); n > 0 && r.Waits[n-1].Until.IsZero() {
		r.Waits = slices.Clone(r.Waits) // a reader may have the row
		r.Waits[n-1].Until = at
	}
}

// Timeline folds the events of an agent into rows, what repeats itself left out. It may begin with
// any event: the rows that begin from there on are the same, but for parents and owners from before.
// The zero value has none.
type Timeline struct {
	origin
	node    string
	rows    []timelineRow
	open    []*openRow // oldest first
	changed []int      // indexes in rows
}

// timelineRow is a row of a timeline.
type timelineRow struct {
	Row
	changed bool // its index is among the changed ones
}

// openRow is a row that may still change.
type openRow struct {
	index int // in rows
	fold  rowFold
}

// rowFold folds the events of one row that has begun.
type rowFold interface {
	// about reports whether an event may change the row.
	about(e *event) bool
	// apply folds such an event, and reports whether it is one of the row's own and whether the
	// row has ended.
	apply(r *Row, e *event) (own, ended bool)
}

// Apply folds event number n.
func (t *Timeline) Apply(n messages.EventNumber, ev messages.Event) {
	e := t.event(n, ev)
	if e.Is(messages.EndsAgent) {
		*t = Timeline{origin: t.origin}
	}
	t.open = without(t.open, func(o **openRow) bool { return t.change(*o, e) })
	t.begin(e)
}

// change folds an event into an open row, and reports whether that has ended.
func (t *Timeline) change(o *openRow, e *event) (ended bool) {
	if !o.fold.about(e) {
		return false
	}
	r := t.rows[o.index].Row
	own, ended := o.fold.apply(&r, e)
	if !own && !ended {
		return false
	}
	r.Events = append(r.Events, e.n)
	if ended {
		r.waited(e.at)
		r.Until, r.Open = e.at, false
	}
	t.rows[o.index].Row = r
	t.mark(o.index)
	return ended
}

// add adds the row that an event begins. A row without a fold is complete.
func (t *Timeline) add(e *event, r Row, fold rowFold) {
	r.N, r.Events, r.At, r.Node = e.n, []messages.EventNumber{e.n}, e.at, t.node
	r.Turn, r.Step, r.Call, r.Open = e.Turn, messages.StepOf(e.Event), e.Call, fold != nil
	if r.Parent == 0 && r.Kind != RowTurn && r.Kind != RowInput {
		r.Parent = t.parent(e, r.Kind)
	}
	r.Title, r.Text = beginning(r.Title, MaxPreview), beginning(r.Text, MaxPreview)
	if t.rows = append(t.rows, timelineRow{Row: r}); fold != nil {
		t.open = append(t.open, &openRow{len(t.rows) - 1, fold})
	}
	t.mark(len(t.rows) - 1)
}

// parent returns the open row that a row of this kind belongs to: for an approval or child its
// call's, else its turn's. 0: there is none.
func (t *Timeline) parent(e *event, kind RowKind) (n messages.EventNumber) {
	for _, o := range t.open {
		r := &t.rows[o.index]
		switch {
		case e.Turn == "" || r.Turn != e.Turn:
		case r.Kind == RowTurn:
			n = r.N
		case r.Kind == RowTool && r.Call == e.Call && (kind == RowApproval || kind == RowChild):
			return r.N
		}
	}
	return n
}

// mark notes that a row has changed.
func (t *Timeline) mark(index int) {
	if r := &t.rows[index]; !r.changed {
		r.changed = true
		t.changed = append(t.changed, index)
	}
}

// Rows returns all rows, in the order of the events that begin them. They are not to be changed.
func (t *Timeline) Rows() []Row {
	rows := make([]Row, len(t.rows))
	for i := range t.rows {
		rows[i] = t.rows[i].Row
	}
	return rows
}

// Changed returns the rows that are new or have changed since the call before, on the terms of
// Rows.
func (t *Timeline) Changed() (rows []Row) {
	slices.Sort(t.changed)
	for _, i := range t.changed {
		t.rows[i].changed = false
		rows = append(rows, t.rows[i].Row)
	}
	t.changed = nil
	return rows
}
