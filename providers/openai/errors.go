package openai

import (
	"bytes"
	"context"
	"encoding/json"
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
func (p *Provider) failed(ctx context.Context, err error, a *answer) error {
	var e *providers.Error
	switch {
	case errors.As(err, &e), errors.As(context.Cause(ctx), &e):
		e = &providers.Error{Kind: e.Kind, Status: e.Status, Temporary: e.Temporary, RetryAfter: e.RetryAfter, Message: e.Message, Err: e.Err}
	case ctx.Err() != nil:
		e = canceled(ctx)
	default:
		e = &providers.Error{Kind: providers.Network, Temporary: true, Message: err.Error(), Err: err}
	}
	if a != nil {
		e.Usage = a.usage
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
		e.Message = "this model takes tools only with the Responses API, which this provider does not speak: " +
			"set reasoning_effort to none where the model allows it, or choose another model"
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
	c, ok := readComplaint(body)
	if !ok {
		c.message = strings.TrimSpace(http.StatusText(resp.StatusCode))
	}
	e := c.withStatus(resp.StatusCode)
	e.Status = resp.StatusCode
	e.RetryAfter = retryAfter(resp.Header, time.Now())
	return e
}

// complaint is an error as servers word it.
type complaint struct{ message, kind, code string }

// readComplaint reads {"error":{…}}, {"error":"…"}, {"message":…} and
// {"detail":…}; ok is false where there is none of them.
func readComplaint(body []byte) (c complaint, ok bool) {
	var outer struct{ Error, Message, Detail, Type, Code json.RawMessage }
	if json.Unmarshal(body, &outer) != nil {
		return c, false
	}
	fill := func(message, kind, code json.RawMessage) {
		c = complaint{plain(message), plain(kind), plain(code)}
	}
	var inner struct{ Message, Type, Code json.RawMessage }
	switch {
	case json.Unmarshal(outer.Error, &inner) == nil && inner.Message != nil:
		fill(inner.Message, inner.Type, inner.Code)
	case outer.Message != nil:
		fill(outer.Message, outer.Type, outer.Code)
	case outer.Detail != nil:
		fill(outer.Detail, outer.Type, outer.Code)
	default:
		fill(outer.Error, nil, nil)
	}
	return c, c.message != ""
}

// plain is a JSON string's text, any other value's JSON, and nothing for null.
func plain(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	const enough = 1000
	return string(bytes.TrimSpace(raw[:min(len(raw), enough)]))
}

// inStream is the error that c is when it comes in the midst of an answer.
func (c complaint) inStream() error {
	if status, err := strconv.Atoi(c.code); err == nil && status >= 400 && status < 600 {
		return c.withStatus(status)
	}
	says := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(c.kind, w) || strings.Contains(c.code, w) {
				return true
			}
		}
		return false
	}
	switch {
	case says("rate_limit", "insufficient_quota"):
		return c.withStatus(http.StatusTooManyRequests)
	case says("authentication", "permission", "invalid_api_key"):
		return c.withStatus(http.StatusUnauthorized)
	case says("invalid", "context_length", "not_found", "content_filter"):
		return c.withStatus(http.StatusBadRequest)
	}
	return c.withStatus(http.StatusInternalServerError)
}

// withStatus sorts c by an HTTP status.
func (c complaint) withStatus(status int) *providers.Error {
	e := &providers.Error{Kind: providers.BadRequest, Message: c.message}
	switch {
	case status == http.StatusTooManyRequests:
		e.Kind, e.Temporary = providers.RateLimit, c.code != "insufficient_quota" && c.kind != "insufficient_quota"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Kind = providers.Auth
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		e.Kind, e.Temporary = providers.Network, true
	case status == http.StatusConflict, status >= 500:
		e.Kind, e.Temporary = providers.Overloaded, status != http.StatusNotImplemented
	case status < 400:
		e.Kind = providers.BadAnswer
	case status == http.StatusRequestEntityTooLarge || c.tooLong():
		e.Message = "the history is too long for the model: compact the agent with a small keep, or lower show_at_most if one text is too long, then resume the turn; the server says: " + c.message
	}
	return e
}

// tooLong says that a request is longer than the model takes, as servers word it.
func (c complaint) tooLong() bool {
	if c.code == "context_length_exceeded" || c.kind == "exceed_context_size_error" {
		return true
	}
	for _, words := range [...]string{"maximum context length", "context window", "prompt is too long"} {
		if strings.Contains(c.message, words) {
			return true
		}
	}
	return false
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
