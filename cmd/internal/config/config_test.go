package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/profile"
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

const whole = `# everything that can be written
agents:
  assistant:
    model: openai/gpt-5.5
    instructions: |
      You are terse.
      You serve ${NAME}; $${this} stays.
    tools: [clock, lookup]
    max_steps: 20
    max_queue: 1_000
    max_attempts: ${STEPS}
    parallel: 4
    show_at_most: 2_000_000
    tool_choice: lookup
    stop_on: [lookup]
    approval_timeout: 1h
    budget:
      turn: {max_tokens: 200_000, max_cost: 0.25, max_duration: 10m}
      agent: {max_steps: 5000, max_tokens: 50000000, max_cost: "${STEPS}", max_duration: 24h}
    when_reached: pause
    prompt_approves: true
    compact: {at_tokens: 60_000, keep: 30, how: summary, model: "${MODEL}", instructions: Be brief.}
    settings: {temperature: 0.5, top_p: 1, max_output_tokens: 100, reasoning_effort: low}
  42: {model: "${MODEL}", tools: [], tool_choice: auto, when_reached: fail}
  several: {models: [openai/gpt-5.5, {model: "${MODEL}", settings: {seed: -1, stop: [END]}}, {model: local/m}], tools: [clock], tool_choice: required}
  all: {model: demo/demo, settings: {seed: 7, presence_penalty: -1, frequency_penalty: 0.5, verbosity: high, service_tier: flex, parallel_tool_calls: false, cache_key: "${NAME}", hosted_tools: [{type: web_search, for: "${NAME}"}], extra_body: {n: 1, who: {is: "${NAME}"}}}}
tools:
  lookup:
    command: [./lookup.sh, "--for=${NAME}"]
    description: Look a word up
    parameters:
      type: object
      properties: {word: {type: string, pattern: "^${1}$", maxLength: 0x10}, exact: {type: boolean, default: true}}
      required: [word]
    on_unknown: rerun
    approval: args.exact and args.word != "${NAME}"
    approve_repeats: true
    approval_timeout: 10m
    key_field: idempotency_key
    timeout: 1m30s
    max_output: 0x1000000
    env: {TOKEN: "${SECRET}"}
    dir: scripts
  bare: {command: [/bin/true], description: Nothing, approval: never, approve_repeats: false}
  asked: {command: [./pay], description: Pay, on_unknown: reconcile, reconcile: [./pay, --status], approval: always}
providers:
  openai: {api_key: "${OPENAI_API_KEY}", base_url: "${UNSET_URL}", api: chat, type: openai}
  local: {base_url: "http://127.0.0.1:1234/v1", profile: vllm, rules: {system: nowhere, token_limit: limit, refused: [], echo: [x]}, headers: {X-Key: "${SECRET}"}, query: {api-version: "2"}, extra_body: {safe: true}, timeout: 5m}
  spare: {api_key: "${UNSET_KEY}", api: auto}
prices:
  openai/gpt-5.5: {input: 1.25, output: 10, cached: 0.125, cache_write: 0.5}
  demo/demo: {input: 0, output: 0}
telemetry: {otlp: "http://localhost:4318", headers: {X-Key: "${SECRET}"}, content: true}
`

func TestParse(t *testing.T) {
	c, err := Parse(filepath.FromSlash("conf/reprise.yaml"), []byte(whole), variables)
	if err != nil {
		t.Fatal(err)
	}
	half, one, eighth, written := float32(0.5), float32(1), 0.125, 0.5
	want := &Config{
		File: filepath.FromSlash("conf/reprise.yaml"),
		Agents: []AgentConfig{{Tools: []string{"clock", "lookup"}, PromptApproves: new(true), Definition: actors.Definition{
			Kind: "assistant", Model: "openai/gpt-5.5",
			Instructions: "You are terse.\nYou serve Ada; ${this} stays.\n",
			ToolChoice:   "lookup", StopOn: []string{"lookup"}, ApprovalTimeout: time.Hour,
			MaxSteps: 20, MaxQueue: 1000, MaxAttempts: 7, Parallel: 4, ShowAtMost: 2_000_000,
			TurnLimits:   messages.Limits{MaxTokens: 200_000, MaxCost: 250_000_000, MaxDuration: 600_000},
			AgentLimits:  messages.Limits{MaxSteps: 5000, MaxTokens: 50_000_000, MaxCost: 7_000_000_000, MaxDuration: 86_400_000},
			PauseAtLimit: true,
			Compact:      actors.Compaction{AtTokens: 60_000, Keep: 30, How: messages.CompactSummary, Model: "demo/demo", Instructions: "Be brief."},
			Settings:     providers.Settings{Temperature: &half, TopP: &one, MaxOutputTokens: 100, ReasoningEffort: "low"},
		}}, {Definition: actors.Definition{Kind: "42", Model: "demo/demo"}}, {Tools: []string{"clock"}, Definition: actors.Definition{
			Kind: "several", Model: "openai/gpt-5.5", Fallbacks: []string{"demo/demo", "local/m"}, ToolChoice: "required",
			ModelSettings: map[string]providers.Settings{"demo/demo": {Seed: new(int64(-1)), Stop: []string{"END"}}},
		}}, {Definition: actors.Definition{
			Kind: "all", Model: "demo/demo", Settings: providers.Settings{
				Seed: new(int64(7)), PresencePenalty: new(float32(-1)), FrequencyPenalty: &half, Verbosity: "high", ServiceTier: "flex",
				ParallelToolCalls: new(bool), CacheKey: "Ada",
				HostedTools: []json.RawMessage{json.RawMessage(`{"for":"Ada","type":"web_search"}`)},
				ExtraBody:   map[string]json.RawMessage{"n": json.RawMessage(`1`), "who": json.RawMessage(`{"is":"Ada"}`)},
			},
		}}},
		Tools: []ToolConfig{{Env: map[string]Secret{"TOKEN": "sk-variable-123456"}, CommandConfig: toolbox.CommandConfig{
			Name: "lookup", Command: []string{"./lookup.sh", "--for=Ada"}, Description: "Look a word up",
			Parameters: json.RawMessage(`{"properties":{"exact":{"default":true,"type":"boolean"},"word":{"maxLength":16,"pattern":"^${1}$","type":"string"}},"required":["word"],"type":"object"}`),
			OnUnknown:  tool.Rerun, Timeout: 90 * time.Second, MaxOutput: 1 << 24,
			Approval: tool.Asked, ApproveRepeats: true, ApprovalTimeout: 10 * time.Minute, KeyField: "idempotency_key",
			Dir: filepath.FromSlash("conf/scripts"),
		}}, {CommandConfig: toolbox.CommandConfig{
			Name: "bare", Command: []string{"/bin/true"}, Description: "Nothing", OnUnknown: tool.Pause, Dir: "conf",
			Parameters: json.RawMessage(`{"type":"object","properties":{}}`),
		}}, {CommandConfig: toolbox.CommandConfig{
			Name: "asked", Command: []string{"./pay"}, Description: "Pay", OnUnknown: tool.Reconcile, Dir: "conf",
			Reconcile: []string{"./pay", "--status"}, Approval: tool.Always,
			Parameters: json.RawMessage(`{"type":"object","properties":{}}`),
		}}},
		Providers: []ProviderConfig{
			{Name: "openai", APIKey: "sk-key-123456", Used: true, Rules: profile.Rules{API: profile.Chat}},
			{Name: "local", BaseURL: "http://127.0.0.1:1234/v1", Used: true, Profile: "vllm",
				Rules:   profile.Rules{System: profile.Nowhere, TokenLimit: "limit", Refused: []string{}, Echo: []string{"x"}},
				Headers: map[string]Secret{"X-Key": "sk-variable-123456"}, Query: map[string]Secret{"api-version": "2"},
				ExtraBody: map[string]json.RawMessage{"safe": json.RawMessage(`true`)}, Timeout: 5 * time.Minute},
			{Name: "spare"},
		},
		Prices:    map[string]messages.Price{"openai/gpt-5.5": {Input: 1.25, Output: 10, Cached: &eighth, CacheWrite: &written}, "demo/demo": {}},
		Telemetry: TelemetryConfig{OTLP: "http://localhost:4318", Headers: map[string]Secret{"X-Key": "sk-variable-123456"}, Content: true},
		places:    c.places,
	}
	asks := c.Tools[0].ApproveIf
	if needs, err := asks(json.RawMessage(`{"word":"Bob","exact":true}`)); !needs || err != nil {
		t.Errorf("another word: %t, %v", needs, err)
	}
	if needs, err := asks(json.RawMessage(`{"word":"Ada","exact":true}`)); needs || err != nil {
		t.Errorf("the word of the variable: %t, %v", needs, err)
	}
	c.Tools[0].ApproveIf = nil // functions cannot be compared
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %#v\nwant %#v", c, want)
	}
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	showings := []string{string(raw)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		showings = append(showings, fmt.Sprintf(verb, c.Providers[0].APIKey), fmt.Sprintf(verb, c.Tools[0].Env), fmt.Sprintf(verb, *c))
	}
	for _, s := range showings {
		if strings.Contains(s, "sk-") || strings.Contains(s, "736b2d") {
			t.Errorf("a secret is shown in %s", s)
		}
	}
	if got := c.Providers[0].APIKey.Reveal(); got != "sk-key-123456" {
		t.Errorf("Reveal: %q", got)
	}
}

// TestForms reads the same agent from files that differ in form alone.
func TestForms(t *testing.T) {
	for name, data := range map[string]string{
		"plain":     "agents:\n  a:\n    model: demo/demo\n    max_steps: 3\n",
		"windows":   "\ufeffagents:\r\n  a:\r\n    model: demo/demo\r\n    max_steps: 3\r\n",
		"flow":      "{agents: {a: {model: demo/demo, max_steps: 3}}}",
		"quoted":    "\"agents\":\n  'a': {model: \"demo/demo\", max_steps: 0x3}\n",
		"marker":    "---\nagents:\n  a: {model: demo/demo, max_steps: 3}\n...\n",
		"sections":  "tools:\nproviders: {}\nagents: {a: {model: demo/demo, max_steps: 3, tools: , settings: }}\n",
		"merge":     "agents:\n  a: {<<: {model: demo/other, max_steps: 3}, model: demo/demo}\n",
		"merge two": "agents:\n  a: {<<: [{model: demo/demo}, {model: no, max_steps: 3}]}\n",
	} {
		c, err := Parse("f", []byte(data), variables)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := []AgentConfig{{Definition: actors.Definition{Kind: "a", Model: "demo/demo", MaxSteps: 3}}}; !reflect.DeepEqual(c.Agents, want) {
			t.Errorf("%s: got %+v", name, c.Agents)
		}
	}
}

func TestLoad(t *testing.T) {
	t.Setenv("REPRISE_TEST_MODEL", "demo/demo")
	file := filepath.Join(t.TempDir(), "reprise.yaml")
	if err := os.WriteFile(file, []byte("agents: {a: {model: \"${REPRISE_TEST_MODEL}\"}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(file)
	if err != nil || c.Agents[0].Model != "demo/demo" {
		t.Errorf("got %+v, %v", c, err)
	}
}

// TestKeys checks when a provider may do without a key.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		provider string
		ok       bool
	}{
		{`{api_key: x}`, true},
		{`{api_key: "${OPENAI_API_KEY}"}`, true},
		{`{api_key: "${UNSET:-x}"}`, true},
		{`{api_key: "${UNSET}"}`, false},
		{`{api_key: "${EMPTY}"}`, false},
		{`{api_key: "${UNSET:-}"}`, false},
		{`{}`, false},
		{``, false},
		{`{base_url: "http://localhost:1/v1"}`, true},
		{`{api_key: "${UNSET:-}", base_url: "http://localhost:1/v1"}`, true},
		{`{base_url: "http://localhost:1/v1", api_key: ""}`, true},
		{`{api_key: "${UNSET}", base_url: "http://localhost:1/v1"}`, false},
		{`{base_url: "${UNSET}"}`, false},
	} {
		data := "agents: {a: {model: openai/m}}\nproviders:\n  openai: " + c.provider
		if _, err := Parse("f", []byte(data), variables); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.provider, err)
		}
	}
}

func fixed(name string) tool.Tool {
	return named{tool.New(name, name, tool.ReadOnly, nothing)}
}

type named struct{ tool.Tool }

func lookup(name string) (tool.Tool, bool) {
	if name == "clock" || name == "calculator" {
		return fixed(name), true
	}
	return nil, false
}

func command(tc toolbox.CommandConfig) (tool.Tool, error) {
	if tc.Name == "broken" {
		return nil, errors.New("no such program")
	}
	return fixed(tc.Name), nil
}

func TestDefinitions(t *testing.T) {
	c, err := Parse("f", []byte(whole), variables)
	if err != nil {
		t.Fatal(err)
	}
	defs, err := c.Definitions(lookup, command)
	if err != nil || len(defs) != 4 || len(defs[2].ModelSettings) != 1 {
		t.Fatalf("got %+v, %v", defs, err)
	}
	d := defs[0]
	if len(d.Tools) != 2 || d.Tools[0].Spec().Name != "clock" || d.Tools[1].Spec().Name != "lookup" {
		t.Errorf("the tools are %+v", d.Tools)
	}
	a := c.Agents[0]
	want := actors.Definition{
		Kind: "assistant", Model: "openai/gpt-5.5", Instructions: a.Instructions, Settings: a.Settings, Tools: d.Tools,
		MaxSteps: 20, MaxQueue: 1000, MaxAttempts: 7, Parallel: 4, ShowAtMost: 2_000_000,
		ToolChoice: "lookup", StopOn: []string{"lookup"}, ApprovalTimeout: time.Hour,
		TurnLimits: a.TurnLimits, AgentLimits: a.AgentLimits, PauseAtLimit: true,
		Compact: a.Compact,
	}
	if !reflect.DeepEqual(d, want) {
		t.Errorf("got  %+v\nwant %+v", d, want)
	}
	if got := defs[2].Fallbacks; !reflect.DeepEqual(got, []string{"demo/demo", "local/m"}) {
		t.Errorf("the fallbacks are %q", got)
	}
	if defs[1].Kind != "42" || defs[1].Tools != nil {
		t.Errorf("got %+v", defs[1])
	}
}

func TestDefinitionProblems(t *testing.T) {
	data := `agents:
  a: {model: demo/demo, tools: [clok, broken, lokup, entirely_else, web/*]}
tools:
  broken: {command: [x], description: d}
  lookup: {command: [x], description: d}
  clock: {command: [x], description: d}
`
	c, err := Parse("f", []byte(data), variables)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Definitions(lookup, command, "clock", "calculator")
	golden(t, "testdata/definitions.txt", err)
}
