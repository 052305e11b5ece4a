package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/tool"
)

type line struct {
	SKU string `json:"sku"`
}

type order struct {
	Order  string          `json:"order" jsonschema:"The order to pay back"`
	Cents  int             `json:"cents"`
	Share  float64         `json:"share,omitempty"`
	Small  uint8           `json:"small,omitempty"`
	Tags   []string        `json:"tags,omitempty"`
	Lines  []line          `json:"lines,omitempty"`
	Due    time.Time       `json:"due,omitzero"`
	Extra  json.RawMessage `json:"extra,omitempty"`
	hidden int
}

func newTool(fn func(context.Context, order) (string, error)) *tool.Typed[order] {
	return tool.New("refund", "Pay an order back", tool.Rerun, fn)
}

func TestSchema(t *testing.T) {
	s := newTool(nil).Spec()
	if s.Name != "refund" || s.Description != "Pay an order back" || s.OnUnknown != tool.Rerun || s.Timeout != 0 {
		t.Errorf("the spec is %+v", s)
	}
	const want = `{"type":"object","properties":{` +
		`"order":{"type":"string","description":"The order to pay back"},` +
		`"cents":{"type":"integer"},` +
		`"share":{"type":"number"},` +
		`"small":{"type":"integer","minimum":0,"maximum":255},` +
		`"tags":{"type":["null","array"],"items":{"type":"string"}},` +
		`"lines":{"type":["null","array"],"items":{"type":"object","properties":{"sku":{"type":"string"}},"required":["sku"],"additionalProperties":false}},` +
		`"due":{"type":"string","format":"date-time"},` +
		`"extra":true},` +
		`"required":["order","cents"],"additionalProperties":false}`
	if string(s.Parameters) != want {
		t.Errorf("the schema is\n%s\nwant\n%s", s.Parameters, want)
	}
	empty := tool.New("now", "", tool.ReadOnly, func(context.Context, struct{}) (string, error) { return "", nil })
	if got := string(empty.Spec().Parameters); got != `{"type":"object","additionalProperties":false}` {
		t.Errorf("the schema of nothing is %s", got)
	}
}

func TestNewPanics(t *testing.T) {
	panics := func(what string, f func()) {
		defer func() {
			if got, _ := recover().(string); !strings.Contains(got, "tool t: ") {
				t.Errorf("%s: the panic is %q", what, got)
			}
		}()
		f()
	}
	panics("a string", func() { tool.New[string]("t", "", tool.ReadOnly, nil) })
	panics("a pointer", func() { tool.New[*order]("t", "", tool.ReadOnly, nil) })
	panics("a function inside", func() { tool.New[struct{ F func() }]("t", "", tool.ReadOnly, nil) })
}

// A31
func TestArgumentErrors(t *testing.T) {
	ran := newTool(func(context.Context, order) (string, error) { return "ran", nil })
	tests := []struct{ arguments, want string }{
		{``, `they are empty; write {} if there are none`},
		{" \n", `they are empty; write {} if there are none`},
		{`{"order":`, `not JSON: unexpected end of JSON input`},
		{`order 7`, `not JSON: invalid character 'o' looking for beginning of value`},
		{`{"order":"a","cents":1} and`, `not JSON: invalid character 'a' after top-level value`},
		{`null`, `type: null has type "null", want "object"`},
		{`[]`, `type: [] has type "array", want "object"`},
		{`{}`, `required: missing properties: ["order" "cents"]`},
		{`{"order":7,"cents":1}`, `order: type: 7 has type "integer", want "string"`},
		{`{"order":"a","cents":"x"}`, `cents: type: x has type "string", want "integer"`},
		{`{"order":"a","cents":1.5}`, `cents: type: 1.5 has type "number", want "integer"`},
		{`{"order":"a","cents":1,"small":300}`, `small: maximum: 300/1 is greater than 255.000000`},
		{`{"order":"a","cents":9223372036854775808}`, `cents: the number 9223372036854775808 is out of range or not a whole number`},
		{`{"order":"a","cents":1e999999999}`, `the number 1e999999999 is out of range`},
		{`{"order":"a","cents":1,"tags":["b",2]}`, `tags: type: 2 has type "integer", want "string"`},
		{`{"order":"a","cents":1,"lines":[{"sku":1}]}`, `lines.sku: type: 1 has type "integer", want "string"`},
		{`{"Order":"a","cents":1}`, `unexpected additional properties ["Order"]`},
		{`{"order":"a","cents":1,"due":"soon"}`, `parsing time "soon"`},
	}
	for _, test := range tests {
		got, err := ran.Call(t.Context(), json.RawMessage(test.arguments))
		var misfit *tool.ArgumentError
		if !errors.As(err, &misfit) || !strings.HasPrefix(err.Error(), "the arguments do not fit: "+test.want) {
			t.Errorf("%s: got %q, %v; want %s", test.arguments, got, err, test.want)
		}
		if err != nil && (strings.Contains(err.Error(), "Go ") || strings.Contains(err.Error(), "reflect") || errors.Unwrap(misfit) == nil) {
			t.Errorf("%s: the error speaks of Go, or has no cause: %v", test.arguments, err)
		}
	}
}

func TestCallReadsArguments(t *testing.T) {
	var seen order
	f := newTool(func(_ context.Context, o order) (string, error) { seen = o; return "ok", nil })
	tests := []struct {
		arguments string
		want      func() bool
	}{
		{`{"order":"7","cents":500}`, func() bool { return seen.Order == "7" && seen.Cents == 500 }},
		{`{"order":"7","cents":500.0,"share":2.0}`, func() bool { return seen.Cents == 500 && seen.Share == 2 }},
		{`{"order":"7","cents":5e2,"share":1e-3}`, func() bool { return seen.Cents == 500 && seen.Share == 0.001 }},
		{`{"order":"7","cents":1.0,"share":1e300}`, func() bool { return seen.Cents == 1 && seen.Share == 1e300 }},
		{`{"order":"7","cents":9007199254740993}`, func() bool { return seen.Cents == 9007199254740993 }},
		{`{"order":"7","cents":1,"tags":null,"lines":[{"sku":"a"}]}`, func() bool { return seen.Tags == nil && seen.Lines[0].SKU == "a" }},
		{`{"order":"7","cents":1,"extra":{"any":[1]}}`, func() bool { return string(seen.Extra) == `{"any":[1]}` }},
		{`{"order":"7","cents":1,"due":"2026-07-01T12:00:00Z"}`, func() bool { return seen.Due.Hour() == 12 }},
	}
	for _, test := range tests {
		seen = order{}
		got, err := f.Call(t.Context(), json.RawMessage(test.arguments))
		if err != nil || got != "ok" || !test.want() || seen.hidden != 0 {
			t.Errorf("%s: got %q, %v with %+v", test.arguments, got, err, seen)
		}
	}
}

func TestCallGivesTheFunctionsError(t *testing.T) {
	closed := errors.New("the bank is closed")
	f := newTool(func(context.Context, order) (string, error) { return "", closed })
	_, err := f.Call(t.Context(), json.RawMessage(`{"order":"7","cents":500}`))
	var misfit *tool.ArgumentError
	if !errors.Is(err, closed) || errors.As(err, &misfit) {
		t.Errorf("got %v", err)
	}
}

func TestTimeoutLeavesTheOriginal(t *testing.T) {
	f := newTool(nil)
	if got := f.Timeout(time.Second).Spec().Timeout; got != time.Second {
		t.Errorf("the time limit is %s", got)
	}
	if got := f.Spec().Timeout; got != 0 {
		t.Errorf("the original got the time limit %s", got)
	}
}

// A40: which calls wait for a person.
func TestApproval(t *testing.T) {
	f := newTool(nil)
	large := f.ApproveIf(func(o order) bool { return o.Cents > 5000 })
	const small, big = `{"order":"7","cents":5000}`, `{"order":"7","cents":5001.0}`
	for _, c := range []struct {
		name       string
		made       *tool.Typed[order]
		approval   tool.Approval
		small, big bool
	}{
		{"never", f, tool.Never, false, false},
		{"always", f.ApproveAlways(), tool.Always, true, true},
		{"asked", large, tool.Asked, false, true},
		{"asked, then always", large.ApproveAlways(), tool.Always, true, true},
		{"always, then asked", f.ApproveAlways().ApproveIf(func(order) bool { return false }), tool.Asked, false, false},
		{"among other wishes", large.Timeout(time.Second).ApproveRepeats(), tool.Asked, false, true},
	} {
		if got := c.made.Spec().Approval; got != c.approval {
			t.Errorf("%s: the approval is %q", c.name, got)
		}
		for arguments, want := range map[string]bool{small: c.small, big: c.big} {
			if got, err := tool.Gated(c.made).NeedsApproval(json.RawMessage(arguments)); got != want || err != nil {
				t.Errorf("%s: %s needs approval: %t, %v", c.name, arguments, got, err)
			}
		}
	}
	if s := f.Spec(); s.Approval != tool.Never || s.ApproveRepeats || s.ApprovalTimeout != 0 {
		t.Errorf("the original became %+v", s)
	}
	if s := f.ApproveRepeats().ApprovalTimeout(time.Hour).Spec(); !s.ApproveRepeats || s.ApprovalTimeout != time.Hour {
		t.Errorf("the copy is %+v", s)
	}
}

// A31: no person is asked about a call that cannot run.
func TestMisfitBeforeApproval(t *testing.T) {
	f := newTool(nil)
	asked := f.ApproveIf(func(order) bool { t.Error("the function sees what does not fit"); return true })
	for _, made := range []*tool.Typed[order]{f, f.ApproveAlways(), asked} {
		for _, arguments := range []string{``, `{"order":`, `[]`, `{"order":"7"}`, `{"order":"7","cents":"x"}`, `{"order":"7","cents":9223372036854775808}`} {
			var misfit *tool.ArgumentError
			if needs, err := made.NeedsApproval(json.RawMessage(arguments)); needs || !errors.As(err, &misfit) {
				t.Errorf("%q of approval %q: %t, %v", arguments, made.Spec().Approval, needs, err)
			}
		}
	}
}

func TestApproveIfWithoutAFunction(t *testing.T) {
	defer func() {
		if got, _ := recover().(string); !strings.Contains(got, "tool refund: ApproveIf has no function") {
			t.Errorf("the panic is %q", got)
		}
	}()
	newTool(nil).ApproveIf(nil)
}

func TestReconcileWith(t *testing.T) {
	f := newTool(nil)
	g := f.ReconcileWith(func(_ context.Context, key string) (string, tool.Found, error) {
		return "paid " + key, tool.Done, nil
	}).Timeout(time.Second)
	if f.Spec().OnUnknown != tool.Rerun || g.Spec().OnUnknown != tool.Reconcile {
		t.Errorf("OnUnknown is %s and %s", f.Spec().OnUnknown, g.Spec().OnUnknown)
	}
	var asked tool.Reconciler = g
	if got, found, err := asked.Reconcile(t.Context(), "k1"); got != "paid k1" || found != tool.Done || err != nil {
		t.Errorf("got %q, %v, %v", got, found, err)
	}
	if got, found, err := f.Reconcile(t.Context(), "k1"); got != "" || found != tool.Unsure || err != nil {
		t.Errorf("a tool that cannot tell says %q, %v, %v", got, found, err)
	}
}

func TestCallOf(t *testing.T) {
	if got := tool.CallOf(t.Context()); got != (tool.Call{}) || tool.Key(t.Context()) != "" {
		t.Errorf("outside of a call there is %+v", got)
	}
	want := tool.Call{Agent: messages.AgentID{Tenant: "t", Kind: "k", Key: "a"}, Turn: "t1", ID: "c1", Key: "k1", Attempt: 2}
	var got tool.Call
	var key string
	f := newTool(func(ctx context.Context, _ order) (string, error) {
		got, key = tool.CallOf(ctx), tool.Key(ctx)
		return "", nil
	})
	if _, err := f.Call(tool.WithCall(t.Context(), want), json.RawMessage(`{"order":"7","cents":500}`)); err != nil {
		t.Fatal(err)
	}
	if got != want || key != "k1" {
		t.Errorf("the tool sees %+v and the key %q", got, key)
	}
}

// FuzzCall holds every text of a model to a result or a plain refusal.
func FuzzCall(f *testing.F) {
	for _, s := range []string{`{"order":"a","cents":1.0}`, `{"order":"a","cents":1e400}`, `{"a":{"b":[0e99]}}`, `null`, `{"order":"a","cents":1,"extra":1e5}`} {
		f.Add(s)
	}
	made := newTool(func(context.Context, order) (string, error) { return "ok", nil })
	f.Fuzz(func(t *testing.T, s string) {
		_, err := made.Call(t.Context(), json.RawMessage(s))
		var misfit *tool.ArgumentError
		if err != nil && (!errors.As(err, &misfit) || strings.Contains(err.Error(), "Go struct")) {
			t.Errorf("%q is refused by %v", s, err)
		}
	})
}

func TestValidateByRoot(t *testing.T) {
	schema, err := (&jsonschema.Schema{Type: "object", Required: []string{"a"}}).Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := tool.Validate(schema, json.RawMessage(`{"a":1}`)); err != nil {
		t.Error(err)
	}
	if err := tool.Validate(schema, json.RawMessage(`{}`)); err == nil || err.Error() != `the arguments do not fit: required: missing properties: ["a"]` {
		t.Errorf("got %v", err)
	}
}
