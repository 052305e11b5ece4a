package providertest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// Conversation is that of an agent with a model. The agent has a tool, f, whose results are the
// arguments of its calls.
type Conversation struct {
	Provider providers.Provider
	Model    string
	Settings providers.Settings
	// Usage is what each answer must have consumed, in input and output. Zero: anything.
	Usage messages.Usage
	// Items are the history so far.
	Items []messages.Item
}

// Say adds a message of the user.
func (c *Conversation) Say(text string) *Conversation {
	c.Items = append(c.Items, messages.Text(messages.RoleUser, text))
	return c
}

// Ask asks the model, and again with the results of its calls, so many times.
func (c *Conversation) Ask(ctx context.Context, again int) error {
	for range again + 1 {
		items, err := c.Step(ctx)
		if err != nil {
			return err
		}
		c.Items = append(c.Items, results(items, "")...)
	}
	return nil
}

// results returns the results of calls: a text, or the arguments if it is empty.
func results(items []messages.Item, text string) (list []messages.Item) {
	for _, it := range items {
		if it.Type != messages.ItemCall {
			continue
		}
		result := messages.Item{Type: messages.ItemCallOutput, CallID: it.CallID, Output: it.Arguments}
		if text != "" {
			result.Output = text
		}
		list = append(list, result)
	}
	return list
}

// Step asks the model once, and returns its answer.
func (c *Conversation) Step(ctx context.Context) ([]messages.Item, error) {
	resp, err := c.Provider.Generate(ctx, providers.Request{
		Model: c.Model, Instructions: "Be brief.", Items: c.Items, Settings: c.Settings.Or(providers.Settings{MaxOutputTokens: 100}),
		Tools: []providers.ToolSpec{{Name: "f", Parameters: []byte(`{"type":"object","properties":{}}`)}},
	}, nil)
	if err != nil {
		return nil, err
	}
	if got, want := resp.Usage, c.Usage; want != (messages.Usage{}) && (got.Input != want.Input || got.Output != want.Output) {
		return nil, fmt.Errorf("usage is %+v, want %+v", got, want)
	}
	c.Items = append(c.Items, resp.Items...)
	return resp.Items, nil
}

// Course is what a server answers to [Conversation.Run], with reasoning or without.
func Course(reasons bool) []Answer {
	usage := messages.Usage{Input: 20, Output: 9, Cached: 5, Reasoning: 3}
	two := []scripted.Call{{Name: "f", Arguments: `{"x":1}`}, {Name: "f", Arguments: ""}}
	call := scripted.Step{Reasoning: "hm", Text: "I look.", Calls: two, Usage: usage}
	say := scripted.Step{Reasoning: "so", Text: "Done.", Usage: usage}
	if !reasons {
		call.Reasoning, say.Reasoning = "", ""
	}
	return Steps(call, call, say, call, say, call, say, say, say, call, say, say)
}

// Run has the turns of an agent that servers have been seen to refuse: with tools, then after an
// interrupt, a failed turn, a compaction, and a switch from another model. It returns the first
// error.
func (c *Conversation) Run(ctx context.Context) error {
	turns := []func() error{
		func() error { return c.Say("one").Ask(ctx, 2) }, // with tools, twice in one turn
		func() error { return c.Say("two").Ask(ctx, 1) },
		func() error { return c.interrupt(ctx) },
		func() error { return c.Say("four").Ask(ctx, 0) },
		func() error { return c.Say("five, whose turn failed").Say("six").Ask(ctx, 0) },
		func() error { return c.compact().Say("seven, after a compaction").Ask(ctx, 0) },
		func() error {
			c.Items = append(Foreign(), c.Items...)
			return c.Say("eight, after another model").Ask(ctx, 1)
		},
		func() error {
			c.Items = append(c.Items, Foreign()...)
			c.Items = c.Items[:len(c.Items)-1] // the other model has failed in the midst of its turn
			return c.Ask(ctx, 0)
		},
	}
	for _, turn := range turns {
		if err := turn(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Conversation) interrupt(ctx context.Context) error {
	items, err := c.Say("three").Step(ctx)
	c.Items = append(append(c.Items, results(items, "(interrupted)")...), messages.Text(messages.RoleDeveloper, "The turn was interrupted."))
	return err
}

// compact replaces all up to the turn that failed.
func (c *Conversation) compact() *Conversation {
	last := slices.IndexFunc(c.Items, func(it messages.Item) bool { return strings.HasPrefix(it.Content.Text(), "five") })
	c.Items = append([]messages.Item{messages.Text(messages.RoleDeveloper, "Summary: they counted.")}, c.Items[last:]...)
	return c
}

// Foreign is a turn that a model of another provider answered, with what only that one accepts.
func Foreign() []messages.Item {
	long := messages.CallID("chatcmpl-tool-" + strings.Repeat("0", 32))
	answer := []messages.Item{
		{Type: messages.ItemReasoning, Content: messages.TextContent("their thoughts")},
		{Type: messages.ItemCall, CallID: "functions.f:0", Name: "f", Arguments: `{"bro`,
			Raw: []byte(`{"extra_content":{"google":{"thought_signature":"AAAA"}},"message":{"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}}`)},
		{Type: messages.ItemCall, CallID: long, Name: "f"},
	}
	for i := range answer {
		answer[i].Provider, answer[i].Model = "there", "other"
	}
	return slices.Concat([]messages.Item{messages.Text(messages.RoleUser, "zero")}, answer, results(answer, "1"), []messages.Item{messages.Text(messages.RoleAssistant, "")})
}
