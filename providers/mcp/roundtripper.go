package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// roundTripper sends the requests to a server over HTTP, with its headers. It takes no redirect: what
// follows one would send the headers to where the server says.
type roundTripper struct {
	base    *http.Transport
	headers map[string]string
	// The stream of what changes is opened again by the SDK, or is not, by the version of the
	// protocol. What changed in between is not reported.
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

// ownEvent begins the names of events that begin each stream of what changes. Without such an event
// the SDK ends the session once the stream was cut six times, which proxies do with idle ones.
const ownEvent = "reprise-"

// RoundTrip sends a request.
func (d *roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range d.headers {
		r.Header.Set(name, value)
	}
	_, ofCall := r.Context().Value(deliveryKey{}).(*delivery)
	if strings.HasPrefix(r.Header.Get("Last-Event-Id"), ownEvent) {
		r.Header.Del("Last-Event-Id")
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
	case resp.StatusCode/100 != 2 && r.Method == http.MethodGet: // an error in it would end the calls under way
		_ = resp.Body.Close()
		resp.Body = http.NoBody
	case resp.StatusCode/100 != 2 && status != forgotten && notifies(r): // nothing follows from it
		_ = resp.Body.Close()
		resp.StatusCode, resp.Status, resp.Body = http.StatusAccepted, "202 Accepted", http.NoBody
	case call != nil && status != forgotten && (kind != "text/event-stream" || resp.StatusCode/100 != 2):
		if err := whole(resp, kind); err != nil {
			return nil, err
		}
	case kind != "text/event-stream" || resp.StatusCode/100 != 2: // the SDK reads the whole of an error
		resp.Body = &bounded{resp.Body, maxMessage}
	case r.Method == http.MethodGet && !ofCall:
		d.opened()
		mark := fmt.Sprintf("id: %s%d\n\n", ownEvent, time.Now().UnixNano())
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(strings.NewReader(mark), resp.Body), resp.Body}
	case r.Header.Get("Mcp-Method") == "subscriptions/listen":
		resp.Body = &watched{resp.Body, d.hungUp}
	}
	return resp, nil
}

// notifies reports whether a request carries a notification, to which no answer is expected.
func notifies(r *http.Request) bool {
	if r.Method != http.MethodPost || r.GetBody == nil {
		return false
	}
	body, err := r.GetBody()
	if err != nil {
		return false
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxMessage))
	if err != nil {
		return false
	}
	m, err := jsonrpc.DecodeMessage(data)
	request, ok := m.(*jsonrpc.Request)
	return err == nil && ok && !request.IsCall()
}

// whole reads an answer that is no stream. An error is returned where it holds no message: the SDK would
// end the connection for it, and with it all other calls.
func whole(resp *http.Response, kind string) error {
	body, err := io.ReadAll(&bounded{resp.Body, maxMessage})
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	var m jsonrpc.Message
	if err == nil {
		m, err = jsonrpc.DecodeMessage(body)
	}
	answer, _ := m.(*jsonrpc.Response)
	switch {
	case resp.StatusCode/100 != 2 && (answer == nil || answer.Error == nil):
		return fmt.Errorf("HTTP %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	case err != nil:
		return fmt.Errorf("the answer cannot be read: %w", err)
	case resp.StatusCode/100 == 2 && kind != "application/json":
		return fmt.Errorf("the answer is of the type %q", kind)
	}
	return nil
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
func (d *roundTripper) CloseIdleConnections() { d.base.CloseIdleConnections() }

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
