package openai

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	api "github.com/sashabaranov/go-openai"

	"github.com/reprise-dev/reprise/providers"
)

var errCutOff = &providers.Error{Kind: providers.Network, Temporary: true, Message: "the answer ended before it was complete"}

func badAnswer(message string) *providers.Error {
	return &providers.Error{Kind: providers.BadAnswer, Message: message}
}

func invalid(message string) *providers.Error {
	return &providers.Error{Kind: providers.BadRequest, Message: message}
}

func canceled(ctx context.Context) *providers.Error {
	err := context.Cause(ctx)
	return &providers.Error{Kind: providers.Canceled, Message: err.Error(), Err: err}
}

// timedOut is the error of a call that takes longer than the provider's limit.
func timedOut(limit time.Duration) *providers.Error {
	return &providers.Error{Kind: providers.Network, Temporary: true,
		Message: fmt.Sprintf("the answer was not complete after %v: raise the provider's timeout", limit)}
}

// failed is err as the contract wants it, with what the attempt consumed and
// without secrets. a is nil where no answer began.
func (p *Provider) failed(ctx context.Context, err error, a gatherer) error {
	var e *providers.Error
	switch {
	case errors.As(err, &e), errors.As(context.Cause(ctx), &e):
		e = &providers.Error{Kind: e.Kind, Status: e.Status, Temporary: e.Temporary, RetryAfter: e.RetryAfter, Message: e.Message, Err: e.Err}
	case ctx.Err() != nil:
		e = canceled(ctx)
	default:
		var untrusted *tls.CertificateVerificationError
		e = &providers.Error{Kind: providers.Network, Temporary: !errors.As(err, &untrusted), Message: err.Error(), Err: err}
	}
	if a != nil {
		e.Usage = a.consumed()
	}
	e.Message = p.scrub.text(e.Message)
	if e.Err != nil && p.scrub.text(e.Err.Error()) != e.Err.Error() {
		e.Err = nil
	}
	return e
}

// unsent is the error of a request that go-openai would not send.
func unsent(err error) error {
	e := &providers.Error{Kind: providers.Unsupported, Message: err.Error(), Err: err}
	switch {
	case errors.Is(err, api.ErrReasoningToolsRequireResponses):
		e.Kind = providers.BadRequest
		e.Message = "a call with tools to this model requires the Responses API: remove api: chat from its provider, " +
			"or set reasoning_effort to none where the model allows it"
	case errors.Is(err, api.ErrReasoningModelLimitationsOther), errors.Is(err, api.ErrReasoningSamplingUnsupported):
		e.Message = "reasoning models take no temperature and no top_p: leave both out of the settings"
	case errors.Is(err, api.ErrReasoningModelMaxTokensDeprecated):
		e.Message = "reasoning models accept no max_tokens: leave token_limit out of the provider's rules"
	case errors.Is(err, api.ErrReasoningEffortUnsupported), errors.Is(err, api.ErrChatCompletionInvalidModel):
	default:
		e.Kind = providers.BadRequest
	}
	return e
}

// refused is an HTTP status as an error.
func refused(resp *http.Response, body []byte) error {
	e := readBody(body, resp.StatusCode).withStatus(resp.StatusCode)
	e.Status = resp.StatusCode
	e.RetryAfter = retryAfter(resp.Header, time.Now())
	return e
}

// retryAfter is how long the server asks to wait: in milliseconds, in seconds,
// or until a date, counted from the server's own clock where it shows one.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if d := duration(h.Get("Retry-After-Ms"), time.Millisecond); d > 0 {
		return d
	}
	after := h.Get("Retry-After")
	if d := duration(after, time.Second); d > 0 {
		return d
	}
	until, err := http.ParseTime(after)
	if err != nil {
		return 0
	}
	if theirs, err := http.ParseTime(h.Get("Date")); err == nil {
		now = theirs
	}
	return max(0, until.Sub(now))
}

func duration(s string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	switch {
	case err != nil || !(n > 0):
		return 0
	case n >= float64(math.MaxInt64)/float64(unit):
		return math.MaxInt64
	}
	return time.Duration(n * float64(unit))
}
