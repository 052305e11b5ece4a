package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/anthropic"
	"github.com/reprise-dev/reprise/providers/memory"
	"github.com/reprise-dev/reprise/providers/providertest"
	"github.com/reprise-dev/reprise/providers/scripted"
)

const (
	key   = "sk-ant-0123456789abcdef"
	model = "claude-sonnet-4-5"
)

// start returns an imitation of the API, and a provider that asks it.
func start(t *testing.T, answers ...providertest.Answer) (*providertest.Server, *anthropic.Provider) {
	t.Helper()
	s, err := providertest.Start(providertest.Play(answers...), providertest.Config{Key: key, Imitate: providertest.Imitation{Server: "anthropic"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, anthropic.New(key, anthropic.BaseURL(s.URL), anthropic.Name("here"))
}

// saying returns a provider whose server answers each request with the next stream of events.
func saying(t *testing.T, streams ...[]string) *anthropic.Provider {
	t.Helper()
	answers := make([]providertest.Answer, len(streams))
	for i, events := range streams {
		answers[i] = providertest.Answer{Data: events}
	}
	_, p := start(t, answers...)
	return p
}

const (
	began   = `{"type":"message_start","message":{"id":"msg_1","model":"m","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}`
	stopped = `{"type":"message_stop"}`
)

func ended(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":7}}`
}

func block(index, head string) string {
	return `{"type":"content_block_start","index":` + index + `,"content_block":` + head + `}`
}

func piece(index, delta string) string {
	return `{"type":"content_block_delta","index":` + index + `,"delta":` + delta + `}`
}

func ask(items ...messages.Item) providers.Request {
	return providers.Request{Model: model, Items: append([]messages.Item{messages.Text(messages.RoleUser, "hi")}, items...)}
}

func generate(t *testing.T, p providers.Provider, r providers.Request) providers.Response {
	t.Helper()
	resp, err := p.Generate(t.Context(), r, nil)
	if err != nil {
		t.Fatalf("Generate: %v", err)
	}
	return resp
}

func fail(t *testing.T, p providers.Provider, r providers.Request) *providers.Error {
	t.Helper()
	resp, err := p.Generate(t.Context(), r, nil)
	var e *providers.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %+v and error %v, want a *providers.Error", resp, err)
	}
	return e
}

func TestSuite(t *testing.T) {
	for name, whole := range map[string]bool{"streamed": false, "whole": true} {
		t.Run(name, func(t *testing.T) {
			providertest.Run(t, func(t *testing.T, steps ...scripted.Step) providers.Provider {
				answers := providertest.Steps(steps...)
				for i, a := range answers {
					broken := len(a.Calls) > 2 // input that is no JSON has no document
					answers[i].Whole = whole && a.Gate == nil && (a.Err == nil || a.Text == "") && !broken
				}
				_, p := start(t, answers...)
				return p
			})
		})
	}
}

// TestConversation holds that the API accepts the histories of agents, streamed and not, and
// gets each model's thinking back.
func TestConversation(t *testing.T) { // A14, A54
	for _, whole := range []bool{false, true} {
		for _, model := range []string{model, "claude-opus-5-5"} {
			answers := providertest.Course(true)
			for i := range answers {
				answers[i].Whole = whole
			}
			s, p := start(t, answers...)
			c := &providertest.Conversation{Provider: p, Model: model, Usage: messages.Usage{Input: 20, Output: 9}}
			if err := c.Run(t.Context()); err != nil {
				t.Fatalf("%v\nthe request was %s", err, s.Last().Body)
			}
			if n := len(s.Refusals()); n != 0 {
				t.Errorf("%d requests were refused", n)
			}
		}
	}
}

// TestBodies compares what is sent with what the API documents.
func TestBodies(t *testing.T) {
	half, yes, no := float32(0.2), true, false
	tool := []providers.ToolSpec{{Name: "f", Description: "Does.", Parameters: []byte(`{"type":"object","required":["x"]}`)}, {Name: "g"}}
	const plain = `"cache_control":{"type":"ephemeral"},"max_tokens":32000,"model":"claude-sonnet-4-5","stream":true`
	const hi = `"messages":[{"content":[{"text":"hi","type":"text"}],"role":"user"}]`
	const tools = `"tools":[{"description":"Does.","input_schema":{"required":["x"],"type":"object"},"name":"f"},{"input_schema":{"type":"object"},"name":"g"}]`
	user := func(parts ...messages.Part) messages.Item {
		return messages.Item{Type: messages.ItemMessage, Role: messages.RoleUser, Content: parts}
	}
	for name, c := range map[string]struct {
		change func(*providers.Request)
		want   string
	}{
		"nothing": {func(*providers.Request) {}, plain + `,` + hi},
		"settings": {func(r *providers.Request) {
			r.Instructions = "Be brief."
			r.Settings = providers.Settings{Temperature: &half, TopP: &half, MaxOutputTokens: 5, Stop: []string{"x"}, ReasoningEffort: "low", ServiceTier: "auto",
				ExtraBody: map[string]json.RawMessage{"thinking": []byte(`{"type":"adaptive"}`), "cache_control": []byte("null")}}
		}, `"cache_control":null,"max_tokens":5,` + hi + `,"model":"claude-sonnet-4-5","output_config":{"effort":"low"},"service_tier":"auto","stop_sequences":["x"],"stream":true,` +
			`"system":"Be brief.","temperature":0.2,"thinking":{"type":"adaptive"},"top_p":0.2`},
		"tools": {func(r *providers.Request) {
			r.Tools = tool
			r.Settings.HostedTools = []json.RawMessage{[]byte(`{"type":"web_search_20250305","name":"web_search"}`)}
		}, plain + `,` + hi + `,` + strings.TrimSuffix(tools, "]") + `,{"name":"web_search","type":"web_search_20250305"}]`},
		"any": {func(r *providers.Request) {
			r.Tools, r.ToolChoice, r.Settings.ParallelToolCalls = tool, "required", &no
		},
			plain + `,` + hi + `,` + tools + `,"tool_choice":{"disable_parallel_tool_use":true,"type":"any"}`},
		"one": {func(r *providers.Request) { r.Tools, r.ToolChoice, r.Settings.ParallelToolCalls = tool, "f", &yes },
			plain + `,` + hi + `,` + tools + `,"tool_choice":{"disable_parallel_tool_use":false,"name":"f","type":"tool"}`},
		"one by one": {func(r *providers.Request) { r.Tools, r.Settings.ParallelToolCalls = tool, &no },
			plain + `,` + hi + `,` + tools + `,"tool_choice":{"disable_parallel_tool_use":true,"type":"auto"}`},
		"none":          {func(r *providers.Request) { r.Tools, r.ToolChoice = tool, "none" }, plain + `,` + hi + `,` + tools + `,"tool_choice":{"type":"none"}`},
		"none of none":  {func(r *providers.Request) { r.ToolChoice, r.Settings.ParallelToolCalls = "none", &no }, plain + `,` + hi},
		"blank message": {func(r *providers.Request) { r.Items = []messages.Item{messages.Text(messages.RoleUser, " \n")} }, plain + `,"messages":[{"content":[{"text":"(no text)","type":"text"}],"role":"user"}]`},
		"notes": {func(r *providers.Request) {
			r.Items = append(r.Items, messages.Text(messages.RoleAssistant, ""), messages.Text(messages.RoleDeveloper, "Stopped."))
		}, plain + `,"messages":[{"content":[{"text":"hi","type":"text"},{"text":"[System note]\nStopped.","type":"text"}],"role":"user"}]`},
		"no user": {func(r *providers.Request) {
			r.Items = []messages.Item{messages.Text(messages.RoleAssistant, "I am here."), messages.Text(messages.RoleUser, "hi")}
		},
			plain + `,"messages":[{"content":[{"text":"(no text)","type":"text"}],"role":"user"},{"content":[{"text":"I am here.","type":"text"}],"role":"assistant"},{"content":[{"text":"hi","type":"text"}],"role":"user"}]`},
		"files": {func(r *providers.Request) {
			r.Items = []messages.Item{user(messages.Part{Type: "text", Text: "See"}, messages.Part{Type: "text"},
				messages.Part{Type: "image_url", ImageURL: "https://example.com/x.png", Detail: "low"},
				messages.Part{Type: "image_url", ImageURL: "data:image/png;base64,AAAA"}, messages.Part{Type: "image_url", ImageURL: "data:application/pdf;base64,BBBB"})}
		}, plain + `,"messages":[{"content":[{"text":"See","type":"text"},{"source":{"type":"url","url":"https://example.com/x.png"},"type":"image"},` +
			`{"source":{"data":"AAAA","media_type":"image/png","type":"base64"},"type":"image"},{"source":{"data":"BBBB","media_type":"application/pdf","type":"base64"},"type":"document"}],"role":"user"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := start(t, providertest.Answer{Step: scripted.Say("ok")})
			r := ask()
			c.change(&r)
			generate(t, p, r)
			if got, want := canonical(t, s.Last().Body), canonical(t, []byte("{"+c.want+"}")); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if h := s.Last().Header; h.Get("x-api-key") != key || h.Get("anthropic-version") == "" || h.Get("Authorization") != "" {
				t.Errorf("the header is %v", h)
			}
		})
	}
}

// A member of extra_body replaces that of the request alone, not those inside it.
func TestExtraBody(t *testing.T) {
	var sent string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = canonical(t, body)
		http.Error(w, "seen", http.StatusTeapot)
	}))
	defer s.Close()
	r := ask()
	r.Tools = []providers.ToolSpec{{Name: "f"}}
	r.Settings.ExtraBody = map[string]json.RawMessage{"name": []byte("1"), "text": []byte("2"), "type": []byte("3"), "content": []byte("4"), "stream": []byte("false")}
	fail(t, anthropic.New(key, anthropic.BaseURL(s.URL)), r)
	for _, part := range []string{`"content":[{"text":"hi","type":"text"}]`, `{"input_schema":{"type":"object"},"name":"f"}`, `"name":1`, `"text":2`, `"type":3`, `"content":4`, `"stream":false`} {
		if !strings.Contains(sent, part) {
			t.Errorf("%s lacks %s", sent, part)
		}
	}
	r.Settings.ExtraBody = map[string]json.RawMessage{"messages": []byte("[]"), "tools": []byte("[]")}
	fail(t, anthropic.New(key, anthropic.BaseURL(s.URL)), r)
	if !strings.Contains(sent, `"messages":[],`) || !strings.Contains(sent, `"tools":[]`) || strings.Contains(sent, "hi") {
		t.Errorf("sent %s", sent)
	}
}

func canonical(t *testing.T, b []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	b, _ = json.Marshal(v)
	return string(b)
}

// TestRefused holds that a request that cannot be sent is refused before.
func TestRefused(t *testing.T) {
	seed := int64(1)
	half := float32(0.5)
	for name, c := range map[string]struct {
		change func(*providers.Request)
		says   string
	}{
		"seed":        {func(r *providers.Request) { r.Settings.Seed = &seed }, "setting seed"},
		"cache key":   {func(r *providers.Request) { r.Settings.CacheKey = "x" }, "setting cache_key"},
		"NaN":         {func(r *providers.Request) { r.Settings.Temperature = new(float32(math.NaN())) }, "no finite number"},
		"temperature": {func(r *providers.Request) { r.Model, r.Settings.Temperature = "claude-opus-5-5", &half }, "setting temperature"},
		"choice":      {func(r *providers.Request) { r.ToolChoice = "h" }, `tool_choice is "h"`},
		"no tools":    {func(r *providers.Request) { r.ToolChoice = "required" }, `tool_choice is "required"`},
		"parameters":  {func(r *providers.Request) { r.Tools = []providers.ToolSpec{{Name: "f", Parameters: []byte(`[]`)}} }, `tool "f"`},
		"hosted":      {func(r *providers.Request) { r.Settings.HostedTools = []json.RawMessage{[]byte("{")} }, "hosted_tools"},
		"extra":       {func(r *providers.Request) { r.Settings.ExtraBody = map[string]json.RawMessage{"x": []byte("{")} }, `"x" is no JSON`},
		"audio":       {func(r *providers.Request) { r.Items[0].Content = messages.Content{{Type: "input_audio"}} }, `part of type "input_audio"`},
		"image": {func(r *providers.Request) {
			r.Items[0].Content = messages.Content{{Type: "image_url", ImageURL: "data:image/png,x"}}
		}, "base64"},
		"role":  {func(r *providers.Request) { r.Items[0].Role = "tool" }, `role "tool"`},
		"type":  {func(r *providers.Request) { r.Items[0].Type = "" }, "without a type"},
		"empty": {func(r *providers.Request) { r.Items = nil }, "empty"},
		"open": {func(r *providers.Request) {
			r.Items = append(r.Items, messages.Item{Type: messages.ItemCall, CallID: "c", Name: "f"})
		}, "no result for call c"},
		"not open": {func(r *providers.Request) {
			r.Items = append(r.Items, messages.Item{Type: messages.ItemCallOutput, CallID: "c"})
		}, "not open"},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := start(t)
			r := ask()
			c.change(&r)
			e := fail(t, p, r)
			if e.Temporary || !strings.Contains(e.Message, c.says) || s.Calls() != 0 {
				t.Errorf("%v, after %d requests; want %q", e, s.Calls(), c.says)
			}
		})
	}
}

// TestKinds sorts what the API answers by what helps. The words are those of its documentation.
func TestKinds(t *testing.T) {
	body := func(kind, message string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_1"}`
	}
	for _, c := range []struct {
		status    int
		body      string
		kind      providers.ErrorKind
		temporary bool
	}{
		{400, body("invalid_request_error", "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens"), providers.BadRequest, false},
		{400, body("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), providers.ContextLength, false},
		{400, body("invalid_request_error", "Output blocked by content filtering policy"), providers.ContentFilter, false},
		{401, body("authentication_error", "invalid x-api-key"), providers.Auth, false},
		{403, body("permission_error", "not allowed"), providers.Auth, false},
		{404, body("not_found_error", "model: claude-x"), providers.NotFound, false},
		{413, body("request_too_large", "Request exceeds the maximum size"), providers.ContextLength, false},
		{429, body("rate_limit_error", "slow down"), providers.RateLimit, true},
		{500, body("api_error", "Internal server error"), providers.Overloaded, true},
		{504, body("timeout_error", "Timed out"), providers.Overloaded, true},
		{529, body("overloaded_error", "Overloaded"), providers.Overloaded, true},
		{502, "<html><title>Bad gateway</title>", providers.Overloaded, true},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		}))
		e := fail(t, anthropic.New(key, anthropic.BaseURL(s.URL)), ask())
		s.Close()
		if e.Kind != c.kind || e.Temporary != c.temporary || e.Status != c.status || e.RetryAfter != 2*time.Second {
			t.Errorf("%d %s: got %#v", c.status, c.body, e)
		}
	}
	for kind, want := range map[string]providers.ErrorKind{"overloaded_error": providers.Overloaded, "rate_limit_error": providers.RateLimit, "invalid_request_error": providers.BadRequest} {
		p := saying(t, []string{began, block("0", `{"type":"text","text":""}`), body(kind, "half way")})
		if e := fail(t, p, ask()); e.Kind != want || e.Usage.Input != 9 || !strings.Contains(e.Message, "half way") {
			t.Errorf("%s in a stream: %#v", kind, e)
		}
	}
}

// TestEnds has the reasons to stop, and answers that end without one.
func TestEnds(t *testing.T) {
	text := []string{began, block("0", `{"type":"text","text":""}`), piece("0", `{"type":"text_delta","text":"a"}`)}
	call := []string{began, block("0", `{"type":"tool_use","id":"toolu_1","name":"f","input":{}}`)}
	for _, c := range []struct {
		events       []string
		reason, want string
	}{
		{text, "end_turn", messages.FinishStop}, {text, "stop_sequence", messages.FinishStop}, {text, "max_tokens", messages.FinishLength},
		{text, "model_context_window_exceeded", messages.FinishLength}, {text, "refusal", messages.FinishRefusal}, {text, "strange", "strange"},
		{call, "tool_use", messages.FinishCalls}, {call, "end_turn", messages.FinishCalls}, {call, "max_tokens", messages.FinishLength}, {text, "tool_use", messages.FinishStop},
	} {
		for _, last := range [][]string{{ended(c.reason), stopped}, {ended(c.reason)}} {
			resp := generate(t, saying(t, append(append([]string{}, c.events...), last...)), ask())
			if resp.Finish != c.want || len(resp.Items) != 1 || resp.Usage != (messages.Usage{Input: 9, Output: 7}) {
				t.Errorf("%s: %+v", c.reason, resp)
			}
		}
	}
	if resp := generate(t, saying(t, []string{began, block("0", `{"type":"text","text":""}`), ended("end_turn")}), ask()); len(resp.Items) != 0 {
		t.Errorf("a block of nothing is %+v", resp.Items)
	}
	for name, c := range map[string]struct {
		events []string
		kind   providers.ErrorKind
	}{
		"no reason":        {text, providers.Network},
		"no block":         {[]string{began}, providers.Network},
		"only the end":     {[]string{began, stopped}, providers.Network},
		"a piece of none":  {[]string{began, block("1", `{"type":"text"}`), piece("0", `{"type":"text_delta","text":"a"}`)}, providers.BadAnswer},
		"a piece too far":  {[]string{began, piece("0", `{"type":"text_delta","text":"a"}`)}, providers.BadAnswer},
		"a negative place": {[]string{began, block("-1", `{"type":"text"}`)}, providers.BadAnswer},
		"a place too far":  {[]string{began, block("10000", `{"type":"text"}`)}, providers.BadAnswer},
		"no JSON":          {[]string{began, `{"type":`}, providers.BadAnswer},
		"a call, no name":  {[]string{began, block("0", `{"type":"tool_use","id":"x"}`), ended("tool_use")}, providers.BadAnswer},
		"a long name":      {[]string{began, block("0", `{"type":"tool_use","id":"x","name":"`+strings.Repeat("f", 5000)+`"}`), ended("tool_use")}, providers.BadAnswer},
		"a long type":      {[]string{began, block("0", `{"type":"`+strings.Repeat("f", 5000)+`"}`), ended("end_turn")}, providers.BadAnswer},
		"a type of ours":   {[]string{began, block("0", `{"type":"function_call_output"}`), ended("end_turn")}, providers.BadAnswer},
		"no block at all":  {[]string{began, block("0", `null`), piece("0", `{"type":"text_delta","text":"a"}`), ended("end_turn")}, providers.BadAnswer},
		"a long id":        {[]string{strings.Replace(began, "msg_1", strings.Repeat("m", 5000), 1)}, providers.BadAnswer},
		"a long reason":    {[]string{began, ended(strings.Repeat("m", 5000))}, providers.BadAnswer},
		"members for ever": {append([]string{began, block("0", `{"type":"strange"}`)}, grown(20)...), providers.BadAnswer},
		"a member's name":  {[]string{began, block("0", `{"type":"strange"}`), piece("0", `{"`+strings.Repeat("m", 5000)+`":""}`)}, providers.BadAnswer},
		"a block, no type": {[]string{began, block("0", `[]`), ended("end_turn")}, providers.BadAnswer},
	} {
		if e := fail(t, saying(t, c.events), ask()); e.Kind != c.kind {
			t.Errorf("%s: %v", name, e)
		}
	}
}

// grown are pieces of n members of a block.
func grown(n int) (pieces []string) {
	for i := range n {
		pieces = append(pieces, piece("0", fmt.Sprintf(`{"m%d":"x"}`, i)))
	}
	return pieces
}

// TestStreams has what servers may send beside what they document.
func TestStreams(t *testing.T) {
	call := block("0", `{"type":"tool_use","id":"toolu_1","name":"f","input":{}}`)
	for name, c := range map[string]struct {
		events []string
		items  string
	}{
		"a block that has begun":   {[]string{began, block("0", `{"type":"text","text":"Hello "}`), piece("0", `{"type":"text_delta","text":"world"}`), ended("end_turn")}, "message Hello world"},
		"a list that has begun":    {[]string{began, block("0", `{"type":"x","content":[1]}`), piece("0", `{"content":2}`), ended("end_turn")}, `x {"content":[1,2],"type":"x"}`},
		"news":                     {[]string{began, `{"type":"notice","message":"be well"}`, block("0", `{"type":"text","text":"a"}`), ended("end_turn")}, "message a"},
		"a second delta":           {[]string{began, block("0", `{"type":"text","text":"a"}`), ended("end_turn"), `{"type":"message_delta","delta":{},"usage":{"output_tokens":7}}`}, "message a"},
		"a call that was declined": {[]string{began, call, ended("refusal")}, ""},
		"counts beside thinking": {[]string{began, block("0", `{"type":"thinking","thinking":""}`), piece("0", `{"type":"thinking_delta","thinking":"a","estimated_tokens":50}`), ended("end_turn")},
			`reasoning a{"thinking":"a","type":"thinking"}`},
	} {
		var got []string
		for _, it := range generate(t, saying(t, c.events), ask()).Items {
			got = append(got, string(it.Type)+" "+it.Content.Text()+string(it.Raw))
		}
		if strings.Join(got, "; ") != c.items {
			t.Errorf("%s: got %q, want %q", name, got, c.items)
		}
	}
}

// TestBlocks holds that blocks are whole in the items, whatever they consist of, and go back as
// they came to the model that gave them.
func TestBlocks(t *testing.T) { // A54
	const (
		thinking = `{"signature":"s1","thinking":"hm so","type":"thinking"}`
		redacted = `{"data":"x1","type":"redacted_thinking"}`
		search   = `{"id":"srvtoolu_1","input":{"query":"q"},"name":"web_search","type":"server_tool_use"}`
		found    = `{"content":[{"encrypted_content":"e","title":"t","type":"web_search_result","url":"u"}],"tool_use_id":"srvtoolu_1","type":"web_search_tool_result"}`
		cited    = `{"citations":[{"type":"web_search_result_location","url":"u"},{"type":"web_search_result_location","url":"v"}],"text":"It is.","type":"text"}`
		plain    = `{"text":"So.","type":"text"}`
		called   = `{"caller":{"type":"direct"},"id":"toolu_1","input":{"x":1},"name":"f","type":"tool_use"}`
		unknown  = `{"content":"kept for later","type":"compaction"}`
	)
	events := []string{began,
		block("0", `{"type":"thinking","thinking":"","signature":""}`), piece("0", `{"type":"thinking_delta","thinking":"hm "}`),
		piece("0", `{"type":"thinking_delta","thinking":"so"}`), piece("0", `{"type":"signature_delta","signature":"s1"}`), `{"type":"content_block_stop","index":0}`,
		block("1", redacted), `{"type":"ping"}`,
		block("2", `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`), piece("2", `{"type":"input_json_delta","partial_json":"{\"query\":"}`), piece("2", `{"type":"input_json_delta","partial_json":"\"q\"}"}`),
		block("3", found),
		block("4", `{"type":"text","text":"","citations":[]}`), piece("4", `{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"u"}}`),
		piece("4", `{"type":"text_delta","text":"It is."}`), piece("4", `{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"v"}}`),
		block("5", `{"type":"text","text":"So.","citations":null}`),
		block("6", `{"type":"compaction","content":null}`), piece("6", `{"type":"compaction_delta","content":"kept for "}`), piece("6", `{"type":"compaction_delta","content":null,"more":null}`), piece("6", `{"type":"compaction_delta","content":"later"}`),
		block("7", `{"type":"tool_use","id":"toolu_1","name":"f","input":{},"caller":{"type":"direct"}}`), piece("7", `{"type":"input_json_delta","partial_json":""}`), piece("7", `{"type":"input_json_delta","partial_json":"{\"x\":1}"}`),
		ended("tool_use"), stopped}
	document := `{"type":"message","id":"msg_1","model":"m","content":[` + strings.Join([]string{thinking, redacted, search, found, cited, plain, unknown, called}, ",") +
		`],"stop_reason":"tool_use","usage":{"input_tokens":9,"output_tokens":7}}`
	var shown, thought strings.Builder
	empty := 0
	emit := func(d providers.Delta) {
		switch {
		case d.Text == "":
			empty++
		case d.Kind == providers.DeltaReasoning:
			thought.WriteString(d.Text)
		default:
			shown.WriteString(d.Text)
		}
	}
	streamed, err := saying(t, events).Generate(t.Context(), ask(), emit)
	if err != nil {
		t.Fatal(err)
	}
	if shown.String() != "It is.So." || thought.String() != "hm so" || empty < 8 {
		t.Errorf("shown %q, thought %q, %d pieces that are not shown", shown.String(), thought.String(), empty)
	}
	_, p := start(t, providertest.Answer{Data: []string{document}, Whole: true})
	if whole := generate(t, p, ask()); !reflect.DeepEqual(whole, streamed) {
		t.Errorf("in one document %+v\nstreamed %+v", whole, streamed)
	}
	var kinds []string
	for _, it := range streamed.Items {
		kinds = append(kinds, string(it.Type))
		if it.Provider != "here" || (it.Raw != nil) != (it.Model == model) {
			t.Errorf("%s is of %s, %s", it.Type, it.Provider, it.Model)
		}
	}
	if got, want := strings.Join(kinds, " "), "reasoning reasoning server_tool_use web_search_tool_result message message compaction function_call"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	history := append(streamed.Items, messages.Item{Type: messages.ItemCallOutput, CallID: "toolu_1", Output: "1"})
	for name, c := range map[string]struct {
		model string
		want  string
	}{
		"the same model": {model, `{"content":[` + strings.Join([]string{thinking, redacted, search, found, cited, plain, unknown, called}, ",") + `],"role":"assistant"},` +
			`{"content":[{"content":"1","tool_use_id":"toolu_1","type":"tool_result"}],"role":"user"}`},
		"another model": {model: "claude-opus-5-5"},
	} {
		t.Run(name, func(t *testing.T) {
			var sent []byte
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				sent, _ = io.ReadAll(r.Body)
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(document))
			}))
			defer s.Close()
			r := ask(history...)
			r.Model = c.model
			generate(t, anthropic.New(key, anthropic.BaseURL(s.URL), anthropic.Name("here")), r)
			var body struct{ Messages []json.RawMessage }
			if err := json.Unmarshal(sent, &body); err != nil {
				t.Fatal(err)
			}
			got, _ := json.Marshal(body.Messages[1:])
			if c.model == model {
				if want := canonical(t, []byte("["+c.want+"]")); canonical(t, got) != want {
					t.Errorf("got  %s\nwant %s", canonical(t, got), want)
				}
				return
			}
			for _, part := range []string{"server_tool_use from here", "web_search_tool_result from here", "compaction from here", `"It is."`, `"So."`, `"toolu_1"`} {
				if !strings.Contains(string(sent), part) {
					t.Errorf("%s lacks %s", sent, part)
				}
			}
			for _, part := range []string{"s1", "x1", "hm so", `"citations"`, `"caller"`} {
				if strings.Contains(string(sent), part) {
					t.Errorf("%s has %s", sent, part)
				}
			}
			if !strings.Contains(string(sent), "The reasoning of here is left out") {
				t.Errorf("%s does not mention the thinking that it lacks", sent)
			}
		})
	}
}

// TestChangedItems holds that what a hook or a cut-off answer has changed goes back as it is now.
func TestChangedItems(t *testing.T) {
	own := func(it messages.Item, raw string) messages.Item {
		it.Provider, it.Model, it.Raw = "here", model, json.RawMessage(raw)
		return it
	}
	call := own(messages.Item{Type: messages.ItemCall, CallID: "other", Name: "g", Arguments: `{"y":2}`}, `{"type":"tool_use","id":"toolu_1","name":"f","input":{"x":1},"caller":{"type":"direct"}}`)
	elsewhere := own(messages.Text(messages.RoleAssistant, "cited"), `{"type":"text","text":"cited","citations":[{}]}`)
	elsewhere.Provider = "there"
	searching := own(messages.Item{Type: "server_tool_use"}, `{"id":"srvtoolu_1","input":{},"name":"web_search","type":"server_tool_use"}`)
	s, p := start(t, providertest.Answer{Step: scripted.Say("ok")})
	generate(t, p, ask(
		own(messages.Item{Type: messages.ItemCall, CallID: "c2", Name: "f"}, `{"id":"c2","function":{"name":"f"},"extra_content":{}}`), messages.Item{Type: messages.ItemCallOutput, CallID: "c2", Output: "1"},
		own(messages.Item{Type: messages.ItemReasoning}, `{"type":"thinking","thinking":"hm","signature":""}`), // cut off
		own(messages.Text(messages.RoleAssistant, "new"), `{"type":"text","text":"old","citations":[{}]}`),
		own(messages.Text(messages.RoleAssistant, "chat"), `{"role":"assistant","content":"chat"}`), // over another API
		elsewhere, call, searching, messages.Text(messages.RoleAssistant, "I look."), // the server searches when it has the result
		messages.Item{Type: messages.ItemCallOutput, CallID: "other"},
	))
	want := `{"content":[{"id":"c2","input":{},"name":"f","type":"tool_use"}],"role":"assistant"},` +
		`{"content":[{"content":"1","tool_use_id":"c2","type":"tool_result"}],"role":"user"},` +
		`{"content":[{"text":"new","type":"text"},{"text":"chat","type":"text"},{"text":"cited","type":"text"},{"caller":{"type":"direct"},"id":"other","input":{"y":2},"name":"g","type":"tool_use"},` +
		`{"id":"srvtoolu_1","input":{},"name":"web_search","type":"server_tool_use"},{"text":"I look.","type":"text"}],"role":"assistant"},` +
		`{"content":[{"content":"(no output)","tool_use_id":"other","type":"tool_result"}],"role":"user"}]`
	if body := canonical(t, s.Last().Body); !strings.Contains(body, want) {
		t.Errorf("got  %s\nwant %s", body, want)
	}
}

// A compaction may cut between a call of the server's and its result.
func TestOrphans(t *testing.T) {
	own := func(kind messages.ItemType, raw string) messages.Item {
		return messages.Item{Type: kind, Provider: "here", Model: model, Raw: json.RawMessage(raw)}
	}
	s, p := start(t, providertest.Answer{Step: scripted.Say("ok")})
	responses := own(messages.ItemCall, `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}","status":"completed"}`) // the same model over another API
	responses.CallID, responses.Name = "c1", "f"
	generate(t, p, ask(
		own("web_search_tool_result", `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_0","content":[]}`),
		own(messages.ItemReasoning, `{"type":"reasoning","encrypted_content":"x"}`),
		responses, messages.Item{Type: messages.ItemCallOutput, CallID: "c1", Output: "1"},
	))
	if body := string(s.Last().Body); len(s.Refusals()) != 0 || !strings.Contains(body, "whose call is no longer shown") || strings.Contains(body, "status") || !strings.Contains(body, "The reasoning of here is left out") {
		t.Errorf("sent %s, refused %+v", body, s.Refusals())
	}
}

// Many members take time in proportion, and a text of signs no more memory than is claimed.
func TestLargeRequest(t *testing.T) {
	var raw strings.Builder
	raw.WriteString(`{"type":"tool_use"`)
	for i := range 50_000 {
		fmt.Fprintf(&raw, `,"m%d":1`, i)
	}
	raw.WriteString(`,"":1}`)
	call := messages.Item{Type: messages.ItemCall, CallID: "c1", Name: "f", Provider: "here", Model: model, Raw: json.RawMessage(raw.String())}
	signs := strings.Repeat("<>&", 1<<16)
	s, p := start(t, providertest.Answer{Step: scripted.Say("ok")})
	generate(t, p, ask(call, messages.Item{Type: messages.ItemCallOutput, CallID: "c1", Output: signs}))
	if body := s.Last().Body; len(body) > raw.Len()+len(signs)+10_000 || !strings.Contains(string(body), signs) || !strings.Contains(string(body), `"m49999":1,"":1`) {
		t.Errorf("%d bytes are sent of %d", len(body), raw.Len()+len(signs))
	}
}

// TestOddCalls has calls that are cut off, and that have the id of another.
func TestOddCalls(t *testing.T) {
	call := `{"type":"tool_use","id":"toolu_1","name":"f","input":{},"caller":{"type":"direct"}}`
	resp := generate(t, saying(t, []string{began, block("0", call), piece("0", `{"type":"input_json_delta","partial_json":"{\"x\":"}`), block("1", call), ended("max_tokens")}), ask())
	if len(resp.Items) != 2 {
		t.Fatalf("%+v", resp.Items)
	}
	one, two := resp.Items[0], resp.Items[1]
	if one.Arguments != `{"x":` || string(one.Raw) != `{"caller":{"type":"direct"},"id":"toolu_1","name":"f","type":"tool_use"}` || one.CallID != "toolu_1" || one.ID != "" {
		t.Errorf("cut off: %+v, %s", one, one.Raw)
	}
	if two.CallID == one.CallID || two.CallID == "" || two.ID != "toolu_1" || two.Arguments != "{}" {
		t.Errorf("with the id of another: %+v", two)
	}
	const digits = "1234567890123456"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"type":"message","content":[{"type":"strange","n":` + digits + `},{"type":"thinking","thinking":"","signature":"s"}],"stop_reason":"end_turn"}`))
	}))
	defer s.Close()
	items := generate(t, anthropic.New(digits, anthropic.BaseURL(s.URL)), ask()).Items
	if len(items) != 2 || items[0].Raw != nil || items[1].Content != nil || items[1].Raw == nil {
		t.Errorf("a number that is the key, and thinking that is not shown: %+v", items)
	}
}

// TestPauses has answers that the server pauses: they continue as one, with their usage added up.
func TestPauses(t *testing.T) {
	searching := json.RawMessage(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}}`)
	found := json.RawMessage(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`)
	usage := messages.Usage{Input: 20, Output: 9}
	pause := providertest.Answer{Step: scripted.Step{Reasoning: "hm", Usage: usage, Finish: "pause_turn"}, Output: []json.RawMessage{searching}}
	rest := providertest.Answer{Step: scripted.Step{Text: "It is.", Usage: usage}, Output: []json.RawMessage{found}}
	s, p := start(t, pause, rest, providertest.Answer{Step: scripted.Say("more")})
	resp := generate(t, p, ask())
	if resp.Finish != messages.FinishStop || len(resp.Items) != 4 || resp.Usage != usage.Add(usage) || s.Calls() != 2 {
		t.Errorf("%+v after %d calls", resp, s.Calls())
	}
	generate(t, p, ask(append(resp.Items, messages.Text(messages.RoleUser, "And?"))...))
	if body := string(s.Last().Body); len(s.Refusals()) != 0 || strings.Count(body, "srvtoolu_1") != 2 {
		t.Errorf("sent %s, refused %+v", body, s.Refusals())
	}

	many := make([]providertest.Answer, 0, 12)
	for range 11 {
		many = append(many, pause)
	}
	s, p = start(t, append(many, providertest.Answer{Step: scripted.Say("more")})...)
	resp = generate(t, p, ask())
	if resp.Finish != messages.FinishLength || len(resp.Items) != 22 || s.Calls() != 11 {
		t.Errorf("finish %q, %d items, %d calls; want length, 22, 11", resp.Finish, len(resp.Items), s.Calls())
	}

	refused := providertest.Failure(http.StatusBadRequest, "no")
	broken := providertest.Failure(http.StatusServiceUnavailable, "later")
	for _, c := range []struct {
		then   providertest.Answer
		finish string
	}{{refused, messages.FinishLength}, {broken, ""}} {
		s, p = start(t, pause, c.then, providertest.Answer{Step: scripted.Say("more")})
		resp, err := p.Generate(t.Context(), ask(), nil)
		if c.finish == "" {
			if e := providers.AsError(err); e.Kind != providers.Overloaded || e.Usage != usage {
				t.Errorf("%#v, want overloaded with the usage of the first part", e)
			}
			continue
		}
		if err != nil || resp.Finish != c.finish || len(resp.Items) != 2 {
			t.Fatalf("%+v, %v", resp, err)
		}
		// The search without a result is not sent again once a user has written.
		generate(t, p, ask(append(resp.Items, messages.Text(messages.RoleUser, "And?"))...))
		if body := string(s.Last().Body); len(s.Refusals()) != 0 || strings.Contains(body, "srvtoolu_1") || !strings.Contains(body, "item of type server_tool_use") {
			t.Errorf("sent %s, refused %+v", body, s.Refusals())
		}
	}
}

// A refusal of the model is an item with the server's explanation, and goes back as a text.
func TestModelRefuses(t *testing.T) {
	s, p := start(t, providertest.Answer{Step: scripted.Step{Text: "Well", Refusal: "This asks for harm."}}, providertest.Answer{Step: scripted.Say("ok")})
	resp := generate(t, p, ask())
	if resp.Finish != messages.FinishRefusal || len(resp.Items) != 2 || resp.Items[1].Type != messages.ItemRefusal || resp.Items[1].Content.Text() != "This asks for harm." {
		t.Fatalf("%+v", resp)
	}
	generate(t, p, ask(append(resp.Items, messages.Text(messages.RoleUser, "Then not."))...))
	if body := string(s.Last().Body); !strings.Contains(body, "This asks for harm.") {
		t.Errorf("sent %s", body)
	}
}

// TestUsage adds what the cache gave and took to the input, as it is billed.
func TestUsage(t *testing.T) {
	first := `{"type":"message_start","message":{"id":"1","model":"m","usage":{"input_tokens":3,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"output_tokens":1}}}`
	last := `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":8,"output_tokens_details":{"thinking_tokens":5}}}`
	all := `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":4,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"output_tokens":8}}`
	for last, want := range map[string]messages.Usage{
		last: {Input: 123, Output: 8, Cached: 100, CacheWrite: 20, Reasoning: 5},
		all:  {Input: 124, Output: 8, Cached: 100, CacheWrite: 20},
	} {
		if resp := generate(t, saying(t, []string{first, last}), ask()); resp.Usage != want {
			t.Errorf("got %+v, want %+v", resp.Usage, want)
		}
	}
}

// The key is in no error, item or piece, and goes to no other server.
func TestKey(t *testing.T) { // A56
	mirror := saying(t, []string{began, block("0", `{"type":"text","text":"the key is `+key+`"}`), block("1", `{"type":"thinking","thinking":"`+key+`","signature":"s"}`),
		block("2", `{"type":"tool_use","id":"toolu_1","name":"f","input":{"k":"`+key+`"}}`), ended("tool_use")})
	var shown strings.Builder
	resp, err := mirror.Generate(t.Context(), ask(), func(d providers.Delta) { shown.WriteString(d.Text) })
	if all, _ := json.Marshal(resp); err != nil || strings.Contains(string(all)+shown.String(), key) || len(resp.Items) != 3 {
		t.Errorf("%v, %s, %s", err, all, shown.String())
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away/v1/messages" {
			http.Redirect(w, r, "https://example.com/?key="+key, http.StatusTemporaryRedirect)
			return
		}
		http.Error(w, `{"type":"error","error":{"type":"authentication_error","message":"bad key `+r.Header.Get("x-api-key")+`"}}`, http.StatusUnauthorized)
	}))
	defer s.Close()
	for path, want := range map[string]providers.ErrorKind{"": providers.Auth, "/v1": providers.Auth, "/v1/": providers.Auth, "/away": providers.Redirected} {
		if e := fail(t, anthropic.New(key, anthropic.BaseURL(s.URL+path)), ask()); e.Kind != want || strings.Contains(e.Error(), key) || errors.Unwrap(e) != nil && strings.Contains(errors.Unwrap(e).Error(), key) {
			t.Errorf("%s: %v", path, e)
		}
	}
}

// Nothing of the environment is read, in which the SDK looks for keys and addresses.
func TestEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-ant-of-the-environment")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "x-custom: 1")
	s, err := providertest.Start(providertest.Play(providertest.Answer{Step: scripted.Say("ok")}), providertest.Config{Imitate: providertest.Imitation{Server: "anthropic"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	generate(t, anthropic.New("", anthropic.BaseURL(s.URL), anthropic.Header("anthropic-beta", "b1"), anthropic.ExtraBody("metadata", []byte(`{}`))), ask())
	if h := s.Last().Header; h.Get("x-api-key") != "" || h.Get("x-custom") != "" || h.Get("anthropic-beta") != "b1" || !strings.Contains(string(s.Last().Body), `"metadata"`) {
		t.Errorf("the header is %v", h)
	}
}

// A server that does not answer is given up after the provider's limit, once.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		silent := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			asked++
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}
		e := fail(t, anthropic.New(key, anthropic.HTTPClient(silent), anthropic.Timeout(time.Minute)), ask())
		if e.Kind != providers.Network || !e.Temporary || !strings.Contains(e.Message, "1m0s") || asked != 1 {
			t.Errorf("%v after %d requests", e, asked)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The memory for an answer is claimed as it comes.
func TestMemory(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	text, end := block("0", `{"type":"text","text":""}`), ended("end_turn")
	for _, events := range [][]string{
		{began, text, piece("0", `{"type":"text_delta","text":"`+long+`"}`), end},
		{began, block("0", `{"type":"text","text":"`+long+`"}`), end},
		{began, text, `{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"explanation":"` + long + `"}}}`},
	} {
		ctx, release := memory.New(64 << 20).With(t.Context())
		defer release()
		if _, err := saying(t, events).Generate(ctx, ask(), nil); err != nil {
			t.Fatal(err)
		}
		if got := memory.Of(ctx).Bytes(); got < 2*len(long) || got > 3*len(long) { // the line and what is kept of it
			t.Errorf("%d bytes are claimed for an answer of %d", got, len(long))
		}
	}
	small, release := memory.New(1 << 20).With(t.Context())
	defer release()
	r := ask(messages.Text(messages.RoleUser, long))
	if _, err := saying(t).Generate(small, r, nil); providers.AsError(err).Kind != providers.NoMemory {
		t.Errorf("%v, want no_memory", err)
	}
}

// A base URL that is none fails permanently, a server that is not there may be later.
func TestUnsent(t *testing.T) {
	if e := fail(t, anthropic.New(key, anthropic.BaseURL("http://[")), ask()); e.Kind != providers.BadRequest || e.Temporary {
		t.Errorf("%#v", e)
	}
	if e := fail(t, anthropic.New(key, anthropic.BaseURL("http://127.0.0.1:1")), ask()); e.Kind != providers.Network || !e.Temporary {
		t.Errorf("%#v", e)
	}
}

func TestRefuses(t *testing.T) {
	p := anthropic.New(key)
	for model, want := range map[string]bool{"claude-sonnet-4-5": false, "claude-opus-4-8-20260101": true, "claude-opus-5-5": true} {
		if got := strings.Contains(strings.Join(p.Refuses(model), " "), "temperature"); got != want {
			t.Errorf("%s: %v", model, p.Refuses(model))
		}
	}
	if got := p.Refuses("claude-sonnet-4-5"); !reflect.DeepEqual(got, []string{"seed", "presence_penalty", "frequency_penalty", "verbosity", "cache_key"}) {
		t.Errorf("got %v", got)
	}
}
