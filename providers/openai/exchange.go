package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"net/http"
	"time"

	"github.com/reprise-dev/reprise/providers/memory"
)

const (
	maxAnswer  = 64 << 20               // bytes; what exceeds it is no answer
	maxRefusal = 64 << 10               // bytes of an error's body that are read
	maxHeader  = 256 << 10              // bytes; Go's own limit is forty times as much
	patience   = 250 * time.Millisecond // for the end of a body after its last event
)

var errTooLong = badAnswer("the answer is longer than 64 MiB")

// exchange is one HTTP request and its response. go-openai checks a request, finds its
// address and sends it through Do, which puts in the body that we wrote: go-openai's types
// drop the members that only some servers know. The answer is read by us for the same
// reason.
type exchange struct {
	p       *Provider
	request []byte // the body
	sent    bool
	body    io.ReadCloser
	events  *events // of an answer that is streamed
	whole   []byte  // of one that is not
	ended   bool    // the body has been read to its end

	ctx          context.Context
	before, kept int // bytes that the call's claim on memory covers: the request, the answer
	line         int // and its longest line
}

// Do sends the request. An answer other than 2xx is an error.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	x.sent = true
	for name, values := range x.p.header {
		req.Header[name] = values
	}
	if len(x.p.query) > 0 {
		q := req.URL.Query()
		maps.Copy(q, x.p.query)
		req.URL.RawQuery = q.Encode()
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(x.request)), int64(len(x.request))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.request)), nil }
	resp, err := x.p.http.Do(req)
	if err != nil {
		return nil, err
	}
	x.body = resp.Body
	x.ctx, x.before = req.Context(), memory.Of(req.Context()).Bytes()
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // the status says enough
		return nil, refused(resp, []byte(x.p.scrub.text(string(body))))
	}
	if err := x.begin(resp); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	resp.Body = http.NoBody
	return resp, nil
}

// begin finds out how the server answers.
func (x *exchange) begin(resp *http.Response) error {
	r := bufio.NewReaderSize(x.body, lineBuffer)
	switch kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind {
	case "text/html":
		return badAnswer("the server answered with a web page: check the base URL")
	case "application/json":
		if begin := firstByte(r); begin == '{' || begin == '[' { // else a stream that is mislabelled
			return x.readWhole(r)
		}
	}
	x.events = &events{r: r, claim: x.claimLine, scrub: x.p.scrub}
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
func (x *exchange) readWhole(r io.Reader) error {
	document, err := io.ReadAll(io.LimitReader(claimed{x.ctx, r}, maxAnswer+1))
	switch {
	case err != nil:
		return err
	case len(document) > maxAnswer:
		return errTooLong
	case !json.Valid(document):
		return badAnswer("the answer is no JSON")
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

// keepMore claims memory for n more bytes of the answer. While the node has none, the server
// waits.
func (x *exchange) keepMore(n int) error {
	x.kept += n
	return x.claim()
}

func (x *exchange) claimLine(n int) error {
	x.line = max(x.line, n)
	return x.claim()
}

func (x *exchange) claim() error {
	return memory.Of(x.ctx).AtLeast(x.ctx, x.before+x.line+x.kept)
}

// finish reads what is left of the body, which is nothing but the end mark of
// a server that behaves, so that the connection can be used again, and closes it. A
// server that does not behave is not waited for.
func (x *exchange) finish() {
	if !x.ended {
		hurry := time.AfterFunc(patience, func() { _ = x.body.Close() })
		defer hurry.Stop()
		_, _ = io.CopyN(io.Discard, x.body, lineBuffer) // up to its end, or it is closed below
	}
	_ = x.body.Close()
}
