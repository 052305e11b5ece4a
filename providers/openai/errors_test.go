package openai_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/memory"
	"github.com/reprise-dev/reprise/providers/openai"
	"github.com/reprise-dev/reprise/providers/profile"
	"github.com/reprise-dev/reprise/providers/providertest"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// answering is a provider whose server always answers this.
func answering(t *testing.T, status int, kind, body string, header ...string) *openai.Provider {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return openai.New(key, openai.BaseURL(s.URL))
}

// A50
func TestStatus(t *testing.T) {
	for _, c := range []struct {
		status    int
		body      string
		kind      providers.ErrorKind
		temporary bool
		says      string
	}{
		{429, `{"error":{"message":"slow down","type":"rate_limit_error"}}`, providers.RateLimit, true, "slow down"},
		{429, `{"error":{"message":"pay first","code":"insufficient_quota"}}`, providers.RateLimit, false, "pay first"},
		{500, `oops`, providers.Overloaded, true, "oops"},
		{500, ``, providers.Overloaded, true, "Internal Server Error"},
		{501, ``, providers.Overloaded, false, ""},
		{503, `{"error":"busy"}`, providers.Overloaded, true, "busy"},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"full"}}`, providers.Overloaded, true, "full"},
		{408, ``, providers.Network, true, ""},
		{409, `{"message":"again"}`, providers.Overloaded, true, "again"},
		{401, `{"error":{"message":"who?","code":null}}`, providers.Auth, false, "who?"},
		{403, `{"detail":"no"}`, providers.Auth, false, "no"},
		{400, `{"error":{"message":["one","two"],"code":400}}`, providers.BadRequest, false, "two"},
		{400, `{"error":{"message":"x","code":"context_length_exceeded"}}`, providers.ContextLength, false, "longer than the model takes"},
		{400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, providers.ContextLength, false, "longer than the model takes: compact the agent"},
		{400, `{"error":{"message":"Your input exceeds the context window of this model."}}`, providers.ContextLength, false, "then resume the turn"},
		{413, ``, providers.ContextLength, false, "longer than the model takes"},
		{404, `<html>`, providers.NotFound, false, "Not Found"},
		{404, "404 page not found\n", providers.NotFound, false, "404 page not found (the server has no such path: check the base URL)"},
		{404, ``, providers.NotFound, false, "Not Found (the server has no such path: check the base URL)"},
		// Bodies of servers as their users have reported them.
		{400, `[{"error":{"code":400,"message":"Function call is missing a thought_signature in functionCall parts.","status":"INVALID_ARGUMENT"}}]`, providers.BadRequest, false, "missing a thought_signature"},
		{400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, providers.Auth, false, "API key not valid"},
		{400, `{"code":"invalid-argument","error":"Incorrect API key provided: xa***yz."}`, providers.Auth, false, "Incorrect API key"},
		{400, `{"code":"invalid-argument","error":"This model's maximum prompt length is 500000 but the request contains 637815 tokens."}`, providers.ContextLength, false, "637815 tokens"},
		{422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error","code":null}`, providers.BadRequest, false, "max_completion_tokens"},
		{400, `{"object":"error","message":"Unexpected role 'user' after role 'tool'","type":"invalid_request_message_order","param":null,"code":"3230"}`, providers.BadRequest, false, "after role"},
		{422, "Failed to deserialize the JSON body into the target type: messages[1]: missing field `content` at line 1 column 60", providers.BadRequest, false, "missing field `content`"},
		{402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`, providers.RateLimit, false, "Insufficient Balance"},
		{400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"Gemini models require OpenRouter reasoning details to be preserved in each request.\"}}","provider_name":"Google"}},"user_id":"u"}`, providers.BadRequest, false, "to be preserved in each request. (Google)"},
		{429, `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"busy, try again later","provider_name":"X"}}}`, providers.RateLimit, true, "Provider returned error: busy, try again later (X)"},
		{403, `{"error":{"code":403,"message":"The model requires moderation, and your input was flagged"}}`, providers.ContentFilter, false, "flagged"},
		{400, `{"error":{"message":"The response was filtered","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, providers.ContentFilter, false, "filtered"},
		{404, `{"error":{"message":"The model 'gpt-9' does not exist","type":"invalid_request_error","param":null,"code":"model_not_found"}}`, providers.NotFound, false, "gpt-9"},
		{500, `{"error":{"code":500,"message":"Jinja Exception: System message must be at the beginning.","type":"server_error"}}`, providers.BadRequest, false, "at the beginning"},
		{500, `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`, providers.ContextLength, false, "has been exceeded"},
		{400, `{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<f>"}}`, providers.BadAnswer, true, "Failed to call"},
		{400, `{"error":{"message":"Too many tokens, please wait before trying again."}}`, providers.BadRequest, false, "please wait"},
		{413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"},"request_id":"r"}`, providers.ContextLength, false, "maximum size"},
		{502, "<html>\r\n<head><title>502 Bad Gateway</title></head><body>nginx</body></html>", providers.Overloaded, true, "502 Bad Gateway (the server answered with a web page"},
		{400, "\xff\xfe", providers.BadRequest, false, "Bad Request"},
		{400, `[]`, providers.BadRequest, false, "Bad Request"},
		{400, `{"success":false,"errors":[{"code":7003,"message":"no such route"}]}`, providers.BadRequest, false, "no such route"},
		{400, `"this prompt is too odd"`, providers.BadRequest, false, "this prompt is too odd"},
		{400, `null`, providers.BadRequest, false, "Bad Request"},
		{400, `{"error":{"message":"x","metadata":"none","innererror":7}}`, providers.BadRequest, false, "x"},
		{429, `{"error":{"message":"Request too large for gpt-4o in organization o on tokens per min (TPM): Limit 30000, Requested 42000.","type":"tokens","code":"rate_limit_exceeded"}}`, providers.ContextLength, false, "Requested 42000"},
		{400, `{"message":"'max_tokens' or 'max_completion_tokens' is too large: 50000. This model's maximum context length is 32768 tokens and your request has 12 input tokens"}`, providers.BadRequest, false, "50000"},
		{400, `{"message":"'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 32768 tokens and your request has 30000 input tokens (4096 > 32768 - 30000)."}`, providers.ContextLength, false, "30000 input"},
		{400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":{"error":{"message":"no such voice"}}}}}`, providers.BadRequest, false, "Provider returned error: no such voice"},
		{400, `{"message":null,"error":{"message":"","details":"too blue"}}`, providers.BadRequest, false, "too blue"},
		{422, `{"detail":[{"msg":"bad field"}]}`, providers.BadRequest, false, "bad field"},
		{304, ``, providers.BadAnswer, false, ""},
	} {
		t.Run(fmt.Sprint(c.status, " ", c.says), func(t *testing.T) {
			e := fail(t, answering(t, c.status, "application/json", c.body), ask())
			if e.Kind != c.kind || e.Status != c.status || e.Temporary != c.temporary || !strings.Contains(e.Message, c.says) {
				t.Fatalf("got %#v", e)
			}
		})
	}
}

// A50
func TestRetryAfter(t *testing.T) {
	const date = "Mon, 02 Jan 2006 15:04:05 GMT"
	for name, c := range map[string]struct {
		header []string
		want   time.Duration
	}{
		"seconds":          {[]string{"Retry-After", "7"}, 7 * time.Second},
		"parts of seconds": {[]string{"Retry-After", "0.25"}, 250 * time.Millisecond},
		"milliseconds":     {[]string{"Retry-After", "9", "Retry-After-Ms", "1500"}, 1500 * time.Millisecond},
		"a date":           {[]string{"Retry-After", "Mon, 02 Jan 2006 15:04:35 GMT", "Date", date}, 30 * time.Second},
		"a past date":      {[]string{"Retry-After", "Mon, 02 Jan 2006 15:00:00 GMT", "Date", date}, 0},
		"nonsense":         {[]string{"Retry-After", "soon"}, 0},
		"negative":         {[]string{"Retry-After", "-3"}, 0},
		"no number":        {[]string{"Retry-After", "NaN"}, 0},
		"too much":         {[]string{"Retry-After", "1e300"}, 1<<63 - 1},
		"for ever":         {[]string{"Retry-After", "Inf"}, 1<<63 - 1},
		"a far date":       {[]string{"Retry-After", "Sat, 02 Jan 2106 15:04:05 GMT", "Date", date}, 36524 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if e := fail(t, answering(t, 429, "application/json", ``, c.header...), ask()); e.RetryAfter != c.want {
				t.Fatalf("got %v, want %v", e.RetryAfter, c.want)
			}
		})
	}
}

// A50, A52: an answer that breaks is an error, and what it cost is known.
func TestBrokenAnswers(t *testing.T) {
	text := scripted.Step{Text: "almost"}
	usage := `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}`
	hello := delta(`{"content":"hello"}`)
	for name, c := range map[string]struct {
		answer    providertest.Answer
		kind      providers.ErrorKind
		temporary bool
		says      string
	}{
		"dropped":            {providertest.Answer{Step: text, Fault: providertest.Drop}, providers.Network, true, ""},
		"truncated":          {providertest.Answer{Step: text, Fault: providertest.Truncate}, providers.Network, true, "before it was complete"},
		"done too early":     {data(delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}`)), providers.Network, true, "before it was complete"},
		"done at once":       {data(), providers.Network, true, "before it was complete"},
		"out of resources":   {data(delta(`{"content":"x"},"finish_reason":"insufficient_system_resource"`)), providers.Overloaded, true, "gave up"},
		"no JSON":            {providertest.Answer{Step: text, Fault: providertest.Garble}, providers.BadAnswer, false, "no JSON"},
		"complaint":          {providertest.Answer{Step: text, Fault: providertest.Complain, Message: "broke"}, providers.Overloaded, true, "broke"},
		"complaint as text":  {data(hello, `{"error":"too busy"}`), providers.Overloaded, true, "too busy"},
		"complaint in chunk": {data(`{"id":"x","choices":[],"error":{"message":"slow","code":429}}`), providers.RateLimit, true, "slow"},
		"complaint, invalid": {data(`{"error":{"message":"bad","type":"invalid_request_error"}}`), providers.BadRequest, false, "bad"},
		"complaint, unread":  {data(`{"error":[]}`), providers.Overloaded, true, "[]"},
		"gave up":            {data(delta(`{"content":"x"},"finish_reason":"error"`)), providers.Overloaded, true, "gave up"},
		"call without name":  {data(delta(`{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]},"finish_reason":"tool_calls"`)), providers.BadAnswer, false, "name"},
		"second choice":      {data(`{"choices":[{"index":1,"delta":{"content":"x"},"finish_reason":"stop"}]}`), providers.BadAnswer, false, "second"},
		"usage is kept":      {providertest.Answer{Data: []string{hello, usage}, Fault: providertest.Drop}, providers.Network, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, p := start(t, c.answer)
			e := fail(t, p, ask())
			if e.Kind != c.kind || e.Temporary != c.temporary || e.Status != 0 || !strings.Contains(e.Message, c.says) {
				t.Fatalf("got %#v", e)
			}
			if name == "usage is kept" && e.Usage != (messages.Usage{Input: 3, Output: 2}) {
				t.Fatalf("usage %+v", e.Usage)
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	s, p := start(t)
	_ = s.Close()
	if e := fail(t, p, ask()); e.Kind != providers.Network || !e.Temporary {
		t.Fatalf("got %#v", e)
	}
}

// A certificate that is not accepted will not be by another try.
func TestUntrustedCertificate(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
	if e := fail(t, openai.New(key, openai.BaseURL(s.URL)), ask()); e.Kind != providers.Network || e.Temporary || !strings.Contains(e.Message, "certificate") {
		t.Fatalf("got %#v", e)
	}
	plain, _ := start(t)
	if e := fail(t, openai.New(key, openai.BaseURL(strings.Replace(plain.URL, "http:", "https:", 1))), ask()); e.Kind != providers.Network || e.Temporary {
		t.Fatalf("got %#v", e)
	}
}

// What is no stream is read as what it is, whatever its content type.
func TestNoStream(t *testing.T) {
	const document = `{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}`
	for _, kind := range []string{"application/json", "", "text/plain", "text/event-stream"} {
		if resp := generate(t, answering(t, 200, kind, " \n"+document), ask()); resp.Items[0].Content.Text() != "hello" {
			t.Errorf("%q: got %+v", kind, resp)
		}
		for body, want := range map[string]string{
			"<!DOCTYPE html>\n<html>": "a web page: check the base URL", "Ollama is running": "check the base URL: Ollama is running", `{"choi`: "no JSON",
		} {
			if e := fail(t, answering(t, 200, kind, body), ask()); e.Kind != providers.BadAnswer || e.Temporary || !strings.Contains(e.Message, want) {
				t.Errorf("%q %s: got %#v", kind, body, e)
			}
		}
	}
	for _, body := range []string{"", ": kept alive\n\n", "data: " + delta(`{"content":"x"}`) + "\n\noops\n"} {
		if e := fail(t, answering(t, 200, "text/event-stream", body), ask()); e.Kind != providers.Network || !e.Temporary {
			t.Errorf("%s: got %#v", body, e)
		}
	}
	if e := fail(t, answering(t, 200, "text/html; charset=utf-8", "hi"), ask()); !strings.Contains(e.Message, "base URL") {
		t.Errorf("got %#v", e)
	}
	if e := fail(t, answering(t, 200, "application/json", `{"error":{"message":"hm"}}`), ask()); e.Kind != providers.Overloaded || e.Message != "hm" {
		t.Errorf("got %#v", e)
	}
}

// A56: whatever a server echoes, the key goes no further.
func TestKeyIsHidden(t *testing.T) {
	const other = "tok/en-0123456789"
	both := key + " " + other
	check := func(what, text string) {
		t.Helper()
		if strings.Contains(text, key) || strings.Contains(text, other) || strings.Contains(text, `tok\/en`) {
			t.Errorf("%s shows a key: %s", what, text)
		}
	}
	stream := "data: " + delta(`{"content":"my key is `+both+`","reasoning":"`+key+`","extra":"`+strings.ReplaceAll(both, "/", `\/`)+`","refusal":"`+key+`"}`) +
		"\n\ndata: " + delta(`{"content":"`+key[:9]+`"}`) + "\n\ndata: " + delta(`{"content":"`+key[9:]+`"}`) +
		"\n\ndata: " + delta(`{"tool_calls":[{"id":"`+key+`","function":{"name":"f","arguments":"`+both+`"}}]},"finish_reason":"stop"`) + "\n\n"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("X-Answer") {
		case "401":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error":{"message":"bad key ` + both + `"}}`))
		case "complaint":
			_, _ = w.Write([]byte("data: {\"error\":{\"message\":\"bad key " + both + "\"}}\n\n"))
		default:
			_, _ = w.Write([]byte(stream))
		}
	}))
	defer s.Close()
	with := func(answer, url string) *openai.Provider {
		return openai.New(key, openai.BaseURL(url), openai.Header("X-Api-Key", other), openai.Header("X-Answer", answer))
	}
	for _, p := range []*openai.Provider{with("401", s.URL), with("complaint", s.URL), with("", "http://127.0.0.1:1/"+key)} {
		e := fail(t, p, ask())
		check("error", fmt.Sprintf("%v %+v %#v", e, e, *e))
		for err := e.Err; err != nil; err = nil {
			check("cause", fmt.Sprintf("%v %+v", err, err))
		}
	}
	var shown strings.Builder
	resp, err := with("", s.URL).Generate(t.Context(), ask(), func(d providers.Delta) { shown.WriteString(d.Text + "\n") })
	if err != nil || len(resp.Items) != 4 {
		t.Fatalf("got %+v, %v", resp, err)
	}
	check("deltas", shown.String())
	for _, it := range resp.Items {
		check("item", fmt.Sprintf("%+v %s", it, it.Raw))
	}
}

// A dummy key that is a common word stays a word.
func TestShortKeysAreWords(t *testing.T) {
	s, _ := start(t, data(delta(`{"content":"ollama runs here"},"finish_reason":"stop"`)))
	_ = s.Close()
	free, err := providertest.Start(providertest.Play(data(delta(`{"content":"ollama runs here"},"finish_reason":"stop"`))), providertest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	if resp := generate(t, openai.New("ollama", openai.BaseURL(free.URL)), ask()); resp.Items[0].Content.Text() != "ollama runs here" {
		t.Fatalf("got %+v", resp.Items)
	}
}

// A server may not fill the node's memory with headers.
func TestLargeHeaders(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Much", strings.Repeat("x", 512<<10))
	}))
	t.Cleanup(server.Close)
	if e := fail(t, openai.New(key, openai.BaseURL(server.URL)), ask()); e.Kind != providers.Network || !strings.Contains(e.Message, "headers") {
		t.Errorf("%+v", e)
	}
}

// TestAnswerInMemory holds that an answer takes memory for what is kept of it, however much
// its events take, and that one which does not fit fails with that reason.
func TestAnswerInMemory(t *testing.T) {
	event := func(delta string) string {
		return fmt.Sprintf(`data: {"id":"chatcmpl-%0200d","choices":[{"index":0,"delta":%s}]}`+"\n\n", 7, delta)
	}
	many := func(n int, piece string) string { return strings.Repeat(piece, n) }
	var calls strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&calls, `{"index":%d},`, i)
	}
	long, keys, own := many(3000, "x"), "", ""
	for i := range 120 {
		keys += event(fmt.Sprintf(`{"%d%s":1}`, i, long))
		own += event(fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"},"%d%s":1}]}`, i, long))
	}
	var ids strings.Builder
	for i := range 120 {
		ids.WriteString(event(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"%d%s","function":{"name":"f"}}]}`, i, i, long)))
	}
	const done = `data: {"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"text":"%s"}]}}` + "\n\n"
	const begun = `data: {"type":"response.output_item.added","item":{"id":"%s"}}` + "\n\n"
	const completed = `data: {"type":"response.completed","response":{"status":"completed","output":[%s]}}` + "\n\n"
	for name, c := range map[string]struct {
		body string
		fits bool
	}{
		"items":             {many(4, fmt.Sprintf(done, many(30_000, "x"))) + fmt.Sprintf(completed, ""), true},
		"items, one by one": {many(4, fmt.Sprintf(done, many(120_000, "x"))) + fmt.Sprintf(completed, ""), false},
		"items that begin":  {many(3, fmt.Sprintf(begun, many(120_000, "x"))) + fmt.Sprintf(completed, ""), false},
		"items at the end":  {fmt.Sprintf(completed, `{"type":"message","content":[{"text":"`+many(160_000, "x")+`"}]}`), false},
		"small pieces":      {many(10_000, event(`{"content":"word"}`)), true},
		"large pieces":      {many(3, event(`{"content":"`+many(120_000, "x")+`"}`)), false},
		"one large piece":   {event(`{"content":"` + many(360_000, "x") + `"}`), false},
		"other lines":       {many(4_000, ": "+many(100, "x")+"\n"), true},
		"filter results":    {many(4_000, `data: {"choices":[{"delta":{},"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}`+"\n\n"), true},
		"one long line":     {": " + many(360_000, "x") + "\n", false},
		"many values":       {event(`{"odd":[` + many(40_000, "1,") + `1]}`), false},
		"long names":        {keys, false},
		"names of a call's": {own, false},
		"long ids":          {ids.String(), false},
		"many calls":        {event(`{"tool_calls":[` + calls.String() + `{"index":9000}]}`), false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, c.body+`data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
			}))
			t.Cleanup(server.Close)
			var rules profile.Rules
			if strings.Contains(c.body, "response.completed") {
				rules.API = profile.Responses
			}
			b := memory.New(2 * memory.Weight * memory.Free) // for payloads of up to memory.Free
			ctx, release := b.With(t.Context())
			_, err := openai.New(key, openai.BaseURL(server.URL), openai.Rules(rules)).Generate(ctx, ask(), nil)
			var e *providers.Error
			if refused := errors.As(err, &e) && e.Kind == providers.NoMemory && !e.Temporary; c.fits != (err == nil) || !c.fits && !refused {
				t.Errorf("%v", err)
			}
			if release(); b.Held() != 0 {
				t.Errorf("%d bytes are held at the end", b.Held())
			}
		})
	}
}

// TestRequestInMemory holds that a request takes memory for its texts as JSON, in which a
// character may take six bytes, and that one which does not fit is not sent.
func TestRequestInMemory(t *testing.T) {
	for text, fits := range map[string]bool{
		strings.Repeat("x", 250_000): true, strings.Repeat("世", 80_000): true, strings.Repeat("\n", 120_000): true, "": true,
		strings.Repeat("\u2028", 80_000): true, strings.Repeat(`"`, 160_000): false,
		strings.Repeat("<", 250_000): true, strings.Repeat("\x01", 80_000): false, strings.Repeat("\xff", 100_000): false,
	} {
		sent := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent++
			if body, err := io.ReadAll(r.Body); err != nil || len(body) > memory.Free {
				t.Errorf("%d bytes are sent, %v", len(body), err)
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"well"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
		}))
		b := memory.New(2 * memory.Weight * memory.Free) // for payloads of up to memory.Free
		ctx, release := b.With(t.Context())
		r := ask()
		r.Items = []messages.Item{messages.Text(messages.RoleUser, text)}
		_, err := openai.New(key, openai.BaseURL(server.URL)).Generate(ctx, r, nil)
		release()
		server.Close()
		var e *providers.Error
		if refused := errors.As(err, &e) && e.Kind == providers.NoMemory; fits != (err == nil) || fits != (sent == 1) || !fits && !refused {
			t.Errorf("%d of %.3q: sent %d times, %v", len(text), text, sent, err)
		}
	}
}

// TestManyCalls holds that a server cannot keep a node busy with calls without number.
func TestManyCalls(t *testing.T) {
	var calls strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&calls, `{"index":%d},`, i)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"tool_calls":[`+calls.String()+`{"index":0}]}}]}`+"\n\n")
	}))
	defer server.Close()
	_, err := openai.New(key, openai.BaseURL(server.URL)).Generate(t.Context(), ask(), nil)
	if e := providers.AsError(err); e.Kind != providers.BadAnswer || !strings.Contains(e.Message, "10000 tool calls or more") {
		t.Error(err)
	}
}

// TestRepeatedMembers holds that a server cannot keep a node busy with members that it repeats,
// or that nest: in time that grows with their square, the first two would take hours.
func TestRepeatedMembers(t *testing.T) {
	many := func(s string) string { return strings.Repeat(s, 200_000) }
	for name, c := range map[string]struct{ chunk, says string }{
		"messages":        {`{"choices":[{` + many(`"message":{},`) + `"delta":{"content":"x"}}]}`, ""},
		"errors":          {`{` + many(`"error":"",`) + `"choices":[{"delta":{"content":"x"}}]}`, ""},
		"errors of Groq":  {`{"x_groq":{` + many(`"error":"",`) + `"id":"r"},"choices":[{"delta":{"content":"x"}}]}`, ""},
		"values in a row": {delta(`{"content":"x","odd":[` + strings.Repeat("[],", 200) + `[]]}`), ""},
		"a nesting value": {delta(`{"content":"x","odd":` + strings.Repeat("[", 101) + strings.Repeat("]", 101) + `}`), "100 levels"},
		"a long id":       {`{"id":"` + strings.Repeat("x", 5000) + `","choices":[]}`, "4096 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, p := start(t, data(c.chunk, stop))
			if c.says == "" {
				if resp := generate(t, p, ask()); resp.Items[0].Content.Text() != "x" {
					t.Errorf("got %+v", resp.Items)
				}
			} else if e := fail(t, p, ask()); e.Kind != providers.BadAnswer || !strings.Contains(e.Message, c.says) {
				t.Errorf("got %v", e)
			}
		})
	}
}

// TestAnswerWithoutEnd holds that a server that never ends is given up.
func TestAnswerWithoutEnd(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		comments := strings.Repeat(": "+strings.Repeat("x", 1021)+"\n", 1024)
		for range 70 { // MiB
			if _, err := io.WriteString(w, comments); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	if e := fail(t, openai.New(key, openai.BaseURL(server.URL)), ask()); e.Kind != providers.BadAnswer || !strings.Contains(e.Message, "64 MiB") {
		t.Error(e)
	}
}
