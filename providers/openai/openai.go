// Package openai calls models over the Chat Completions API or the Responses API, at OpenAI or at any
// compatible server. [New] with [BaseURL] makes the provider of a server.
//
// # Guarantees
//
//   - Answers are streamed. One that ends without a finish reason and without an end mark is
//     never a success; over the Responses API, one that ends without its last event.
//   - Parallel calls keep the ids that the model gave them, however their
//     fragments arrive. A call without an id, or with one that the history
//     already has, gets a new one; over Chat Completions Item.ID keeps the server's.
//   - What the types of package messages do not cover is kept in Item.Raw, byte for byte if it
//     came in one piece, and joined if it came in several.
//   - Signatures and reasoning go back to the model that gave them and to no other.
//   - A history that the server cannot take is translated or replaced by a note
//     that the model sees; otherwise the call fails. Only a model's own reasoning that its API
//     does not want back is left out without a note.
//   - The key is in no error, item or log, and no piece of a streamed answer has all of it.
//   - Key and history go to the base URL and nowhere else: a redirect is an error.
//   - One HTTP request per call, and no time limit but ctx and Timeout. Only a request
//     that is refused for its form is sent again, in other forms that package profile knows, three
//     times at most; the form that is accepted is sent from the start until the process ends. A
//     request that names an answer which the server was to store is sent once more with the whole
//     history if that name is refused or ignored.
//
// # What becomes of a history
//
// The rules of package profile determine roles, their order, ids and reasoning. Refusals
// become assistant text. Items of unknown types and images outside user messages become
// notes. Messages that came in while calls were running move behind the results. Arguments
// of calls are always a JSON object. Reasoning of other models is left out, which the
// instructions mention. Over the Responses API the items of an answer go back to its model
// as they came, or all rewritten without ids and reasoning.
package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	api "github.com/sashabaranov/go-openai"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/internal/wire"
	"github.com/reprise-dev/reprise/providers/profile"
)

var (
	_ providers.Provider = (*Provider)(nil)
	_ providers.Refuser  = (*Provider)(nil)
)

// Provider calls one server. Safe for concurrent use; make one with New.
type Provider struct {
	name     string
	base     string
	config   api.ClientConfig
	http     *http.Client
	header   http.Header
	query    url.Values
	extra    map[string]json.RawMessage
	server   profile.Server
	rules    profile.Rules
	endpoint *wire.Endpoint

	timeout  time.Duration
	chains   chains
	repaired sync.Map // of models: the profile.Rules that their server accepted after a repair
}

// Option is an option of [New].
type Option func(*Provider)

// BaseURL sets the URL of the API, with its version, such as http://localhost:11434/v1, and without a
// query; see [Query]. The default is that of OpenAI.
func BaseURL(url string) Option { return func(p *Provider) { p.base = url } }

// Timeout limits a call with its whole answer. The default, zero, is no limit.
func Timeout(d time.Duration) Option { return func(p *Provider) { p.timeout = d } }

// HTTPClient sets the client for the requests. The default has no time limit and keeps 256 idle
// connections. A client with a Timeout cuts long answers off. Redirects are not followed, so its
// CheckRedirect is not called.
func HTTPClient(c *http.Client) Option { return func(p *Provider) { p.http = c } }

// Name sets the name of the provider, which is stored with its answers. It should be its name in
// providers.Set, before the slash of its models. The default is openai.
func Name(name string) Option { return func(p *Provider) { p.name = name } }

// Header adds a header to every request. The value of a header whose name contains key, token, secret,
// cookie or authorization is kept secret as the key is.
func Header(name, value string) Option { return func(p *Provider) { p.header.Set(name, value) } }

// Query adds a parameter to the URL of every request, such as api-version. Values are kept secret as
// those of headers are.
func Query(name, value string) Option { return func(p *Provider) { p.query.Set(name, value) } }

// ExtraBody adds a member to the JSON of every request. It replaces one of the provider.
func ExtraBody(name string, value json.RawMessage) Option {
	return func(p *Provider) { p.extra[name] = value }
}

// Profile sets what the server accepts. The default is chosen by the host of the base URL. A profile
// without a name is called custom.
func Profile(s profile.Server) Option {
	s.Name = cmp.Or(s.Name, "custom")
	return func(p *Provider) { p.server = s }
}

// Rules sets rules that take precedence over those of the profile.
func Rules(r profile.Rules) Option { return func(p *Provider) { p.rules = r } }

// New returns a provider that sends key as the bearer token, or none if key is empty. Keys of fewer than
// 12 bytes, such as those that local servers ignore, are not treated as secrets.
func New(key string, options ...Option) *Provider {
	p := &Provider{
		name: "openai", header: http.Header{}, query: url.Values{}, extra: make(map[string]json.RawMessage),
	}
	for _, o := range options {
		o(p)
	}
	if p.server.Name == "" {
		p.server = profile.ByURL(p.base)
	}
	bearer := key
	if name := string(profile.For(p.server, "", p.rules).Key); key != "" && http.CanonicalHeaderKey(name) != "Authorization" {
		bearer = ""
		if p.header.Get(name) == "" {
			p.header.Set(name, key)
		}
	}
	p.endpoint = wire.NewEndpoint(p.http, key, p.header, p.query)
	p.config = api.DefaultConfig(bearer)
	if p.base != "" {
		p.config.BaseURL = p.base
	}
	return p
}

// Generate makes one streamed call. If the server does not stream, the answer is emitted whole. emit may
// be nil.
func (p *Provider) Generate(ctx context.Context, r providers.Request, emit func(providers.Delta)) (providers.Response, error) {
	ctx, cancel, err := p.endpoint.Begin(ctx, r, p.timeout)
	if err != nil {
		return providers.Response{}, err
	}
	defer cancel()
	c := call{p: p, r: r, emit: emit}
	return c.ask(ctx)
}

// rulesOf returns the rules of a request.
func (p *Provider) rulesOf(r providers.Request) profile.Rules {
	if rules, ok := p.repaired.Load(r.Model); ok {
		return rules.(profile.Rules)
	}
	return p.rulesFor(r)
}

// rulesFor returns the rules of a request before any repair.
func (p *Provider) rulesFor(r providers.Request) profile.Rules {
	rules := profile.For(p.server, r.Model, p.rules)
	if p.rules.API == "" && overChat(r) != nil {
		rules.API = profile.Responses
	}
	return rules
}

// overChat returns the error of go-openai for a request over Chat Completions.
func overChat(r providers.Request) error { return api.NewReasoningValidator().Validate(checked(r)) }

// withTools is a request to a model with tools.
func withTools(model, effort string) providers.Request {
	return providers.Request{Model: model, Tools: []providers.ToolSpec{{}}, Settings: providers.Settings{ReasoningEffort: effort}}
}

// generate makes one request.
func (p *Provider) generate(ctx context.Context, r providers.Request, rules profile.Rules, emit func(providers.Delta)) (providers.Response, error) {
	if rules.API == profile.Responses {
		return p.respond(ctx, r, rules, emit)
	}
	body, err := p.chatBody(r, rules)
	if err != nil {
		return providers.Response{}, p.endpoint.Failed(ctx, err, messages.Usage{})
	}
	x := p.endpoint.NewExchange(body)
	return x.Ask(ctx, r, newAnswer(p, rules, emit, x.Keep), p.sending(x, func(c *api.Client) error {
		_, err := c.CreateChatCompletionStream(ctx, checked(r))
		return err
	}))
}

// sending returns a function that sends a request through go-openai, which checks and
// addresses it.
func (p *Provider) sending(x *wire.Exchange, send func(*api.Client) error) func() error {
	config := p.config
	config.HTTPClient = x
	return func() error {
		err := send(api.NewClientWithConfig(config))
		if err != nil && !x.Sent() {
			return unsent(err)
		}
		return err
	}
}

// Refuses returns the settings that a model does not accept, by the rules of its profile.
func (p *Provider) Refuses(model string) []string {
	rules := p.rulesFor(withTools(model, ""))
	return slices.Concat(rules.Refused, missing[rules.API])
}

// Speaks returns the name of the server's profile, and of the API that a model with tools is
// asked over at first: chat or responses.
func (p *Provider) Speaks(model string) (server, api string) {
	return p.server.Name, string(p.rulesFor(withTools(model, "")).API)
}

// CheckTools returns the error of requests with tools to a model that is asked over Chat
// Completions and takes none there at that effort.
func (p *Provider) CheckTools(model, effort string) error {
	r := withTools(model, effort)
	if p.rulesFor(r).API != profile.Chat {
		return nil
	}
	if err := overChat(r); err != nil {
		return unsent(err)
	}
	return nil
}

// checked is as much of a request as go-openai needs to check and address it. Settings are
// checked by the rules alone.
func checked(r providers.Request) api.ChatCompletionRequest {
	s := r.Settings
	q := api.ChatCompletionRequest{Model: r.Model, ReasoningEffort: s.ReasoningEffort}
	if len(r.Tools) > 0 {
		q.Tools = []api.Tool{{Type: api.ToolTypeFunction}}
	}
	return q
}
