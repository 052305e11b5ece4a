package openai

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/internal/wire"
	"github.com/reprise-dev/reprise/providers/profile"
)

// respond makes a call over the Responses API. Where the server keeps answers, it names the
// last one in place of the history before it; a server that refuses or ignores this is sent the
// whole history, and is sent no name again for that model unless it has only lost the answer.
func (p *Provider) respond(ctx context.Context, r providers.Request, rules profile.Rules, emit func(providers.Delta)) (providers.Response, error) {
	in, err := p.input(r, rules)
	if err != nil {
		return providers.Response{}, p.endpoint.Failed(ctx, err, messages.Usage{})
	}
	a := &output{p: p, emit: emit}
	if _, refuses := p.chains.refusing.Load(r.Model); in.chained && !refuses && len(in.after()) > 0 && p.chains.ends(in.answer, in.b[:in.end]) {
		a.previous = in.answer
	}
	resp, err := p.askResponses(ctx, r, rules, in, a)
	if again, lasting := p.refusesName(ctx, r.Model, a, err); again {
		spent := a.usage
		a = &output{p: p, emit: emit}
		resp, err = p.askResponses(ctx, r, rules, in, a)
		resp.Usage = resp.Usage.Add(spent)
		if err == nil && lasting {
			p.chains.refusing.Store(r.Model, true)
		}
	}
	if err == nil && in.chained && !a.unstored {
		p.remember(in, resp.Items)
	}
	return resp, err
}

// refusesName reports whether a request that named an answer can have failed for that, so that it is
// sent again with the whole history, and whether no later one can name another: the server has not only
// lost this one. a is what came of the request. What may be lost is not named again.
func (p *Provider) refusesName(ctx context.Context, model string, a *output, err error) (again, lasting bool) {
	if err == nil || a.previous == "" {
		return false, false
	}
	if ctx.Err() == nil {
		p.chains.drop(a.previous)
	}
	if a.ignored {
		p.chains.refusing.Store(model, true)
	}
	e := providers.AsError(err)
	lost := e.Kind == providers.NotFound || strings.Contains(strings.ToLower(e.Message), "not found")
	return len(a.shown) == 0 && (a.ignored || e.Kind == providers.BadRequest || e.Kind == providers.NotFound), !lost
}

// remember notes that an answer ends the history in, unless an id of its calls is not the one that
// the server has stored.
func (p *Provider) remember(in *input, answer []messages.Item) {
	if len(answer) == 0 {
		return
	}
	for _, it := range answer {
		if it.Type == messages.ItemCall && wire.Text(wire.LookUp(it.Raw, "call_id")) != wire.SentID(it.CallID, in.rules.CallIDs) {
			return
		}
		if in.compacts(it) {
			in.b, in.ids = nil, make(map[string]bool)
		}
	}
	in.echo(answer)
	p.chains.add(in.answer, in.b)
}

// askResponses makes one request, for the answer a.
func (p *Provider) askResponses(ctx context.Context, r providers.Request, rules profile.Rules, in *input, a *output) (providers.Response, error) {
	body, err := p.responsesBody(r, rules, in, a.previous)
	if err != nil {
		return providers.Response{}, p.endpoint.Failed(ctx, err, messages.Usage{})
	}
	x := p.endpoint.NewExchange(body)
	a.keep = x.Keep
	resp, err := x.Ask(ctx, r, a, p.sending(x, func(c *api.Client) error {
		_, err := c.CreateResponseStream(ctx, api.CreateResponseRequest{Model: r.Model})
		return err
	}))
	var e *providers.Error
	if errors.As(err, &e) && e.Kind == providers.NotFound {
		e.Message += " (asked over the Responses API: set api: chat if the server has none; at Azure its base_url ends in /openai/v1)"
	}
	return resp, err
}

// responsesBody returns the body of a request to the Responses API. previous is the answer that
// it names; "": none.
func (p *Provider) responsesBody(r providers.Request, rules profile.Rules, in *input, previous string) ([]byte, error) {
	choice, err := toolChoice(r, true)
	if err != nil {
		return nil, err
	}
	s := r.Settings
	extra, err := p.extraBody(s, rules)
	if err != nil {
		return nil, err
	}
	history := in.b
	if previous != "" {
		history = in.after()
	}
	w := newWriter(wire.Size(providers.Request{Instructions: r.Instructions, Tools: r.Tools})+len(history)+bodySize, extra)
	w.text("model", r.Model)
	w.text("instructions", wire.Instructions(r, in.omitted))
	if w.key("input") {
		w.b = append(append(append(w.b, '['), history...), ']')
	}
	w.text("previous_response_id", previous)
	if err := w.tools(r.Tools, s.HostedTools, true); err != nil {
		return nil, err
	}
	if choice != "" {
		w.raw("tool_choice", choice)
	}
	w.count("max_output_tokens", s.MaxOutputTokens)
	w.number("temperature", s.Temperature)
	w.number("top_p", s.TopP)
	w.effort("reasoning.effort", s.ReasoningEffort)
	w.effort("text.verbosity", s.Verbosity)
	w.text("service_tier", s.ServiceTier)
	w.text("prompt_cache_key", s.CacheKey)
	if len(r.Tools) > 0 {
		w.flag("parallel_tool_calls", s.ParallelToolCalls)
	}
	w.raw("stream", "true")
	w.raw("store", "false")
	if rules.Encrypted == profile.Yes {
		w.raw("include", `["reasoning.encrypted_content"]`)
	}
	return w.end(), nil
}

// appendHosted appends tools that the server runs.
func appendHosted(b []byte, list []json.RawMessage) ([]byte, error) {
	for _, t := range list {
		if !json.Valid(t) {
			return nil, wire.Invalid("hosted_tools: a tool is no JSON")
		}
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = append(b, t...)
	}
	return b, nil
}
