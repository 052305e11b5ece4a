package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/openai"
)

// How an answer ends, whole, cut off or failed.
func TestResponsesEnds(t *testing.T) {
	done := func(i int, item string) string {
		return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, item)
	}
	ended := func(kind, members string) string {
		return `{"type":"response.` + kind + `","response":{"id":"resp_1","status":"` + kind + `",` + members + `}}`
	}
	const piece, usage = `{"type":"response.output_text.delta","output_index":0,"delta":"Do"}`, `"usage":{"input_tokens":7,"output_tokens":2}`
	failed := func(code string) string {
		return ended("failed", usage+`,"output":[],"error":{"code":"`+code+`","message":"no"}`)
	}
	for name, c := range map[string]struct {
		events []string
		want   string // a finish reason, or the kind of an error
	}{
		"items without a list":     {[]string{done(1, called), done(0, thought), ended("completed", `"output":[]`)}, "tool_calls"},
		"the list is better":       {[]string{done(0, called), ended("completed", `"output":[`+spoke+`]`)}, "stop"},
		"refused by the model":     {[]string{ended("completed", `"output":[`+strings.Replace(spoke, `"output_text","text"`, `"refusal","refusal"`, 1)+`]`)}, "stop"},
		"too long":                 {[]string{ended("incomplete", `"incomplete_details":{"reason":"max_output_tokens"},"output":[`+called+`]`)}, "length"},
		"filtered":                 {[]string{ended("incomplete", `"incomplete_details":{"reason":"content_filter"},"output":[]`)}, "content_filter"},
		"cut off at once":          {nil, "network"},
		"cut off in a piece":       {[]string{piece}, "network"},
		"cut off after the items":  {[]string{piece, done(0, spoke), "[DONE]"}, "network"},
		"failed":                   {[]string{piece, failed("server_error")}, "overloaded"},
		"failed without a word":    {[]string{piece, ended("failed", `"output":[]`)}, "overloaded"},
		"cancelled":                {[]string{ended("cancelled", `"output":[]`), `{"type":"response.completed","response":{"status":"cancelled"}}`}, "overloaded"},
		"limited":                  {[]string{failed("rate_limit_exceeded")}, "rate_limit"},
		"too long for the model":   {[]string{failed("context_length_exceeded")}, "context_length"},
		"against a policy":         {[]string{failed("bio_policy")}, "content_filter"},
		"an image it cannot read":  {[]string{failed("image_parse_error")}, "bad_request"},
		"an error":                 {[]string{piece, `{"type":"error","code":"invalid_prompt","message":"no"}`}, "bad_request"},
		"no JSON":                  {[]string{`{"type":`}, "bad_answer"},
		"pieces and no item":       {[]string{piece, ended("completed", `"output":[]`)}, "bad_answer"},
		"a call of nothing":        {[]string{ended("completed", `"output":[{"type":"function_call","call_id":"c"}]`)}, "bad_answer"},
		"an item of no type":       {[]string{ended("completed", `"output":[{}]`)}, "bad_answer"},
		"a result":                 {[]string{ended("completed", `"output":[{"type":"function_call_output","call_id":"c"}]`)}, "bad_answer"},
		"a long name":              {[]string{ended("completed", `"output":[{"type":"function_call","name":"`+strings.Repeat("x", 5000)+`"}]`)}, "bad_answer"},
		"a long type":              {[]string{ended("completed", `"output":[{"type":"`+strings.Repeat("x", 5000)+`"}]`)}, "bad_answer"},
		"an index out of range":    {[]string{done(10_000, spoke)}, "bad_answer"},
		"an index below range":     {[]string{done(-1, spoke)}, "bad_answer"},
		"more items than anything": {[]string{ended("completed", `"output":[`+strings.Repeat("{},", 10_000)+`{}]`)}, "bad_answer"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := clerk(t, viaResponses, append([]string{"200"}, c.events...))
			resp, err := p.Generate(t.Context(), ask(), nil)
			got, e := resp.Finish, new(providers.Error)
			if err != nil {
				e = providers.AsError(err)
				got = string(e.Kind)
			}
			if got != c.want {
				t.Fatalf("got %s: %+v, %v", got, resp, err)
			}
			if strings.Contains(fmt.Sprint(c.events), "input_tokens") && e.Usage.Input != 7 {
				t.Errorf("usage %+v", e.Usage)
			}
			if err != nil && e.Temporary != (c.want == "network" || c.want == "overloaded" || c.want == "rate_limit") {
				t.Errorf("%#v", e)
			}
		})
	}
	p, _ := clerk(t, viaResponses, completed("resp_1", strings.Replace(spoke, `"output_text","text"`, `"refusal","refusal"`, 1)))
	if it := generate(t, p, ask()).Items[0]; it.Type != messages.ItemRefusal || it.Content.Text() != "Done." {
		t.Errorf("%+v", it)
	}
}

// A key in an answer is in none of its items.
func TestResponsesHideKeys(t *testing.T) {
	p, _ := clerk(t, viaResponses, []string{"200", `{"type":"response.output_text.delta","delta":"` + key + `"}`,
		completed("resp_"+key, strings.Replace(spoke, "Done.", key, 1), strings.Replace(searched, `"q"`, `"`+key+`"`, 1))[1]})
	var shown string
	resp, err := p.Generate(t.Context(), ask(), func(d providers.Delta) { shown += d.Text })
	kept, _ := json.Marshal(resp)
	if err != nil || len(resp.Items) != 2 || strings.Contains(string(kept)+shown, key) {
		t.Errorf("%v: %s, shown %s", err, kept, shown)
	}
}

// Items come from the events that end them where the last event has none.
func TestResponsesLongItems(t *testing.T) {
	long := func(c string) string { return strings.Replace(spoke, "Done.", strings.Repeat(c, 9000), 1) }
	p, _ := clerk(t, viaResponses, []string{"200", `{"type":"response.output_item.done","output_index":0,"item":` + long("a") + `}`,
		`{"type":"response.output_item.done","output_index":2,"item":` + long("b") + `}`, `{"type":"response.completed","response":{"status":"completed","output":[]}}`})
	items := generate(t, p, ask()).Items
	if len(items) != 2 || items[0].Content.Text() != strings.Repeat("a", 9000) || items[1].Content.Text() != strings.Repeat("b", 9000) {
		t.Errorf("%.300v", items)
	}
}

// Parts of reasoning are apart, and ids of calls that the history has are replaced.
func TestResponsesParts(t *testing.T) {
	p, requests := clerk(t, viaResponses, completed("resp_1", thought, called))
	r := ask(call("call_1", ""), output("call_1", "0"))
	items := generate(t, p, r).Items
	if items[0].Content.Text() != "hm\n\nso" || items[1].CallID == "call_1" {
		t.Errorf("%+v", items)
	}
	r.Items = list(r.Items, items, output(items[1].CallID, "1"))
	generate(t, p, r)
	if got := inputOf(t, *requests, 1); strings.Count(got, `"call_id":"call_1"`) != 2 || strings.Count(got, `"call_id":"`+string(items[1].CallID)+`"`) != 2 {
		t.Errorf("sent %s", got)
	}
}

// A stream is over with its last event, also where the server does not end it.
func TestResponsesLastEvent(t *testing.T) {
	hung := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: "+completed("resp_1", spoke)[1]+"\n\n")
		_ = http.NewResponseController(w).Flush()
		<-hung
	}))
	defer s.Close()
	defer close(hung)
	if resp := generate(t, openai.New("", openai.BaseURL(s.URL), openai.Rules(viaResponses)), ask()); resp.Finish != "stop" {
		t.Fatalf("got %+v", resp)
	}
}

// A number that is a secret makes an item no JSON: it is kept without its raw form.
func TestResponsesNumber(t *testing.T) {
	const number = "123456789012"
	s := serving(t, "data: "+completed("resp_1", strings.Replace(spoke, `"id"`, `"account":`+number+`,"id"`, 1))[1]+"\n\n")
	it := generate(t, openai.New("", openai.BaseURL(s.URL), openai.Rules(viaResponses), openai.Header("X-Account-Token", number)), ask()).Items[0]
	if it.Raw != nil || it.Type != messages.ItemMessage {
		t.Errorf("%+v", it)
	}
}
