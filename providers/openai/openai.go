// Package openai reaches every server that speaks the Chat Completions API:
// OpenAI's own and the many that follow it, at any base URL.
//
// # Guarantees
//
//   - Answers are streamed; an answer without a finish reason is never a success.
//   - Parallel calls keep the ids that the model gave them, however their
//     fragments arrive. A call without an id, or with one that the history
//     already has, gets a new one, and keeps the server's in Item.ID.
//   - What our types do not cover is kept in Item.Raw, byte for byte where it
//     came in one piece and joined where it came in several.
//   - A history that the API cannot carry is translated or replaced by a note
//     that the model sees; otherwise the call fails. Nothing is left out silently.
//   - The key is in no error, item or log.
//   - Key and history go to the base URL and nowhere else: a redirect is an error.
//   - One HTTP request per call: no retries, and no time limit but ctx.
//
// # What becomes of a history
//
// Instructions and developer messages become system messages, the one role for
// this that all servers take. Reasoning goes back, as reasoning_content, to the
// provider that wrote it; for others a note stands in its place. Refusals
// become assistant text. Items of unknown types and images outside user
// messages become notes. Messages that came in while calls were running move
// behind the results, where strict servers want them.
package openai

import (
	"context"
	"errors"
	"io"
	"net/http"

	api "github.com/sashabaranov/go-openai"

	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/memory"
)

var _ providers.Provider = (*Provider)(nil)

// Provider calls one server. Safe for concurrent use; make one with New.
type Provider struct {
	name      string
	config    api.ClientConfig
	http      *http.Client
	header    http.Header
	oldTokens bool
	scrub     scrubber
}

// Option changes what New makes.
type Option func(*Provider)

// BaseURL is where the API lives, with its version, such as
// http://localhost:11434/v1. The default is OpenAI's.
func BaseURL(url string) Option { return func(p *Provider) { p.config.BaseURL = url } }

// HTTPClient makes the requests. The default has no time limit, so that ctx
// alone ends a call, and keeps 256 idle connections. A client with a Timeout
// cuts long answers off. No redirect is followed, so its CheckRedirect is not called.
func HTTPClient(c *http.Client) Option { return func(p *Provider) { p.http = c } }

// Name is what Item.Provider says of this provider's items; it should be the
// name before the slash of its models. The default is openai.
func Name(name string) Option { return func(p *Provider) { p.name = name } }

// Header is sent with every request. The value of a header whose name speaks
// of a key, token, secret, cookie or authorization is kept secret as the key is.
func Header(name, value string) Option { return func(p *Provider) { p.header.Set(name, value) } }

// OldMaxTokens sends the limit of output tokens as max_tokens, for servers that
// do not know max_completion_tokens.
func OldMaxTokens() Option { return func(p *Provider) { p.oldTokens = true } }

// New makes a provider that shows key as its bearer token; an empty key shows
// none. Keys of fewer than 12 bytes, which local servers are given to please
// their clients, are not treated as secrets.
func New(key string, options ...Option) *Provider {
	p := &Provider{name: "openai", config: api.DefaultConfig(key), header: http.Header{}}
	p.config.EmptyMessagesLimit = 1 << 30 // servers keep slow answers alive with empty lines
	for _, o := range options {
		o(p)
	}
	if p.http == nil {
		p.http = defaultClient()
	}
	p.http = withoutRedirects(p.http)
	p.scrub = newScrubber(key, p.header)
	return p
}

func defaultClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 256
	t.MaxResponseHeaderBytes = maxHeader
	return &http.Client{Transport: t}
}

// Generate makes one streamed call. Where the server does not stream, the one
// answer is emitted whole. A nil emit is fine.
func (p *Provider) Generate(ctx context.Context, r providers.Request, emit func(providers.Delta)) (providers.Response, error) {
	if ctx.Err() != nil {
		return providers.Response{}, canceled(ctx)
	}
	if err := memory.Of(ctx).AtLeast(ctx, size(r)); err != nil {
		return providers.Response{}, p.failed(ctx, err, nil)
	}
	request, err := p.request(r)
	if err != nil {
		return providers.Response{}, p.failed(ctx, err, nil)
	}
	ex := exchange{p: p}
	config := p.config
	config.HTTPClient = &ex
	stream, err := api.NewClientWithConfig(config).CreateChatCompletionStream(ctx, request)
	if err != nil {
		if !ex.sent {
			err = unsent(err)
		}
		return providers.Response{}, p.failed(ctx, err, nil)
	}
	defer ex.finish()
	a := newAnswer(p, emit, ex.keepMore)
	if err := receive(stream, &ex, a); err != nil {
		return providers.Response{}, p.failed(ctx, err, a)
	}
	resp, err := a.response(r)
	if err != nil {
		return providers.Response{}, p.failed(ctx, err, a)
	}
	return resp, nil
}

// receive feeds the chunks of stream to a until the stream is complete.
func receive(stream *api.ChatCompletionStream, ex *exchange, a *answer) error {
	for {
		chunk, err := stream.RecvRaw()
		var complaint *api.APIError
		switch {
		case errors.Is(err, io.EOF) && a.finish != "":
			return nil
		case errors.Is(err, io.EOF):
			return errCutOff
		case errors.As(err, &complaint):
			return complained(complaint)
		case err != nil && a.finish != "":
			return nil // the answer is whole; what is lost came after it
		case err != nil:
			return err
		case len(chunk) == 0: // go-openai could not read an error of the server's
			return ex.unreadError()
		}
		if err := a.add(chunk); err != nil {
			return err
		}
	}
}
