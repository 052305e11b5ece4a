package wire

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

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

var errCutOff = &providers.Error{Kind: providers.Network, Temporary: true, Message: "the answer ended before it was complete"}

// BadAnswer returns the error of an answer that cannot be read.
func BadAnswer(message string) *providers.Error {
	return &providers.Error{Kind: providers.BadAnswer, Message: message}
}

// Invalid returns the error of a request that cannot be sent.
func Invalid(message string) *providers.Error {
	return &providers.Error{Kind: providers.BadRequest, Message: message}
}

// Canceled returns the error of a call whose context has ended.
func Canceled(ctx context.Context) *providers.Error {
	err := context.Cause(ctx)
	return &providers.Error{Kind: providers.Canceled, Message: err.Error(), Err: err}
}

// timedOut returns the error of a call that takes longer than the provider's limit.
func timedOut(limit time.Duration) *providers.Error {
	return &providers.Error{Kind: providers.Network, Temporary: true,
		Message: fmt.Sprintf("the answer was not complete after %v: raise the provider's timeout", limit)}
}

// Failed returns err as the contract of providers wants it, with what the attempt consumed and
// without secrets.
func (e *Endpoint) Failed(ctx context.Context, err error, usage messages.Usage) error {
	var f *providers.Error
	switch {
	case errors.As(err, &f), errors.As(context.Cause(ctx), &f):
		f = &providers.Error{Kind: f.Kind, Status: f.Status, Temporary: f.Temporary, RetryAfter: f.RetryAfter, Message: f.Message, Err: f.Err}
	case ctx.Err() != nil:
		f = Canceled(ctx)
	default:
		var untrusted *tls.CertificateVerificationError
		lasting := errors.As(err, &untrusted) || errors.Is(err, http.ErrSchemeMismatch)
		f = &providers.Error{Kind: providers.Network, Temporary: !lasting, Message: err.Error(), Err: err}
	}
	f.Usage = usage
	f.Message = e.Scrub.Text(f.Message)
	if f.Err != nil && e.Scrub.Text(f.Err.Error()) != f.Err.Error() {
		f.Err = nil
	}
	return f
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

// Finite returns an error if a setting is a number that JSON cannot have.
func Finite(s providers.Settings) error {
	for _, f := range []*float32{s.Temperature, s.TopP, s.PresencePenalty, s.FrequencyPenalty} {
		if f != nil && (math.IsNaN(float64(*f)) || math.IsInf(float64(*f), 0)) {
			return Invalid("a setting is no finite number")
		}
	}
	return nil
}
