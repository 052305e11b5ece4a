package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/cmd/internal/config"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/openai"
)

const (
	probePatience = time.Minute // for each of the two requests, unless --timeout says otherwise
	probeTokens   = 16          // the fewest that the Responses API takes
	probeToolRoom = 500         // tokens for a call, with the reasoning before it
)

// doctorModels asks each model of the agents of a file twice: for a word, and for a tool call.
func (a *app) doctorModels(ctx context.Context, file string) error {
	c, err := config.Load(file)
	if err == nil {
		err = validAgents(c)
	}
	if err != nil {
		return a.problems(file, err)
	}
	set := make(map[string]config.ProviderConfig)
	for _, p := range c.Providers {
		set[p.Name] = p
	}
	models := modelsOf(c)
	found := make([][]finding, len(models))
	var all sync.WaitGroup
	for i, m := range models {
		name, model, _ := strings.Cut(m.Model, "/")
		all.Go(func() { found[i] = probeModel(ctx, set[name], m, model, a.remote.timeout) })
	}
	all.Wait()
	var list []finding
	for _, f := range found {
		list = append(list, f...)
	}
	if len(list) == 0 {
		list = []finding{{"models", "note", "no agent has a model that is asked over a network"}}
	}
	return a.concluded(list...)
}

// streamed is a transport that notes whether the last answer was a stream.
type streamed struct {
	http.RoundTripper
	stream bool
}

// RoundTrip makes a request.
func (s *streamed) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.RoundTripper.RoundTrip(r)
	if err == nil {
		kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
		s.stream = kind == "text/event-stream"
	}
	return resp, err
}

// probe asks one model.
type probe struct {
	name     string // with the provider
	provider *openai.Provider
	wire     *streamed
	limit    time.Duration
	found    []finding
}

func probeModel(ctx context.Context, c config.ProviderConfig, m checkedModel, model string, limit time.Duration) []finding {
	if limit == 0 {
		limit = probePatience
	}
	p := probe{name: m.Model, wire: &streamed{RoundTripper: http.DefaultTransport}, limit: limit}
	p.provider = openai.New(c.APIKey.Reveal(), append(openAIOptions(c), openai.HTTPClient(&http.Client{Transport: p.wire}))...)
	if p.word(ctx, model, m) {
		p.call(ctx, model)
	}
	return p.found
}

func (p *probe) add(what, status, format string, args ...any) {
	p.found = append(p.found, finding{p.name + " " + what, status, fmt.Sprintf(format, args...)})
}

// ask makes one call; a failure of it is a finding.
func (p *probe) ask(ctx context.Context, what string, r providers.Request) (resp providers.Response, ok bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.limit, fmt.Errorf("no whole answer within %v", p.limit))
	defer cancel()
	resp, err := p.provider.Generate(ctx, r, nil)
	if err != nil {
		p.add(what, "fail", "%v", err)
	}
	return resp, err == nil
}

// tokens are the settings of a request: a limit of tokens, where the model takes one.
func (p *probe) tokens(model string, n int) providers.Settings {
	return providers.Settings{MaxOutputTokens: n}.Without(p.provider.Refuses(model))
}

// word asks for a word, and reports whether there was an answer.
func (p *probe) word(ctx context.Context, model string, m checkedModel) bool {
	resp, ok := p.ask(ctx, "answer", providers.Request{
		Model: model, Items: []messages.Item{messages.Text(messages.RoleUser, "Answer with the word ok.")},
		Settings: p.tokens(model, probeTokens),
	})
	if !ok {
		return false
	}
	if len(resp.Items) == 0 && resp.Finish != messages.FinishLength { // else it was thinking
		p.add("answer", "fail", "the answer is empty; it ended with %s", resp.Finish)
		return false
	}
	usage := "no usage"
	if u := resp.Usage; u.Input > 0 {
		usage = fmt.Sprintf("%d tokens in, %d out", u.Input, u.Output)
	}
	p.add("answer", "ok", "profile %s, API %s; it ended with %s; %s", m.Profile, m.API, resp.Finish, usage)
	if p.wire.stream {
		p.add("stream", "ok", "the answer was streamed")
	} else {
		p.add("stream", "warn", "the answer came in one document: nothing is shown until a call is over")
	}
	return true
}

// call asks for a tool call, and checks its arguments against the schema.
func (p *probe) call(ctx context.Context, model string) {
	resp, ok := p.ask(ctx, "tools", providers.Request{
		Model: model, Items: []messages.Item{messages.Text(messages.RoleUser, "Call the tool report with the number 7.")},
		Tools: []providers.ToolSpec{{Name: "report", Description: "Report a number",
			Parameters: []byte(`{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"],"additionalProperties":false}`)}},
		Settings: p.tokens(model, probeToolRoom),
	})
	if !ok {
		return
	}
	for _, it := range resp.Items {
		if it.Type != messages.ItemCall || it.Name != "report" {
			continue
		}
		p.add("tools", "ok", "it called the tool that it was asked to call")
		var arguments struct{ Number *int }
		d := json.NewDecoder(strings.NewReader(it.Arguments))
		d.DisallowUnknownFields()
		if err := d.Decode(&arguments); err != nil || arguments.Number == nil {
			p.add("schema", "warn", "the arguments do not fit the schema of the tool: %.200q", it.Arguments)
			return
		}
		p.add("schema", "ok", "the arguments fit the schema of the tool")
		return
	}
	p.add("tools", "warn", "tools are accepted, but it called none when it was asked to; the answer ended with %s", resp.Finish)
}
