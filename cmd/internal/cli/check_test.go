package cli_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	w := newWorld(t)
	w.run("check").exits(1, "reprise.yaml", "no such file")
	w.file("reprise.yaml", small)
	w.run("check").exits(0, "is fine", "assistant")
	if o := w.run("check", "reprise.yaml", "-o", "json").exits(0).objects()[0]; o["ok"] != true {
		t.Errorf("check: %v", o)
	}
	w.file("bad.yaml", "agents:\n  assistant:\n    modle: demo/demo\n    tools: [calculater, gone]\ntools:\n  gone:\n    command: [./gone.sh]\n    description: It is not there\n")
	r := w.run("check", "bad.yaml").exits(1, "bad.yaml:3:5:", `did you mean "model"?`)
	if r.out != "" {
		t.Errorf("stdout: %s", r.out)
	}
	o := w.run("check", "bad.yaml", "-o", "json").exits(1).objects()[0]
	if problems, _ := o["problems"].([]any); o["ok"] != false || len(problems) == 0 {
		t.Errorf("check: %v", o)
	}
	w.run("serve", "--config", "bad.yaml", "--listen", "127.0.0.1:0").exits(1, "bad.yaml:3:5:")
	w.file("typo.yaml", "agents:\n  assistant:\n    model: demo/demo\n    tools: [calculater, gone]\ntools:\n  gone:\n    command: [./gone.sh]\n    description: It is not there\n")
	w.run("check", "typo.yaml").exits(1, `did you mean "calculator"?`, "gone.sh")
}

// How each model will be asked.
func TestCheckModels(t *testing.T) {
	w := newWorld(t)
	models := `agents:
  a: {models: [openai/gpt-5.5, openai/gpt-4.1, local/gemma-3, demo/demo]}
  b: {model: all/m, settings: {seed: 7, stop: [x]}}
  c: {model: openai/gpt-6-sol, settings: {hosted_tools: [{type: web_search}]}}
providers:
  openai: {api_key: sk-key-123456}
  local: {base_url: "http://127.0.0.1:1/v1"}
  all: {base_url: "http://127.0.0.1:1/v1", profile: vllm, api: responses}
`
	w.file("reprise.yaml", models)
	w.run("check").exits(1, "reprise.yaml:3:3: agent b: all/m refuses or ignores the setting seed: remove it", "agent b: all/m refuses or ignores the setting stop")
	if listed, _ := w.run("check", "-o", "json").exits(1).objects()[0]["problems"].([]any); len(listed) != 2 {
		t.Errorf("problems %v", listed)
	}
	models = strings.Replace(models, "seed: 7, stop: [x]", "top_p: 1", 1)
	w.file("reprise.yaml", models)
	w.run("check").exits(0, "model openai/gpt-5.5: profile openai, API responses", "model openai/gpt-4.1: profile openai, API chat",
		"model local/gemma-3: profile plain, API chat", "model all/m: profile vllm, API responses", "model openai/gpt-6-sol: profile openai, API responses")
	if listed, _ := w.run("check", "-o", "json").exits(0).objects()[0]["models"].([]any); len(listed) != 5 {
		t.Errorf("models %v", listed)
	}
	w.file("reprise.yaml", strings.Replace(models, "gpt-6-sol", "gpt-4.1", 1))
	w.run("check").exits(1, "openai/gpt-4.1 refuses or ignores the setting hosted_tools")
	tooled := `agents: {a: {model: %s, tools: [clock]}}
providers: {gate: {base_url: "http://127.0.0.1:1/v1"}, chat: {base_url: "http://127.0.0.1:1/v1", api: chat}}
`
	w.file("reprise.yaml", fmt.Sprintf(tooled, "gate/gpt-6-astra"))
	w.run("check").exits(0, "model gate/gpt-6-astra: profile plain, API responses")
	w.file("reprise.yaml", fmt.Sprintf(tooled, "chat/gpt-6-astra"))
	w.run("check").exits(1, "agent a: chat/gpt-6-astra: ", "remove api: chat")
	w.file("reprise.yaml", fmt.Sprintf(tooled, "chat/gpt-6-sol, settings: {reasoning_effort: none}"))
	w.run("check").exits(0, "model chat/gpt-6-sol: profile plain, API chat")
}

// Where agents are archived is asked before a node connects.
func TestCheckRetention(t *testing.T) { // A108
	w := newWorld(t)
	kept := "agents:\n  assistant:\n    model: demo/demo\n    retain: 400d\n"
	w.file("reprise.yaml", kept)
	w.run("check").exits(0, "is fine", "serve --nats", "reprise.yaml:4:13:", "retain_to")
	if warned, _ := w.run("check", "-o", "json").exits(0).objects()[0]["warnings"].([]any); len(warned) != 1 {
		t.Errorf("warned of %v", warned)
	}
	if r := w.run("serve", "--nats", "nats://127.0.0.1:1").exits(1, "reprise.yaml:4:13:", "retain_to"); strings.Contains(r.err, "127.0.0.1") {
		t.Errorf("it has connected: %s", r.err)
	}
	w.file("reprise.yaml", kept+"retain_to: old\n")
	if r := w.run("check").exits(0, "is fine"); r.err != "" {
		t.Errorf("check warns: %s", r.err)
	}
	w.run("serve", "--nats", "nats://127.0.0.1:1").exits(1, "127.0.0.1:1")
}

// The key is tried as serve would.
func TestCheckKey(t *testing.T) {
	const key = "0101010101010101010101010101010101010101010101010101010101010101"
	w := newWorld(t)
	w.file("good", key)
	w.file("short", "0101")
	w.file("sub/reprise.yaml", small+"encryption: {key_file: ../good}\n")
	w.file("reprise.yaml", small)
	w.run("check").exits(0, "nothing is encrypted")
	w.run("check", "sub/reprise.yaml").exits(0, "wrapping key")
	w.run("check", "--key-file", "good", "-o", "json").exits(0, `"wrapping":["`)
	w.run("check", "--key-file", "none").exits(1, "--key-file", "cannot be read")
	w.run("check", "--key-file", "short").exits(1, "4 characters", "openssl rand -hex 32")
	w.file("bad.yaml", small+"encryption: {key_file: short}\n")
	w.run("check", "bad.yaml").exits(1, "bad.yaml:", "4 characters")
	w.run("serve", "--config", "bad.yaml", "--listen", "127.0.0.1:0").exits(1, "4 characters")
	w.file("bad.yaml", small+"encryption: {key_file: none}\n")
	if o := w.run("check", "bad.yaml", "-o", "json").exits(1).objects()[0]; o["ok"] != false || len(o["problems"].([]any)) != 1 {
		t.Errorf("check: %v", o)
	}
	w.file("bad.yaml", small+"encryption: {key: \"${NO_SUCH_KEY}\"}\n")
	w.run("check", "bad.yaml").exits(1, "NO_SUCH_KEY")
	w.env = append(w.env, "REPRISE_KEY=abc")
	w.run("check").exits(1, "REPRISE_KEY", "3 characters")
	w.run("check", "--key-file", "good").exits(0)
}

func TestUsage(t *testing.T) {
	w := newWorld(t)
	help := w.run("--help").exits(0)
	for _, verb := range []string{"dev", "serve", "ask", "chat", "send", "ls", "show", "events", "history", "state", "usage", "replay", "interrupt", "abort", "clear", "cancel", "resume", "set-state", "approvals", "approve", "deny", "decide", "delete", "dlq", "backup", "restore", "check", "schema", "doctor", "bench", "completion", "version"} {
		if !strings.Contains(help.out, "\n  "+verb+" ") {
			t.Errorf("the help lacks %s", verb)
		}
		w.run(verb, "--help").exits(0, "Usage:")
	}
	w.run().exits(0, "Usage:")
	w.run("frobnicate").exits(2, "frobnicate", "--help")
	w.run("ls", "--nonsense").exits(2, "--nonsense")
	w.run("ls", "-o", "yaml").exits(2, "text or json")
	for flag, want := range map[string]string{
		"--limit=x": "a whole number", "--from=-1": "1 or more", "--timeout=5": "such as 30s", "--follow=maybe": "true or false",
	} {
		if r := w.run("events", "assistant/a", flag).exits(2, want, "--help"); strings.Contains(r.err, "strconv") || strings.Contains(r.err, "time:") {
			t.Errorf("%s: %s", flag, r.err)
		}
	}
	w.run("ls", "--since", "soon").exits(2, `--since "soon": write how long ago`)
	w.run("show").exits(2)
	w.run("bench", "nonsense").exits(2, "turns")
	w.run("bench", "cluster").exits(2, "inputs")
	w.run("bench", "--agents", "x").exits(2, `--agents "x": write whole numbers`)
	w.run("bench", "turns", "--agents", "-5").exits(2, "--agents -5: write numbers from 1 to")
	w.run("dlq").exits(0, "Usage:")
	w.run("completion", "bash").exits(0, "reprise")
	if r := w.run("version").exits(0); r.out != "v9.8.7-test\n" {
		t.Errorf("version: %q", r.out)
	}
	w.run("version", "-o", "json").exits(0, `"version":"v9.8.7-test"`)
}

// What the profile of a model's server refuses is found before a node starts; a fallback does
// not inherit it.
func TestCheckSettings(t *testing.T) {
	w := newWorld(t)
	file := "providers:\n  here: {base_url: 'http://127.0.0.1:1/v1', profile: gemini}\nagents:\n  a: {models: [demo/demo, here/m], settings: {seed: 1}}\n"
	w.file("reprise.yaml", file)
	w.run("check").exits(0, "is fine")
	w.file("reprise.yaml", strings.Replace(file, "demo/demo, here/m", "here/m, demo/demo", 1))
	w.run("check").exits(1, "agent a: here/m refuses or ignores the setting seed")
}
