// Package anthropic reaches the models of Anthropic over the Messages API, through the vendor's
// SDK. The compatible endpoint of package openai has no thinking and no cache.
//
// # Guarantees
//
//   - Answers are streamed. One that ends without a reason to stop is never a success.
//   - Blocks that our types do not cover are kept in Item.Raw, member by member: thinking with
//     its signature, tools that the server runs, citations. They go back to the model that gave
//     them and to no other.
//   - A history that the API cannot take is translated or replaced by a note that the model
//     sees; otherwise the call fails. Only thinking without a signature, which is that of an answer
//     that was cut off, and reasoning of no known provider are left out without a note.
//   - The key is in no error, item or log, and in no piece of an answer on its way that has all of it.
//   - Key and history go to the base URL and nowhere else: a redirect is an error. Environment
//     variables and profiles of the SDK are not read, and its tracing is off.
//   - One HTTP request per call, and no time limit but ctx and Timeout. An answer that the
//     server pauses, as it does in long runs of its own tools, is continued with up to ten more
//     requests, whose usage is added up.
//
// # What becomes of a request
//
// The prompt is cached up to its last block, unless extra_body has a cache_control of its own:
// null for none. Answers may have 32,000 tokens unless max_output_tokens is set. Messages of the
// runtime are sent as those of a user. Images by data address become base64 sources, a PDF by
// such an address becomes a document.
package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	api "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/internal/wire"
	"github.com/reprise-dev/reprise/providers/profile"
)

var (
	_ providers.Provider = (*Provider)(nil)
	_ providers.Refuser  = (*Provider)(nil)
)

// Provider calls the Messages API. Safe for concurrent use; make one with New.
type Provider struct {
	name     string
	base     string
	http     *http.Client
	header   http.Header
	extra    map[string]json.RawMessage
	timeout  time.Duration
	endpoint *wire.Endpoint
	service  api.MessageService
}

// Option changes what New makes.
type Option func(*Provider)

// BaseURL is where the API lives, without its version. The default is https://api.anthropic.com.
func BaseURL(url string) Option { return func(p *Provider) { p.base = url } }

// Timeout bounds a call, its whole answer included. Zero: no limit.
func Timeout(d time.Duration) Option { return func(p *Provider) { p.timeout = d } }

// HTTPClient makes the requests. The default has no time limit, so that ctx alone ends a call,
// and keeps 256 idle connections. No redirect is followed.
func HTTPClient(c *http.Client) Option { return func(p *Provider) { p.http = c } }

// Name sets Item.Provider of this provider's items; it should be the name before the
// slash of its models. The default is anthropic.
func Name(name string) Option { return func(p *Provider) { p.name = name } }

// Header is sent with every request, such as anthropic-beta. The value of a header whose name
// contains key, token, secret, cookie or auth is kept secret as the key is.
func Header(name, value string) Option { return func(p *Provider) { p.header.Set(name, value) } }

// ExtraBody is a member of the JSON of every request, such as thinking. It replaces the
// provider's own.
func ExtraBody(name string, value json.RawMessage) Option {
	return func(p *Provider) { p.extra[name] = value }
}

// New makes a provider that shows key; an empty key shows none. Keys of fewer than 12 bytes are
// not treated as secrets.
func New(key string, options ...Option) *Provider {
	p := &Provider{name: "anthropic", base: "https://api.anthropic.com", header: http.Header{}, extra: make(map[string]json.RawMessage)}
	for _, o := range options {
		o(p)
	}
	p.endpoint = wire.NewEndpoint(p.http, key, p.header, url.Values{})
	base := strings.TrimSuffix(strings.TrimSuffix(p.base, "/"), "/v1") + "/"
	settings := []option.RequestOption{option.WithBaseURL(base), option.WithMaxRetries(0), option.WithoutOpenTelemetry()}
	if key != "" {
		settings = append(settings, option.WithAPIKey(key))
	}
	p.service = api.NewMessageService(settings...)
	return p
}

// maxPauses is how many times an answer is continued. Ten is the SDK's own limit for runs of
// the server's tools in one request.
const maxPauses = 10

// Generate makes one streamed call. Where the server does not stream, the one answer is emitted
// whole. A nil emit is fine.
func (p *Provider) Generate(ctx context.Context, r providers.Request, emit func(providers.Delta)) (providers.Response, error) {
	ctx, cancel, err := p.endpoint.Begin(ctx, r, p.timeout)
	if err != nil {
		return providers.Response{}, err
	}
	defer cancel()
	if emit == nil {
		emit = func(providers.Delta) {}
	}
	whole, err := p.ask(ctx, r, emit)
	history := r.Items
	for n := 0; err == nil && whole.Finish == paused && n < maxPauses; n++ {
		r.Items = slices.Concat(history, whole.Items)
		more, failed := p.ask(ctx, r, emit)
		var e *providers.Error
		switch {
		case failed == nil:
			more.Items, more.Usage = slices.Concat(whole.Items, more.Items), whole.Usage.Add(more.Usage)
			whole = more
		case errors.As(failed, &e) && e.Kind == providers.BadRequest: // it does not accept its own blocks
			n = maxPauses
		default:
			e.Usage = e.Usage.Add(whole.Usage)
			return providers.Response{}, e
		}
	}
	if whole.Finish == paused {
		whole.Finish = messages.FinishLength
	}
	return whole, err
}

// ask makes one request.
func (p *Provider) ask(ctx context.Context, r providers.Request, emit func(providers.Delta)) (providers.Response, error) {
	body, err := p.body(r)
	if err != nil {
		return providers.Response{}, p.endpoint.Failed(ctx, err, messages.Usage{})
	}
	x := p.endpoint.NewExchange(body)
	return x.Ask(ctx, r, &answer{p: p, emit: emit, keep: x.Keep}, func() error {
		err := p.service.NewStreaming(ctx, api.MessageNewParams{Model: r.Model}, option.WithHTTPClient(x)).Err()
		if err != nil && !x.Sent() && ctx.Err() == nil {
			return wire.Invalid(err.Error()) // such as a base URL that is none
		}
		return err
	})
}

// unsupported are settings that the API does not have.
var unsupported = []string{"seed", "presence_penalty", "frequency_penalty", "verbosity", "cache_key"}

// Refuses returns the settings that a model does not accept.
func (p *Provider) Refuses(model string) []string {
	for _, pattern := range profile.Unsampled {
		if ok, _ := path.Match(pattern, model); ok { // the patterns are well formed
			return append(slices.Clip(unsupported), "temperature", "top_p")
		}
	}
	return unsupported
}
