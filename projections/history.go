package projections

import (
	"crypto/sha256"
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// History is what a model sees of an agent: its messages, calls and results, oldest first. The
// zero value is that of an agent without events. A History is kept for every active agent. Beside
// its packed entries it keeps the items that a model was last shown, so that the next call does
// not build them again. It must not be copied once something was applied.
//
// A call has its result behind it once that is recorded, in the order of the calls; that every
// call of a finished turn has one is the turn machine's promise. A result belongs to the call of
// its own turn: one that comes after the turn ended is put there, or is ignored if the call has
// one.
type History struct {
	entries []entry
	waiting []waitingInput // accepted inputs that no model has seen, oldest first
	open    []openCall     // calls without a result, oldest first
	size    int            // of what entries show, in bytes

	compacted messages.EventNumber // that brought the first entry, which stands for others; 0: none does
	omitted   int                  // items that it stands for
	// continued are the newest turn and those it continues, oldest first. Nil: it
	// continues none.
	continued []messages.TurnID
	accepted  messages.EventNumber // the newest answer of a model: its request was accepted; 0: none
	refused   messages.EventNumber // the newest end of a turn that withheld items; 0: none
	removed   *withheld            // since accepted; nil: nothing

	// shown are the items of the first len(shown) entries, kept so that model calls do
	// not build them again. They hold no marks.
	shown []messages.Item
	// plain is how many of the first entries are known to have no blob.
	plain int

	baseline *History // of a fork: what a clear takes it back to; it never changes. Nil: it is no fork

	digested int // entries that sum covers
	sum      [sha256.Size]byte
}

// TurnStatus marks the items of a turn that ended without an answer.
type TurnStatus string

// The marks. Items of completed and running turns have none.
const (
	StatusAborted TurnStatus = "aborted" // the turn was aborted
	StatusFailed  TurnStatus = "failed"  // the turn has failed
)

// entry is one item. Most are a message of one text or a result; those are
// held in a few words, and only the others as the item they are.
type entry struct {
	n    messages.EventNumber // 0: a result that has not come yet
	turn messages.TurnID
	text string         // of a message; the output of a result
	item *messages.Item // anything else; of a result: nil
	call messages.CallID
	form form
	mark mark
}

type form uint8

const (
	whole form = iota // item holds it
	result
	userText // and the following: a message of one text
	assistantText
	developerText
)

// roles are those of the forms that are a message of one text.
var roles = [...]string{userText: messages.RoleUser, assistantText: messages.RoleAssistant, developerText: messages.RoleDeveloper}

type mark uint8

const (
	unmarked mark = iota
	failed
	aborted
	noted // the note of a failed turn
)

var marks = [...]TurnStatus{unmarked: "", failed: StatusFailed, aborted: StatusAborted, noted: StatusFailed}

type waitingInput struct {
	id      string
	content messages.Content
}

type openCall struct {
	turn  messages.TurnID
	call  messages.CallID
	index int // of the entry that waits for the result
}

// HistoryItem is an item of history with the event that it comes from.
type HistoryItem struct {
	messages.Item
	// N is the event that brought it into history.
	N    messages.EventNumber `json:"n"`
	Turn messages.TurnID      `json:"turn,omitempty"`
	// Status is the status of its turn. Empty: it is running or has completed.
	Status TurnStatus `json:"status,omitempty"`
	// Missing is why a payload that is kept as a blob is not in the item. Empty: it
	// is, or none was to be put there.
	Missing string `json:"missing,omitempty"`
}

// Apply folds event number n. History keeps parts of ev, which must not be
// changed afterwards.
func (h *History) Apply(n messages.EventNumber, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.InputAccepted:
		h.waiting = append(h.waiting, waitingInput{ev.Input, ev.Content})
	case messages.TurnStarted:
		h.started(n, ev)
	case messages.ModelRequested:
		h.admit(n, ev.Turn, ev.Inputs)
	case messages.ModelCompleted:
		h.answered(n, ev)
	case messages.TurnFailed:
		h.withhold(n, ev)
		h.admit(n, ev.Turn, ev.Inputs)
		h.ended(ev.Turn, failed)
	case messages.TurnAborted:
		h.admit(n, ev.Turn, ev.Inputs)
		h.say(n, ev.Turn, messages.RoleDeveloper, ev.Note)
		h.ended(ev.Turn, aborted)
	case messages.HookDecided:
		h.say(n, ev.Turn, messages.RoleAssistant, ev.Answer)
		h.say(n, ev.Turn, messages.RoleDeveloper, ev.Note)
	case messages.HistoryCompacted:
		h.compact(n, ev)
	case messages.AgentForked:
		h.baseline = h.without(ev.Turn)
	default:
		f := messages.FieldsOf(ev)
		if r := resultOf(ev); r.outcome != "" {
			h.outcome(n, f.Turn, f.Call, r)
		} else if f.Is(messages.EndsAgent) {
			*h = History{}
		} else if f.Is(messages.ClearsAgent) {
			h.clear()
		} else if f.Is(messages.EndsInput) { // an answered turn has shown them, no other turn will
			for _, id := range messages.InputsOf(ev) {
				h.take(id)
			}
		}
	}
}

// clear takes the history back to what it was when the agent was created.
func (h *History) clear() {
	if h.baseline == nil {
		*h = History{}
		return
	}
	base := h.baseline
	*h = *base.without("")
	h.baseline = base
}

// without returns a copy without the items of a turn and of those that it continues, and without
// what waits.
func (h *History) without(turn messages.TurnID) *History {
	c := &History{compacted: h.compacted, omitted: h.omitted, accepted: h.accepted, refused: h.refused, removed: h.removed}
	c.entries = make([]entry, 0, len(h.entries))
	for i := range h.entries {
		if e := &h.entries[i]; turn == "" || !h.together(e.turn, turn) {
			c.entries = append(c.entries, *e)
			c.size += e.size()
		}
	}
	return c
}

// started brings the turn's inputs into history. A turn that continues another
// takes over the calls that wait there.
func (h *History) started(n messages.EventNumber, ev messages.TurnStarted) {
	h.restore(ev.Continues)
	h.admit(n, ev.Turn, ev.Inputs)
	if ev.Continues == "" {
		h.continued = nil
		return
	}
	if !slices.Contains(h.continued, ev.Continues) {
		h.continued = []messages.TurnID{ev.Continues}
	}
	h.continued = append(slices.Clip(h.continued), ev.Turn)
	for i := range h.open {
		if h.open[i].turn == ev.Continues {
			h.open[i].turn = ev.Turn
		}
	}
}

// together reports whether two turns are the same one, or the newest turn continues both: what
// was asked of one is asked of the other.
func (h *History) together(a, b messages.TurnID) bool {
	return a == b || slices.Contains(h.continued, a) && slices.Contains(h.continued, b)
}

// admit brings inputs that waited into history; those that are there already,
// or never came, change nothing.
func (h *History) admit(n messages.EventNumber, turn messages.TurnID, inputs []string) {
	for _, id := range inputs {
		if content, ok := h.take(id); ok {
			h.add(n, turn, userItem(content))
		}
	}
}

func userItem(content messages.Content) messages.Item {
	return messages.Item{Type: messages.ItemMessage, Role: messages.RoleUser, Content: content}
}

// say adds a message of one text; an empty one is none.
func (h *History) say(n messages.EventNumber, turn messages.TurnID, role, text string) {
	if text != "" {
		h.add(n, turn, messages.Text(role, text))
	}
}

// take drops a waiting input and returns its content; false if it does not wait.
func (h *History) take(id string) (messages.Content, bool) {
	i := slices.IndexFunc(h.waiting, func(w waitingInput) bool { return w.id == id })
	if i < 0 {
		return nil, false
	}
	content := h.waiting[i].content
	if h.waiting = slices.Delete(h.waiting, i, i+1); len(h.waiting) == 0 {
		h.waiting = nil
	}
	return content, true
}

func (h *History) add(n messages.EventNumber, turn messages.TurnID, item messages.Item) {
	if last := len(h.entries) - 1; last >= 0 && h.entries[last].turn == turn {
		turn = h.entries[last].turn // the same string, once in memory
	}
	h.size += sizeOf(item)
	e := entry{n: n, turn: turn}
	if e.form = formOf(item); e.form == whole {
		e.item = &item
	} else {
		e.text = item.Content[0].Text
	}
	h.entries = append(h.entries, e)
}

// formOf returns the form that holds all of an item.
func formOf(item messages.Item) form {
	if item.Type != messages.ItemMessage || len(item.Content) != 1 ||
		item.Content[0] != (messages.Part{Type: "text", Text: item.Content[0].Text}) ||
		item.CallID != "" || item.Name != "" || item.Arguments != "" || item.Output != "" ||
		item.ID != "" || item.Raw != nil || item.Provider != "" || item.Model != "" || item.HasBlob() {
		return whole
	}
	for f := userText; int(f) < len(roles); f++ {
		if roles[f] == item.Role {
			return f
		}
	}
	return whole
}

// answered adds a model's items, and behind them an entry for the result of each call, so that
// results are in the order of the calls whichever ends first.
func (h *History) answered(n messages.EventNumber, ev messages.ModelCompleted) {
	h.accepted, h.removed = n, nil
	for _, item := range ev.Items {
		h.add(n, ev.Turn, item)
	}
	for _, item := range ev.Items {
		if item.Type == messages.ItemCall {
			h.open = append(h.open, openCall{ev.Turn, item.CallID, len(h.entries)})
			h.entries = append(h.entries, entry{turn: ev.Turn, call: item.CallID, form: result})
		}
	}
}

// waitsFor returns the index in open of a turn's call, or -1.
func (h *History) waitsFor(turn messages.TurnID, call messages.CallID) int {
	return slices.IndexFunc(h.open, func(o openCall) bool { return o.turn == turn && o.call == call })
}

// outcome sets the result of a call, or the blob that holds it.
func (h *History) outcome(n messages.EventNumber, turn messages.TurnID, call messages.CallID, r toolResult) {
	i := h.waitsFor(turn, call)
	if i < 0 {
		return
	}
	e := &h.entries[h.open[i].index]
	e.n, e.text = n, r.text
	if r.blob != nil {
		e.form, e.call, e.item = whole, "", &messages.Item{Type: messages.ItemCallOutput, CallID: call, Blob: r.blob}
		h.plain = min(h.plain, h.open[i].index)
	}
	h.size += len(r.text) + sizeOfBlob(r.blob)
	if h.open = slices.Delete(h.open, i, i+1); len(h.open) == 0 {
		h.open = nil
	}
}

// ended marks the turn's items.
func (h *History) ended(turn messages.TurnID, m mark) {
	for i := range h.entries {
		if e := &h.entries[len(h.entries)-1-i]; e.turn == turn {
			if e.mark != noted {
				e.mark = m
			}
		} else if i > 0 && h.entries[len(h.entries)-i].turn == turn {
			return // a turn's items are together
		}
	}
}

// size returns how much text the entry shows, as [History.Size] counts it.
func (e *entry) size() int {
	if e.form == whole {
		return sizeOf(*e.item)
	}
	return len(e.text)
}

// asItem returns the entry as a model is given it; part holds its text.
func (e *entry) asItem(part []messages.Part) messages.Item {
	switch e.form {
	case whole:
		return *e.item
	case result:
		return messages.Item{Type: messages.ItemCallOutput, CallID: e.call, Output: e.text}
	}
	part[0] = messages.Part{Type: "text", Text: e.text}
	return messages.Item{Type: messages.ItemMessage, Role: roles[e.form], Content: part}
}

// Items returns the history in the form a model is given it. Results that have not come yet are
// left out. Neither the slice nor what its items refer to may be changed; events that are applied
// later do not change it.
func (h *History) Items() []messages.Item {
	final := len(h.entries)
	if len(h.open) > 0 {
		final = h.open[0].index // results may fill in from here on
	}
	h.shown = extend(h.shown, h.entries[len(h.shown):final])
	if final == len(h.entries) {
		return h.shown[:final:final]
	}
	return extend(h.shown[:final:final], h.entries[final:])
}

// ItemsWith returns Items with the given inputs, which wait, as if a model call had admitted
// them, on the terms of [History.Items].
func (h *History) ItemsWith(inputs []string) []messages.Item {
	items := slices.Clip(h.Items())
	for _, id := range inputs {
		if i := slices.IndexFunc(h.waiting, func(w waitingInput) bool { return w.id == id }); i >= 0 {
			items = append(items, userItem(h.waiting[i].content))
		}
	}
	return items
}

// extend adds the items of entries whose results have come.
func extend(items []messages.Item, entries []entry) []messages.Item {
	texts := 0
	for i := range entries {
		if entries[i].form >= userText {
			texts++
		}
	}
	items = slices.Grow(items, len(entries))
	parts := make([]messages.Part, texts) // one allocation for all of them
	for i := range entries {
		e := &entries[i]
		if e.form >= userText {
			items, parts = append(items, e.asItem(parts[:1:1])), parts[1:]
		} else if e.n != 0 {
			items = append(items, e.asItem(nil))
		}
	}
	return items
}

// Len returns the number of items.
func (h *History) Len() int { return len(h.entries) - len(h.open) }

// Size returns how much text the items hold, in bytes: messages, arguments and results, and the
// raw form of items that have none of these. Of a blob it counts what a model is shown by
// default. It is good for an estimate of tokens, and costs nothing.
func (h *History) Size() int { return h.size }

func sizeOf(item messages.Item) int {
	size := len(item.Arguments) + len(item.Output) + sizeOfBlob(item.Blob) + TextSize(item.Content)
	if size == 0 {
		return len(item.Raw) + sizeOfBlob(item.RawBlob)
	}
	return size
}

// View returns the items with their events and marks, on the terms of [History.Items].
func (h *History) View() []HistoryItem {
	view := make([]HistoryItem, 0, h.Len())
	for i := range h.entries {
		if e := &h.entries[i]; e.n != 0 {
			view = append(view, e.view())
		}
	}
	return view
}

func (e *entry) view() HistoryItem {
	return HistoryItem{Item: e.asItem(make([]messages.Part, 1)), N: e.n, Turn: e.turn, Status: marks[e.mark]}
}
