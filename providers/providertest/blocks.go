package providertest

import (
	"regexp"
	"slices"
	"strings"
)

// The checks of the Messages API.

func missingMembers(q *asked, r rule) values {
	for _, name := range r.Names {
		if q.body[name] == nil {
			return values{"name": name}
		}
	}
	return nil
}

func forcedUse(q *asked, _ rule) values {
	choice, _ := q.body["tool_choice"].(object)
	if kind := str(choice, "type"); kind == "any" || kind == "tool" {
		return values{"value": kind}
	}
	return nil
}

// firstBlock is first for the blocks of all messages, of one type or of any.
func (q *asked) firstBlock(kind string, find func(b object) values) values {
	return q.first(nil, func(m object) values {
		for i, b := range objects(m["content"]) {
			if kind != "" && b["type"] != kind {
				continue
			}
			if v := find(b); v != nil {
				return v.plus(values{"part": i})
			}
		}
		return nil
	})
}

func blockTypes(q *asked, r rule) values {
	return q.firstBlock("", func(b object) values {
		if slices.Contains(r.Names, str(b, "type")) {
			return nil
		}
		return values{"name": str(b, "type")}
	})
}

func blockText(q *asked, _ rule) values {
	return q.firstBlock("text", func(b object) values {
		if strings.TrimSpace(str(b, "text")) != "" {
			return nil
		}
		return values{}
	})
}

func blockIDs(q *asked, r rule) values {
	return q.firstBlock("tool_use", func(b object) values {
		if regexp.MustCompile(r.Pattern).MatchString(str(b, "id")) {
			return nil
		}
		return values{"id": str(b, "id")}
	})
}

func blockInput(q *asked, _ rule) values {
	return q.firstBlock("tool_use", func(b object) values {
		if _, ok := b["input"].(object); ok {
			return nil
		}
		return values{}
	})
}

// blockIDsOf returns a member of the blocks of one type that a message has.
func blockIDsOf(m object, kind, member string) (list []string) {
	for _, b := range objects(m["content"]) {
		if b["type"] == kind {
			list = append(list, str(b, member))
		}
	}
	return list
}

// unansweredUses wants the results of calls at the beginning of the next message.
func unansweredUses(q *asked, _ rule) values {
	for i, m := range q.messages {
		open := blockIDsOf(m, "tool_use", "id")
		if i+1 < len(q.messages) {
			for _, b := range objects(q.messages[i+1]["content"]) {
				if b["type"] != "tool_result" {
					break
				}
				open = slices.DeleteFunc(open, func(id string) bool { return id == str(b, "tool_use_id") })
			}
		}
		if len(open) > 0 {
			return values{"ids": strings.Join(open, ", "), "index": i}
		}
	}
	return nil
}

func orphanUseResults(q *asked, _ rule) values {
	var before object
	return q.first(nil, func(m object) values {
		open := blockIDsOf(before, "tool_use", "id")
		before = m
		for i, b := range objects(m["content"]) {
			if id := str(b, "tool_use_id"); b["type"] == "tool_result" && !slices.Contains(open, id) {
				return values{"id": id, "part": i}
			}
		}
		return nil
	})
}

func wrongThinking(q *asked, _ rule) values {
	return q.firstBlock("thinking", func(b object) values {
		if model, ok := q.gave("thinking", str(b, "signature")); ok && model == q.model {
			return nil
		}
		return values{}
	})
}

// missingThinking wants the thinking that the calls of the running turn came with.
func missingThinking(q *asked, _ rule) values {
	for i, m := range slices.Backward(q.messages) {
		if str(m, "role") == "user" && len(blockIDsOf(m, "tool_result", "tool_use_id")) == 0 {
			return nil
		}
		signatures := blockIDsOf(m, "thinking", "signature")
		for _, id := range blockIDsOf(m, "tool_use", "id") {
			if s, _ := q.gave("use", id); s != "" && !slices.Contains(signatures, s) {
				return values{"index": i}
			}
		}
	}
	return nil
}

// unansweredServerUses wants the results of the server's own calls, but where it still has to
// answer: in the last message, or before the results of calls that came with its own.
func unansweredServerUses(q *asked, _ rule) values {
	for i, m := range q.messages {
		if i == len(q.messages)-2 && len(blockIDsOf(m, "tool_use", "id")) > 0 {
			continue
		}
		for _, b := range objects(m["content"]) {
			if b["type"] != "server_tool_use" || i == len(q.messages)-1 {
				continue
			}
			name := str(b, "name")
			if !slices.Contains(blockIDsOf(m, name+"_tool_result", "tool_use_id"), str(b, "id")) {
				return values{"index": i, "name": name, "id": str(b, "id")}
			}
		}
	}
	return nil
}

// orphanServerResults wants the call of each result of the server's tools before it.
func orphanServerResults(q *asked, _ rule) values {
	uses := map[string]bool{}
	return q.firstBlock("", func(b object) values {
		kind, id := str(b, "type"), str(b, "tool_use_id")
		uses[str(b, "id")] = true
		if kind == "tool_result" || id == "" || uses[id] {
			return nil
		}
		return values{"name": kind, "id": id}
	})
}

// prefill lets an assistant have the last message only if the server has paused there.
func prefill(q *asked, _ rule) values {
	if len(q.messages) == 0 {
		return nil
	}
	m := q.messages[len(q.messages)-1]
	blocks := objects(m["content"])
	if str(m, "role") != "assistant" || len(blocks) == 0 {
		return nil
	}
	if _, ok := q.gave("paused", string(encode(blocks[len(blocks)-1]))); ok {
		return nil
	}
	return values{}
}
