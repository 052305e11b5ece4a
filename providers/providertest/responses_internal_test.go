package providertest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/providers/scripted"
)

// itemBreaks is breaks for the Responses API. The good request has a user's
// message, the reasoning, the text and the call that the server gave, and its output.
var itemBreaks = map[string]func(a *ask, r rule){
	"refused members": func(a *ask, r rule) { a.set(r.Names[0], 0.5) },
	"nested tools": func(a *ask, _ rule) {
		a.set("tools", []any{object{"type": "function", "function": object{"name": "f"}}})
	},
	"lost response": func(a *ask, _ rule) { a.set("previous_response_id", "resp_1") },
	"unsendable items": func(a *ask, _ rule) {
		a.set("input", append(a.input(), object{"type": "image_generation_call", "id": "ig_1"}))
	},
	"item types":   func(a *ask, _ rule) { a.item(0)["type"] = "local_shell_call" },
	"item members": func(a *ask, _ rule) { delete(a.item(3), "arguments") },
	"item ids":     func(a *ask, _ rule) { a.item(3)["id"] = "call_1" },
	"long ids": func(a *ask, r rule) {
		id := strings.Repeat("a", 65)
		if strings.Contains(r.Text, "dashes") {
			id = "functions.look:0"
		}
		a.item(3)["call_id"], a.item(4)["call_id"] = id, id
	},
	"content parts":           func(a *ask, _ rule) { a.item(2)["content"] = []any{object{"type": "input_text", "text": "x"}} },
	"lost item":               func(a *ask, _ rule) { delete(a.item(1), "encrypted_content") },
	"wrong encrypted content": func(a *ask, _ rule) { a.item(1)["encrypted_content"] = "gAAAAother" },
	"missing follower":        func(a *ask, _ rule) { a.set("input", slices.Delete(a.input(), 2, 3)) },
	"missing leader":          func(a *ask, _ rule) { a.set("input", slices.Delete(a.input(), 1, 2)) },
	"missing output":          func(a *ask, _ rule) { a.set("input", a.input()[:4]) },
	"orphan output":           func(a *ask, _ rule) { a.item(4)["call_id"], a.item(3)["type"] = "call_x", "web_search_call" },
	"too long":                func(a *ask, _ rule) { a.item(0)["content"] = strings.Repeat("long ", 2000) },
}

func (a *ask) input() []any { return a.body["input"].([]any) }

func (a *ask) item(i int) object { return a.input()[i].(object) }

// consult is talk for the Responses API.
func (s imitated) consult(t *testing.T) *ask {
	t.Helper()
	input := []any{object{"role": "user", "content": "What is it?"}}
	a := &ask{header: http.Header{"Authorization": {"Bearer k"}}, url: s.URL + "/responses?api-version=2024-10-21",
		body: object{"model": s.imitation.Model, "store": false, "include": []any{"reasoning.encrypted_content"}, "input": input}}
	a.set("input", append(append(input, s.whole(t, a)["output"].([]any)...),
		object{"type": "function_call_output", "call_id": "call_1", "output": "a box"}))
	return a
}

func consulting(*Request) Answer {
	return Answer{Step: scripted.Step{Reasoning: "I have to look.", Text: "One moment.", Calls: []scripted.Call{{ID: "call_1", Name: "look", Arguments: `{"at":"it"}`}}}}
}

// Every rule of the Responses API refuses a request that breaks it, and none
// refuses the server's own answer.
func TestItemRulesRefuse(t *testing.T) {
	everywhere(t, func(t *testing.T, i Imitation) {
		model := imitatedServer(t, i, consulting).model
		if model.Responses == nil {
			return
		}
		for _, r := range model.Responses.rules(i.Model) {
			s := imitatedServer(t, i, consulting)
			a := s.consult(t)
			s.whole(t, a)
			itemRuleRefuses(t, s, a, r)
		}
	})
}

func itemRuleRefuses(t *testing.T, s imitated, a *ask, r rule) {
	t.Helper()
	if !matches(r.Models, s.imitation.Model) || s.imitation.Server == "xai" && r.With["code"] == "invalid_encrypted_content" {
		return // xai words it otherwise, by a rule before
	}
	change := itemBreaks[r.Check]
	if change == nil {
		change = breaks[r.Check]
	}
	change(a, r)
	status, _, body := s.do(t, a)
	if got := s.Refusals(); status != r.Status || len(got) != 1 || got[0].Check != r.Check || placeholder.Match(body) {
		t.Errorf("%q %v: got %d %s, refused by %+v", r.Check, r.Names, status, body, got)
	}
}

// sse returns the events of a stream, and checks that they are numbered in order.
func sse(t *testing.T, body string) (kinds []string, events []object) {
	t.Helper()
	for i, event := range strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		name, data, _ := strings.Cut(strings.TrimPrefix(event, "event: "), "\ndata: ")
		var o object
		if err := json.Unmarshal([]byte(data), &o); err != nil || o["type"] != name || o["sequence_number"] != float64(i) {
			t.Fatalf("event %d is %s: %v", i, event, err)
		}
		kinds, events = append(kinds, strings.TrimPrefix(name, "response.")), append(events, o)
	}
	return kinds, events
}

// The events of a stream come in the server's order, and the last one has the
// items that the others gave.
func TestItemEvents(t *testing.T) {
	search := json.RawMessage(`{"type":"web_search_call","id":"ws_1","status":"completed"}`)
	s := imitatedServer(t, Imitation{Server: "openai", Model: "gpt-5.5"}, func(*Request) Answer {
		a := consulting(nil)
		a.Pieces, a.Output = 2, []json.RawMessage{search}
		return a
	})
	a := s.consult(t)
	a.set("input", a.input()[:1])
	a.set("stream", true)
	_, _, body := s.do(t, a)
	kinds, events := sse(t, string(body))
	want := "created in_progress" +
		" output_item.added reasoning_summary_part.added reasoning_summary_text.delta reasoning_summary_text.delta reasoning_summary_text.done reasoning_summary_part.done output_item.done" +
		" output_item.added output_item.done" +
		" output_item.added content_part.added output_text.delta output_text.delta output_text.done content_part.done output_item.done" +
		" output_item.added function_call_arguments.delta function_call_arguments.delta function_call_arguments.done output_item.done completed"
	if got := strings.Join(kinds, " "); got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	var done []any
	for _, e := range events {
		if e["type"] == "response.output_item.done" {
			done = append(done, e["item"])
		}
	}
	output := events[len(events)-1]["response"].(object)["output"]
	if got, want := string(encode(done)), string(encode(output)); got != want {
		t.Fatalf("the items were %s, the whole has %s", got, want)
	}
	if !strings.Contains(string(encode(output)), `"phase":"commentary"`) || !strings.Contains(string(encode(output)), `"type":"web_search_call"`) {
		t.Fatalf("the output is %s", encode(output))
	}
}

// A response ends as the script says: cut, filtered, failed, or with an error.
func TestItemEnds(t *testing.T) {
	for _, c := range []struct {
		answer Answer
		last   string
		has    string
	}{
		{Answer{Step: scripted.Step{Text: "It", Finish: "length"}}, "incomplete", `"incomplete_details":{"reason":"max_output_tokens"}`},
		{Answer{Step: scripted.Step{Text: "It", Finish: "content_filter"}}, "incomplete", `"incomplete_details":{"reason":"content_filter"}`},
		{Answer{Step: scripted.Step{Refusal: "No."}}, "completed", `{"refusal":"No.","type":"refusal"}`},
		{Answer{Step: scripted.Say("It"), Fault: Fail, Message: "broke"}, "failed", `"error":{"code":"server_error","message":"broke"}`},
		{Answer{Step: scripted.Say("It"), Fault: Complain, Message: "broke"}, "error", `"message":"broke"`},
		{Answer{Step: scripted.Say("It"), Fault: Truncate}, "output_item.done", `"It"`},
	} {
		s := imitatedServer(t, Imitation{Server: "openai", Model: "gpt-5.1"}, Play(c.answer))
		a := &ask{header: http.Header{"Authorization": {"Bearer k"}}, url: s.URL + "/responses", body: object{"model": "gpt-5.1", "input": "hi", "stream": true}}
		_, _, body := s.do(t, a)
		kinds, events := sse(t, string(body))
		last := encode(events[len(events)-1])
		if kinds[len(kinds)-1] != c.last || !strings.Contains(string(last), c.has) {
			t.Errorf("ended with %v, %s; want %s with %s", kinds, last, c.last, c.has)
		}
	}
}

// The server continues from what it keeps, and does not find what it does not keep.
func TestPreviousResponse(t *testing.T) {
	s := imitatedServer(t, Imitation{Server: "openai", Model: "gpt-5.1"}, consulting)
	a := s.consult(t)
	unkept := s.whole(t, a)["id"]
	a.set("store", true)
	kept := s.whole(t, a)
	a.set("input", []any{object{"type": "function_call_output", "call_id": "call_1", "output": "a box"}})
	a.set("previous_response_id", kept["id"])
	s.whole(t, a)
	a.set("previous_response_id", unkept)
	if status, _, body := s.do(t, a); status != 400 || !strings.Contains(string(body), "previous_response_not_found") {
		t.Fatalf("a response that was not kept got %d %s", status, body)
	}
}

// Encrypted content is of one model, that of compactions too.
func TestSealedForOneModel(t *testing.T) {
	s := imitatedServer(t, Imitation{Server: "openai", Model: "gpt-5.1"}, func(*Request) Answer {
		return Answer{Step: scripted.Say("so"), Output: []json.RawMessage{json.RawMessage(`{"type":"compaction","id":"cmp_1","encrypted_content":"gAAAAsum"}`)}}
	})
	compaction := object{"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAsum"}
	a := &ask{header: http.Header{"Authorization": {"Bearer k"}}, url: s.URL + "/responses", body: object{"model": "gpt-5.1", "input": []any{}}}
	s.whole(t, a)
	a.set("input", []any{compaction, object{"role": "user", "content": "and?"}})
	s.whole(t, a)
	a.set("model", "gpt-4.1")
	if status, _, body := s.do(t, a); status != 400 || !strings.Contains(string(body), "The encrypted content gAAA... could not be verified.") {
		t.Fatalf("another model got %d %s", status, body)
	}
}

// Azure sends encrypted content at the end of a stream alone.
func TestAzureSealsLate(t *testing.T) {
	s := imitatedServer(t, Imitation{Server: "azure", Model: "gpt-5.1"}, consulting)
	a := s.consult(t)
	a.set("stream", true)
	_, _, body := s.do(t, a)
	_, events := sse(t, string(body))
	for i, e := range events {
		if sealed := strings.Contains(string(encode(e)), "encrypted_content"); sealed != (i == len(events)-1) {
			t.Errorf("event %d of %d: encrypted content: %v", i, len(events), sealed)
		}
	}
}
