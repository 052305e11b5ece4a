package anthropic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	api "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/internal/wire"
)

// maxTokens is the limit of an answer where none is set: as many as all models since Claude
// Opus 4 give. https://platform.claude.com/docs/en/about-claude/models/overview
const maxTokens = 32_000

// params returns the body of a request.
func (p *Provider) params(r providers.Request) (api.MessageNewParams, error) {
	s := r.Settings
	for _, name := range s.Names() {
		if slices.Contains(p.Refuses(r.Model), name) {
			return api.MessageNewParams{}, &providers.Error{Kind: providers.Unsupported,
				Message: fmt.Sprintf("the Messages API refuses or ignores the setting %s for the model %s: remove it", name, r.Model)}
		}
	}
	list, omitted, err := p.history(r)
	if err != nil {
		return api.MessageNewParams{}, err
	}
	q := api.MessageNewParams{
		Model: r.Model, MaxTokens: int64(cmp.Or(s.MaxOutputTokens, maxTokens)), Messages: list,
		CacheControl: api.NewCacheControlEphemeralParam(), StopSequences: s.Stop,
		ServiceTier: api.MessageNewParamsServiceTier(s.ServiceTier), OutputConfig: api.OutputConfigParam{Effort: api.OutputConfigEffort(s.ReasoningEffort)},
		Temperature: number(s.Temperature), TopP: number(s.TopP),
	}
	if text := wire.Instructions(r, omitted); text != "" {
		q.System = []api.TextBlockParam{{Text: text}}
	}
	if q.Tools, err = tools(r); err != nil {
		return q, err
	}
	if q.ToolChoice, err = toolChoice(r, len(q.Tools) > 0); err != nil {
		return q, err
	}
	extra := make(map[string]any)
	for name, value := range merged(p.extra, s.ExtraBody) {
		if !json.Valid(value) {
			return q, wire.Invalid("extra_body: " + strconv.Quote(name) + " is no JSON")
		}
		extra[name] = value
	}
	q.SetExtraFields(extra)
	return q, nil
}

func merged(a, b map[string]json.RawMessage) map[string]json.RawMessage {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}

// number returns f with the decimals that it was written with.
func number(f *float32) param.Opt[float64] {
	if f == nil {
		return param.Opt[float64]{}
	}
	exact, _ := strconv.ParseFloat(strconv.FormatFloat(float64(*f), 'g', -1, 32), 64) // what is formatted is a number
	return api.Float(exact)
}

// tools returns the tools of the agent and those that the server runs.
func tools(r providers.Request) (list []api.ToolUnionParam, _ error) {
	for _, t := range r.Tools {
		schema := json.RawMessage(t.Parameters)
		switch {
		case len(schema) == 0:
			schema = json.RawMessage(`{"type":"object"}`)
		case !wire.Complete(schema):
			return nil, wire.Invalid("the parameters of tool " + strconv.Quote(t.Name) + " are no JSON object")
		}
		tool := &api.ToolParam{Name: t.Name, InputSchema: param.Override[api.ToolInputSchemaParam](schema)}
		if t.Description != "" {
			tool.Description = api.String(t.Description)
		}
		list = append(list, api.ToolUnionParam{OfTool: tool})
	}
	for _, hosted := range r.Settings.HostedTools {
		if !json.Valid(hosted) {
			return nil, wire.Invalid("hosted_tools: a tool is no JSON")
		}
		list = append(list, param.Override[api.ToolUnionParam](hosted))
	}
	return list, nil
}

// toolChoice returns the choice of a request. Whether the model may make several calls at once
// is part of it.
func toolChoice(r providers.Request, some bool) (c api.ToolChoiceUnionParam, _ error) {
	var alone param.Opt[bool]
	if parallel := r.Settings.ParallelToolCalls; parallel != nil {
		alone = api.Bool(!*parallel)
	}
	named := func(t providers.ToolSpec) bool { return t.Name == r.ToolChoice }
	switch {
	case !some && (r.ToolChoice == "" || r.ToolChoice == "none"):
	case r.ToolChoice == "none":
		c.OfNone = &api.ToolChoiceNoneParam{}
	case r.ToolChoice == "required" && some:
		c.OfAny = &api.ToolChoiceAnyParam{DisableParallelToolUse: alone}
	case slices.ContainsFunc(r.Tools, named):
		c.OfTool = &api.ToolChoiceToolParam{Name: r.ToolChoice, DisableParallelToolUse: alone}
	case r.ToolChoice != "":
		return c, wire.Invalid("tool_choice is " + strconv.Quote(r.ToolChoice) + ", and the request has no such tool")
	case alone.Valid():
		c.OfAuto = &api.ToolChoiceAutoParam{DisableParallelToolUse: alone}
	}
	return c, nil
}
