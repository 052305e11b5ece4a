package openai_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
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
	named := func(event, members string) string {
		return `{"type":"response.` + event + `","response":{` + members + `"output":[` + called + `]}}`
	}
	ended := func(kind, members string) string {
		return `{"type":"response.` + kind + `","response":{"id":"resp_1","status":"` + kind + `",` + members + `}}`
	}
	const piece, usage = `{"type":"response.output_text.delta","output_index":0,"delta":"Do"}`, `"usage":{"input_tokens":7,"output_tokens":2}`
	failed := func(code string) string {
		return ended("failed", usage+`,"output":[],"error":{"code":"`+code+`","message":"no"}`)
	}
	var many []string
	for i := range 10_001 {
		many = append(many, done(i, fmt.Sprintf(`{"type":"x_call","id":"x_%d"}`, i)))
	}
	for name, c := range map[string]struct {
		events []string
		want   string // a finish reason, or the kind of an error
	}{
		"items without a list":                     {[]string{done(1, called), done(0, thought), ended("completed", `"output":[]`)}, "tool_calls"},
		"the list is better":                       {[]string{done(0, called), ended("completed", `"output":[`+spoke+`]`)}, "stop"},
		"refused by the model":                     {[]string{ended("completed", `"output":[`+strings.Replace(spoke, `"output_text","text"`, `"refusal","refusal"`, 1)+`]`)}, "stop"},
		"too long":                                 {[]string{ended("incomplete", `"incomplete_details":{"reason":"max_output_tokens"},"output":[`+called+`]`)}, "length"},
		"filtered":                                 {[]string{ended("incomplete", `"incomplete_details":{"reason":"content_filter"},"output":[]`)}, "content_filter"},
		"incomplete for no reason":                 {[]string{ended("incomplete", `"incomplete_details":null,"output":[`+called+`]`)}, "length"},
		"for a reason of its own":                  {[]string{ended("incomplete", `"incomplete_details":{"reason":"max_tool_calls"},"output":[`+called+`]`)}, "length"},
		"incomplete by its event":                  {[]string{named("incomplete", `"status":"completed",`)}, "length"},
		"incomplete by its status":                 {[]string{named("completed", `"status":"incomplete",`)}, "length"},
		"cut off by its reason":                    {[]string{named("completed", `"status":"completed","incomplete_details":{"reason":"max_output_tokens"},`)}, "length"},
		"failed, not incomplete":                   {[]string{named("failed", `"status":"incomplete",`)}, "overloaded"},
		"failed by its event":                      {[]string{named("failed", `"status":"completed",`)}, "overloaded"},
		"completed with nothing":                   {[]string{`{"type":"response.completed"}`}, "overloaded"},
		"completed by its event":                   {[]string{named("completed", "")}, "tool_calls"},
		"cut off at once":                          {nil, "network"},
		"cut off in a piece":                       {[]string{piece}, "network"},
		"cut off after the items":                  {[]string{piece, done(0, spoke), "[DONE]"}, "network"},
		"failed":                                   {[]string{piece, failed("server_error")}, "overloaded"},
		"failed without a word":                    {[]string{piece, ended("failed", `"output":[]`)}, "overloaded"},
		"cancelled":                                {[]string{ended("cancelled", `"output":[]`), `{"type":"response.completed","response":{"status":"cancelled"}}`}, "overloaded"},
		"limited":                                  {[]string{failed("rate_limit_exceeded")}, "rate_limit"},
		"too long for the model":                   {[]string{failed("context_length_exceeded")}, "context_length"},
		"against a policy":                         {[]string{failed("bio_policy")}, "content_filter"},
		"an image it cannot read":                  {[]string{failed("image_parse_error")}, "bad_request"},
		"an error":                                 {[]string{piece, `{"type":"error","code":"invalid_prompt","message":"no"}`}, "bad_request"},
		"an error without a word":                  {[]string{piece, `{"type":"error"}`, ended("completed", `"output":[`+spoke+`]`)}, "overloaded"},
		"an error of a code":                       {[]string{`{"type":"error","code":"rate_limit_exceeded","message":null}`}, "rate_limit"},
		"an error of a code, nested":               {[]string{`{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":""}}`}, "context_length"},
		"failed with a code":                       {[]string{ended("failed", `"error":{"code":"context_length_exceeded","message":""}`)}, "context_length"},
		"a usage in part":                          {[]string{ended("failed", `"usage":{"input_tokens":7.0,"output_tokens_details":{"reasoning_tokens":"x"}}`)}, "overloaded"},
		"a long id":                                {[]string{`{"type":"response.completed","response":{"id":"` + strings.Repeat("x", 5000) + `","output":[]}}`}, "bad_answer"},
		"a long model":                             {[]string{ended("completed", `"model":"`+strings.Repeat("x", 5000)+`","output":[]`)}, "bad_answer"},
		"no JSON":                                  {[]string{`{"type":`}, "bad_answer"},
		"pieces and a refusal":                     {[]string{piece, ended("completed", `"output":[`+strings.Replace(spoke, `"output_text","text"`, `"refusal","refusal"`, 1)+`]`)}, "stop"},
		"reasoning and no item":                    {[]string{`{"type":"response.reasoning_text.delta","delta":"hm"}`, ended("completed", `"output":[]`)}, "bad_answer, temporary"},
		"pieces and no item":                       {[]string{piece, ended("completed", `"output":[]`)}, "bad_answer, temporary"},
		"pieces that were filtered":                {[]string{piece, ended("incomplete", `"incomplete_details":{"reason":"content_filter"},"output":[]`)}, "content_filter"},
		"pieces that are cut off":                  {[]string{piece, ended("incomplete", `"output":[]`)}, "bad_answer, temporary"},
		"a call of nothing":                        {[]string{ended("completed", `"output":[{"type":"function_call","call_id":"c"}]`)}, "bad_answer"},
		"arguments of a number":                    {[]string{ended("completed", `"output":[`+strings.Replace(called, `""`, "5", 1)+`]`)}, "bad_answer"},
		"an item of no type":                       {[]string{ended("completed", `"output":[{}]`)}, "bad_answer"},
		"a result":                                 {[]string{ended("completed", `"output":[{"type":"function_call_output","call_id":"c"}]`)}, "bad_answer"},
		"a long name":                              {[]string{ended("completed", `"output":[{"type":"function_call","name":"`+strings.Repeat("x", 5000)+`"}]`)}, "bad_answer"},
		"a long type":                              {[]string{ended("completed", `"output":[{"type":"`+strings.Repeat("x", 5000)+`"}]`)}, "bad_answer"},
		"more items than anything":                 {[]string{ended("completed", `"output":[`+strings.Repeat(spoke+",", 10_000)+spoke+`]`)}, "bad_answer"},
		"more items than anything, without a list": {append(slices.Clone(many), ended("completed", `"output":[]`)), "bad_answer"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := clerk(t, viaResponses, append([]string{"200"}, c.events...))
			resp, err := p.Generate(t.Context(), ask(), nil)
			got, e := resp.Finish, new(providers.Error)
			if err != nil {
				e = providers.AsError(err)
				got = string(e.Kind)
			}
			if e.Kind == providers.BadAnswer && e.Temporary {
				got += ", temporary"
			}
			if got != c.want {
				t.Fatalf("got %s: %+v, %v", got, resp, err)
			}
			if strings.Contains(fmt.Sprint(c.events), "input_tokens") && e.Usage.Input != 7 {
				t.Errorf("usage %+v", e.Usage)
			}
			if err != nil && e.Temporary != (strings.HasSuffix(c.want, ", temporary") || c.want == "network" || c.want == "overloaded" || c.want == "rate_limit") {
				t.Errorf("%#v", e)
			}
		})
	}
	p, _ := clerk(t, viaResponses, completed("resp_1", strings.Replace(spoke, `"output_text","text"`, `"refusal","refusal"`, 1)))
	if it := generate(t, p, ask()).Items[0]; it.Type != messages.ItemRefusal || it.Content.Text() != "Done." {
		t.Errorf("%+v", it)
	}
}

// All that the usage counts.
func TestResponsesUsage(t *testing.T) {
	answer := strings.Replace(completed("resp_1", spoke)[1], `"model"`,
		`"usage":{"input_tokens":7,"output_tokens":"6","input_tokens_details":{"cached_tokens":5,"cache_write_tokens":4.0},"output_tokens_details":{"reasoning_tokens":3}},"model"`, 1)
	p, _ := clerk(t, viaResponses, []string{"200", answer})
	if got := generate(t, p, ask()).Usage; got != (messages.Usage{Input: 7, Output: 6, Cached: 5, CacheWrite: 4, Reasoning: 3}) {
		t.Errorf("%+v", got)
	}
}

// A key in an answer is in none of its items, however it is written, nor beside them.
func TestResponsesHideKeys(t *testing.T) {
	escaped := strings.ReplaceAll(key, "-", `\u002d`)
	call := strings.NewReplacer("call_1", key, `"f"`, `"`+key+`"`, `""`, `"{\"x\":\"`+strings.ReplaceAll(escaped, `\`, `\\`)+`\"}"`).Replace(called)
	answer := completed("resp_"+key, strings.Replace(spoke, "Done.", escaped, 1), strings.Replace(searched, `"q"`, `"`+key+`"`, 1),
		strings.ReplaceAll(searched, "web_search", key), call)[1]
	answer = strings.Replace(answer, `"model":"m"`, `"model":"`+key+`","incomplete_details":{"reason":"`+key+`"}`, 1)
	p, _ := clerk(t, viaResponses, []string{"200", `{"type":"response.output_text.delta","delta":"` + key + `"}`, answer})
	var shown string
	resp, err := p.Generate(t.Context(), ask(), func(d providers.Delta) { shown += d.Text })
	kept, _ := json.Marshal(resp)
	if err != nil || len(resp.Items) != 4 || strings.Contains(string(kept)+shown, key) || strings.Contains(string(kept), `u002d`) {
		t.Errorf("%v: %s, shown %s", err, kept, shown)
	}
}

// Items come from the events that end them where the last event has none, or fewer. None that
// was begun is missing in an answer that is whole.
func TestResponsesItemsEnd(t *testing.T) {
	event := func(kind, index, item string) string {
		return `{"type":"response.output_item.` + kind + `",` + index + `"item":` + item + `}`
	}
	added, done := func(i int, item string) string { return event("added", fmt.Sprintf(`"output_index":%d,`, i), item) },
		func(i int, item string) string { return event("done", fmt.Sprintf(`"output_index":%d,`, i), item) }
	ended := func(kind string, items ...string) string {
		return strings.ReplaceAll(completed("resp_1", items...)[1], "completed", kind)
	}
	second := strings.NewReplacer("fc_1", "fc_2", "call_1", "call_2").Replace(called)
	nameless := func(item string) string {
		return strings.NewReplacer(`"id":"fc_1",`, "", `"id":"fc_2",`, "").Replace(item)
	}
	bare := strings.Replace(spoke, `"id":"msg_1",`, "", 1)
	const piece, anonymous = `{"type":"response.output_text.delta","output_index":1,"delta":"Do"}`, `{"type":"function_call","name":"f","arguments":""}`
	long := func(id string) string {
		return `{"x":"` + strings.Repeat("a", 9000) + `",` + strings.Replace(called, "call_1", id, 1)[1:]
	}
	for _, c := range []struct {
		name   string
		events []string
		want   string // the types of items, with the ids of calls; or an error
	}{
		{"in another order", []string{done(2, called), done(0, thought), ended("completed")}, "reasoning call_1"},
		{"long", []string{done(0, long("call_1")), done(1, long("call_2")), ended("completed")}, "call_1 call_2"},
		{"without an index", []string{event("done", "", called), event("done", "", second), ended("completed")}, "call_1 call_2"},
		{"one without an index", []string{done(3, called), event("done", "", second), done(1, thought), ended("completed")}, "reasoning call_1 call_2"},
		{"of one index", []string{done(0, thought), done(0, called), done(0, second), ended("completed")}, "reasoning call_1 call_2"},
		{"of one index, without ids", []string{done(0, nameless(called)), done(0, nameless(second)), ended("completed")}, "call_1 call_2"},
		{"of any index", []string{done(1_000_000, called), done(-1, thought), ended("completed")}, "reasoning call_1"},
		{"twice", []string{done(0, called), done(0, called), done(1, nameless(second)), done(1, nameless(second)), ended("completed")}, "call_1 call_2"},
		{"twice, under another index and id", []string{done(0, called), done(1, strings.Replace(called, "fc_1", "fc_2", 1)), ended("completed", called)}, "call_1"},
		{"twice, without any id", []string{done(0, bare), done(0, bare), ended("completed", bare)}, "message"},
		{"a shorter list", []string{done(0, spoke), done(1, called), ended("completed", spoke)}, "message call_1"},
		{"begun in events that are all of one index", []string{added(0, thought), added(0, called), done(0, thought), done(0, called), ended("completed")}, "reasoning call_1"},
		{"begun twice", []string{added(0, called), added(0, called), done(0, called), ended("completed")}, "call_1"},
		{"under another id", []string{added(0, second), done(0, called), ended("completed")}, "call_1"},
		{"never ended", []string{added(0, spoke), done(0, spoke), added(1, called), ended("completed")}, "bad_answer"},
		{"never ended, others not begun", []string{done(0, spoke), added(1, called), ended("completed")}, "bad_answer"},
		{"never ended, of one index", []string{added(0, thought), done(0, thought), added(0, called), ended("completed")}, "bad_answer"},
		{"begun without an index", []string{event("added", "", called), done(0, called), ended("completed")}, "call_1"},
		{"ended without an index", []string{added(1, called), event("done", "", called), ended("completed")}, "call_1"},
		{"never ended but in the list", []string{done(0, spoke), added(1, called), ended("completed", spoke, called)}, "message call_1"},
		{"alone, never ended", []string{added(0, called), ended("completed")}, "bad_answer"},
		{"begun under another index", []string{added(0, called), done(1, called), ended("completed", called)}, "call_1"},
		{"begun without an item", []string{added(0, "null"), event("added", "", "5"), added(1, spoke), done(1, spoke), ended("completed", spoke)}, "message"},
		{"reasoning and a message begun, but not in the list", []string{added(0, thought), added(1, spoke), added(2, called), done(2, called), ended("completed", called)}, "call_1"},
		{"a message alone, never ended", []string{added(0, spoke), ended("completed")}, "bad_answer"},
		{"one of two calls begun, not in the list", []string{added(0, called), added(1, second), ended("completed", called)}, "bad_answer"},
		{"calls without ids, one not in the list", []string{added(0, anonymous), added(1, anonymous), ended("completed", called)}, "bad_answer"},
		{"never ended, cut off", []string{done(0, spoke), added(1, called), ended("incomplete")}, "message"},
		{"shown, never ended", []string{done(0, thought), piece, ended("completed")}, "bad_answer"},
		{"of nothing", []string{`{"type":"response.output_item.done","output_index":0}`, ended("completed")}, "bad_answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, _ := clerk(t, viaResponses, append([]string{"200"}, c.events...))
			resp, err := p.Generate(t.Context(), ask(), nil)
			var got []string
			for _, it := range resp.Items {
				got = append(got, cmp.Or(string(it.CallID), string(it.Type)))
			}
			if err != nil {
				got = []string{string(providers.AsError(err).Kind)}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %v, %v; want %s", got, err, c.want)
			}
		})
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
