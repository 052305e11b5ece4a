package providertest

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/reprise-dev/reprise/providers/scripted"
)

// message is an answer of the Messages API.
type message struct {
	*asked
	v      values
	blocks []object
	said   int    // the place of the text; that of none is the length
	usage  object // nil: not sent
	ends   object // why the answer ended
}

func (m *imitation) message(q *asked, a Answer, number int) *message {
	unique := fmt.Sprintf("%s%d", m.secret, number)
	r := &message{asked: q, v: values{"id": "msg_" + unique, "model": q.model}}
	if a.Model != "" {
		r.v["model"] = a.Model
	}
	if !a.NoUsage {
		filled, _ := fill(q.profile.form("usage", q.model), counts(a))
		r.usage, _ = filled.(object)
		r.v["started"], _ = fill(q.profile.form("started", q.model), counts(a))
	}
	reason := finish(a)
	if word, ok := q.profile.Finish[reason]; ok {
		reason = word
	}
	r.ends = object{"stop_reason": reason, "stop_sequence": nil}
	if a.Refusal != "" {
		r.ends = object{"stop_reason": "refusal", "stop_sequence": nil, "stop_details": object{"type": "refusal", "category": nil, "explanation": a.Refusal}}
	}
	r.fill(a, unique)
	m.keepBlocks(q.model, r)
	return r
}

func (r *message) fill(a Answer, unique string) {
	if a.Reasoning != "" {
		r.blocks = append(r.blocks, object{"type": "thinking", "thinking": a.Reasoning, "signature": "sig" + unique})
	}
	for _, raw := range a.Output {
		var block object
		_ = json.Unmarshal(raw, &block) // what is no object is sent as an empty one
		r.blocks = append(r.blocks, block)
	}
	r.said = len(r.blocks)
	if a.Text != "" {
		r.blocks = append(r.blocks, object{"type": "text", "text": a.Text})
	}
	for i, c := range a.Calls {
		id := string(c.ID)
		if id == "" {
			id = fmt.Sprintf("toolu_%s_%d", unique, i+1)
		}
		r.blocks = append(r.blocks, object{"type": "tool_use", "id": id, "name": c.Name, "input": json.RawMessage(c.Arguments)})
	}
}

// keepBlocks remembers the thinking of an answer, the calls that it led to, and the last block
// of one that was paused.
func (m *imitation) keepBlocks(model string, r *message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	thinking := ""
	for i, b := range r.blocks {
		switch b["type"] {
		case "thinking":
			thinking = str(b, "signature")
			m.given["thinking "+thinking] = model
		case "tool_use":
			m.given["use "+str(b, "id")] = thinking
		}
		if r.ends["stop_reason"] == "pause_turn" && i == len(r.blocks)-1 {
			m.given["paused "+string(encode(b))] = model
		}
	}
}

func (r *message) head() []string {
	started := r.v.plus(values{"content": []any{}, "reason": nil, "usage": r.v["started"]})
	filled, _ := fill(r.profile.form("message", r.model), started)
	list := []string{r.event("message_start", object{"message": filled}), r.event("ping", object{})}
	for i, b := range r.blocks[:r.said] {
		list = append(list, r.block(i, b)...)
	}
	if r.speaks() {
		list = append(list, r.start(r.said, object{"type": "text", "text": ""}))
	}
	return list
}

// speaks reports whether the block at said is the text.
func (r *message) speaks() bool {
	return r.said < len(r.blocks) && r.blocks[r.said]["type"] == "text"
}

func (r *message) text(piece string) []string {
	return []string{r.delta(r.said, object{"type": "text_delta", "text": piece})}
}

func (r *message) rest() []string {
	var list []string
	for i, b := range r.blocks[r.said:] {
		if i == 0 && r.speaks() {
			list = append(list, r.stop(r.said))
			continue
		}
		list = append(list, r.block(r.said+i, b)...)
	}
	return list
}

// block sends a block: thinking, and the input of calls, in pieces, others whole.
func (r *message) block(i int, b object) []string {
	pieces := func(s string) []string { return scripted.Step{Text: s, Pieces: 2}.Cut() }
	var list []string
	switch b["type"] {
	case "thinking":
		list = append(list, r.start(i, object{"type": "thinking", "thinking": "", "signature": ""}))
		for _, piece := range pieces(str(b, "thinking")) {
			list = append(list, r.delta(i, object{"type": "thinking_delta", "thinking": piece}))
		}
		list = append(list, r.delta(i, object{"type": "signature_delta", "signature": b["signature"]}))
	case "tool_use", "server_tool_use":
		input, ok := b["input"].(json.RawMessage)
		if !ok {
			input = encode(b["input"])
		}
		list = append(list, r.start(i, values(b).plus(values{"input": object{}})))
		for _, piece := range pieces(string(input)) {
			list = append(list, r.delta(i, object{"type": "input_json_delta", "partial_json": piece}))
		}
	default:
		list = append(list, r.start(i, b))
	}
	return append(list, r.stop(i))
}

func (r *message) end() []string {
	more := object{"delta": r.ends}
	if r.usage != nil {
		more["usage"] = r.usage
	}
	return []string{r.event("message_delta", more), r.event("message_stop", object{})}
}

func (r *message) complaint(_ Fault, message string) string {
	return fmt.Sprintf("event: error\ndata: %s\n\n", r.failure(message, http.StatusInternalServerError))
}

func (r *message) document() []byte {
	content := []any{}
	for _, b := range r.blocks {
		if input, ok := b["input"].(json.RawMessage); ok && !json.Valid(input) {
			b = values(b).plus(values{"input": object{}}) // what is no object cannot be sent
		}
		content = append(content, b)
	}
	v := r.v.plus(values{"content": content, "reason": r.ends["stop_reason"]})
	if r.usage != nil {
		v["usage"] = r.usage
	}
	filled, _ := fill(r.profile.form("message", r.model), v)
	whole, _ := filled.(object)
	if details := r.ends["stop_details"]; details != nil {
		whole["stop_details"] = details
	}
	return encode(whole)
}

// failureTypes are the words of the API for the status of a failure.
var failureTypes = map[int]string{
	http.StatusUnauthorized: "authentication_error", http.StatusForbidden: "permission_error", http.StatusNotFound: "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large", http.StatusTooManyRequests: "rate_limit_error", http.StatusInternalServerError: "api_error", 529: "overloaded_error",
}

func (r *message) failure(message string, status int) []byte {
	kind := failureTypes[status]
	if kind == "" {
		kind = "invalid_request_error"
	}
	return r.profile.failure("error", message, status, values{"type": kind})
}

func (r *message) start(i int, b any) string {
	return r.event("content_block_start", object{"index": i, "content_block": b})
}

func (r *message) delta(i int, d object) string {
	return r.event("content_block_delta", object{"index": i, "delta": d})
}

func (r *message) stop(i int) string { return r.event("content_block_stop", object{"index": i}) }

func (r *message) event(kind string, members object) string {
	members["type"] = kind
	return fmt.Sprintf("event: %s\ndata: %s\n\n", kind, encode(members))
}
