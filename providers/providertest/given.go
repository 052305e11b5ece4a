package providertest

import (
	"slices"
	"strings"
)

// dummy is the signature that stands for one of another server.
const dummy = "skip_thought_signature_validator"

// remember keeps what a message of the server must bring back unchanged.
func (m *imitation) remember(model string, message object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := thought(message, m.Thinking); t != "" {
		m.given["reasoning "+t] = model
	}
	details := canonical(message["reasoning_details"])
	if details != "" {
		m.given["details "+details] = model
	}
	for _, call := range calls(message) {
		m.given["call "+str(call, "id")] = details
		if s := signature(call); s != "" {
			m.given["signature "+s] = callName(call)
		}
	}
}

// gave returns what remember keeps beside an entry.
func (m *imitation) gave(kind, what string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.given[kind+" "+what]
	return v, ok
}

// thought returns the reasoning of a message.
func thought(m object, member string) string {
	if member != "content" {
		return str(m, member)
	}
	var b strings.Builder
	for _, part := range objects(m["content"]) {
		for _, piece := range objects(part["thinking"]) {
			b.WriteString(str(piece, "text"))
		}
	}
	return b.String()
}

func signature(o object) string {
	extra, _ := o["extra_content"].(object)
	google, _ := extra["google"].(object)
	return str(google, "thought_signature")
}

func callName(call object) string {
	function, _ := call["function"].(object)
	return str(function, "name")
}

// canonical is v as JSON without nulls; empty lists are "".
func canonical(v any) string {
	list := objects(v)
	if len(list) == 0 {
		return ""
	}
	for i, o := range list {
		list[i] = object{}
		for name, member := range o {
			if member != nil {
				list[i][name] = member
			}
		}
	}
	return string(encode(list))
}

// turn returns the place of the newest message of a user.
func (q *asked) turn() int {
	for i, m := range slices.Backward(q.messages) {
		if str(m, "role") == "user" {
			return i
		}
	}
	return 0
}

func missingSignature(q *asked, _ rule) values {
	for i, m := range q.messages {
		if list := calls(m); i > q.turn() && len(list) > 0 && signature(list[0]) == "" {
			return values{"name": callName(list[0]), "position": i + 1}
		}
	}
	return nil
}

func wrongSignature(q *asked, _ rule) values {
	return q.firstCall(func(call, _ object) values {
		s := signature(call)
		if name, ok := q.gave("signature", s); s == "" || s == dummy || ok && name == callName(call) {
			return nil
		}
		return values{"name": callName(call)}
	})
}

// missingDetails looks at the calls of the running turn; with Given only at
// those that the server gave with details.
func missingDetails(q *asked, r rule) values {
	for i, m := range q.messages {
		list := calls(m)
		if i <= q.turn() || len(list) == 0 || canonical(m["reasoning_details"]) != "" {
			continue
		}
		if details, _ := q.gave("call", str(list[0], "id")); details != "" || !r.Given {
			return values{"index": i}
		}
	}
	return nil
}

func wrongDetails(q *asked, _ rule) values {
	return q.first([]string{"assistant"}, func(m object) values {
		details := canonical(m["reasoning_details"])
		if _, ok := q.gave("details", details); ok || details == "" || standsIn(m) {
			return nil
		}
		return values{}
	})
}

// standsIn reports whether the only detail of m is the dummy for its first call.
func standsIn(m object) bool {
	details, list := objects(m["reasoning_details"]), calls(m)
	return len(details) == 1 && len(list) > 0 && str(details[0], "data") == dummy &&
		str(details[0], "id") == str(list[0], "id") && str(details[0], "format") == "google-gemini-v1"
}

func foreignDetails(q *asked, _ rule) values {
	return q.first([]string{"assistant"}, func(m object) values {
		if model, ok := q.gave("details", canonical(m["reasoning_details"])); ok && model != q.model {
			return values{"other": model}
		}
		return nil
	})
}

// missingReasoning wants one of the rule's members on every message of an
// assistant in a turn that called tools.
func missingReasoning(q *asked, r rule) values {
	for start := 0; start < len(q.messages); {
		end := start + 1
		for end < len(q.messages) && str(q.messages[end], "role") != "user" {
			end++
		}
		turn := q.messages[start:end]
		missing := slices.IndexFunc(turn, func(m object) bool { return str(m, "role") == "assistant" && !hasAny(m, r.Names) })
		if missing >= 0 && slices.ContainsFunc(turn, func(m object) bool { return len(calls(m)) > 0 }) {
			return values{"index": start + missing}
		}
		start = end
	}
	return nil
}

func hasAny(m object, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return m[name] != nil })
}

func foreignReasoning(q *asked, _ rule) values {
	return q.first([]string{"assistant"}, func(m object) values {
		t, _, _ := strings.Cut(thought(m, q.profile.Thinking), "\n\n") // a client may add what was content
		if _, ok := q.gave("reasoning", t); ok || t == "" {
			return nil
		}
		return values{"member": q.profile.Thinking}
	})
}
