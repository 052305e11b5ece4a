package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/reprise-dev/reprise/providers/memory"
)

const (
	maxAnswer  = 64 << 20               // bytes; what exceeds it is no answer
	maxRefusal = 64 << 10               // bytes of an error's body that are read
	maxHeader  = 256 << 10              // bytes; Go's own limit is forty times as much
	tailSize   = 2 << 10                // bytes that are kept for an error's sake
	patience   = 250 * time.Millisecond // for the end of a body after its last event
)

var errTooLong = badAnswer("the answer is longer than 64 MiB")

// exchange is one HTTP request and its response. It stands between go-openai
// and the connection for what go-openai does not do: it keeps the headers of
// errors, turns an answer that is not streamed into a stream of one chunk,
// supplies a missing last line end, and reads bodies to their end so that
// their connections are used again.
type exchange struct {
	p    *Provider
	sent bool
	body io.ReadCloser
	read int
	tail []byte // the newest bytes of the body
	end  int    // how much of lineEnd was supplied
	eof  bool

	// What the call's claim on memory covers, in bytes, is the sum of before (the request),
	// line (the line that go-openai reads), other (the lines that it keeps because they
	// are no data) and kept (what was kept of the answer). An answer in one document is
	// covered before it is read by lines.
	ctx                       context.Context
	before, line, other, kept int
	first                     []byte // the first bytes of the line, as many as data has
}

const (
	lineEnd = "\n\n"
	data    = "data:" // what the lines of an answer begin with
)

// Do sends the request. An answer other than 2xx is an error.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	x.sent = true
	for name, values := range x.p.header {
		req.Header[name] = values
	}
	resp, err := x.p.http.Do(req)
	if err != nil {
		return nil, err
	}
	x.body = resp.Body
	x.ctx, x.before = req.Context(), memory.Of(req.Context()).Bytes()
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // the status says enough
		return nil, refused(resp, body)
	}
	switch kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind {
	case "application/json":
		x.body, err = asStream(claimed{x.ctx, resp.Body})
	case "text/html":
		_ = resp.Body.Close()
		err = badAnswer("the server answered with a web page: check the base URL")
	}
	resp.Body = x
	return resp, err
}

// claimed is a body that is kept whole: its bytes are added to the call's claim on memory
// as they come.
type claimed struct {
	ctx context.Context
	io.ReadCloser
}

// Read reads the body.
func (c claimed) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	if full := memory.Of(c.ctx).Add(c.ctx, n); full != nil {
		return 0, full
	}
	return n, err
}

// asStream reads an answer in one document and makes it the only event. What
// is no document is let through: some servers mislabel their streams.
func asStream(body io.ReadCloser) (io.ReadCloser, error) {
	defer body.Close()
	document, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(document) > maxAnswer {
		return nil, errTooLong
	}
	if !bytes.HasPrefix(bytes.TrimSpace(document), []byte("{")) {
		return io.NopCloser(bytes.NewReader(document)), nil
	}
	event := bytes.NewBufferString("data: ")
	if json.Compact(event, document) != nil {
		return nil, badAnswer("the answer is no JSON")
	}
	return io.NopCloser(event), nil
}

// Read reads the body, with its last line ended. While the node has no memory for more
// it waits, and with it the server.
func (x *exchange) Read(b []byte) (int, error) {
	if x.eof {
		if x.end == len(lineEnd) {
			return 0, io.EOF
		}
		n := copy(b, lineEnd[x.end:])
		x.end += n
		return n, nil
	}
	n, err := x.body.Read(b)
	x.keep(b[:n])
	if x.read += n; x.read > maxAnswer {
		return n, errTooLong
	}
	if full := x.gather(b[:n]); full != nil {
		return 0, full
	}
	if err == io.EOF {
		x.eof, err = true, nil
	}
	return n, err
}

// gather claims memory for what go-openai keeps of the body: the line that it reads, and
// lines that are no data. A line of data is an event of a few bytes of text, and is
// dropped when the next one is read; what the answer keeps of it is claimed by keepMore.
func (x *exchange) gather(b []byte) error {
	for len(b) > 0 {
		piece, end := b, bytes.IndexByte(b, '\n')
		if end >= 0 {
			piece = b[:end+1]
		}
		b = b[len(piece):]
		x.first = append(x.first, piece[:min(len(piece), len(data)-len(x.first))]...)
		x.line += len(piece)
		if end < 0 {
			break
		}
		if string(x.first) != data && x.line > len("\r\n") {
			x.other += x.line
		}
		x.line, x.first = 0, x.first[:0]
	}
	return x.claim()
}

// keepMore claims memory for n more bytes of the answer.
func (x *exchange) keepMore(n int) error {
	x.kept += n
	return x.claim()
}

func (x *exchange) claim() error {
	return memory.Of(x.ctx).AtLeast(x.ctx, x.before+x.line+x.other+x.kept)
}

// keep remembers the newest bytes.
func (x *exchange) keep(b []byte) {
	b = b[max(0, len(b)-tailSize):]
	if len(x.tail)+len(b) > 2*tailSize {
		x.tail = x.tail[:copy(x.tail, x.tail[len(x.tail)-tailSize:])]
	}
	x.tail = append(x.tail, b...)
}

// Close closes the body.
func (x *exchange) Close() error { return x.body.Close() }

// finish reads what is left of the body, which is nothing but the end mark of
// a server that behaves, so that the connection can be used again, and closes it. A
// server that does not behave is not waited for.
func (x *exchange) finish() {
	if !x.eof {
		hurry := time.AfterFunc(patience, func() { _ = x.body.Close() })
		defer hurry.Stop()
		_, _ = io.CopyN(io.Discard, x.body, tailSize) // up to its end, or it is closed below
	}
	_ = x.body.Close()
}

// unreadError is the error that the newest line of the body speaks of.
func (x *exchange) unreadError() error {
	lines := bytes.Split(bytes.TrimSpace(x.tail), []byte("\n"))
	for i := len(lines) - 1; i >= 0; i-- {
		line, ok := bytes.CutPrefix(bytes.TrimSpace(lines[i]), []byte("data:"))
		if !ok || !bytes.Contains(line, []byte(`"error"`)) {
			continue
		}
		if c, ok := readComplaint(line); ok {
			return c.inStream()
		}
	}
	return badAnswer("the server reported an error that cannot be read")
}
