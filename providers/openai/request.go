package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/internal/wire"
	"github.com/reprise-dev/reprise/providers/profile"
)

var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

// toolChoice returns what the API is to know of r's choice, as JSON; "" for the model's own.
// flat is the form of the Responses API, where the tools that the server runs can be chosen too.
func toolChoice(r providers.Request, flat bool) (string, error) {
	var hosted []json.RawMessage
	if flat {
		hosted = r.Settings.HostedTools
	}
	named := func(t providers.ToolSpec) bool { return t.Name == r.ToolChoice }
	typed := func(t json.RawMessage) bool { return wire.Text(wire.LookUp(t, "type")) == r.ToolChoice }
	some := len(r.Tools)+len(hosted) > 0
	quoted := string(wire.AppendString(nil, r.ToolChoice))
	switch {
	case r.ToolChoice == "", r.ToolChoice == "none" && !some: // servers refuse a choice among no tools
		return "", nil
	case r.ToolChoice == "none", r.ToolChoice == "required" && some:
		return quoted, nil
	case slices.ContainsFunc(r.Tools, named) && flat:
		return `{"type":"function","name":` + quoted + `}`, nil
	case slices.ContainsFunc(r.Tools, named):
		return `{"type":"function","function":{"name":` + quoted + `}}`, nil
	case slices.ContainsFunc(hosted, typed):
		return `{"type":` + quoted + `}`, nil
	}
	return "", &providers.Error{Kind: providers.BadRequest, Message: "tool_choice is " + strconv.Quote(r.ToolChoice) + ", and the request has no such tool"}
}

// missing are settings that an API does not have.
var missing = map[profile.Value][]string{
	profile.Chat:      {"hosted_tools"},
	profile.Responses: {"stop", "seed", "presence_penalty", "frequency_penalty"},
}

// refusedSetting returns the error of a setting that the rules refuse.
func refusedSetting(s providers.Settings, rules profile.Rules) error {
	for _, name := range s.Names() {
		switch {
		case slices.Contains(missing[rules.API], name):
			return &providers.Error{Kind: providers.Unsupported,
				Message: fmt.Sprintf("the setting %s cannot be sent over the API %q, which this model is asked over: remove it, or set the provider's api", name, rules.API)}
		case slices.Contains(rules.Refused, name):
			return &providers.Error{Kind: providers.Unsupported,
				Message: "the server refuses or ignores the setting " + name + ": remove it, or set the profile's refused if the server accepts it"}
		}
	}
	return nil
}

// extraBody returns the members that replace those of a request, after a check of the settings.
func (p *Provider) extraBody(s providers.Settings, rules profile.Rules) (map[string]json.RawMessage, error) {
	if err := refusedSetting(s, rules); err != nil {
		return nil, err
	}
	extra := merged(p.extra, s.ExtraBody)
	for name, value := range extra {
		if !json.Valid(value) {
			return nil, wire.Invalid("extra_body: " + strconv.Quote(name) + " is no JSON")
		}
	}
	return extra, wire.Finite(s)
}
