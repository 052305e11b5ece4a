package providertest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/providertest"
	"github.com/reprise-dev/reprise/providers/scripted"
)

const stream = `,"stream":true,"stream_options":{"include_usage":true}}`

func imitate(t *testing.T, server, template string, answers ...providertest.Answer) *providertest.Server {
	t.Helper()
	s, err := providertest.Imitate(server, template, answers...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestImitateRefuses(t *testing.T) {
	for _, c := range []struct{ server, template, says string }{
		{"cohere", "", "none of anthropic, azure"},
		{"vllm", "falcon", "none of gemma"},
		{"openai", "qwen", "renders no chat template"},
	} {
		if _, err := providertest.Imitate(c.server, c.template); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s/%s: %v; want an error with %q", c.server, c.template, err, c.says)
		}
	}
}

// A refusal is what the server itself would send, in its own shape.
func TestRefusalShapes(t *testing.T) {
	const (
		user = `{"role":"user","content":"x"}`
		call = `{"role":"assistant","content":null,"tool_calls":[{"id":"abcdefghi","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		tool = `{"role":"tool","tool_call_id":"abcdefghi","content":"1"}`
	)
	for _, c := range []struct {
		server, template, model, messages, rest string
		status                                  int
		body                                    string
	}{
		{"openai", "", "gpt-5.1", user, `,"max_tokens":9`, 400,
			`{"error":{"code":"unsupported_parameter","message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens","type":"invalid_request_error"}}`},
		{"gemini", "", "gemini-3-pro-preview", user, `,"store":false`, 400,
			`[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"store\": Cannot find field.","status":"INVALID_ARGUMENT"}}]`},
		{"groq", "", "qwen/qwen3-32b", user + `,{"role":"assistant","content":"y","reasoning_content":"z"},` + user, ``, 400,
			`{"error":{"code":null,"message":"'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning_content' is unsupported)]","type":"invalid_request_error"}}`},
		{"mistral", "", "mistral-large-latest", user, `,"max_completion_tokens":9`, 422,
			`{"code":null,"message":{"detail":[{"input":9,"loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted","type":"extra_forbidden"}]},"object":"error","param":null,"type":"invalid_request_error"}`},
		{"mistral", "", "mistral-large-latest", user + "," + call + "," + tool + "," + user, ``, 400,
			`{"code":"3230","message":"Unexpected role 'user' after role 'tool'","object":"error","param":null,"type":"invalid_request_message_order"}`},
		{"deepseek", "", "deepseek-v4", `{"role":"developer","content":"x"}`, ``, 422,
			"Failed to deserialize the JSON body into the target type: messages[0].role: unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool`, `latest_reminder` at line 1 column 60"},
		{"xai", "", "grok-4.5", user, `,"presence_penalty":1`, 400,
			`{"code":"invalid-argument","error":"Model grok-4.5 does not support parameter presencePenalty."}`},
		{"openrouter", "", "google/gemini-3-pro", user + "," + call + "," + tool, ``, 400,
			`{"error":{"code":400,"message":"Provider returned error","metadata":{"provider_name":"Google AI Studio","raw":"Gemini models require OpenRouter reasoning details to be preserved in each request. Please refer to our docs: https://openrouter.ai/docs/guides/best-practices/reasoning-tokens#preserving-reasoning."}},"user_id":"user_1"}`},
		{"vllm", "gemma", "m", user + "," + user, ``, 400,
			`{"error":{"code":400,"message":"Conversation roles must alternate user/assistant/user/assistant/... Conversation roles must alternate user/assistant/user/assistant/...","param":null,"type":"BadRequestError"}}`},
		{"llamacpp", "qwen", "m", user + `,{"role":"system","content":"x"}`, ``, 500,
			`{"error":{"code":500,"message":"System message must be at the beginning.","type":"server_error"}}`},
	} {
		s := imitate(t, c.server, c.template)
		status, _, body := post(t, s, "", `{"model":"`+c.model+`","messages":[`+c.messages+`]`+c.rest+`}`)
		if status != c.status || body != c.body {
			t.Errorf("%s %s: got %d %s\nwant %d %s", c.server, c.template, status, body, c.status, c.body)
		}
		if r := s.Refusals(); len(r) != 1 || r[0].Number != 1 || r[0].Status != c.status || string(r[0].Body) != c.body {
			t.Errorf("%s: recorded %+v", c.server, r)
		}
	}
}

// answer has a bit of everything.
var answer = providertest.Answer{Step: scripted.Step{Reasoning: "I must look.", Text: "One moment.", Pieces: 2,
	Calls: []scripted.Call{{Name: "look", Arguments: `{"at":1}`}, {Name: "look", Arguments: `{"at":2}`}},
	Usage: messages.Usage{Input: 20, Output: 7, Cached: 5, Reasoning: 3}}}

// Every stream is made of JSON events that hold the whole text and all arguments.
func TestImitatedStreams(t *testing.T) {
	all, err := providertest.Imitations()
	if err != nil || len(all) < 40 {
		t.Fatalf("%d imitations, %v", len(all), err)
	}
	for _, i := range all {
		s, err := providertest.Start(providertest.Play(answer), providertest.Config{Imitate: i})
		if err != nil {
			t.Fatal(err)
		}
		_, _, body := post(t, s, "", `{"model":"`+i.Model+`","messages":[{"role":"user","content":"x"}],"stream":true}`)
		var text, arguments strings.Builder
		finish := ""
		for _, e := range eventsOf(t, body) {
			for _, choice := range e.Choices {
				var piece string
				_ = json.Unmarshal(choice.Delta.Content, &piece) // thinking is a list
				text.WriteString(piece)
				finish += choice.Finish
				for _, call := range choice.Delta.ToolCalls {
					arguments.WriteString(call.Function.Arguments)
				}
			}
		}
		if text.String() != "One moment." || arguments.String() != `{"at":1}{"at":2}` || finish != "tool_calls" && finish != "stop" {
			t.Errorf("%s: text %q, arguments %q, finish %q in %s", i, &text, &arguments, finish, body)
		}
		_ = s.Close()
	}
}

type chunk struct {
	Choices []struct {
		Delta  providertest.ChatMessage `json:"delta"`
		Finish string                   `json:"finish_reason"`
	} `json:"choices"`
}

func eventsOf(t *testing.T, body string) []chunk {
	t.Helper()
	var list []chunk
	for event := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(event, "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var e chunk
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("%s is no event: %v", data, err)
		}
		list = append(list, e)
	}
	return list
}

// How the streams of servers differ.
func TestStreamsOfServers(t *testing.T) {
	for _, c := range []struct {
		server, model string
		has           []string
		hasNot        []string
	}{
		{"openai", "gpt-4.1", []string{`"choices":[],`, `"reasoning_tokens":3`, "data: [DONE]"}, []string{"must look", "signature"}},
		{"azure", "gpt-4.1", []string{`data: {"choices":[],"created":0`}, nil},
		{"gemini", "gemini-3-pro-preview", []string{`"extra_content":{"google":{"thought_signature":"call.`, `"id":"","index":0`, `"completion_tokens":4,"prompt_tokens":20,"total_tokens":27`}, []string{`"choices":[],`, `"index":1`}},
		{"anthropic", "claude-sonnet-4-5", []string{`"toolu_`}, []string{"[DONE]", "must look"}},
		{"openrouter", "google/gemini-3-pro-preview", []string{": OPENROUTER PROCESSING\n\n", `{"data":"call.`, `"type":"reasoning.encrypted"`, `"type":"reasoning.text"`}, nil},
		{"openrouter", "anthropic/claude-sonnet-4.5", []string{`"signature":"thought.`}, []string{"encrypted"}},
		{"groq", "qwen/qwen3-32b", []string{`"reasoning":"I must`, `"x_groq":{"id":"req_1","usage":{`}, []string{"reasoning_content"}},
		{"mistral", "magistral-medium-latest", []string{`"thinking":[{"text":"I must`, `"id":"null"`, `"finish_reason":"tool_calls","index":0}],"created":1,"id":"chatcmpl-1","model":"magistral-medium-latest","object":"chat.completion.chunk","usage"`}, nil},
		{"deepseek", "deepseek-v4", []string{": keep-alive\n\n", `"reasoning_content":"I must`, `"prompt_cache_miss_tokens":15`}, nil},
		{"xai", "grok-4.5", []string{`"completion_tokens":4`, `"total_tokens":27`}, []string{"must look"}},
		{"vllm", "m", []string{`"chatcmpl-tool-00000000000000000000000000000100"`, `"reasoning":"I must`}, []string{"reasoning_content"}},
		{"plain", "plain", nil, []string{"usage", "must look"}},
	} {
		rest := stream
		if c.server == "mistral" {
			rest = `,"stream":true}`
		}
		_, header, body := post(t, imitate(t, c.server, "", answer), "", strings.TrimSuffix(strings.Replace(hello, `"m"`, `"`+c.model+`"`, 1), "}")+rest)
		if header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%s: content type %q: %s", c.server, header.Get("Content-Type"), body)
		}
		for _, part := range c.has {
			if !strings.Contains(body, part) {
				t.Errorf("%s: no %s in %s", c.server, part, body)
			}
		}
		for _, part := range c.hasNot {
			if strings.Contains(body, part) {
				t.Errorf("%s: %s in %s", c.server, part, body)
			}
		}
	}
}

// Faults and failures of a script reach the client as the server words them.
func TestImitatedFailures(t *testing.T) {
	s := imitate(t, "openrouter", "", providertest.Limited("7"),
		providertest.Answer{Step: scripted.Say("so"), Fault: providertest.Complain, Message: "no room"})
	if status, header, body := post(t, s, "", hello); status != 429 || header.Get("Retry-After") != "7" || body != `{"error":{"code":429,"message":"slow down"},"user_id":"user_1"}` {
		t.Fatalf("got %d %v %s", status, header, body)
	}
	if _, _, body := post(t, s, "", strings.TrimSuffix(hello, "}")+stream); !strings.Contains(body, `"error":{"code":500,"message":"no room"}`) || !strings.Contains(body, `"finish_reason":"error"`) {
		t.Fatalf("got %s", body)
	}
	if len(s.Refusals()) != 0 {
		t.Fatalf("failures of the script were recorded as refusals: %+v", s.Refusals())
	}
}

// The dummy stands for a signature that another server gave.
func TestDummySignature(t *testing.T) {
	const before = `{"model":"gemini-3-pro","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"`
	const after = `"}}}]},{"role":"tool","tool_call_id":"a","content":"1"}]}`
	s := imitate(t, "gemini", "", providertest.Steps(scripted.Say("done"))...)
	if status, _, body := post(t, s, "", before+"call.of another server"+after); status != 400 || !strings.Contains(body, "not valid") {
		t.Fatalf("a foreign signature got %d %s", status, body)
	}
	if status, _, body := post(t, s, "", before+"skip_thought_signature_validator"+after); status != 200 {
		t.Fatalf("the dummy got %d %s", status, body)
	}
}
