package providertest

import (
	"slices"
	"strings"
)

func unknownMessageMembers(q *asked, r rule) values {
	return q.first(r.Roles, func(m object) values { return unknown(m, r.Names) })
}

func roles(q *asked, r rule) values {
	return q.first(nil, func(m object) values {
		if slices.Contains(r.Roles, str(m, "role")) {
			return nil
		}
		return values{}
	})
}

func bothRoles(q *asked, r rule) values {
	for _, role := range r.Roles {
		if !q.has(role) {
			return nil
		}
	}
	return values{}
}

func (q *asked) has(role string) bool {
	return slices.ContainsFunc(q.messages, func(m object) bool { return str(m, "role") == role })
}

func systemFirst(q *asked, _ rule) values {
	for i, m := range q.messages {
		if i > 0 && str(m, "role") == "system" {
			return values{"index": i}
		}
	}
	return nil
}

// alternate wants a user's message at every other place, after a first message
// of one of the rule's roles.
func alternate(q *asked, r rule) values {
	n := 0
	for i, m := range q.messages {
		role := str(m, "role")
		if i == 0 && slices.Contains(r.Roles, role) || r.Plain && (role == "tool" || len(calls(m)) > 0) {
			continue
		}
		if (role == "user") != (n%2 == 0) {
			return values{"index": i, "role": role}
		}
		n++
	}
	return nil
}

func sequence(q *asked, r rule) values {
	for i, m := range q.messages[min(1, len(q.messages)):] {
		before, role := str(q.messages[i], "role"), str(m, "role")
		if slices.Contains(r.Pairs, [2]string{before, role}) {
			return values{"index": i + 1, "role": role, "before": before}
		}
	}
	return nil
}

func lastRole(q *asked, r rule) values {
	if len(q.messages) == 0 {
		return nil
	}
	role := str(q.messages[len(q.messages)-1], "role")
	if slices.Contains(r.Roles, role) {
		return nil
	}
	return values{"role": role}
}

func userMessage(q *asked, _ rule) values {
	if q.has("user") {
		return nil
	}
	return values{}
}

func emptyAssistant(q *asked, _ rule) values {
	return q.first([]string{"assistant"}, func(m object) values {
		if len(calls(m)) > 0 || said(m) != "" || len(objects(m["content"])) > 0 {
			return nil
		}
		return values{}
	})
}

func emptyText(q *asked, r rule) values {
	return q.first(r.Roles, func(m object) values {
		if content, ok := m["content"].(string); ok && strings.TrimSpace(content) == "" && (content != "" || len(calls(m)) == 0) {
			return values{}
		}
		return nil
	})
}

func contentKey(q *asked, r rule) values {
	return q.first(r.Roles, func(m object) values {
		if _, ok := m["content"]; ok {
			return nil
		}
		return values{}
	})
}

func contentType(q *asked, _ rule) values {
	return q.first(nil, func(m object) values {
		if m["content"] != nil || len(calls(m)) > 0 {
			return nil
		}
		return values{}
	})
}

func unansweredCalls(q *asked, _ rule) values {
	var open []string
	at := 0
	for i, m := range append(slices.Clone(q.messages), object{}) {
		if str(m, "role") == "tool" {
			open = slices.DeleteFunc(open, func(id string) bool { return id == str(m, "tool_call_id") })
			continue
		}
		if len(open) > 0 {
			return values{"ids": strings.Join(open, ", "), "index": at}
		}
		open, at = ids(m), i
	}
	return nil
}

func orphanResults(q *asked, _ rule) values {
	var open []string
	for i, m := range q.messages {
		if str(m, "role") != "tool" {
			open = ids(m)
			continue
		}
		id := str(m, "tool_call_id")
		if !slices.Contains(open, id) {
			return values{"index": i, "id": id}
		}
	}
	return nil
}

func ids(m object) []string {
	var list []string
	for _, call := range calls(m) {
		list = append(list, str(call, "id"))
	}
	return list
}

func beforeCalls(q *asked, r rule) values {
	for i, m := range q.messages {
		if len(calls(m)) > 0 && (i == 0 || !slices.Contains(r.Roles, str(q.messages[i-1], "role"))) {
			return values{"index": i}
		}
	}
	return nil
}

func singleCall(q *asked, _ rule) values {
	return q.first([]string{"assistant"}, func(m object) values {
		if list, ok := m["tool_calls"].([]any); ok && len(list) != 1 {
			return values{}
		}
		return nil
	})
}

func contentAndThinking(q *asked, _ rule) values {
	return q.first([]string{"assistant"}, func(m object) values {
		if len(calls(m)) > 0 && said(m) != "" && thought(m, q.profile.Thinking) != "" {
			return values{}
		}
		return nil
	})
}
