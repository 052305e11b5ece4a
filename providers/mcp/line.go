package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxMessage is the largest message that is read of a server, in bytes.
const maxMessage = 16 << 20

// olderVersion is spoken to a server that did not answer in its time. The SDK begins newer ones with a
// request that a server of an older one need not answer.
const olderVersion = "2025-11-25"

// closing is how long a connection may take to end in order.
const closing = 2 * time.Second

// line is one connection to a server.
type line struct {
	session *sdk.ClientSession
	program *program      // nil: it is reached over HTTP
	ended   chan struct{} // closed when nothing comes from the server any more
	err     error         // why, once ended is closed; nil: not known
}

// dial starts or reaches the server.
func (s *Server) dial(ctx context.Context) (*line, error) {
	l := &line{ended: make(chan struct{})}
	hungUp := make(chan struct{})
	web := &http.Client{Transport: &roundTripper{s.web, s.config.Headers, func() { note(s.listed) }, sync.OnceFunc(func() { close(hungUp) })}}
	var transport sdk.Transport = &sdk.StreamableClientTransport{Endpoint: s.config.URL, HTTPClient: web, MaxEventSize: maxMessage}
	if s.config.URL == "" {
		var err error
		if l.program, err = start(s.config); err != nil {
			return nil, err
		}
		transport = noting{&sdk.IOTransport{Reader: l.program.stdout, Writer: l.program, MaxLineLength: maxMessage}}
	}
	var err error
	options := new(sdk.ClientSessionOptions)
	if s.older {
		options.ProtocolVersion = olderVersion
	}
	err = guarded(func() error {
		l.session, err = s.client().Connect(ctx, transport, options)
		return err
	})
	if err != nil {
		s.older = ctx.Err() != nil && !s.older
		err = l.because(err)
		l.close()
		return nil, err
	}
	go func() {
		defer close(l.ended)
		over := make(chan error, 1)
		go func() { over <- l.session.Wait() }()
		select {
		case l.err = <-over:
		case <-hungUp:
		case <-l.exited(): // what it started may hold its output open
		}
	}()
	return l, nil
}

// noting is the transport to a program. Its connections note that a call is sent.
type noting struct{ sdk.Transport }

// Connect begins a connection.
func (n noting) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := n.Transport.Connect(ctx)
	return noted{c}, err
}

type noted struct{ sdk.Connection }

// Read returns the next message. Its error is never one that a server can answer with.
func (n noted) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := n.Connection.Read(ctx)
	if err != nil && !ending(err) {
		err = fmt.Errorf("it wrote what is no message: %v", err)
	}
	return m, err
}

// ending reports whether an error means that a program has closed its output or does not read its
// input.
func ending(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) || errors.Is(err, sdk.ErrConnectionClosed) || errors.As(err, new(unsentError))
}

// Write sends a message.
func (n noted) Write(ctx context.Context, m jsonrpc.Message) error {
	sending(ctx)
	return n.Connection.Write(ctx, m)
}

func (s *Server) client() *sdk.Client {
	c := sdk.NewClient(&sdk.Implementation{Name: "reprise", Version: "1"}, &sdk.ClientOptions{
		Capabilities:           &sdk.ClientCapabilities{}, // nothing is done for the server
		MultiRoundTrip:         &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { note(s.listed) },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			token, _ := r.Params.ProgressToken.(string)
			s.mu.Lock()
			show := s.shows[token]
			s.mu.Unlock()
			if show != nil {
				show(progress(r.Params))
			}
		},
	})
	c.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (result sdk.Result, err error) {
			err = guarded(func() error {
				result, err = next(ctx, method, r)
				return err
			})
			return result, err
		}
	})
	return c
}

// guarded calls f, which reads what a server wrote. A panic of it, which the SDK has for some messages,
// is an error.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("what it wrote cannot be read: %v", p)
		}
	}()
	return f()
}

func progress(p *sdk.ProgressNotificationParams) string {
	switch {
	case p.Message != "":
		return p.Message
	case p.Total > 0:
		return fmt.Sprintf("%g of %g", p.Progress, p.Total)
	}
	return fmt.Sprintf("%g", p.Progress)
}

// exited is closed when the program has ended; nil if there is none.
func (l *line) exited() <-chan struct{} {
	if l.program == nil {
		return nil
	}
	return l.program.exited
}

func (l *line) over() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// why is the reason for which the connection has ended.
func (l *line) why() error {
	switch {
	case l.program == nil:
		return errors.New("it has ended the connection")
	case l.err != nil:
		return l.because(l.err)
	}
	return l.program.why()
}

// because is err, or the end of the program if that is what it came of.
func (l *line) because(err error) error {
	if l.program != nil && ending(err) {
		return l.program.why()
	}
	return err
}

// close ends the connection: a program first, so that no call waits for it.
func (l *line) close() {
	if l.program != nil {
		l.program.stop()
	}
	if l.session == nil {
		return
	}
	closed := make(chan struct{})
	go func() { defer close(closed); _ = l.session.Close() }()
	select {
	case <-closed:
	case <-time.After(closing): // a call still waits for an answer, as long as it may
	}
}

// words is an error without secrets, and without the address, which may be one.
func (s *Server) words(err error) string {
	text := err.Error()
	if at := new(url.Error); errors.As(err, &at) {
		text = strings.ReplaceAll(text, at.Error(), at.Err.Error())
	}
	return s.hidden.Replace(text)
}
