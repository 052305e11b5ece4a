package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/mcp"
	"github.com/reprise-dev/reprise/providers/tool"
)

// both runs a test against a server of either kind.
func both(t *testing.T, run func(t *testing.T, s *mcp.Server, h *there)) {
	t.Run("stdio", func(t *testing.T) { run(t, ready(t, program("server")), nil) })
	t.Run("http", func(t *testing.T) {
		h := newThere()
		run(t, ready(t, web(t, h)), h)
	})
}

// all is both, and one over HTTP that has no sessions. The SDK does not cancel calls of that.
func all(t *testing.T, run func(t *testing.T, s *mcp.Server, h *there)) {
	both(t, run)
	t.Run("http without sessions", func(t *testing.T) {
		h := newThere()
		h.stateless = true
		run(t, ready(t, web(t, h)), h)
	})
}

// A37: tools are listed with their schemas, and called.
func TestListAndCall(t *testing.T) {
	all(t, func(t *testing.T, s *mcp.Server, _ *there) {
		all := tools(t, s)
		spec := all["add"].Spec()
		if spec.Description != "adds" || !strings.Contains(string(spec.Parameters), `"a":{"type":"integer"}`) {
			t.Errorf("add is %+v with %s", spec, spec.Parameters)
		}
		for name, want := range map[string]tool.OnUnknown{"add": tool.ReadOnly, "set": tool.Rerun, "wipe": tool.Pause, "slow": tool.Pause} {
			if got := all[name].Spec().OnUnknown; got != want {
				t.Errorf("OnUnknown of %s is %s", name, got)
			}
		}
		const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 a=1"
		ctx := tool.WithCall(messages.TraceContext(trace).Context(t.Context()), tool.Call{Key: "k1"})
		const refused = "error: MCP server there refused the call: closed on Sundays"
		for _, c := range []struct{ name, arguments, want string }{
			{"add", `{"a":2,"b":3}`, "5"},
			{"add", `{"a":"x","b":3}`, `error: the arguments do not fit: a: type: x has type "string", want "integer"`},
			{"set", `{}`, "key k1 trace " + trace},
			{"wipe", `{}`, "error: no disk, and the key is "},
			{"picture", `{}`, "[an image, image/png, 4 bytes, which cannot be shown]\n[a link to the resource log, file:///log]\n" +
				"[the resource file:///b, of an unknown type, 2 bytes, which cannot be shown]\n" + `{"n":1}`},
			{"refuse-32000", `{}`, refused}, {"refuse-32003", `{}`, refused}, {"refuse-32004", `{}`, refused}, {"refuse-32005", `{}`, refused},
			{"odd_n_me", `{}`, "called odd/näme"},
			{strings.Repeat("long", 16), `{}`, "called " + strings.Repeat("long", 20)},
		} {
			if got := call(ctx, all[c.name], c.arguments); got != c.want {
				t.Errorf("%s(%s) gives %q, want %q", c.name, c.arguments, got, c.want)
			}
		}
		if all["same_name"] != nil {
			t.Error("a name that two tools would have belongs to one of them")
		}
	})
}

// Arguments are checked by the schemas for which that ends, and else by the server alone.
func TestSchemas(t *testing.T) {
	const fits = "error: the arguments do not fit: "
	for name, c := range map[string]struct {
		schema  string
		checked bool
	}{
		"plain":                        {`"required":["a"]`, true},
		"definitions":                  {`"$id":"http://there/a","properties":{"b":{"$ref":"#/$defs/b"}},"required":["a"],"$defs":{"b":{"type":"string"}}`, true},
		"definitions that refer":       {`"required":["a"],"$defs":{"b":{"$ref":"#/$defs/c"},"c":{}}`, false},
		"refers to itself":             {`"required":["a"],"allOf":[{"$ref":"#"}]`, false},
		"definition refers to itself":  {`"required":["a"],"not":{"$ref":"#/$defs/b"},"$defs":{"b":{"anyOf":[{"$ref":"#/$defs/b"}]}}`, false},
		"anchor":                       {`"required":["a"],"$anchor":"b","oneOf":[{"$ref":"#b"}]`, false},
		"dynamic":                      {`"required":["a"],"$dynamicAnchor":"b","allOf":[{"$dynamicRef":"#b"}]`, false},
		"definitions of another place": {`"required":["a"],"allOf":[{"$id":"http://there/b","$defs":{"c":{"$ref":"#/$defs/c"}},"$ref":"#/$defs/c"}]`, false},
		"old version":                  {`"$schema":"http://json-schema.org/draft-04/schema#","required":["a"]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			there := sdk.NewServer(&sdk.Implementation{Name: "there", Version: "1"}, nil)
			there.AddTool(&sdk.Tool{Name: "a", InputSchema: json.RawMessage(`{"type":"object",` + c.schema + `}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return says("ran"), nil
			})
			site := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return there }, nil))
			t.Cleanup(func() { site.CloseClientConnections(); site.Close() })
			made := tools(t, ready(t, mcp.Config{Name: "there", URL: site.URL}))["a"]
			if got := call(t.Context(), made, `{}`); strings.HasPrefix(got, fits) != c.checked || !c.checked && got != "ran" {
				t.Errorf("arguments that do not fit give %q", got)
			}
		})
	}
}

// A37: a call is cancelled, at the server too.
func TestCancel(t *testing.T) {
	both(t, func(t *testing.T, s *mcp.Server, h *there) {
		all := tools(t, s)
		begun := make(chan string, 1)
		ctx, cancel := context.WithCancelCause(tool.WithProgress(t.Context(), func(text string) { begun <- text }))
		hurry := errors.New("no time")
		go func() {
			if text := <-begun; text != "1 of 4" {
				t.Errorf("the progress is %q", text)
			}
			cancel(hurry)
		}()
		if _, err := all["slow"].Call(ctx, []byte(`{}`)); !errors.Is(err, hurry) {
			t.Errorf("a cancelled call fails with %v", err)
		}
		if got := call(t.Context(), all["stopped"], `{}`); got != "the slow one was cancelled" {
			t.Errorf("at the server: %q", got)
		}
	})
}

// A37: a call of a tool that does not end is over with its time.
func TestTimeLimit(t *testing.T) {
	c := program("server")
	c.Timeout = 7 * time.Second
	all := tools(t, ready(t, c))
	if got := all["slow"].Spec().Timeout; got != c.Timeout {
		t.Errorf("the time limit is %v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := all["slow"].Call(ctx, []byte(`{}`)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call that hangs fails with %v", err)
	}
}

// A list that changes is seen by the sources of the server.
func TestListChanges(t *testing.T) {
	all(t, func(t *testing.T, s *mcp.Server, _ *there) {
		src := source(t, s, mcp.Selection{Only: []string{"grow*", "set"}})
		old := tools(t, s)["set"]
		now, changed := src.Tools()
		if len(now) != 2 {
			t.Fatalf("there are %d tools", len(now))
		}
		if got := call(t.Context(), now[0], `{}`); got != "growing" {
			t.Fatal(got)
		}
		<-changed
		for now, changed = src.Tools(); len(now) != 2 || now[1].Spec().Name != "grown"; now, changed = src.Tools() {
			<-changed // the two changes may come as two lists
		}
		if got := call(t.Context(), now[1], `{}`); got != "tall" {
			t.Error(got)
		}
		if got := call(t.Context(), old, `{}`); got != "error: MCP server there has no tool set any more" {
			t.Error(got)
		}
	})
}

// A change while the stream from the server is cut is found when it is open again.
func TestMissedChange(t *testing.T) {
	for name, stateless := range map[string]bool{"with sessions": false, "without sessions": true} {
		t.Run(name, func(t *testing.T) {
			h := newThere()
			h.stateless = stateless
			src := source(t, ready(t, web(t, h)), mcp.Selection{Only: []string{"grown"}})
			_, changed := src.Tools()
			h.site.CloseClientConnections()
			h.grow()
			<-changed
			now, changed := src.Tools()
			for ; len(now) == 0; now, changed = src.Tools() {
				<-changed
			}
		})
	}
}

func TestSelection(t *testing.T) {
	s := ready(t, web(t, newThere()))
	asked := func(json.RawMessage) (bool, error) { return true, nil }
	all := tools(t, s, mcp.Selection{
		Only: []string{"s*", "add", "die", "odd/*"}, Except: []string{"same*", "slow", "secretive"}, Prefix: "x_",
		OnUnknown: []mcp.OnUnknownRule{{Tool: "set", OnUnknown: tool.ReadOnly}, {Tool: "*", OnUnknown: tool.Rerun}},
		Approvals: []mcp.ApprovalRule{{Tool: "add", Approval: tool.Never}, {Tool: "die", Approval: tool.Asked, ApproveIf: asked}, {Tool: "*", Approval: tool.Always}},
	})
	for name, want := range map[string]struct {
		onUnknown tool.OnUnknown
		approval  tool.Approval
		needs     bool
	}{"x_add": {tool.Rerun, tool.Never, false}, "x_set": {tool.ReadOnly, tool.Always, true}, "x_die": {tool.Rerun, tool.Asked, true}, "x_stopped": {tool.Rerun, tool.Always, true}, "x_odd_n_me": {tool.Rerun, tool.Always, true}} {
		made := all[name]
		if made == nil {
			t.Fatalf("%s is not among %v", name, all)
		}
		arguments := `{}`
		if name == "x_add" {
			arguments = `{"a":1,"b":2}`
		}
		needs, err := made.(tool.Gated).NeedsApproval([]byte(arguments))
		if spec := made.Spec(); spec.OnUnknown != want.onUnknown || spec.Approval != want.approval || needs != want.needs || err != nil {
			t.Errorf("%s is %+v and needs approval: %t, %v", name, spec, needs, err)
		}
		if _, err := made.(tool.Gated).NeedsApproval([]byte(`[]`)); !errors.As(err, new(*tool.ArgumentError)) {
			t.Errorf("%s takes a list for arguments: %v", name, err)
		}
	}
	if len(all) != 5 {
		t.Errorf("the tools are %v", all)
	}
	if none := tools(t, s, mcp.Selection{Except: []string{"*"}}); len(none) != 0 {
		t.Errorf("but for all, the tools are %v", none)
	}
	for _, v := range []mcp.Selection{
		{Only: []string{"[a"}}, {Except: []string{""}}, {Prefix: "a b"}, {OnUnknown: []mcp.OnUnknownRule{{Tool: "a", OnUnknown: tool.Reconcile}}},
		{Approvals: []mcp.ApprovalRule{{Tool: "a", Approval: tool.Asked}}},
	} {
		if _, err := s.Select(v); err == nil {
			t.Errorf("%+v is taken", v)
		}
	}
}

// A process may have another kind of transport for its own requests.
func TestOtherTransport(t *testing.T) {
	own := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = own })
	http.DefaultTransport = http.NewFileTransport(http.Dir("."))
	if got := call(t.Context(), tools(t, ready(t, web(t, newThere())))["add"], `{"a":1,"b":1}`); got != "2" {
		t.Error(got)
	}
}

func TestConfig(t *testing.T) {
	for want, c := range map[string]mcp.Config{
		"has no name":                   {Command: []string{"a"}},
		"either a command or a url":     {Name: "a"},
		"write either":                  {Name: "a", Command: []string{"a"}, URL: "http://a"},
		"headers are sent to a url":     {Name: "a", Command: []string{"a"}, Headers: map[string]string{"a": "b"}},
		"env and dir are for a command": {Name: "a", URL: "http://a", Dir: "b"},
		"is negative":                   {Name: "a", URL: "http://a", Timeout: -1},
		"an entry has no name":          {Name: "a", Command: []string{"a"}, Env: []string{"=b"}},
		"cannot be sent":                {Name: "a", URL: "http://a", Headers: map[string]string{"a": "b\nc"}},
		"not an http or https address":  {Name: "a", URL: "ftp://a"},
		"user name or password":         {Name: "a", URL: "http://u:p@a"},
	} {
		if _, err := mcp.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
}
