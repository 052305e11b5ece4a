package openai

import (
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/profile"
)

var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

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

// encoded returns how many bytes a text takes in a JSON string, at most.
func encoded(text string) int {
	size := len(text)
	for _, c := range text {
		switch {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t':
			size++
		case c < ' ':
			size += 5
		case c == utf8.RuneError:
			size += 2
		}
	}
	return size
}

// toolChoice returns what the API is to know of r's choice, as JSON; "" for the model's own.
func toolChoice(r providers.Request) (string, error) {
	named := func(t providers.ToolSpec) bool { return t.Name == r.ToolChoice }
	switch {
	case r.ToolChoice == "", r.ToolChoice == "none" && len(r.Tools) == 0: // servers refuse a choice among no tools
		return "", nil
	case r.ToolChoice == "none", r.ToolChoice == "required" && len(r.Tools) > 0:
		return `"` + r.ToolChoice + `"`, nil
	case slices.ContainsFunc(r.Tools, named):
		return `{"type":"function","function":{"name":` + string(appendString(nil, r.ToolChoice)) + `}}`, nil
	}
	return "", &providers.Error{Kind: providers.BadRequest, Message: "tool_choice is " + strconv.Quote(r.ToolChoice) + ", and the request has no such tool"}
}

// refusedSetting returns the error of a setting that the rules refuse.
func refusedSetting(s providers.Settings, rules profile.Rules) error {
	if len(rules.Refused) == 0 {
		return nil
	}
	for _, name := range s.Names() {
		if slices.Contains(rules.Refused, name) {
			return &providers.Error{Kind: providers.Unsupported,
				Message: "the server refuses or ignores the setting " + name + ": remove it, or set the profile's refused if the server accepts it"}
		}
	}
	return nil
}
