package actors_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// specified is a tool with this description and no method NeedsApproval.
type specified tool.Spec

func (s specified) Spec() tool.Spec { return tool.Spec(s) }

func (s specified) Call(context.Context, json.RawMessage) (string, error) { return "", nil }

func TestDefinitionMistakes(t *testing.T) {
	t.Parallel()
	set := providers.Set{"scripted": scripted.New(), "unset": nil}
	const noReconcile = "its on_unknown is reconcile, but it has no method Reconcile and no function of ReconcileWith"
	ship := tool.New("ship", "Ship an order", tool.Reconcile, func(context.Context, struct{}) (string, error) { return "", nil })
	found := func(context.Context, string) (string, tool.Found, error) { return "", tool.Done, nil }
	tools := func(list ...tool.Tool) actors.Definition { return actors.Definition{Tools: list} }
	for _, c := range []struct {
		name string
		d    actors.Definition
		want string
	}{
		{"none", tools(specified{Name: "pay"}), ""},
		{"nil provider", actors.Definition{Model: "unset/m"}, `agent a: model "unset/m": no provider is named "unset"`},
		{"nil tool", tools(specified{Name: "pay"}, nil), "agent a: tool 2 is nil"},
		{"tool without a name", tools(specified{}), "agent a: tool 1 has no name"},
		{"two tools of one name", tools(specified{Name: "pay"}, specified{Name: "pay"}), `agent a: two tools are named "pay": rename one of them`},
		{"name of a tool choice", tools(specified{Name: "none"}), "agent a: a tool cannot be named none: that is a word of tool_choice"},
		{"on_unknown", tools(specified{Name: "pay", OnUnknown: "retry"}), `agent a: tool pay: on_unknown "retry": write read_only, rerun, reconcile or pause`},
		{"reconcile without a method", tools(specified{Name: "pay", OnUnknown: tool.Reconcile}), "agent a: tool pay: " + noReconcile},
		{"reconcile without a function", tools(ship), "agent a: tool ship: " + noReconcile},
		{"reconcile with a function", tools(ship.ReconcileWith(found)), ""},
		{"approval", tools(specified{Name: "pay", Approval: "yes"}), `agent a: tool pay: approval "yes": leave it empty, or write always or asked`},
		{"approval that cannot be asked", tools(specified{Name: "pay", Approval: tool.Asked}), "agent a: tool pay: its approval is asked, but it has no method NeedsApproval"},
		{"hook without a name", actors.Definition{Hooks: []actors.Hook{{}}}, "agent a: hook 1 has no name"},
		{"two hooks of one name", actors.Definition{Hooks: []actors.Hook{{Name: "h"}, {Name: "h"}}}, `agent a: two hooks are named "h": rename one of them`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.d.Kind = "a"
			if c.d.Model == "" {
				c.d.Model = "scripted/m"
			}
			got := ""
			if err := c.d.Validate(set); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
