package mcp

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync/atomic"
)

// door sends the requests to a server over HTTP, with its headers. It takes no redirect: what
// follows one would send the headers to where the server says.
type door struct {
	base    *http.Transport
	headers map[string]string
	// The stream of what changes is opened again by the SDK, or is not, by the version of the
	// protocol. What changed in between is not told.
	opened, hungUp func()
}

// delivery is how far the message of a call has come: not sent, sent, forgotten, or else the HTTP
// status of the answer to it.
type delivery struct{ atomic.Int32 }

const (
	sent      = iota + 1
	forgotten // the server answered that it does not know the session any more, and did not take it
)

type deliveryKey struct{}

func withDelivery(ctx context.Context, d *delivery) context.Context {
	return context.WithValue(ctx, deliveryKey{}, d)
}

// sending notes that the message of a call is sent, the first that has its context. For any other
// message it returns nil.
func sending(ctx context.Context) *delivery {
	if d, ok := ctx.Value(deliveryKey{}).(*delivery); ok && d.CompareAndSwap(0, sent) {
		return d
	}
	return nil
}

// RoundTrip sends a request.
func (d *door) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range d.headers {
		r.Header.Set(name, value)
	}
	call := sending(r.Context())
	resp, err := d.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	status := resp.StatusCode
	if status == http.StatusNotFound && r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") != "" {
		status = forgotten
		d.hungUp()
	}
	if call != nil {
		call.Store(int32(status))
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("it redirects (HTTP %d), which is not followed, for the headers would be sent there; set url to the address of the server", resp.StatusCode)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case kind != "text/event-stream" || resp.StatusCode/100 != 2: // the SDK reads the whole of an error
		resp.Body = &bounded{resp.Body, maxMessage}
	case r.Method == http.MethodGet:
		d.opened()
	case r.Header.Get("Mcp-Method") == "subscriptions/listen":
		resp.Body = &watched{resp.Body, d.hungUp}
	}
	return resp, nil
}

// watched is a body whose end is noted.
type watched struct {
	io.ReadCloser
	ended func()
}

// Close ends the body: the SDK does when there is no more to read.
func (w *watched) Close() error {
	w.ended()
	return w.ReadCloser.Close()
}

// CloseIdleConnections is what http.Client asks for.
func (d *door) CloseIdleConnections() { d.base.CloseIdleConnections() }

// bounded is a body that fails behind the largest message.
type bounded struct {
	io.ReadCloser
	left int
}

// Read reads from the body.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("a message has more than %d bytes", maxMessage)
	}
	return n, err
}
