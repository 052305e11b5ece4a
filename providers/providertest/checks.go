package providertest

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// checks find what breaks a rule. Nil: nothing does.
var checks = map[string]func(*asked, rule) values{
	"missing key":             missingKey,
	"wrong key":               wrongKey,
	"query":                   queryParameter,
	"too long":                tooLong,
	"unknown members":         unknownMembers,
	"refused members":         refusedMembers,
	"refused values":          refusedValues,
	"stream options alone":    streamOptionsAlone,
	"empty lists":             emptyLists,
	"only with tools":         onlyWithTools,
	"forced choice":           forcedToolChoice,
	"unknown message members": unknownMessageMembers,
	"roles":                   roles,
	"both roles":              bothRoles,
	"system first":            systemFirst,
	"alternate":               alternate,
	"sequence":                sequence,
	"last role":               lastRole,
	"user message":            userMessage,
	"empty assistant":         emptyAssistant,
	"empty text":              emptyText,
	"content key":             contentKey,
	"content type":            contentType,
	"arguments key":           argumentsKey,
	"arguments":               argumentsJSON,
	"call ids":                callIDs,
	"unanswered calls":        unansweredCalls,
	"orphan results":          orphanResults,
	"before calls":            beforeCalls,
	"single call":             singleCall,
	"content and thinking":    contentAndThinking,
	"missing signature":       missingSignature,
	"wrong signature":         wrongSignature,
	"missing details":         missingDetails,
	"wrong details":           wrongDetails,
	"foreign details":         foreignDetails,
	"missing reasoning":       missingReasoning,
	"foreign reasoning":       foreignReasoning,
	"item types":              itemTypes,
	"unsendable items":        unsendableItems,
	"item members":            itemMembers,
	"item ids":                itemIDs,
	"long ids":                longIDs,
	"content parts":           contentParts,
	"nested tools":            nestedTools,
	"lost response":           lostResponse,
	"missing output":          missingOutput,
	"orphan output":           orphanOutput,
	"lost item":               lostItem,
	"wrong encrypted content": wrongSeal,
	"missing follower":        missingFollower,
	"missing leader":          missingLeader,
	"missing members":         missingMembers,
	"forced use":              forcedUse,
	"prefill":                 prefill,
	"block types":             blockTypes,
	"block text":              blockText,
	"block ids":               blockIDs,
	"block input":             blockInput,
	"unanswered uses":         unansweredUses,
	"orphan use results":      orphanUseResults,
	"wrong thinking":          wrongThinking,
	"missing thinking":        missingThinking,
	"unanswered server uses":  unansweredServerUses,
	"orphan server results":   orphanServerResults,
}

// token returns the key of the request, from the headers that r names.
func token(q *asked, r rule) string {
	for _, name := range r.Names {
		if t := strings.TrimPrefix(q.header.Get(name), "Bearer "); t != "" {
			return t
		}
	}
	return ""
}

func missingKey(q *asked, r rule) values {
	if q.key == "" || token(q, r) != "" {
		return nil
	}
	return values{}
}

func wrongKey(q *asked, r rule) values {
	if t := token(q, r); q.key != "" && t != q.key {
		return values{"key": t}
	}
	return nil
}

// queryParameter wants parameters in the URLs whose paths contain the pattern.
func queryParameter(q *asked, r rule) values {
	for _, name := range r.Names {
		if strings.Contains(q.url.Path, r.Pattern) && q.url.Query().Get(name) == "" {
			return values{"name": name}
		}
	}
	return nil
}

// tooLong counts four bytes of the body as a token.
func tooLong(q *asked, _ rule) values {
	if q.size <= q.context {
		return nil
	}
	return values{"requested": q.size / 4, "limit": q.context / 4, "over": (q.size - q.context) / 4}
}

func unknownMembers(q *asked, r rule) values { return unknown(q.body, r.Names) }

func unknown(o object, known []string) values {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(known, name) {
			return values{"name": name, "value": o[name]}
		}
	}
	return nil
}

func refusedMembers(q *asked, r rule) values {
	for _, name := range r.Names {
		if value, ok := q.body[name]; ok && !slices.Contains(r.Values, value) {
			return values{"name": name, "camel": camel(name), "value": value}
		}
	}
	return nil
}

// refusedValues lets through what the pattern fits.
func refusedValues(q *asked, r rule) values {
	for _, name := range r.Names {
		if s, ok := q.body[name].(string); ok && !regexp.MustCompile(r.Pattern).MatchString(s) {
			return values{"name": name, "value": s}
		}
	}
	return nil
}

func streamOptionsAlone(q *asked, _ rule) values {
	if _, ok := q.body["stream_options"]; ok && q.body["stream"] != true {
		return values{}
	}
	return nil
}

func emptyLists(q *asked, r rule) values {
	for _, name := range r.Names {
		if list, ok := q.body[name].([]any); ok && len(list) == 0 {
			return values{"name": name}
		}
	}
	return nil
}

func onlyWithTools(q *asked, r rule) values {
	if _, ok := q.body["tools"]; ok {
		return nil
	}
	for _, name := range r.Names {
		if _, ok := q.body[name]; ok {
			return values{"name": name}
		}
	}
	return nil
}

func forcedToolChoice(q *asked, _ rule) values {
	if choice, ok := q.body["tool_choice"]; ok && choice != "auto" && choice != "none" && choice != nil {
		return values{"value": choice}
	}
	return nil
}

func argumentsKey(q *asked, _ rule) values {
	return q.firstCall(func(_, function object) values {
		if _, ok := function["arguments"].(string); ok {
			return nil
		}
		return values{}
	})
}

func argumentsJSON(q *asked, _ rule) values {
	return q.firstCall(func(_, function object) values {
		var arguments object
		if json.Unmarshal([]byte(str(function, "arguments")), &arguments) == nil {
			return nil
		}
		return values{"arguments": str(function, "arguments")}
	})
}

func callIDs(q *asked, r rule) values {
	return q.firstCall(func(call, _ object) values {
		id := str(call, "id")
		if regexp.MustCompile(r.Pattern).MatchString(id) {
			return nil
		}
		return values{"id": id, "length": len(id)}
	})
}

// camel is a name such as presence_penalty as presencePenalty.
func camel(name string) string {
	parts := strings.Split(name, "_")
	for i, p := range parts[1:] {
		parts[i+1] = strings.ToUpper(p[:1]) + p[1:]
	}
	return strings.Join(parts, "")
}
