package actors

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
)

// maxRewrite is the most of a rewrite that is kept in its event, in bytes: a larger one is a blob.
const maxRewrite = 4 << 10

// sent is a request as it is hashed, kept and compared: what a provider is given of it, as JSON. It
// differs from another one only if the two send something different.
type sent struct {
	Model        string             `json:"model"`
	Instructions string             `json:"instructions,omitempty"`
	ToolChoice   string             `json:"tool_choice,omitempty"`
	Settings     providers.Settings `json:"settings,omitzero"`
	Tools        []sentTool         `json:"tools"`
	Items        []messages.Item    `json:"items"`
}

type sentTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// sentOf returns what a request sends.
func sentOf(r providers.Request) sent {
	s := sent{Model: r.Model, Instructions: r.Instructions, ToolChoice: r.ToolChoice, Settings: r.Settings, Tools: make([]sentTool, len(r.Tools)), Items: r.Items}
	for i, t := range r.Tools {
		s.Tools[i] = sentTool{t.Name, t.Description, t.Parameters}
	}
	return s
}

// digest returns the hash of everything that the request sends.
func (s sent) digest() (string, error) {
	if len(s.Items) == 0 {
		s.Items = nil
	}
	b, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	return string(messages.DigestOf(b)), nil
}

// rewrite is what hooks have changed of a request, as model.requested keeps it. Fields of what they
// have left are nil. Fields may be added.
type rewrite struct {
	// At is the newest event when the hooks were asked, Seen are the inputs that waited then and were
	// part of the request: the history at that place is what the rest refers to.
	At   messages.EventNumber `json:"at"`
	Seen []string             `json:"seen,omitempty"`

	Model        *string               `json:"model,omitempty"`
	Instructions *edit                 `json:"instructions,omitempty"`
	ToolChoice   *string               `json:"tool_choice,omitempty"`
	Settings     *providers.Settings   `json:"settings,omitempty"`
	Tools        *[]run[sentTool]      `json:"tools,omitempty"`
	Items        *[]run[messages.Item] `json:"items,omitempty"`
}

// edit is a changed text: the first Head and the last Tail bytes of the old one, with Text between.
type edit struct {
	Head int    `json:"head,omitempty"`
	Tail int    `json:"tail,omitempty"`
	Text string `json:"text,omitempty"`
}

// run is a part of a changed list: Count entries of the old one from From on, or New.
type run[T any] struct {
	From  int `json:"from,omitempty"`
	Count int `json:"count,omitempty"`
	New   *T  `json:"new,omitempty"`
}

// newRewrite returns what differs between two requests. Its error is that of JSON.
func newRewrite(before, after sent) (w rewrite, err error) {
	w.Model, w.ToolChoice = ifChanged(before.Model, after.Model), ifChanged(before.ToolChoice, after.ToolChoice)
	if before.Instructions != after.Instructions {
		w.Instructions = newEdit(before.Instructions, after.Instructions)
	}
	was, err := json.Marshal(before.Settings)
	is, failed := json.Marshal(after.Settings)
	if err = errors.Join(err, failed); err == nil && !bytes.Equal(was, is) {
		w.Settings = &after.Settings
	}
	if err == nil {
		w.Tools, err = runs(before.Tools, after.Tools)
	}
	if err == nil {
		w.Items, err = runs(before.Items, after.Items)
	}
	return w, err
}

// ifChanged returns the new text; nil if it is the old one.
func ifChanged(old, now string) *string {
	if old == now {
		return nil
	}
	return &now
}

// newEdit returns how a text has changed.
func newEdit(old, now string) *edit {
	e := &edit{}
	most := min(len(old), len(now))
	for e.Head < most && old[e.Head] == now[e.Head] {
		e.Head++
	}
	for e.Head > 0 && e.Head < len(now) && !utf8.RuneStart(now[e.Head]) {
		e.Head--
	}
	for e.Tail < most-e.Head && old[len(old)-1-e.Tail] == now[len(now)-1-e.Tail] {
		e.Tail++
	}
	for e.Tail > 0 && !utf8.RuneStart(now[len(now)-e.Tail]) {
		e.Tail--
	}
	e.Text = now[e.Head : len(now)-e.Tail]
	return e
}

// of returns the changed text.
func (e *edit) of(old string) (string, error) {
	if e == nil {
		return old, nil
	}
	if e.Head < 0 || e.Tail < 0 || e.Tail > len(old)-e.Head {
		return "", errors.New("it refers to instructions that are longer than those of the definition")
	}
	return old[:e.Head] + e.Text + old[len(old)-e.Tail:], nil
}

// runs returns how a list has changed; nil if it has not. Entries are the same if their JSON is.
func runs[T any](old, now []T) (*[]run[T], error) {
	places := make(map[string][]int, len(old))
	for i := range old {
		b, err := json.Marshal(old[i])
		if err != nil {
			return nil, err
		}
		places[string(b)] = append(places[string(b)], i)
	}
	list := []run[T]{}
	next := 0 // the entry of old behind the last one that was kept
	for i := range now {
		b, err := json.Marshal(now[i])
		if err != nil {
			return nil, err
		}
		at := places[string(b)]
		if len(at) == 0 {
			list = append(list, run[T]{New: &now[i]})
			continue
		}
		from := at[0]
		if later, _ := slices.BinarySearch(at, next); later < len(at) {
			from = at[later]
		}
		if last := len(list) - 1; last >= 0 && list[last].New == nil && from == next {
			list[last].Count++
		} else {
			list = append(list, run[T]{From: from, Count: 1})
		}
		next = from + 1
	}
	if len(list) == 0 && len(old) == 0 || len(list) == 1 && list[0] == (run[T]{Count: len(old)}) {
		return nil, nil
	}
	return &list, nil
}

// applyRuns calls keep with the index of each entry of an old list of that size that stays, and add
// with each new one, in their order.
func applyRuns[T any](list *[]run[T], size int, keep func(int), add func(T)) error {
	if list == nil {
		list = &[]run[T]{{Count: size}}
	}
	for _, r := range *list {
		if r.From < 0 || r.Count < 0 || r.From > size || r.Count > size-r.From {
			return fmt.Errorf("it refers to entries %d to %d of %d", r.From, r.From+r.Count, size)
		}
		for i := range r.Count {
			keep(r.From + i)
		}
		if r.New != nil {
			add(*r.New)
		}
	}
	return nil
}

// keepRewrite keeps in o what the hooks have changed of the request before, which they were given
// at an event, in the event of the call or as a blob. Where it cannot be kept, and so not be shown
// later, the hook that made the request has failed.
func (a *agent) keepRewrite(ctx context.Context, o *hooksDone, before providers.Request, at messages.EventNumber) {
	if slices.ContainsFunc(o.Decisions, stops) { // no call is made
		o.request = nil
	}
	if o.request == nil {
		return
	}
	err := a.storeRewrite(ctx, o, before, at)
	if err == nil {
		return
	}
	o.request = nil
	for i := range slices.Backward(o.Decisions) {
		if d := &o.Decisions[i]; d.Do == Rewrite {
			d.Do, d.Reason, d.Text = turn.HookFailed, printable("the request that it made cannot be kept: "+err.Error(), maxMessage), ""
			return
		}
	}
}

func (a *agent) storeRewrite(ctx context.Context, o *hooksDone, before providers.Request, at messages.EventNumber) error {
	after := sentOf(*o.request)
	digest, err := after.digest()
	if err != nil {
		return err
	}
	w, err := newRewrite(sentOf(before), after)
	if err != nil {
		return err
	}
	w.At, w.Seen = at, o.Seen
	b, err := json.Marshal(w)
	if err != nil {
		return err
	}
	o.Request = digest
	if len(b) <= min(maxRewrite, a.rt.maxResult/4) {
		o.Rewritten = b
		return nil
	}
	if len(b) > a.rt.blobs.most {
		return fmt.Errorf("it changes %d bytes: the limit is %d", len(b), a.rt.blobs.most)
	}
	o.RewrittenBlob, err = a.rt.blobs.put(ctx, a.id, a.epoch, bytes.NewReader(b))
	return err
}

// rewriteOf returns what hooks have changed of a request; nil if that was not kept, or nothing.
func (r *Runtime) rewriteOf(ctx context.Context, a messages.AgentID, call *projections.RequestedCall) (*rewrite, error) {
	raw := []byte(call.Model.Rewritten)
	if b := call.Model.RewrittenBlob; b != nil {
		text, err := r.blobs.read(ctx, a, *b, int(b.Size))
		if err != nil {
			return nil, r.blobs.unreadable(ctx, a, *b, err)
		}
		raw = []byte(text)
	}
	if len(raw) == 0 {
		return nil, nil
	}
	w := new(rewrite)
	if err := json.Unmarshal(raw, w); err != nil {
		return nil, fmt.Errorf("what hooks have changed cannot be read: %w", err)
	}
	return w, nil
}
