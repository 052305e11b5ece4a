package providertest

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/providers/scripted"
)

// ask is a request that a test writes by hand.
type ask struct {
	header http.Header
	url    string
	body   object
}

func (a *ask) set(name string, value any) { a.body[name] = value }

func (a *ask) messages() []any { return a.body["messages"].([]any) }

func (a *ask) message(i int) object { return a.messages()[i].(object) }

// add appends messages with text, given as role and content in turn.
func (a *ask) add(pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		a.set("messages", append(a.messages(), object{"role": pairs[i], "content": pairs[i+1]}))
	}
}

// insert puts a message at place i.
func (a *ask) insert(i int, role string) {
	a.set("messages", slices.Insert(a.messages(), i, any(object{"role": role, "content": "x"})))
}

// cut leaves messages up to place n.
func (a *ask) cut(n int) { a.set("messages", a.messages()[:n]) }

func (a *ask) call() object { return a.message(2)["tool_calls"].([]any)[0].(object) }

// breaks turns a good request into one that breaks a rule of a check. The good
// one has a system message, a user's, the call that the server gave, and its result.
var breaks = map[string]func(a *ask, r rule){
	"missing key": func(a *ask, _ rule) { a.header = http.Header{} },
	"wrong key":   func(a *ask, _ rule) { a.header.Set("Authorization", "Bearer stale") },
	"query": func(a *ask, _ rule) {
		a.url = strings.TrimSuffix(a.url, "?api-version=2024-10-21")
	},
	"too long":        func(a *ask, _ rule) { a.message(1)["content"] = strings.Repeat("long ", 2000) },
	"unknown members": func(a *ask, _ rule) { a.set("colour", "blue") },
	"refused members": func(a *ask, r rule) {
		a.set(r.Names[0], map[string]any{"tools": []any{object{"type": "function", "function": object{"name": "f"}}}}[r.Names[0]])
		if r.Reasoning == "none" {
			a.set("reasoning_effort", "low")
		}
	},
	"refused values":       func(a *ask, r rule) { a.set(r.Names[0], "minimal") },
	"stream options alone": func(a *ask, _ rule) { a.set("stream_options", object{"include_usage": true}) },
	"empty lists": func(a *ask, r rule) {
		a.set(r.Names[0], []any{})
	},
	"only with tools": func(a *ask, _ rule) { a.set("tool_choice", "auto") },
	"forced choice":   func(a *ask, _ rule) { a.set("tool_choice", "required") },
	"unknown message members": func(a *ask, r rule) {
		role := "user"
		if len(r.Roles) > 0 {
			role = r.Roles[0]
		}
		name := "colour"
		if r.Text == "messages[{index}].reasoning: reasoning is not supported with this model" {
			name = "reasoning"
		}
		for i := range a.messages() {
			if a.message(i)["role"] == role {
				a.message(i)[name] = ""
			}
		}
	},
	"roles": func(a *ask, _ rule) {
		if len(a.messages()) == 1 {
			a.insert(0, "system") // for a template that takes none
			return
		}
		a.message(0)["role"] = "critic"
	},
	"both roles": func(a *ask, _ rule) { a.insert(1, "developer") },
	"system first": func(a *ask, _ rule) {
		a.insert(1, "system")
	},
	"alternate": func(a *ask, _ rule) { a.add("user", "a", "user", "b") },
	"sequence":  func(a *ask, _ rule) { a.add("user", "and?") },
	"last role": func(a *ask, _ rule) { a.add("assistant", "It is") },
	"user message": func(a *ask, _ rule) {
		a.set("messages", slices.Delete(a.messages(), 1, 2))
	},
	"empty assistant": func(a *ask, _ rule) { a.add("assistant", "", "user", "hm") },
	"empty text":      func(a *ask, _ rule) { a.message(1)["content"] = " " },
	"content key":     func(a *ask, _ rule) { delete(a.message(2), "content") },
	"content type":    func(a *ask, _ rule) { a.message(1)["content"] = nil },
	"arguments key":   func(a *ask, _ rule) { delete(a.call()["function"].(object), "arguments") },
	"arguments":       func(a *ask, _ rule) { a.call()["function"].(object)["arguments"] = "" },
	"call ids": func(a *ask, _ rule) {
		id := "functions.look:" + strings.Repeat("0", 40)
		a.call()["id"], a.message(3)["tool_call_id"] = id, id
	},
	"unanswered calls": func(a *ask, _ rule) {
		a.cut(3)
		a.add("user", "never mind")
	},
	"orphan results": func(a *ask, _ rule) {
		a.add("tool", "stray")
		a.message(4)["tool_call_id"] = "abcdefghi"
	},
	"before calls": func(a *ask, _ rule) { a.insert(2, "assistant") },
	"single call": func(a *ask, _ rule) {
		a.add("assistant", "x", "user", "and?")
		a.message(4)["tool_calls"] = []any{}
	},
	"content and thinking": func(a *ask, _ rule) { a.message(2)["content"] = "I will look." },
	"missing signature":    func(a *ask, _ rule) { delete(a.call(), "extra_content") },
	"wrong signature": func(a *ask, _ rule) {
		a.call()["extra_content"] = object{"google": object{"thought_signature": "call.of another server"}}
	},
	"missing details": func(a *ask, _ rule) { delete(a.message(2), "reasoning_details") },
	"wrong details": func(a *ask, _ rule) {
		a.message(2)["reasoning_details"] = []any{object{"type": "reasoning.encrypted", "data": "x"}}
	},
	"foreign details": func(a *ask, _ rule) { a.set("model", "anthropic/claude-opus-9") },
	"missing reasoning": func(a *ask, r rule) {
		maps.DeleteFunc(a.message(2), func(name string, _ any) bool { return slices.Contains(r.Names, name) })
	},
	"foreign reasoning": func(a *ask, _ rule) {
		a.add("assistant", "So", "user", "and?")
		for _, member := range []string{"reasoning", "reasoning_content"} {
			if _, ok := a.message(2)[member]; ok {
				a.message(4)[member] = "I was thought elsewhere"
			}
		}
		if parts, ok := a.message(2)["content"].([]any); ok {
			a.message(4)["content"] = []any{parts[0], parts[0]}
		}
	},
}

// imitated is a server of an imitation and a way to ask it.
type imitated struct {
	*Server
	imitation Imitation
}

func imitatedServer(t *testing.T, i Imitation, script Script) imitated {
	t.Helper()
	s, err := Start(script, Config{Imitate: i, Key: "k", Context: 6000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return imitated{s, i}
}

// talk is a good request. Those of [breaks] need the whole of it; where the
// imitation takes no tools there is a user's message alone.
func (s imitated) talk(t *testing.T) *ask {
	t.Helper()
	a := &ask{header: http.Header{"Authorization": {"Bearer k"}}, url: s.URL + "/chat/completions?api-version=2024-10-21",
		body: object{"model": s.imitation.Model, "messages": []any{}}}
	a.add("system", "Be brief.", "user", "What is it?")
	if s.imitation.Model == "gemma-2" {
		a.set("messages", a.messages()[1:])
	}
	if s.imitation.Template == "gemma" {
		return a
	}
	message := s.whole(t, a)["choices"].([]any)[0].(object)["message"].(object)
	id := message["tool_calls"].([]any)[0].(object)["id"]
	a.set("messages", append(a.messages(), message, object{"role": "tool", "tool_call_id": id, "content": "a box"}))
	return a
}

func (s imitated) do(t *testing.T, a *ask) (int, string, []byte) {
	t.Helper()
	status, header, body := postTo(t, a.url, a.header, string(encode(a.body)))
	return status, header.Get("Content-Type"), []byte(body)
}

func (s imitated) whole(t *testing.T, a *ask) object {
	t.Helper()
	status, _, body := s.do(t, a)
	if status != http.StatusOK {
		t.Fatalf("a good request is refused: %d %s", status, body)
	}
	var document object
	if err := json.Unmarshal(body, &document); err != nil {
		t.Fatalf("the answer is no JSON: %v", err)
	}
	return document
}

// looking is a call, with reasoning where the imitation may be sent it.
func looking(i Imitation) Answer {
	step := scripted.Ask(scripted.Call{Name: "look", Arguments: `{"at":"it"}`})
	step.Usage.Input, step.Usage.Output, step.Usage.Reasoning = 20, 7, 3
	if !strings.HasPrefix(i.Model, "llama-") && i.Server != "plain" {
		step.Reasoning = "I have to look."
	}
	return Answer{Step: step}
}

func everywhere(t *testing.T, check func(t *testing.T, i Imitation)) {
	t.Helper()
	all, err := Imitations()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		t.Run(i.String(), func(t *testing.T) { check(t, i) })
	}
}

// Every imitated server takes its own answer back, whole.
func TestImitationsTakeTheirAnswersBack(t *testing.T) {
	everywhere(t, func(t *testing.T, i Imitation) {
		s := imitatedServer(t, i, func(*Request) Answer { return looking(i) })
		s.whole(t, s.talk(t))
		if r := s.Refusals(); len(r) > 0 {
			t.Fatalf("refused by %q: %s", r[0].Check, r[0].Body)
		}
	})
}

// Every rule of every fixture refuses a request that breaks it, with its status.
func TestRulesRefuse(t *testing.T) {
	seen := map[string]bool{}
	everywhere(t, func(t *testing.T, i Imitation) {
		if i.Template == "" || i.Server != "vllm" && i.Server != "ollama" {
			rulesRefuse(t, i, seen)
		}
	})
	for _, server := range names("servers") {
		unseen(t, Imitation{Server: server}, seen)
	}
	for _, template := range names("templates") {
		unseen(t, Imitation{Server: "llamacpp", Template: template}, seen)
	}
}

// unseen reports the rules of an imitation that no request has broken.
func unseen(t *testing.T, i Imitation, seen map[string]bool) {
	t.Helper()
	m, err := newImitation(Config{Imitate: i})
	if err != nil {
		t.Fatal(err)
	}
	rules := m.Checks
	for _, family := range m.Families {
		rules = append(rules, family.Checks...)
	}
	for _, r := range rules {
		if !seen[string(encode(r))] {
			t.Errorf("%s: no request breaks %q %v %v", i, r.Check, r.Models, r.Names)
		}
	}
}

func rulesRefuse(t *testing.T, i Imitation, seen map[string]bool) {
	model := imitatedServer(t, i, Play()).model
	for _, r := range model.rules(i.Model) {
		if i.Template == "gemma" && r.form == "" || r.Check == "foreign reasoning" && looking(i).Reasoning == "" {
			continue // no tools, no reasoning
		}
		s := imitatedServer(t, i, func(*Request) Answer { return looking(i) })
		a := s.talk(t)
		breaks[r.Check](a, r)
		if u, _ := url.Parse(a.url); !(&asked{imitation: s.model, body: a.body, model: i.Model, url: u}).applies(r) {
			continue
		}
		status, _, body := s.do(t, a)
		seen[string(encode(r))] = true
		if got := s.Refusals(); status != r.Status || len(got) != 1 || got[0].Check != r.Check {
			t.Errorf("%q %v %v: got %d %s, refused by %+v", r.Check, r.Models, r.Names, status, body, got)
		}
		if placeholder.Match(body) {
			t.Errorf("%q: the refusal is not filled: %s", r.Check, body)
		}
	}
}
