package scripted

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

// Step is what a model does in one call. The zero Step is an empty answer.
type Step struct {
	// Reasoning, Text, Refusal and Calls become the answer's items, in this
	// order; empty ones are left out.
	Reasoning, Text, Refusal string
	Calls                    []Call
	// Items follow as they are, for kinds that the fields above do not cover.
	Items []messages.Item
	// Pieces is the number of deltas Text is cut into. Zero: one.
	Pieces int
	// Gate holds the call once After pieces of Text are out.
	Gate  *Gate
	After int
	// Usage is the answer's, or the failure's.
	Usage messages.Usage
	// Finish is tool_calls or stop where it is empty.
	Finish string
	// Model is the request's where it is empty.
	Model string
	// Err fails the call after the pieces and the gate.
	Err error
}

// Call is a tool call as a model writes it.
type Call struct {
	// ID is made up where it is empty, unlike any other of the model.
	ID messages.CallID
	// Name is the tool's.
	Name string
	// Arguments need not be JSON: models err.
	Arguments string
}

// Say answers with text.
func Say(text string) Step { return Step{Text: text} }

// Ask calls tools, in parallel if there are several.
func Ask(calls ...Call) Step { return Step{Calls: calls} }

// Fail fails the call. What is no *providers.Error becomes one.
func Fail(err error) Step { return Step{Err: err} }

// Held is s behind g: nothing of it is seen before the gate is released.
func Held(g *Gate, s Step) Step {
	s.Gate, s.After = g, 0
	return s
}

// Cut is Text in as many pieces as Pieces asks for, never inside a character.
// Joined they are Text; there may be fewer where Text is short.
func (s Step) Cut() []string {
	if s.Text == "" {
		return nil
	}
	if s.Pieces < 2 {
		return []string{s.Text}
	}
	size := max(1, (len(s.Text)+s.Pieces-1)/s.Pieces)
	var pieces []string
	for rest := s.Text; rest != ""; {
		n := min(size, len(rest))
		for n < len(rest) && !utf8.RuneStart(rest[n]) {
			n++
		}
		pieces, rest = append(pieces, rest[:n]), rest[n:]
	}
	return pieces
}

// play does s as the answer to r. id distinguishes made-up call ids.
func (s Step) play(ctx context.Context, r providers.Request, id string, emit func(providers.Delta)) (providers.Response, error) {
	if err := s.stream(ctx, emit); err != nil {
		return providers.Response{}, canceled(ctx)
	}
	if s.Err != nil {
		return providers.Response{}, s.failure()
	}
	resp := providers.Response{Items: s.items(id), Finish: s.Finish, Model: s.Model, Usage: s.Usage}
	if resp.Model == "" {
		resp.Model = r.Model
	}
	if resp.Finish == "" {
		resp.Finish = "stop"
		if len(s.Calls) > 0 {
			resp.Finish = "tool_calls"
		}
	}
	return resp, nil
}

// stream emits the deltas and waits at the gate. Its error is the end of ctx.
func (s Step) stream(ctx context.Context, emit func(providers.Delta)) error {
	if s.After <= 0 {
		if err := s.Gate.Wait(ctx); err != nil {
			return err
		}
	}
	if s.Reasoning != "" {
		emit(providers.Delta{Kind: providers.DeltaReasoning, Text: s.Reasoning})
	}
	pieces := s.Cut()
	for i, piece := range pieces {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		emit(providers.Delta{Kind: providers.DeltaText, Text: piece})
		if i+1 == s.After {
			if err := s.Gate.Wait(ctx); err != nil {
				return err
			}
		}
	}
	if s.After > len(pieces) {
		return s.Gate.Wait(ctx)
	}
	return nil
}

// failure is Err as the contract wants it, in a copy that carries the usage.
func (s Step) failure() error {
	e := *providers.AsError(s.Err)
	if e.Usage == (messages.Usage{}) {
		e.Usage = s.Usage
	}
	return &e
}

func (s Step) items(id string) []messages.Item {
	items := make([]messages.Item, 0, len(s.Calls)+len(s.Items)+1)
	if s.Reasoning != "" {
		items = append(items, messages.Item{Type: messages.ItemReasoning, Content: messages.TextContent(s.Reasoning)})
	}
	if s.Text != "" {
		items = append(items, messages.Text(messages.RoleAssistant, s.Text))
	}
	if s.Refusal != "" {
		items = append(items, messages.Item{Type: messages.ItemRefusal, Role: messages.RoleAssistant, Content: messages.TextContent(s.Refusal)})
	}
	for i, c := range s.Calls {
		if c.ID == "" {
			c.ID = messages.CallID(fmt.Sprintf("call_%s_%d", id, i+1))
		}
		items = append(items, messages.Item{Type: messages.ItemCall, CallID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	return append(items, s.Items...)
}
