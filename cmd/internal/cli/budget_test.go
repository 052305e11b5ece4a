//go:build unix

package cli_test

import (
	"slices"
	"strings"
	"testing"
)

const thrifty = `
agents:
  steps: {model: demo/demo, tools: [calculator], max_steps: 1, when_reached: pause}
  tokens: {model: demo/demo, tools: [calculator], budget: {turn: {max_tokens: 60, max_cost: 5}}}
  total: {model: demo/demo, tools: [calculator], when_reached: pause, budget: {agent: {max_steps: 1}}}
  forced: {model: demo/demo, tools: [clock], tool_choice: clock}
  stops: {model: demo/demo, tools: [calculator], stop_on: [calculator]}
  careful: {model: demo/demo, tools: [pay]}
  hasty: {model: demo/demo, tools: [pay], approval_timeout: 50ms}
  spare: {models: [mine/broken, demo/demo], max_attempts: 1}
tools:
  pay:
    command: [/bin/sh, -c, 'cat; echo']
    description: Pay an amount
    parameters: {type: object, properties: {amount: {type: integer}}, required: [amount]}
    on_unknown: rerun
    approval: args.amount > 100
    key_field: key
providers:
  mine: {api_key: "sk-none", base_url: "http://127.0.0.1:1/v1"}
prices:
  demo/demo: {input: 1000, output: 2000}
`

func TestHousehold(t *testing.T) {
	w := newWorld(t)
	w.file("reprise.yaml", thrifty)
	w.dev()
	w.part("limit pauses", limitPauses)
	w.part("limit fails", limitFails)
	w.part("limit of agent", limitOfAgent)
	w.part("usage of agent", usageOfAgent)
	w.part("file gates", fileGates)
}

func limitPauses(t *testing.T, w *world) { // A17
	w.run("ask", "--id", "x", "steps/a", "What is 17 times 3?").exits(3, "waits for a person (max_steps)", "resume steps/a --max-steps 11", "abort steps/a")
	w.run("show", "steps/a").exits(0, "paused", "max_steps", "1 of 1 steps", "resume steps/a --max-steps 11")
	w.run("ask", "steps/a", "hello?").exits(3, "queued behind turn", "resume steps/a --max-steps 11")
	w.run("approvals").exits(0, "no call waits")
	w.run("resume", "steps/a", "--max-steps", "5", "--reason", "worth it").exits(0, "resumed turn t4")
	w.run("ask", "--id", "x", "steps/a", "What is 17 times 3?").exits(0, "51")
	started := of(w.run("events", "steps/a", "-o", "json").exits(0, "worth it").objects(), "model.requested")
	if len(started) < 2 || started[0]["turn"] != started[1]["turn"] {
		t.Errorf("model calls: %v", started)
	}
}

func limitFails(t *testing.T, w *world) { // A17
	w.run("ask", "tokens/a", strings.Repeat("long words ", 60)+"What is 17 times 3?").exits(1, "max_tokens", "resume tokens/a --max-tokens 120")
	w.run("resume", "tokens/a", "--max-tokens", "5000").exits(0, "resumed turn")
	w.await("tokens/a", "turn.completed")
}

func limitOfAgent(t *testing.T, w *world) { // A17
	w.run("ask", "--id", "x", "total/a", "What is 17 times 3?").exits(3, "(max_steps): the agent made 1 model calls", "resume total/a --agent-max-steps …")
	w.run("show", "total/a").exits(0, "1 of 20 steps", "resume total/a --agent-max-steps …")
	w.run("resume", "total/a", "--agent-max-steps", "10").exits(0, "resumed turn t4")
	w.run("ask", "--id", "x", "total/a", "What is 17 times 3?").exits(0, "51")
	w.run("show", "total/a").exits(0, "2 of 10 steps")
	w.run("resume", "total/a", "--agent-max-steps", "2").exits(0, "the new limits are set; no turn waited for them")
	w.run("ask", "total/a", "What is 17 times 3?").exits(3, "resume total/a --agent-max-steps 12")
	w.run("resume", "total/a", "--max-cost", "1e-10").exits(2, "--max-cost", "0.000000001")
}

func usageOfAgent(t *testing.T, w *world) { // A34 A52
	w.run("ask", "stops/a", "What is 17 times 3?").exits(0, "51")
	w.run("ask", "forced/a", "hello").exits(0)
	if r := w.run("usage", "stops/a").exits(0, "turn t4", "demo", "total", "COST"); strings.Count(r.out, "\n") != 4 {
		t.Errorf("the text form has more than a turn, a model and the total:\n%s", r.out)
	}
	lines := w.run("usage", "stops/a", "-o", "json").exits(0).objects()
	var types []string
	for _, l := range lines {
		types = append(types, l["type"].(string))
	}
	if !slices.Equal(types, []string{"call", "turn", "model", "total"}) {
		t.Errorf("a tool that ends the turn: %v", types)
	}
	if cost, _ := lines[len(lines)-1]["cost_nanos"].(float64); cost <= 0 {
		t.Errorf("total: %v", lines[len(lines)-1])
	}
	w.run("usage", "stops/none").exits(1, "does not exist")
	if n := len(of(w.run("events", "forced/a", "-o", "json").exits(0).objects(), "tool.started")); n != 1 {
		t.Errorf("the forced tool ran %d times", n)
	}
	w.run("ask", "--tool-choice", "none", "forced/b", "What time is it?").exits(1, "cannot change")
	w.run("ask", "--tool-choice", "none", "stops/b", "What is 17 times 3?").exits(0)
	w.run("ask", "--tool-choice", "hammer", "forced/b", "hello").exits(1, "hammer")
	if ran := of(w.run("events", "stops/b", "-o", "json").exits(0).objects(), "tool.started"); len(ran) > 0 {
		t.Errorf("a tool ran: %v", ran)
	}
}

func fileGates(t *testing.T, w *world) { // A40 A50
	w.run("ask", "careful/small", "Use pay with amount 7").exits(0, `"key":"default/careful/small/`)
	w.run("ask", "careful/big", "Use pay with amount 700").exits(3, `pay({"amount":700})`)
	w.run("send", "hasty/big", "Use pay with amount 700").exits(0)
	w.await("hasty/big", "turn.completed") // without a decision
	w.run("events", "hasty/big").exits(0, "approval.denied", "by=timeout")
	w.run("ask", "spare/a", "hello").exits(0)
	w.run("events", "spare/a").exits(0, "model.switched", "to=demo/demo")
}
