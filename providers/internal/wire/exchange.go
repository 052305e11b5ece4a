package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/memory"
)

const (
	maxAnswer  = 64 << 20               // bytes; what exceeds it is no answer
	maxRefusal = 64 << 10               // bytes of an error's body that are read
	patience   = 250 * time.Millisecond // for the end of a body after its last event
	grace      = 5 * time.Second        // for what may follow the reason to stop, and for the body of an error
)

var errTooLong = BadAnswer("the answer is longer than 64 MiB")

// Reader reads one answer.
type Reader interface {
	// Add takes in the data of an event, or an answer in one document.
	Add(data []byte) error
	// Ended reports whether the server has named a reason to stop, and Over whether nothing
	// can follow.
	Ended() bool
	Over() bool
	// Whole reports whether an answer without a reason to stop can be complete.
	Whole() bool
	// Response returns the whole answer to r.
	Response(r providers.Request) (providers.Response, error)
	// Usage returns what the answer has consumed so far.
	Usage() messages.Usage
}

// Begin claims memory for a request. Its context ends after limit, if that is more than zero, with
// a cause that names it.
func (e *Endpoint) Begin(ctx context.Context, r providers.Request, limit time.Duration) (context.Context, context.CancelFunc, error) {
	if ctx.Err() != nil {
		return ctx, nil, Canceled(ctx)
	}
	if err := memory.Of(ctx).AtLeast(ctx, Size(r)); err != nil {
		return ctx, nil, e.Failed(ctx, err, messages.Usage{})
	}
	if limit <= 0 {
		return ctx, func() {}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, timedOut(limit))
	return ctx, cancel, nil
}

// Exchange is one HTTP request and its answer. The SDK of a vendor makes the request, and is
// given the exchange as its HTTP client. The answer is read here: types of SDKs drop the
// members that they do not know.
type Exchange struct {
	endpoint *Endpoint
	request  []byte // the body; nil: the SDK's
	sent     bool
	body     io.ReadCloser
	events   *events // of an answer that is streamed
	whole    []byte  // of one that is not
	ended    bool    // the body has been read to its end

	ctx          context.Context
	before, kept int // bytes that the call's claim on memory covers: the request, the answer
	line         int // and its longest line
}

// NewExchange returns an exchange that sends body in place of that of the SDK's request,
// unless it is nil.
func (e *Endpoint) NewExchange(body []byte) *Exchange { return &Exchange{endpoint: e, request: body} }

// Sent reports whether the SDK has sent its request.
func (x *Exchange) Sent() bool { return x.sent }

// Ask has send make the request r, which ends in a call of Do, and reads the answer. Its errors
// are those of the contract of providers.
func (x *Exchange) Ask(ctx context.Context, r providers.Request, a Reader, send func() error) (providers.Response, error) {
	if err := send(); err != nil {
		return providers.Response{}, x.endpoint.Failed(ctx, err, messages.Usage{})
	}
	defer x.finish()
	if err := x.receive(a); err != nil {
		return providers.Response{}, x.endpoint.Failed(ctx, err, a.Usage())
	}
	resp, err := a.Response(r)
	if err != nil {
		return providers.Response{}, x.endpoint.Failed(ctx, err, a.Usage())
	}
	return resp, nil
}

// Do sends the request. An answer other than 2xx is an error.
func (x *Exchange) Do(req *http.Request) (*http.Response, error) {
	x.sent = true
	for name, values := range x.endpoint.header {
		req.Header[name] = values
	}
	if len(x.endpoint.query) > 0 {
		q := req.URL.Query()
		maps.Copy(q, x.endpoint.query)
		req.URL.RawQuery = q.Encode()
	}
	if x.request != nil {
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(x.request)), int64(len(x.request))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.request)), nil }
	}
	resp, err := x.endpoint.client.Do(req)
	if err != nil {
		return nil, err
	}
	x.body = resp.Body
	x.ctx, x.before = req.Context(), memory.Of(req.Context()).Bytes()
	if resp.StatusCode/100 != 2 {
		limit := time.AfterFunc(grace, func() { _ = resp.Body.Close() })
		defer limit.Stop()
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // the status says enough
		return nil, refused(resp, []byte(x.endpoint.Scrub.Text(string(body))))
	}
	if err := x.begin(resp); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	resp.Body = http.NoBody
	return resp, nil
}

// begin finds out how the server answers: by the first byte, since content types are often wrong.
func (x *Exchange) begin(resp *http.Response) error {
	r := bufio.NewReaderSize(x.body, lineBuffer)
	switch first := firstByte(r); {
	case first == '<', strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html"):
		return BadAnswer("the server answered with a web page: check the base URL")
	case first == '{', first == '[': // which begins no line of a stream
		return x.readWhole(r)
	}
	x.events = &events{r: r, claim: x.claimLine, scrub: x.endpoint.Scrub}
	return nil
}

// firstByte returns the first byte that is no space, and 0 if there is none nearby.
func firstByte(r *bufio.Reader) byte {
	for n := 1; n <= lineBuffer; n++ {
		b, err := r.Peek(n)
		if err != nil {
			return 0
		}
		if c := b[n-1]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c
		}
	}
	return 0
}

// readWhole reads an answer in one document.
func (x *Exchange) readWhole(r io.Reader) error {
	document, err := io.ReadAll(io.LimitReader(claimed{x.ctx, r}, maxAnswer+1))
	switch {
	case err != nil:
		return err
	case len(document) > maxAnswer:
		return errTooLong
	case !json.Valid(document):
		return BadAnswer("the answer is no JSON")
	}
	x.whole, x.ended = document, true
	return nil
}

// claimed is a body that is kept whole: its bytes are added to the call's claim on memory
// as they come.
type claimed struct {
	ctx context.Context
	io.Reader
}

// Read reads the body.
func (c claimed) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if full := memory.Of(c.ctx).Add(c.ctx, n); full != nil {
		return 0, full
	}
	return n, err
}

// Keep claims memory for n more bytes of the answer. While the node has none, the server
// waits.
func (x *Exchange) Keep(n int) error {
	x.kept += n
	return x.claim()
}

func (x *Exchange) claimLine(n int) error {
	x.line = max(x.line, n)
	return x.claim()
}

func (x *Exchange) claim() error {
	return memory.Of(x.ctx).AtLeast(x.ctx, x.before+x.line+x.kept)
}

// receive feeds the events of the answer to a until it is complete.
func (x *Exchange) receive(a Reader) error {
	if x.whole != nil {
		err := a.Add(x.whole)
		if err == nil && !a.Ended() && !a.Whole() {
			return BadAnswer("the answer in one document has no text and no whole call")
		}
		return err
	}
	var limit *time.Timer // a server may keep the connection of an answer that is whole
	for {
		data, ended, err := x.events.next()
		switch {
		case err == nil:
			if err := a.Add(data); err != nil || a.Over() {
				return err
			}
			switch {
			case limit != nil:
				limit.Reset(grace) // some servers name a reason to stop in each chunk
			case a.Ended():
				limit = time.AfterFunc(grace, func() { _ = x.body.Close() })
				defer limit.Stop()
			}
			continue
		case errors.Is(err, io.EOF):
			x.ended = !ended
		case a.Ended():
			return nil // the answer is whole; what is lost came after it
		default:
			return err
		}
		if !a.Ended() && !(ended && a.Whole()) {
			return x.events.cutOff()
		}
		return nil
	}
}

// finish reads what is left of the body, which is nothing but the end mark of
// a server that behaves, so that the connection can be used again, and closes it. A
// server that does not behave is not waited for.
func (x *Exchange) finish() {
	if !x.ended {
		hurry := time.AfterFunc(patience, func() { _ = x.body.Close() })
		defer hurry.Stop()
		_, _ = io.CopyN(io.Discard, x.body, lineBuffer) // up to its end, or it is closed below
	}
	_ = x.body.Close()
}
