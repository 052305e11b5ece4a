package providertest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// rule is a check of a server, with what the check needs, and its refusal.
type rule struct {
	Check string `json:"check"`
	// Models are patterns. None: all models.
	Models []string `json:"models"`
	// Reasoning limits the rule to requests that reason: it is the effort of
	// requests that name none.
	Reasoning string `json:"reasoning"`

	Roles   []string    `json:"roles"`
	Names   []string    `json:"names"`
	Values  []any       `json:"values"`
	Pairs   [][2]string `json:"pairs"`
	Pattern string      `json:"pattern"`
	// Plain leaves out messages that are part of a tool's use; Given, what the
	// server did not give itself.
	Plain bool `json:"plain"`
	Given bool `json:"given"`

	// Status is that of the refusal. Its body is Body, or else the error form
	// with Text as its message and With.
	Status int            `json:"status"`
	Text   string         `json:"text"`
	With   map[string]any `json:"with"`
	Body   any            `json:"body"`

	form string // of the error; empty: error
}

// object is a JSON object of a request.
type object = map[string]any

// asked is a request as the checks read it.
type asked struct {
	*imitation
	profile  *fixture // of the API that is asked
	header   http.Header
	url      *url.URL
	size     int
	model    string
	body     object
	messages []object // items, in the Responses API
}

func (m *imitation) read(r *http.Request, req *Request, profile *fixture) (*asked, error) {
	q := &asked{imitation: m, profile: profile, header: r.Header, url: r.URL, size: len(req.Body)}
	if err := json.Unmarshal(req.Body, &q.body); err != nil {
		return nil, err
	}
	q.model = str(q.body, "model")
	q.messages = objects(q.body["messages"])
	if input, ok := q.body["input"]; ok {
		q.messages = objects(input)
	}
	return q, nil
}

// applies reports whether the request is one that r is about.
func (q *asked) applies(r rule) bool {
	return matches(r.Models, q.model) && (r.Reasoning == "" || q.effort(r.Reasoning) != "none")
}

// effort returns the effort that the request asks for, in whichever form.
func (q *asked) effort(otherwise string) string {
	if thinking, ok := q.body["thinking"].(object); ok && thinking["type"] == "disabled" {
		return "none"
	}
	reasoning, _ := q.body["reasoning"].(object)
	for _, effort := range []string{str(q.body, "reasoning_effort"), str(reasoning, "effort")} {
		if effort != "" {
			return effort
		}
	}
	return otherwise
}

// refuse returns the refusal of the first rule that the request breaks.
func (q *asked) refuse() *Refusal {
	for _, r := range q.profile.rules(q.model) {
		if !q.applies(r) {
			continue
		}
		if found := checks[r.Check](q, r); found != nil {
			return q.profile.refusal(r, found.plus(values{"model": q.model}))
		}
	}
	return nil
}

func (f *fixture) refusal(r rule, found values) *Refusal {
	body := r.Body
	if body == nil {
		body = f.Forms["error"]
	}
	if r.form != "" {
		body = f.Forms[r.form]
	}
	message, _ := fill(r.Text, found)
	found = found.plus(values{"message": message, "status": r.Status, "type": "invalid_request_error", "code": nil, "param": nil})
	if with, ok := fill(r.With, found); ok {
		found = found.plus(with.(object))
	}
	return &Refusal{Check: r.Check, Status: r.Status, Body: text(body, found)}
}

// text returns a filled form: a string as it is, anything else as JSON.
func text(form any, v values) []byte {
	filled, _ := fill(form, v)
	if s, ok := filled.(string); ok {
		return []byte(s)
	}
	return encode(filled)
}

// first returns what find finds in the first message of one of roles, or of
// any role if there are none, with the message's place.
func (q *asked) first(roles []string, find func(m object) values) values {
	for i, m := range q.messages {
		if len(roles) > 0 && !slices.Contains(roles, str(m, "role")) {
			continue
		}
		if v := find(m); v != nil {
			return v.plus(values{"index": i, "role": str(m, "role")})
		}
	}
	return nil
}

// firstCall is first for the calls of assistants.
func (q *asked) firstCall(find func(call, function object) values) values {
	return q.first([]string{"assistant"}, func(m object) values {
		for i, call := range calls(m) {
			function, _ := call["function"].(object)
			if v := find(call, function); v != nil {
				return v.plus(values{"call": i})
			}
		}
		return nil
	})
}

func str(o object, name string) string {
	s, _ := o[name].(string)
	return s
}

func objects(v any) []object {
	list, _ := v.([]any)
	out := make([]object, len(list))
	for i, entry := range list {
		out[i], _ = entry.(object)
	}
	return out
}

func calls(m object) []object { return objects(m["tool_calls"]) }

// said returns the text of a message's content, of all parts of a list.
func said(m object) string {
	var b strings.Builder
	b.WriteString(str(m, "content"))
	for _, part := range objects(m["content"]) {
		b.WriteString(str(part, "text"))
	}
	return b.String()
}
