package config

import (
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

const withTeam = `
tools:
  ask: {agent: helper, description: Ask the helper, approval: always, approval_timeout: 5m, max_children: 3}
  tell:
    agent: team
    description: Tell another team
    wait: false
    parameters: {type: object, properties: {topic: {type: string}}, required: [topic]}
agents:
  team: {model: demo/demo, tools: [ask, tell], tool_choice: ask, stop_on: [ask]}
  helper: {model: demo/demo}
`

// An agent that is a tool becomes one, wherever in the file the two stand.
func TestAgentsAsTools(t *testing.T) {
	c, err := Parse("reprise.yaml", []byte(withTeam), variables)
	if err != nil {
		t.Fatal(err)
	}
	if ask, tell := c.Tools[0], c.Tools[1]; ask.Agent != "helper" || ask.Detached || ask.MaxChildren != 3 || tell.Agent != "team" || !tell.Detached {
		t.Errorf("%+v, %+v", ask, tell)
	}
	defs, err := c.Definitions(func(string) (tool.Tool, bool) { return nil, false }, func(tc toolbox.CommandConfig) (tool.Tool, error) {
		t.Errorf("%s is no program", tc.Name)
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ask, tell := defs[0].Tools[0].(*actors.AgentTool), defs[0].Tools[1].(*actors.AgentTool)
	if ask.Kind() != "helper" || ask.Spec().Approval != tool.Always || ask.Spec().Name != "ask" || !strings.Contains(string(ask.Spec().Parameters), `"input"`) {
		t.Errorf("ask is %+v", ask.Spec())
	}
	if _, err := tell.NeedsApproval([]byte(`{"input":"x"}`)); err == nil {
		t.Error("tell takes other arguments than the file says")
	}
	if needs, err := tell.NeedsApproval([]byte(`{"topic":"x"}`)); needs || err != nil {
		t.Errorf("tell: %v, %v", needs, err)
	}
}
