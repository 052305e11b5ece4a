package openai

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	api "github.com/sashabaranov/go-openai"

	"github.com/reprise-dev/reprise/providers"
)

var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

// request is r in go-openai's words. Its errors are *providers.Error.
func (p *Provider) request(r providers.Request) (api.ChatCompletionRequest, error) {
	q := api.ChatCompletionRequest{
		Model:           r.Model,
		ReasoningEffort: r.Settings.ReasoningEffort,
		Temperature:     number(r.Settings.Temperature),
		TopP:            number(r.Settings.TopP),
		StreamOptions:   &api.StreamOptions{IncludeUsage: true},
	}
	if p.oldTokens {
		//lint:ignore SA1019 servers of other makers know only the old field
		q.MaxTokens = r.Settings.MaxOutputTokens
	} else {
		q.MaxCompletionTokens = r.Settings.MaxOutputTokens
	}
	for _, t := range r.Tools {
		f := &api.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: noParameters}
		if len(t.Parameters) > 0 {
			f.Parameters = json.RawMessage(t.Parameters)
		}
		q.Tools = append(q.Tools, api.Tool{Type: api.ToolTypeFunction, Function: f})
	}
	choice, err := toolChoice(r)
	if err != nil {
		return q, err
	}
	q.ToolChoice = choice
	h := history{provider: p.name}
	if r.Instructions != "" {
		h.system(r.Instructions)
	}
	for _, it := range r.Items {
		if err := h.add(it); err != nil {
			return q, err
		}
	}
	err = h.end()
	q.Messages = h.messages
	return q, err
}

// size is how many bytes the texts of a request take as JSON, in which a character may take
// six. What goes unseen is less than [memory.Free].
func size(r providers.Request) int {
	size := encoded(r.Instructions)
	for _, t := range r.Tools {
		size += encoded(t.Description) + len(t.Parameters)
	}
	for _, it := range r.Items {
		size += encoded(it.Arguments) + encoded(it.Output) + len(it.Raw)
		for _, p := range it.Content {
			size += encoded(p.Text) + encoded(p.ImageURL)
		}
	}
	return size
}

// encoded is how many bytes a text takes in a JSON string, as encoding/json writes it, at
// most.
func encoded(text string) int {
	size := len(text)
	for _, c := range text {
		switch {
		case c == '"', c == '\\', '\b' <= c && c <= '\r' && c != '\v':
			size++
		case c == '\u2028', c == '\u2029':
			size += 3
		case c < ' ', c == '<', c == '>', c == '&', c == utf8.RuneError:
			size += 5
		}
	}
	return size
}

// toolChoice is what the API is told of r's choice; nil for the model's own.
func toolChoice(r providers.Request) (any, error) {
	named := func(t providers.ToolSpec) bool { return t.Name == r.ToolChoice }
	switch {
	case r.ToolChoice == "", r.ToolChoice == "none" && len(r.Tools) == 0: // servers refuse a choice among no tools
		return nil, nil
	case r.ToolChoice == "none", r.ToolChoice == "required" && len(r.Tools) > 0:
		return r.ToolChoice, nil
	case slices.ContainsFunc(r.Tools, named):
		return api.ToolChoice{Type: api.ToolTypeFunction, Function: api.ToolFunction{Name: r.ToolChoice}}, nil
	}
	return nil, &providers.Error{Kind: providers.Invalid, Message: "tool_choice is " + strconv.Quote(r.ToolChoice) + ", and the request has no such tool"}
}

// number is f as go-openai sends it: it takes 0 for absent, so that a true 0
// is the smallest number there is.
func number(f *float32) float32 {
	switch {
	case f == nil:
		return 0
	case *f == 0:
		return math.SmallestNonzeroFloat32
	}
	return *f
}
