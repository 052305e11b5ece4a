package actors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/providers/tool"
)

// AgentTool is a tool that is done by an agent of its own: each call creates
// one, as a child of the agent that called. Make it with [AsTool].
//
//   - The same call finds the same child, however often it is tried; after a
//     crash of either side it ends once.
//   - The child's answer is the call's result, its failure a tool error.
//   - What the child waits for is visible at every agent above it, and may be
//     decided there. When the turn above ends, the child is stopped.
//   - What is left of the caller's budget bounds the child, and what the child
//     uses counts as the caller's.
//   - At most messages.MaxCallers agents are above one another, and one turn asks
//     at most MaxChildren; beyond that the call fails.
//
// Hooks are asked before such a call as before any other. Those around tools and
// after them are not: the result comes from another agent. A decision that is to be
// remembered is remembered by the agent whose call it is about.
//
// The methods return a changed copy.
type AgentTool struct {
	spec        tool.Spec
	schema      *jsonschema.Resolved
	kind        string
	detached    bool
	maxChildren int
}

// taskParameters is the schema of a tool that was given none.
const taskParameters = `{"type":"object","properties":{"input":{"type":"string","description":"What to do, with everything needed to do it."}},"required":["input"],"additionalProperties":false}`

// AsTool returns a tool that asks an agent of that kind, and is named as it. Its one
// argument, input, is the child's input.
func AsTool(kind, description string) *AgentTool {
	t := &AgentTool{kind: kind, spec: tool.Spec{Name: kind, Description: description}}
	return t.Parameters(json.RawMessage(taskParameters))
}

// Named returns the same tool under another name.
func (t *AgentTool) Named(name string) *AgentTool {
	c := *t
	c.spec.Name = name
	return &c
}

// Parameters returns the same tool with the JSON schema of other arguments: the child
// gets them as they are, as JSON. It panics if schema is none, which is a
// mistake in the program and not in its input.
func (t *AgentTool) Parameters(schema json.RawMessage) *AgentTool {
	var s jsonschema.Schema
	err := json.Unmarshal(schema, &s)
	c := *t
	if err == nil {
		c.schema, err = s.Resolve(nil)
	}
	if err != nil {
		panic(fmt.Sprintf("tool %s: its parameters are no JSON schema: %v", t.spec.Name, err))
	}
	c.spec.Parameters = schema
	return &c
}

// Detached returns the same tool without an answer: the call is over when its child is
// sure to begin. Such a child continues by itself: it is not stopped, and what it uses
// does not count as the caller's, of whose budget its share bounds it.
func (t *AgentTool) Detached() *AgentTool {
	c := *t
	c.detached = true
	return &c
}

// MaxChildren returns the same tool with a limit to how many agents a turn may ask in
// all, through this tool or others, before this one refuses. 0:
// messages.MaxChildren.
func (t *AgentTool) MaxChildren(n int) *AgentTool {
	c := *t
	c.maxChildren = n
	return &c
}

// ApproveAlways returns the same tool with a person's approval before each call.
func (t *AgentTool) ApproveAlways() *AgentTool {
	c := *t
	c.spec.Approval = tool.Always
	return &c
}

// ApprovalTimeout returns the same tool, whose calls are denied when no one has decided
// about them for so long. Zero: the definition's.
func (t *AgentTool) ApprovalTimeout(d time.Duration) *AgentTool {
	c := *t
	c.spec.ApprovalTimeout = d
	return &c
}

// Spec returns the tool's description.
func (t *AgentTool) Spec() tool.Spec { return t.spec }

// Kind returns the kind of agent that does it.
func (t *AgentTool) Kind() string { return t.kind }

// Call is never used: the call runs in an agent of its own.
func (t *AgentTool) Call(context.Context, json.RawMessage) (string, error) {
	return "", errors.New("this tool is an agent and cannot be called as a function")
}

// NeedsApproval checks the arguments and reports whether the call waits for a
// person.
func (t *AgentTool) NeedsApproval(arguments json.RawMessage) (bool, error) {
	if err := tool.Validate(t.schema, arguments); err != nil {
		return false, err
	}
	return t.spec.Approval == tool.Always, nil
}

// checkAgentTools returns why an agent cannot be a tool of another.
func checkAgentTools(cfg Config) error {
	kinds := make(map[string]bool)
	for _, d := range cfg.Definitions {
		kinds[d.Kind] = true
	}
	for _, d := range cfg.Definitions {
		for _, t := range d.Tools {
			child, ok := t.(*AgentTool)
			switch {
			case !ok:
			case !kinds[child.kind]:
				return fmt.Errorf("agent %s: its tool %s asks agents of kind %q, which is not defined", d.Kind, child.spec.Name, child.kind)
			case child.maxChildren < 0:
				return fmt.Errorf("agent %s: its tool %s may ask %d agents: the limit must not be negative", d.Kind, child.spec.Name, child.maxChildren)
			case cfg.Send == nil:
				return fmt.Errorf("agent %s: its tool %s is an agent, and nothing can be sent to agents here (Config.Send)", d.Kind, child.spec.Name)
			}
		}
	}
	return nil
}

// asChild completes what the machine needs of a tool if the tool is an agent.
func asChild(t tool.Tool, known turn.Tool) turn.Tool {
	if child, ok := t.(*AgentTool); ok {
		known.OnUnknown, known.Child, known.Detached, known.MaxChildren = "", child.kind, child.detached, child.maxChildren
	}
	return known
}
