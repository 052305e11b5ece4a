package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// From the list of refunds, why leads to the input that was sent again, by whom, and to who approved each. What a
// user wrote does not steer the terminal.
func TestWhy(t *testing.T) {
	w := newWorld(t)
	w.dev()
	const request = "Refund 9900 cents for order 7 \x1b[2J"
	for _, id := range []string{"u1", "u2"} {
		w.run("ask", "support/t1", request, "--id", id, "--person", "bob").exits(3, "waits for a person")
		w.run("approve", "support/t1", waiting(t, w, "support/t1"), "--person", "ann", "--reason", "looks right").exits(0, "approved")
		w.run("ask", "support/t1", request, "--id", id).exits(0) // waits for the end of its turn
	}
	calls := w.run("effects", "support/t1", "--tool", "refund", "--where", "order=7", "-o", "json").exits(0).objects()
	if len(calls) != 2 {
		t.Fatalf("refunds: %v", calls)
	}
	first, second := number(calls[0]["n"]), number(calls[1]["n"])
	r := w.run("why", "support/t1", second).exits(0,
		"WHY", "event ", "asked", "answered", "input u", "by bob (claimed) through prompt", "refund was granted by a person: looks right", "by ann (claimed) through ctl",
		"found  this call repeats call", "(event "+first+")", "under another id",
		"request support/t1", "why support/t1 "+first, "replay support/t1 --turn t")
	if strings.Contains(r.out, "\x1b") {
		t.Errorf("an escape code is printed:\n%q", r.out)
	}
	w.run("why", "support/t1", first).exits(0, "repeated", "(event "+second+"), which completed, repeats this call")
	if byCall := w.run("why", "support/t1", calls[1]["call"].(string)).exits(0); byCall.out != r.out {
		t.Errorf("why of call %s:\n%s\nwant what it is of event %s:\n%s", calls[1]["call"], byCall.out, second, r.out)
	}
	w.run("why", "support/t1", "1").exits(0, "the agent was created", "no equal call and no repeated input")

	o := w.run("why", "support/t1", second, "-o", "json").exits(0).objects()
	if len(o) != 1 {
		t.Fatalf("why: got %d objects, want 1", len(o))
	}
	wantKeys(t, o[0], "agent", "n", "chain", "findings")
	wantKeys(t, o[0]["findings"].([]any)[0].(map[string]any), "kind", "text", "events")
	for _, line := range o[0]["chain"].([]any) {
		if line := line.(map[string]any); line["relation"] == "decided" {
			wantKeys(t, line, "relation", "agent", "n", "at", "type", "turn", "call", "text", "command", "id", "endpoint", "person")
		}
	}

	w.run("why", "support/t1", "10000").exits(1, "no event 10000")
	w.run("why", "support/none", "1").exits(1, "does not exist", "ls")
	w.run("why", "support/t1", "x").exits(1, `no tool call "x"`, "number of an event", "effects support/t1", "events support/t1")
	turn := calls[0]["turn"].(string)
	w.run("why", "support/t1", turn).exits(1, turn+" is a turn of agent support/t1", "turn support/t1 "+turn)
	w.run("why", "support/none", "call_1").exits(1, "does not exist", "ls")
	w.run("why", "support/t1", "0").exits(2, "number of an event")
	w.run("request", "support/t1", "0").exits(2, "number of an event", "events support/t1")
	w.run("why", "support/t1").exits(2)
}

// A server may number the calls of each answer from zero. A call behind a clear may so have the id of one before it.
func TestWhyOfTwoCallsWithOneID(t *testing.T) {
	w := newWorld(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Messages []struct{ Role string } }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		choice := `{"delta":{"content":"noon"},"finish_reason":"stop"}`
		if body.Messages[len(body.Messages)-1].Role == "user" {
			choice = `{"delta":{"tool_calls":[{"index":0,"id":"call_0","type":"function","function":{"name":"clock","arguments":"{}"}}]},"finish_reason":"tool_calls"}`
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"choices\":[%s]}\n\ndata: [DONE]\n\n", choice)
	}))
	t.Cleanup(s.Close)
	w.env = append(w.env, "OPENAI_API_KEY="+key, "OPENAI_BASE_URL="+s.URL+"/v1")
	w.dev()
	w.run("ask", "assistant/main", "What time is it?").exits(0, "noon")
	w.run("why", "assistant/main", "call_0").exits(0, "call call_0 of clock")
	w.run("clear", "assistant/main").exits(0)
	w.run("ask", "assistant/main", "And now?").exits(0, "noon")
	calls := w.run("effects", "assistant/main", "-o", "json").exits(0).objects()
	if len(calls) != 2 {
		t.Fatalf("calls: %v", calls)
	}
	first, second := number(calls[0]["n"]), number(calls[1]["n"])
	w.run("why", "assistant/main", "call_0").exits(2, "2 calls", first+", "+second, "the number of one")
	w.run("why", "assistant/main", first).exits(0, "call call_0 of clock")
}

// number is a number of JSON as a person writes it.
func number(v any) string { return strconv.FormatFloat(v.(float64), 'f', -1, 64) }
