package projections

import "github.com/reprise-dev/reprise/messages"

// History is what a model sees of an agent: its messages, calls and results,
// oldest first. The zero value is an agent that nothing has happened to.
type History struct {
	entries []entry
	waiting map[string]messages.Content    // accepted inputs whose turn has not begun
	slots   map[messages.CallID]int        // calls without a result: index of its place
	marks   map[messages.TurnID]TurnStatus // turns that did not complete
	turn    messages.TurnID
}

// TurnStatus marks the items of a turn that ended without an answer.
type TurnStatus string

// The marks. Items of completed and running turns have none.
const (
	StatusAborted TurnStatus = "aborted"
	StatusFailed  TurnStatus = "failed"
)

type entry struct {
	item messages.Item
	n    messages.EventNumber // 0: a result that has not come yet
	turn messages.TurnID
}

// HistoryItem is an item of history with its place in the stream.
type HistoryItem struct {
	messages.Item
	// N is the event that brought it into history.
	N      messages.EventNumber `json:"n"`
	Turn   messages.TurnID      `json:"turn,omitempty"`
	Status TurnStatus           `json:"status,omitempty"`
}

// Apply folds event number n.
func (h *History) Apply(n messages.EventNumber, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.InputAccepted:
		if h.waiting == nil {
			h.waiting = make(map[string]messages.Content)
		}
		h.waiting[ev.Input] = ev.Content
	case messages.TurnStarted:
		h.turn = ev.Turn
		for _, input := range ev.Inputs {
			h.add(n, messages.Item{Type: messages.ItemMessage, Role: messages.RoleUser, Content: h.waiting[input]})
			delete(h.waiting, input)
		}
	case messages.ModelCompleted:
		h.answered(n, ev.Items)
	case messages.ToolCompleted:
		h.result(n, ev.Call, ev.Output)
	case messages.ToolFailed:
		h.result(n, ev.Call, ev.Message)
	case messages.ToolSkipped:
		h.result(n, ev.Call, ev.Reason)
	case messages.TurnFailed:
		h.mark(ev.Turn, StatusFailed)
	case messages.TurnAborted:
		h.mark(ev.Turn, StatusAborted)
		if ev.Note != "" {
			h.add(n, messages.Text(messages.RoleDeveloper, ev.Note))
		}
	}
}

func (h *History) add(n messages.EventNumber, item messages.Item) {
	h.entries = append(h.entries, entry{item, n, h.turn})
}

// answered adds a model's items, and behind them a place for the result of
// each call, so that results stand in the order of the calls whichever ends
// first.
func (h *History) answered(n messages.EventNumber, items []messages.Item) {
	for _, item := range items {
		h.add(n, item)
	}
	for _, item := range items {
		if item.Type != messages.ItemCall {
			continue
		}
		if h.slots == nil {
			h.slots = make(map[messages.CallID]int)
		}
		h.slots[item.CallID] = len(h.entries)
		h.add(0, messages.Item{Type: messages.ItemCallOutput, CallID: item.CallID})
	}
}

func (h *History) result(n messages.EventNumber, call messages.CallID, output string) {
	i, ok := h.slots[call]
	if !ok {
		return
	}
	delete(h.slots, call)
	h.entries[i].n = n
	h.entries[i].item.Output = output
}

func (h *History) mark(turn messages.TurnID, status TurnStatus) {
	if h.marks == nil {
		h.marks = make(map[messages.TurnID]TurnStatus)
	}
	h.marks[turn] = status
}

// Items is the history in the form a model is given it. Results that have not
// come yet are left out.
func (h *History) Items() []messages.Item {
	items := make([]messages.Item, 0, len(h.entries))
	for _, e := range h.entries {
		if e.n != 0 {
			items = append(items, e.item)
		}
	}
	return items
}

// Len is the number of items.
func (h *History) Len() int { return len(h.entries) - len(h.slots) }

// View is the history with places and marks.
func (h *History) View() []HistoryItem {
	view := make([]HistoryItem, 0, len(h.entries))
	for _, e := range h.entries {
		if e.n != 0 {
			view = append(view, HistoryItem{e.item, e.n, e.turn, h.marks[e.turn]})
		}
	}
	return view
}
