package providertest

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/reprise-dev/reprise/providers/scripted"
)

// response is an answer of the Responses API.
type response struct {
	*asked
	v        values
	items    []output
	said     int // the place of the item with the text; that of none is the length
	sequence int
	status   string
}

// output is an item of a response: its forms, and what fills them.
type output struct {
	forms object // item, started, done, before, piece, after
	v     values
	text  string // what pieces carry
}

func (m *imitation) response(q *asked, a Answer, number int) *response {
	r := &response{asked: q, status: "completed"}
	r.v = values{"id": fmt.Sprintf("resp_%s%d", m.secret, number), "model": q.model, "error": nil, "incomplete": nil,
		"previous": q.body["previous_response_id"], "store": q.body["store"] != false}
	if a.Model != "" {
		r.v["model"] = a.Model
	}
	if reason, ok := (map[string]string{"length": "max_output_tokens", "content_filter": "content_filter"})[a.Finish]; ok {
		r.status, r.v["incomplete"] = "incomplete", object{"reason": reason}
	}
	if !a.NoUsage {
		r.v["usage"], _ = fill(r.profile.form("usage", q.model), counts(a))
	}
	r.fill(a, fmt.Sprintf("%s%d", m.secret, number))
	m.keep(q, r)
	return r
}

// fill makes the items, in the order in which they are sent.
func (r *response) fill(a Answer, unique string) {
	if a.Reasoning != "" {
		v := values{"text": a.Reasoning}
		if include, _ := r.body["include"].([]any); slices.Contains(include, any("reasoning.encrypted_content")) {
			v["encrypted"] = "gAAAA" + unique
		}
		r.add("reasoning", unique, v, a.Reasoning)
	}
	for _, raw := range a.Output {
		var item object
		_ = json.Unmarshal(raw, &item) // what is no object is sent as an empty one
		r.items = append(r.items, output{forms: object{"item": item}})
	}
	r.said = len(r.items)
	if a.Text != "" {
		r.add("message", unique, r.phase(a), a.Text)
	}
	if a.Refusal != "" {
		r.add("refusal", unique, r.phase(a), a.Refusal)
	}
	for i, c := range a.Calls {
		r.add("call", unique, values{"name": c.Name, "call_id": callIDOf(c, unique, i)}, c.Arguments)
	}
}

// phase returns the phase of messages, for models that name it.
func (r *response) phase(a Answer) values {
	switch {
	case r.profile.form("phased", r.model) == nil:
		return nil
	case len(a.Calls) > 0:
		return values{"phase": "commentary"}
	}
	return values{"phase": "final_answer"}
}

func callIDOf(c scripted.Call, unique string, i int) string {
	if c.ID != "" {
		return string(c.ID)
	}
	return fmt.Sprintf("call_%s_%d", unique, i+1)
}

func (r *response) add(kind, unique string, v values, text string) {
	forms, _ := r.profile.form(kind, r.model).(object)
	r.items = append(r.items, output{forms, v.plus(values{"id": fmt.Sprintf("%s_%s_%d", forms["prefix"], unique, len(r.items)),
		"at": len(r.items), "text": text, "status": r.status}), text})
}

// output returns the items as the whole response has them.
func (r *response) output() []object {
	items := make([]object, len(r.items))
	for i, o := range r.items {
		items[i] = o.as("item")
	}
	return items
}

// as returns the item in a form of its, or in that of whole items.
func (o output) as(form string) object {
	if o.forms[form] == nil {
		form = "item"
	}
	filled, _ := fill(o.forms[form], o.v)
	item, _ := filled.(object)
	return item
}

func (r *response) head() []string {
	list := []string{r.whole("response.created", "in_progress", nil), r.whole("response.in_progress", "in_progress", nil)}
	for i, o := range r.items[:r.said] {
		list = slices.Concat(list, r.start(i, o), r.pieces(o), r.finish(i, o))
	}
	if r.speaks() {
		list = append(list, r.start(r.said, r.items[r.said])...)
	}
	return list
}

// speaks reports whether the item at said is the text.
func (r *response) speaks() bool {
	return r.said < len(r.items) && r.items[r.said].forms["spoken"] == true
}

func (r *response) text(piece string) []string {
	o := r.items[r.said]
	return []string{r.event(o.forms["piece"], o.v.plus(values{"text": piece}))}
}

func (r *response) rest() []string {
	var list []string
	for i, o := range r.items[r.said:] {
		if i > 0 || !r.speaks() {
			list = slices.Concat(list, r.start(r.said+i, o), r.pieces(o))
		}
		list = append(list, r.finish(r.said+i, o)...)
	}
	return list
}

func (r *response) end() []string { return []string{r.whole("response."+r.status, r.status, nil)} }

func (r *response) complaint(f Fault, message string) string {
	if f == Fail {
		return r.whole("response.failed", "failed", values{"error": object{"code": "server_error", "message": message}})
	}
	return r.event(r.profile.Forms["complaint"], values{"message": message})
}

func (r *response) document() []byte { return encode(r.filled(r.status, nil)) }

func (r *response) failure(message string, status int) []byte {
	return r.profile.failure("error", message, status, nil)
}

// whole is an event with the whole response; at the end, with its output.
func (r *response) whole(kind, status string, more values) string {
	return r.event(object{"type": kind, "response": r.filled(status, more)}, nil)
}

func (r *response) filled(status string, more values) any {
	items := []object{}
	if status == r.status {
		items = r.output()
	}
	v := r.v.plus(more).plus(values{"status": status, "output": items})
	if status == "in_progress" {
		v = v.plus(values{"usage": nil, "incomplete": nil})
	}
	filled, _ := fill(r.profile.form("response", r.model), v)
	return filled
}

func (r *response) start(i int, o output) []string {
	added := object{"type": "response.output_item.added", "output_index": i, "item": o.as("started")}
	return append([]string{r.event(added, nil)}, r.events(o.forms["before"], o.v)...)
}

func (r *response) pieces(o output) []string {
	var list []string
	for _, text := range (scripted.Step{Text: o.text, Pieces: 2}).Cut() {
		list = append(list, r.event(o.forms["piece"], o.v.plus(values{"text": text})))
	}
	return list
}

func (r *response) finish(i int, o output) []string {
	list := r.events(o.forms["after"], o.v)
	return append(list, r.event(object{"type": "response.output_item.done", "output_index": i, "item": o.as("done")}, nil))
}

func (r *response) events(forms any, v values) []string {
	var list []string
	for _, form := range objects(forms) {
		list = append(list, r.event(form, v))
	}
	return list
}

func (r *response) event(form any, v values) string {
	filled, _ := fill(form, v)
	event, _ := filled.(object)
	event["sequence_number"] = r.sequence
	r.sequence++
	return fmt.Sprintf("event: %s\ndata: %s\n\n", event["type"], encode(event))
}
