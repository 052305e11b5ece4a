package turn

import (
	"errors"
	"fmt"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// FoldVersion is raised with every change of what [State.Apply] makes of events
// or of how an [Image] is written: a snapshot holds for one version alone, and
// those of others are rebuilt from the log. TestFoldVersion tells when.
const FoldVersion = 8

// SnapshotName is what snapshots of states of this version are kept under.
func SnapshotName() string { return fmt.Sprintf("turn-%d", FoldVersion) }

// Image is a state as it was at some moment, for a snapshot. It shares with the
// state only what never changes, so that it can be encoded while the state goes on.
// Its fields are for messages.EncodeSnapshot.
type Image struct {
	Rest    []byte               `json:"rest"` // a packed kept
	History *projections.History `json:"history"`
	Data    *projections.State   `json:"data"`
}

// The fields of a state as they are packed: the exported ones as they are, the
// others beside them. What is volatile is left out.
type (
	kept struct {
		State state `json:"state"`
		// Turn, Model and Ended are the rest of those in State. Nil where they are.
		Turn  *keptTurn  `json:"turn"`
		Model *keptModel `json:"model"`
		Ended *keptEnded `json:"ended"`
		Done  []keptDone `json:"done"`
		// Processed is a packed window.
		Processed []byte     `json:"processed"`
		Tasks     []keptTask `json:"tasks"` // the rest of those in State
	}
	state    State // its exported fields
	keptTurn struct {
		Called     bool              `json:"called"`
		Switched   string            `json:"switched"`
		ToolChoice string            `json:"tool_choice"`
		ToolUsed   bool              `json:"tool_used"`
		Compacted  bool              `json:"compacted"`
		CallIDs    []messages.CallID `json:"call_ids"`
		Fresh      []string          `json:"fresh"`
		Reserved   *Used             `json:"reserved"`
		Exhausted  string            `json:"exhausted"`
		Reached    string            `json:"reached"`
		Final      *Output           `json:"final"`
		Finish     *string           `json:"finish"`
		Again      bool              `json:"again"`
		Held       string            `json:"held"`
		Hooked     []string          `json:"hooked"`
		Callers    []messages.Caller `json:"callers"`
		Children   int               `json:"children"`
	}
	keptModel struct {
		Reserved *Used `json:"reserved"`
	}
	keptEnded struct {
		Repeat     bool              `json:"repeat"`
		CallIDs    []messages.CallID `json:"call_ids"`
		ToolChoice string            `json:"tool_choice"`
		ToolUsed   bool              `json:"tool_used"`
		Callers    []messages.Caller `json:"callers"`
		Children   int               `json:"children"`
	}
	keptTask struct {
		Waits   string               `json:"waits"`
		Changed messages.EventNumber `json:"changed"`
		Told    messages.EventNumber `json:"told"`
		End     *messages.Report     `json:"end"`
	}
	keptDone struct {
		ID        messages.CallID `json:"id"`
		Tool      string          `json:"tool"`
		Arguments string          `json:"arguments"`
	}
)

// Image gives the state as it is. It takes time for what the turn has become, and
// a copy of as many words as history has items.
func (s *State) Image() (Image, error) {
	w := kept{State: state(*s), Processed: s.processed.pack()}
	w.State.History, w.State.Data = projections.History{}, projections.State{}
	if t := s.Turn; t != nil {
		w.Turn = &keptTurn{
			t.called, t.switched, t.toolChoice, t.toolUsed, t.compacted, t.callIDs, t.fresh, t.reserved,
			t.exhausted, t.reached, t.final, t.finish, t.again, t.held, t.hooked, t.callers, t.children,
		}
		if t.Model != nil {
			w.Model = &keptModel{t.Model.reserved}
		}
	}
	if e := s.Ended; e != nil {
		w.Ended = &keptEnded{e.repeat, e.callIDs, e.toolChoice, e.toolUsed, e.callers, e.children}
	}
	for _, c := range s.done {
		w.Done = append(w.Done, keptDone{c.id, c.tool, c.arguments})
	}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		w.Tasks = append(w.Tasks, keptTask{t.waits, t.changed, t.told, t.end})
	}
	rest, err := messages.Pack(&w)
	data := s.Data
	return Image{rest, s.History.Clone(), &data}, err
}

// errImage says that an image holds no state.
var errImage = errors.New("the image holds no state")

// State gives the state again: the one that the events make, as after a crash. Nothing
// is asked of anybody yet. The image must not be used after that. An image that was
// decoded from strange bytes gives an error or a state.
func (im *Image) State() (*State, error) {
	var r kept
	if im.History == nil || im.Data == nil {
		return nil, errImage
	}
	if err := messages.Unpack(im.Rest, &r); err != nil {
		return nil, err
	}
	s := State(r.State)
	processed, ok := unpackWindow(r.Processed)
	s.History, s.Data, s.processed = *im.History, *im.Data, processed
	if len(r.Tasks) != len(s.Tasks) || (s.Turn != nil) != (r.Turn != nil) || (s.Ended != nil) != (r.Ended != nil) || !ok {
		return nil, errImage
	}
	if t := s.Turn; t != nil {
		if (t.Model != nil) != (r.Model != nil) {
			return nil, errImage
		}
		t.restore(&r)
	}
	if e := s.Ended; e != nil {
		e.restore(r.Ended)
	}
	for i, t := range r.Tasks {
		s.Tasks[i].waits, s.Tasks[i].changed, s.Tasks[i].told, s.Tasks[i].end = t.Waits, t.Changed, t.Told, t.End
		if t.End != nil {
			waitsInUTC(t.End.Waiting)
		}
	}
	s.inUTC()
	for _, c := range r.Done {
		s.done = append(s.done, doneCall{c.ID, c.Tool, c.Arguments})
	}
	return &s, nil
}

// restore fills in what is not exported, and forgets the zone of the machine that
// decodes.
func (t *Turn) restore(r *kept) {
	w := r.Turn
	t.called, t.switched, t.toolChoice, t.toolUsed, t.compacted, t.callIDs, t.fresh, t.reserved = w.Called, w.Switched, w.ToolChoice, w.ToolUsed, w.Compacted, w.CallIDs, w.Fresh, w.Reserved
	t.callers, t.children = w.Callers, w.Children
	t.exhausted, t.reached, t.final, t.finish, t.again, t.held, t.hooked = w.Exhausted, w.Reached, w.Final, w.Finish, w.Again, w.Held, w.Hooked
	if m := t.Model; m != nil {
		m.reserved = r.Model.Reserved
		m.RetryAt = inUTC(m.RetryAt)
	}
	for i := range t.Calls {
		if c := t.Calls[i].Child; c != nil {
			waitsInUTC(c.Waiting)
		}
	}
}

func (e *Ended) restore(w *keptEnded) {
	e.repeat, e.callIDs, e.toolChoice, e.toolUsed = w.Repeat, w.CallIDs, w.ToolChoice, w.ToolUsed
	e.callers, e.children = w.Callers, w.Children
}

// inUTC forgets the zone of the machine that decodes, for times that no turn has.
func (s *State) inUTC() {
	for i := range s.Timers.Turn {
		tm := &s.Timers.Turn[i]
		tm.Set, tm.At = inUTC(tm.Set), inUTC(tm.At)
	}
	for i := range s.Timers.Scheduled {
		sc := &s.Timers.Scheduled[i]
		sc.Set, sc.At = inUTC(sc.Set), inUTC(sc.At)
		if sc.Input.Deadline != nil {
			*sc.Input.Deadline = inUTC(*sc.Input.Deadline)
		}
	}
	if c := s.Summary; c != nil {
		c.NotBefore = inUTC(c.NotBefore)
	}
}

func waitsInUTC(list []messages.Wait) {
	for i := range list {
		if at := list[i].ExpiresAt; at != nil {
			*at = inUTC(*at)
		}
	}
}

// inUTC keeps the zero time what it is.
func inUTC(at time.Time) time.Time {
	if at.IsZero() {
		return time.Time{}
	}
	return at.UTC()
}
