package providertest

import (
	"fmt"
	"net/http"

	"github.com/reprise-dev/reprise/providers/scripted"
)

// wording is how an imitated server words an answer. What it returns for a
// stream are whole events.
type wording interface {
	head() []string // before the text
	text(piece string) []string
	rest() []string // between the text and the end
	end() []string
	complaint(f Fault, message string) string
	document() []byte
	failure(message string, status int) []byte
}

// reply is an answer to a chat.
type reply struct {
	*asked
	number int
	v      values   // what an answer as a whole has
	calls  []values // what each call has
	step   scripted.Step
}

func (m *imitation) reply(q *asked, a Answer, number int) *reply {
	r := &reply{asked: q, number: number, step: a.Step}
	if r.form("refusal") == nil {
		r.step.Text, r.step.Refusal = r.step.Text+r.step.Refusal, ""
	}
	secret := fmt.Sprintf("%s.%d", m.secret, number)
	r.v = values{"number": number, "model": q.model, "request": fmt.Sprintf("req_%d", number)}
	if a.Model != "" {
		r.v["model"] = a.Model
	}
	r.v["finish"] = finish(a)
	if word, ok := q.profile.Finish[finish(a)]; ok {
		r.v["finish"] = word
	}
	r.sign(secret)
	if !a.NoUsage {
		r.v["usage"], _ = fill(r.form("usage"), counts(a))
	}
	m.remember(q.model, r.message())
	return r
}

// sign sets the signatures, each where the answer has what it belongs to.
func (r *reply) sign(secret string) {
	if r.step.Reasoning != "" {
		r.v["reasoning"], r.v["thought"] = r.step.Reasoning, "thought."+secret
	}
	if r.step.Text != "" {
		r.v["text"] = r.step.Text
	}
	if r.step.Refusal != "" {
		r.v["refusal"] = r.step.Refusal
	}
	if len(r.step.Calls) == 0 {
		r.v["text_signature"], r.v["content"] = "text."+secret, r.step.Text
		return
	}
	r.v["content"] = nil
	if r.step.Text != "" {
		r.v["content"] = r.step.Text
	}
	for i, c := range r.step.Calls {
		r.calls = append(r.calls, values{"name": c.Name, "arguments": c.Arguments, "index": i, "id": r.callID(i, c)})
	}
	r.calls[0]["signature"] = "call." + secret
	r.v["signature"], r.v["id"] = "call."+secret, r.calls[0]["id"]
}

func (r *reply) callID(i int, c scripted.Call) any {
	if c.ID != "" {
		return string(c.ID)
	}
	before := 0
	for _, m := range r.messages {
		before += len(calls(m))
	}
	id, _ := fill(r.form("call_id"), values{"name": c.Name, "index": before + i, "serial": fmt.Sprintf("%09d", r.number*100+i)})
	return id
}

func counts(a Answer) values {
	u := a.Usage
	return values{"input": u.Input, "output": u.Output, "total": u.Input + u.Output, "cached": u.Cached,
		"missed": u.Input - u.Cached, "reasoning": u.Reasoning, "visible": u.Output - u.Reasoning}
}

func (r *reply) form(name string) any { return r.profile.form(name, r.model) }

func (r *reply) filled(name string, more values) (any, bool) {
	form := r.form(name)
	if form == nil {
		return nil, false
	}
	return fill(form, r.v.plus(more))
}

// message returns the whole message of the answer.
func (r *reply) message() object {
	var list []any
	for _, c := range r.calls {
		call, _ := fill(r.form("whole_call"), c)
		list = append(list, call)
	}
	more := values{}
	if list != nil {
		more["calls"] = list
	}
	name := "message"
	if r.step.Reasoning != "" && r.form("reasoned") != nil {
		name = "reasoned"
	}
	filled, _ := r.filled(name, more)
	message, _ := filled.(object)
	return message
}

func (r *reply) document() []byte {
	document, _ := r.filled("document", values{"message": r.message()})
	return encode(document)
}

func (r *reply) failure(message string, status int) []byte {
	return r.profile.failure("error", message, status, r.v)
}

func (r *reply) complaint(_ Fault, message string) string {
	return "data: " + string(r.profile.failure("complaint", message, http.StatusInternalServerError, r.v)) + "\n\n"
}

// failure words a failure in a form, or in that of errors if there is none.
func (f *fixture) failure(form, message string, status int, v values) []byte {
	body := f.Forms[form]
	if body == nil {
		body = f.Forms["error"]
	}
	return text(body, v.plus(values{"message": message, "status": status, "type": "server_error", "code": nil, "param": nil}))
}

func (r *reply) head() []string {
	list := r.piece([]string{r.profile.Before}, "role", nil)
	for _, text := range (scripted.Step{Text: r.step.Reasoning, Pieces: 2}).Cut() {
		list = r.piece(list, "reasoning", values{"text": text})
	}
	return r.piece(list, "signed", nil)
}

func (r *reply) text(piece string) []string { return r.piece(nil, "text", values{"text": piece}) }

func (r *reply) rest() []string {
	var list []string
	if r.step.Refusal != "" {
		list = r.piece(list, "refusal", values{"text": r.step.Refusal})
	}
	if len(r.calls) == 0 {
		return r.piece(list, "texted", nil)
	}
	for i, call := range r.calls {
		if r.profile.Joined && i == len(r.calls)-1 {
			return list // the last one comes with the finish reason
		}
		list = r.call(list, call)
	}
	return list
}

// call sends a call at once or, where there is a form for it, the arguments in
// pieces of their own.
func (r *reply) call(list []string, call values) []string {
	list = r.piece(list, "call", call)
	for _, text := range (scripted.Step{Text: call["arguments"].(string), Pieces: 2}).Cut() {
		list = r.piece(list, "arguments", call.plus(values{"text": text}))
	}
	return list
}

// end is the finish reason, the usage and the end mark.
func (r *reply) end() []string {
	delta, _ := r.filled("end", nil)
	if r.profile.Joined && len(r.calls) > 0 {
		delta, _ = r.filled("call", r.calls[len(r.calls)-1])
	}
	last := "last"
	if r.form(last) == nil {
		last = "chunk"
	}
	list := []string{r.chunk(last, delta, nil)}
	options, _ := r.body["stream_options"].(object)
	if r.v["usage"] != nil && r.form("tail") != nil && (r.profile.Unasked || options["include_usage"] == true) {
		list = append(list, r.chunk("tail", nil, nil))
	}
	if r.profile.NoDone {
		return list
	}
	return append(list, "data: [DONE]\n\n")
}

// piece appends a chunk with the named form as its delta, if the server has it.
func (r *reply) piece(list []string, form string, more values) []string {
	delta, ok := r.filled(form, more)
	if !ok {
		return list
	}
	return append(list, r.chunk("chunk", delta, values{"finish": nil}))
}

func (r *reply) chunk(form string, delta any, more values) string {
	chunk, _ := r.filled(form, values{"delta": delta}.plus(more))
	return "data: " + string(encode(chunk)) + "\n\n"
}
