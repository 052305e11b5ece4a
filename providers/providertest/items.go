package providertest

import (
	"regexp"
	"slices"
	"strings"
)

// keep remembers the items of a response: what is encrypted in them, which of
// them stand together, and where the request lets the server, all of them.
func (m *imitation) keep(q *asked, r *response) {
	m.mu.Lock()
	defer m.mu.Unlock()
	reasoning := ""
	items := r.output()
	for i, item := range items {
		id := str(item, "id")
		m.given["encrypted "+str(item, "encrypted_content")] = q.model
		switch {
		case kind(item) == "reasoning":
			reasoning = id
			m.given["before "+id] = label(slices.Concat(items, []object{{}})[i+1])
		case reasoning != "" && id != "":
			m.given["after "+id] = reasoning
		}
		if r.v["store"] == true {
			m.given["kept "+id] = q.model
		}
	}
	if r.v["store"] == true {
		m.kept[r.v["id"].(string)] = slices.Concat(m.kept[str(q.body, "previous_response_id")], q.messages, items)
	}
}

// label is an item's type, role and id; without the id it begins those of all
// such items.
func label(item object) string {
	return kind(item) + " " + str(item, "role") + " " + str(item, "id")
}

// history returns the items of the request with those it continues.
func (q *asked) history() []object {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Concat(q.kept[str(q.body, "previous_response_id")], q.messages)
}

func kind(item object) string {
	if t := str(item, "type"); t != "" || item["role"] == nil {
		return t
	}
	return "message"
}

func itemTypes(q *asked, r rule) values {
	return q.first(nil, func(item object) values {
		if slices.Contains(r.Names, kind(item)) {
			return nil
		}
		return values{"name": kind(item)}
	})
}

// unsendableItems are those of the named types that the server has not kept.
func unsendableItems(q *asked, r rule) values {
	return q.first(nil, func(item object) values {
		id := str(item, "id")
		if _, kept := q.gave("kept", id); kept || !slices.Contains(r.Names, kind(item)) {
			return nil
		}
		return values{"id": id}
	})
}

// itemMembers wants the members that pairs of a type and a member name.
func itemMembers(q *asked, r rule) values {
	return q.first(nil, func(item object) values {
		for _, p := range r.Pairs {
			if kind(item) == p[0] && item[p[1]] == nil {
				return values{"name": p[1]}
			}
		}
		return nil
	})
}

// itemIDs wants the prefixes that pairs of a type and a prefix name.
func itemIDs(q *asked, r rule) values {
	return q.first(nil, func(item object) values {
		id := str(item, "id")
		for _, p := range r.Pairs {
			if id != "" && kind(item) == p[0] && !strings.HasPrefix(id, p[1]) {
				return values{"id": id, "prefix": p[1]}
			}
		}
		return nil
	})
}

// longIDs wants members that fit the pattern.
func longIDs(q *asked, r rule) values {
	return q.first(nil, func(item object) values {
		for _, name := range r.Names {
			if id := str(item, name); id != "" && !regexp.MustCompile(r.Pattern).MatchString(id) {
				return values{"name": name, "length": len(id)}
			}
		}
		return nil
	})
}

// contentParts lets messages have the parts that pairs of a role and a type name.
func contentParts(q *asked, r rule) values {
	return q.first(nil, func(item object) values {
		for i, part := range objects(item["content"]) {
			if kind(item) == "message" && !slices.Contains(r.Pairs, [2]string{str(item, "role"), str(part, "type")}) {
				return values{"name": str(part, "type"), "part": i}
			}
		}
		return nil
	})
}

func nestedTools(q *asked, _ rule) values {
	for i, tool := range objects(q.body["tools"]) {
		if tool["type"] == "function" && str(tool, "name") == "" {
			return values{"index": i}
		}
	}
	return nil
}

func lostResponse(q *asked, _ rule) values {
	id := str(q.body, "previous_response_id")
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.kept[id]; ok || id == "" {
		return nil
	}
	return values{"id": id}
}

// missingOutput wants an output for every call, wherever it stands.
func missingOutput(q *asked, _ rule) values {
	return unmatched(q.history(), "function_call", "function_call_output")
}

func orphanOutput(q *asked, _ rule) values {
	return unmatched(q.history(), "function_call_output", "function_call")
}

func unmatched(items []object, one, other string) values {
	for _, item := range items {
		id := item["call_id"]
		if kind(item) == one && !slices.ContainsFunc(items, func(o object) bool { return kind(o) == other && o["call_id"] == id }) {
			return values{"id": id}
		}
	}
	return nil
}

// lostItem is reasoning that the server has not kept and that does not bring
// its content along.
func lostItem(q *asked, _ rule) values {
	return q.first(nil, func(item object) values {
		id := str(item, "id")
		_, kept := q.gave("kept", id)
		if kept || kind(item) != "reasoning" || str(item, "encrypted_content") != "" {
			return nil
		}
		return values{"id": id}
	})
}

func wrongSeal(q *asked, _ rule) values {
	return q.first(nil, func(item object) values {
		sealed := str(item, "encrypted_content")
		if model, ok := q.gave("encrypted", sealed); sealed == "" || ok && model == q.model {
			return nil
		}
		return values{"start": sealed[:min(4, len(sealed))]}
	})
}

// missingFollower wants a reasoning item to be followed by the item that
// followed it; that one may lack its id.
func missingFollower(q *asked, _ rule) values {
	items := slices.Concat(q.messages, []object{{}})
	for i, item := range q.messages {
		follower, ok := q.gave("before", str(item, "id"))
		next := items[i+1]
		fits := label(next) == follower || str(next, "id") == "" && strings.HasPrefix(follower, label(next))
		if ok && (!fits || kind(next) == "") {
			return values{"id": item["id"], "index": i}
		}
	}
	return nil
}

// missingLeader wants the reasoning item that an item came after.
func missingLeader(q *asked, _ rule) values {
	for i, item := range q.messages {
		reasoning, ok := q.gave("after", str(item, "id"))
		if ok && !slices.ContainsFunc(q.messages[:i], func(o object) bool { return o["id"] == reasoning }) {
			return values{"id": item["id"], "name": kind(item), "reasoning": reasoning, "index": i}
		}
	}
	return nil
}
