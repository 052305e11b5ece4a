package gateway

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

func agent(tenant, kind, key string) messages.AgentID {
	return messages.AgentID{Tenant: tenant, Kind: kind, Key: key}
}

// waits makes an agent whose turn waits for the approval of calls.
func (h *house) waits(a messages.AgentID, calls ...messages.CallID) {
	h.t.Helper()
	events := []messages.Event{accepted("u1", messages.Started, "t2"), messages.TurnStarted{Turn: "t2", Inputs: []string{"u1"}, MaxSteps: 5}}
	for _, c := range calls {
		events = append(events, requested(c, string(c)), gated(c, string(c)))
	}
	h.wrote(a, messages.PhasePaused, append(events, messages.TurnPaused{Turn: "t2", Reason: "approval", Calls: calls, Message: "approve or deny"})...)
}

func (h *house) pending(of string) string {
	h.t.Helper()
	var list []string
	for p, err := range h.client.Approvals(h.ctx, of) {
		h.ok(err)
		list = append(list, fmt.Sprintf("%s %s %s %s", p.Agent, p.Call, p.Tool, p.Arguments))
	}
	return strings.Join(list, "; ")
}

func TestApprovalsOfAgentsAndTenants(t *testing.T) {
	h := newHouse(t, nil)
	h.waits(till, "a", "b")
	h.waits(agent("default", "sales", "x"), "c")
	h.waits(agent("other", "sales", "x"), "d")
	h.wrote(agent("default", "sales", "idle"), messages.PhaseIdle, accepted("u1", messages.Queued, ""))
	busy := agent("default", "sales", "busy") // runs while a call waits: its row says so
	h.wrote(busy, messages.PhaseRunning, messages.TurnStarted{Turn: "t"}, messages.ToolRequested{Turn: "t", Call: "e", Tool: "refund"}, messages.ApprovalRequested{Turn: "t", Call: "e", Tool: "refund"})
	held := agent("default", "sales", "held") // at a limit: no call waits, and its log is not read
	h.wrote(held, messages.PhasePaused, accepted("u1", messages.Started, "t2"), messages.TurnPaused{Turn: "t2", Reason: "max_tokens"})
	for of, want := range map[string]string{
		"support/till": "support/till a refund a; support/till b refund b",
		"default":      "sales/busy e refund ; sales/x c refund c; support/till a refund a; support/till b refund b",
		"other":        "other/sales/x d refund d",
		"nobody":       "",
		"sales/idle":   "",
	} {
		if got := h.pending(of); got != want {
			t.Errorf("approvals of %s: %s, want %s", of, got, want)
		}
	}
	if _, read := h.read.Load(held); read {
		t.Error("the log of an agent was read that waits for no call")
	}
	var paged []string
	for line, err := range h.client.QueryTenant(h.ctx, "default", messages.Query{View: "approvals", Kind: "support", Limit: 2}) {
		h.ok(err)
		var p messages.Approval
		h.ok(json.Unmarshal(line, &p))
		paged = append(paged, string(p.Call))
	}
	if !reflect.DeepEqual(paged, []string{"a", "b"}) {
		t.Errorf("of one kind, two lines: %v", paged)
	}
	h.wrote(till, messages.PhasePaused, messages.ApprovalGranted{Turn: "t2", Call: "a", Tool: "refund", Remember: true, Reason: "fine"})
	if got := h.pending("support/till"); got != "support/till b refund b" {
		t.Errorf("one is decided, now %s", got)
	}
	for r, err := range h.client.Remembered(h.ctx, "support/till") {
		if want := (messages.Remembered{Agent: till, Tool: "refund", Decision: "granted", Reason: "fine", N: 8, At: tillAt}); err != nil || r != want {
			t.Errorf("remembered %+v, %v", r, err)
		}
	}
	for line, err := range h.client.Query(h.ctx, "support/till", messages.Query{View: "approvals", At: 3}) {
		h.ok(err)
		if !strings.Contains(string(line), `"call":"a"`) {
			t.Errorf("as of event 3: %s", line)
		}
	}
	for _, q := range []messages.Query{{View: "approvals", Remembered: true}, {View: "approvals", At: 3}} {
		for _, err := range h.client.QueryTenant(h.ctx, "default", q) {
			if messages.AsError(err).Code != messages.BadInput {
				t.Errorf("%+v of a tenant: %v", q, err)
			}
		}
	}
	for _, err := range h.client.Approvals(h.ctx, "support/none") {
		if messages.AsError(err).Code != messages.NotFound {
			t.Errorf("approvals of a missing agent: %v", err)
		}
	}
}

// What cannot be read is left out, everything else is shown.
func TestApprovalsBesideADamagedAgent(t *testing.T) { // A29
	h := newHouse(t, nil)
	h.waits(agent("default", "sales", "a"), "a")
	h.waits(agent("default", "sales", "b"), "b")
	h.log.Inject(eventlog.Entry{Agent: agent("default", "sales", "a"), Frame: &messages.Frame{ID: "bad", First: 5, Events: []messages.Event{messages.AgentCleared{}}}, Bytes: []byte("no frame"), Summary: eventlog.Summary{Phase: messages.PhasePaused}}, false)
	if got := h.pending("default"); got != "sales/a a refund a; sales/b b refund b" {
		t.Errorf("approvals: %s", got)
	}
}

func (h *house) view(view string) []string {
	h.t.Helper()
	var list []string
	for line, err := range h.client.Query(h.ctx, "support/till", messages.Query{View: view}) {
		h.ok(err)
		list = append(list, string(line))
	}
	return list
}

func TestShowAndUsage(t *testing.T) {
	h := newHouse(t, nil)
	usage := messages.Usage{Input: 20, Output: 3}
	h.wrote(till, messages.PhaseRunning, accepted("u1", messages.Started, "t2"), messages.TurnStarted{Turn: "t2", Inputs: []string{"u1"}, MaxSteps: 5, Limits: messages.Limits{MaxTokens: 100}},
		messages.ModelRequested{Turn: "t2", Step: 1, Call: "m3", Model: "a/b", Inputs: []string{"u1"}}, messages.ModelCompleted{Turn: "t2", Step: 1, Call: "m3", Usage: usage, Cost: 7})
	h.wrote(till, messages.PhasePaused, requested("a", "{}"), gated("a", "{}"), messages.TurnPaused{Turn: "t2", Reason: "approval", Calls: []messages.CallID{"a"}, Message: "approve or deny"})
	h.wrote(till, messages.PhasePaused, accepted("u2", messages.Queued, ""), accepted("u3", messages.Steered, "t2"))
	var got map[string]any
	h.ok(json.Unmarshal([]byte(h.view("show")[0]), &got))
	var want map[string]any
	h.ok(json.Unmarshal([]byte(`{"agent":"support/till","phase":"paused","turn":"t2","events":9,"epoch":1,"owner":"n1","updated":"2026-01-02T03:04:05Z",
		"queue":["u2"],"steered":["u3"],"paused":"approval","message":"approve or deny",
		"waiting":[{"call":"a","turn":"t2","tool":"refund","kind":"approval","reason":"it is over 50","arguments":"{}","args_hash":"`+messages.HashArguments("{}")+`","n":6,"at":"2026-01-02T03:04:05Z"}],
		"budget":{"turn":{"limits":{"max_steps":5,"max_tokens":100},"used":{"steps":1,"tokens":23,"cost_nanos":7}},"agent":{"limits":{},"used":{"steps":1,"tokens":23,"cost_nanos":7}}}}`), &want))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("show tells %v, want %v", got, want)
	}
	sum := `"calls":1,"usage":{"input_tokens":20,"output_tokens":3},"cost_nanos":7}`
	if got, want := h.view("usage"), []string{
		`{"type":"call","n":4,"turn":"t2","step":1,"call":"m3","model":"a/b",` + sum,
		`{"type":"turn","turn":"t2",` + sum, `{"type":"model","model":"a/b",` + sum, `{"type":"total",` + sum,
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("usage tells\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// fields returns the fields of a view's lines that are named, with spaces between.
func (h *house) fields(q messages.Query, names ...string) (lines []string) {
	h.t.Helper()
	for line, err := range h.client.Query(h.ctx, "support/till", q) {
		if err != nil {
			return append(lines, err.Error())
		}
		var fields map[string]any
		h.ok(json.Unmarshal(line, &fields))
		var text []string
		for _, name := range names {
			text = append(text, fmt.Sprint(fields[name]))
		}
		lines = append(lines, strings.Join(text, " "))
	}
	return lines
}

func TestOneTurnAndTheNewest(t *testing.T) { // A52
	h := newHouse(t, nil)
	for _, turn := range []messages.TurnID{"t2", "t6", "t10"} {
		in := "u" + string(turn)
		h.wrote(till, messages.PhaseIdle, accepted(in, messages.Started, turn), messages.TurnStarted{Turn: turn, Inputs: []string{in}},
			messages.ModelRequested{Turn: turn, Step: 1, Call: "m" + messages.CallID(turn), Inputs: []string{in}},
			messages.TurnFailed{Turn: turn, Inputs: []string{in}, Reason: "model"})
	}
	h.wrote(till, messages.PhaseIdle, accepted("u", messages.Started, "t14"), messages.TurnStarted{Turn: "t14", Inputs: []string{"u"}},
		messages.TurnCompleted{Turn: "t14", Inputs: []string{"u"}, Output: "done"})
	for _, c := range []struct {
		q     messages.Query
		field string
		want  string
	}{
		{messages.Query{View: "events", Tail: 2}, "n", "14 15"},
		{messages.Query{View: "events", Tail: 100, Limit: 1}, "n", "1"},
		{messages.Query{View: "events", Tail: 2, From: 15}, "n", "15"},
		{messages.Query{View: "events", Turn: "t6"}, "n", "5 6 7 8"},
		{messages.Query{View: "events", Turn: "t6", Limit: 3}, "n", "5 6 7"},
		{messages.Query{View: "events", Turn: "t6", Tail: 1}, "n", "the view events takes tail or turn, not both"},
		{messages.Query{View: "history", Tail: 1}, "n", "14"},
		{messages.Query{View: "history", Turn: "t6"}, "turn", "t6"},
		{messages.Query{View: "replay", Turn: "t6"}, "n", "5 6 7 8"},
		{messages.Query{View: "replay", Turn: "t6", From: 7}, "n", "7 8"},
		{messages.Query{View: "effects", Turn: "t6"}, "n", ""},
		{messages.Query{View: "turns", Tail: 2}, "turn", "t10 t14"},
		{messages.Query{View: "turns", Last: "failed", Tail: 2}, "turn", "t6 t10"},
		{messages.Query{View: "turns", Tail: 1}, "answer", "<nil>"},
		{messages.Query{View: "turns", Tail: 1, Whole: true}, "answer", "done"},
		{messages.Query{View: "turn", Turn: "t14"}, "output", "done"},
		{messages.Query{View: "turn", Turn: "t15"}, "turn", "agent support/till has no turn t15: the view turns lists those that it has"},
		{messages.Query{View: "turn"}, "turn", `the view turn wants one: set "turn" to its id, as the view turns lists it`},
		{messages.Query{View: "state", Tail: 1}, "n", "view state takes at: tail is not among them"},
	} {
		if got := strings.Join(h.fields(c.q, c.field), " "); got != c.want {
			t.Errorf("%s of %+v: got %s, want %s", c.field, c.q, got, c.want)
		}
	}
}
