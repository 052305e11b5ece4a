package openai

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"time"
)

const (
	maxAnswer  = 64 << 20               // bytes; what exceeds it is no answer
	maxRefusal = 64 << 10               // bytes of an error's body that are read
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
}

const lineEnd = "\n\n"

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
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // the status says enough
		return nil, refused(resp, body)
	}
	switch kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind {
	case "application/json":
		x.body, err = asStream(resp.Body)
	case "text/html":
		_ = resp.Body.Close()
		err = badAnswer("the server answered with a web page: check the base URL")
	}
	resp.Body = x
	return resp, err
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

// Read reads the body, with its last line ended.
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
	if err == io.EOF {
		x.eof, err = true, nil
	}
	return n, err
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
// a server that behaves, and closes it. One that does not is not waited for.
func (x *exchange) finish() {
	if !x.eof {
		hurry := time.AfterFunc(patience, func() { _ = x.body.Close() })
		defer hurry.Stop()
		var rest [64]byte
		for n := 0; n < tailSize && !x.eof; {
			m, err := x.Read(rest[:])
			if err != nil {
				break
			}
			n += m
		}
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
