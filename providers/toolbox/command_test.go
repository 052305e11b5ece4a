package toolbox

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/providers/tool"
)

func TestCommandConfig(t *testing.T) {
	tests := []struct {
		name   string
		change func(*CommandConfig)
		want   string
	}{
		{"no name", func(c *CommandConfig) { c.Name = "" }, `tool "": a name is`},
		{"a name with a space", func(c *CommandConfig) { c.Name = "look up" }, `tool "look up": a name is`},
		{"no command", func(c *CommandConfig) { c.Command = nil }, "tool t: command: it is empty"},
		{"schema of no object", func(c *CommandConfig) { c.Parameters = json.RawMessage(`{"type":"string"}`) }, `tool t: parameters: no schema of an object`},
		{"schema that is no JSON", func(c *CommandConfig) { c.Parameters = json.RawMessage("{\n \"type\" \"object\"}") }, "tool t: parameters: not JSON: line 2, column 9: "},
		{"schema cut off", func(c *CommandConfig) { c.Parameters = json.RawMessage(`{"type":`) }, "not JSON: line 1, column 8: "},
		{"schema of the wrong kind", func(c *CommandConfig) {
			c.Parameters = json.RawMessage(`{"type":"object","properties":[]}`)
		}, "tool t: parameters: no JSON schema: "},
		{"schema that points nowhere", func(c *CommandConfig) {
			c.Parameters = json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}}}`)
		}, `"/$defs/b"`},
		{"unknown on_unknown", func(c *CommandConfig) { c.OnUnknown = "twice" }, `tool t: on_unknown "twice": write read_only, rerun, reconcile or pause`},
		{"reconcile without a program to ask", func(c *CommandConfig) { c.OnUnknown = tool.Reconcile }, "tool t: on_unknown reconcile: reconcile is empty"},
		{"a program to ask without check", func(c *CommandConfig) { c.Reconcile = []string{"a"} }, "tool t: reconcile: only"},
		{"negative timeout", func(c *CommandConfig) { c.Timeout = -1 }, "tool t: timeout: -1ns is negative"},
		{"negative output", func(c *CommandConfig) { c.MaxOutput = -1 }, "tool t: max output: -1 is negative"},
		{"unknown approval", func(c *CommandConfig) { c.Approval = "often" }, `tool t: approval "often": write always or asked`},
		{"asked, without a predicate", func(c *CommandConfig) { c.Approval = tool.Asked }, "tool t: approval asked: there is no ApproveIf"},
		{"a predicate for nothing", func(c *CommandConfig) { c.ApproveIf = approve }, "tool t: ApproveIf: it is only asked of"},
		{"a predicate beside always", func(c *CommandConfig) { c.Approval, c.ApproveIf = tool.Always, approve }, "tool t: ApproveIf: it is only asked of"},
		{"repeats of a tool that only reads", func(c *CommandConfig) { c.OnUnknown, c.ApproveRepeats = tool.ReadOnly, true }, "tool t: approve repeats: only calls of tools with on_unknown rerun and pause"},
		{"negative approval timeout", func(c *CommandConfig) { c.ApprovalTimeout = -1 }, "tool t: approval timeout: -1ns is negative"},
		{"a key field with a space", func(c *CommandConfig) { c.KeyField = "my key" }, `tool t: key field "my key": a name is`},
		{"a key field of the schema", func(c *CommandConfig) {
			c.KeyField, c.Parameters = "key", json.RawMessage(`{"type":"object","properties":{"key":{}}}`)
		}, "tool t: key field key: the parameters have a field of that name"},
		{"a key field that is required", func(c *CommandConfig) {
			c.KeyField, c.Parameters = "key", json.RawMessage(`{"type":"object","required":["key"]}`)
		}, "tool t: key field key: the parameters have a field of that name"},
		{"a variable without a name", func(c *CommandConfig) { c.Env = []string{"=hush"} }, "tool t: env: "},
	}
	for _, test := range tests {
		c := CommandConfig{Name: "t", Command: []string{"true"}}
		test.change(&c)
		_, err := Command(c)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: got %v; want %q", test.name, err, test.want)
		}
	}
}

func approve(json.RawMessage) (bool, error) { return true, nil }

// A31, A40: every command tool is gated, and finds what does not fit first.
func TestCommandApproval(t *testing.T) {
	broken := errors.New("cents is no number")
	large := func(arguments json.RawMessage) (bool, error) {
		if strings.Contains(string(arguments), "many") {
			return false, broken
		}
		return strings.Contains(string(arguments), "50000"), nil
	}
	schema := json.RawMessage(`{"type":"object","required":["cents"]}`)
	for _, c := range []struct {
		config CommandConfig
		want   string // of small, big and odd arguments
	}{
		{CommandConfig{}, "false false false"},
		{CommandConfig{Approval: tool.Always, OnUnknown: tool.Rerun}, "true true true"},
		{CommandConfig{Approval: tool.Asked, ApproveIf: large, OnUnknown: tool.Reconcile, Reconcile: []string{"true"}}, "false true error"},
	} {
		c.config.Name, c.config.Command, c.config.Parameters = "t", []string{"true"}, schema
		c.config.ApproveRepeats, c.config.ApprovalTimeout = c.config.OnUnknown != tool.Reconcile, time.Hour
		made, err := Command(c.config)
		if err != nil {
			t.Fatal(err)
		}
		if s := made.Spec(); s.Approval != c.config.Approval || s.ApproveRepeats != c.config.ApproveRepeats || s.ApprovalTimeout != time.Hour {
			t.Errorf("the spec is %+v", s)
		}
		gated, ok := made.(tool.Gated)
		if !ok {
			t.Fatalf("a tool of approval %q is not gated", c.config.Approval)
		}
		var got []string
		for _, arguments := range []string{`{"cents":5}`, `{"cents":50000}`, `{"cents":"many"}`} {
			needs, err := gated.NeedsApproval(json.RawMessage(arguments))
			if err != nil {
				got = append(got, "error")
				continue
			}
			got = append(got, strconv.FormatBool(needs))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("approval %q: got %s, want %s", c.config.Approval, got, c.want)
		}
		var misfit *tool.ArgumentError
		if needs, err := gated.NeedsApproval(json.RawMessage(`{}`)); needs || !errors.As(err, &misfit) {
			t.Errorf("approval %q: what does not fit gives %t, %v", c.config.Approval, needs, err)
		}
	}
}

func TestCommandSpec(t *testing.T) {
	made, err := Command(CommandConfig{Name: "t", Description: "d", Command: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	s := made.Spec()
	if s.Name != "t" || s.Description != "d" || string(s.Parameters) != `{"type":"object"}` || s.OnUnknown != "" || s.Timeout != tool.DefaultTimeout {
		t.Errorf("the spec is %+v", s)
	}
}
