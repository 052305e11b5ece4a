package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reprise-dev/reprise/providers/mcp"
	"github.com/reprise-dev/reprise/providers/tool"
)

// The test program is also the server, and a node that is killed, as these variables say.
const (
	roleVariable = "MCP_TEST_ROLE"
	lifeVariable = "MCP_TEST_LIFE" // where a server holds a connection open while it lives
)

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if at := os.Getenv(lifeVariable); at != "" && role != "node" && role != "family" {
		if _, err := net.Dial("tcp", at); err != nil {
			os.Exit(7)
		}
	}
	switch role {
	case "":
		os.Exit(m.Run())
	case "node":
		node()
	case "holder": // holds the output of its parent open
		for range time.Tick(time.Hour) {
		}
	case "family":
		holder := exec.Command(os.Args[0])
		holder.Env, holder.Stdout = append(os.Environ(), roleVariable+"=holder"), os.Stdout
		if holder.Start() != nil {
			os.Exit(6)
		}
	case "broken":
		fmt.Fprintln(os.Stderr, "no license found")
		os.Exit(9)
	}
	_ = newThere().server().Run(context.Background(), &sdk.StdioTransport{})
	if role == "deaf" { // keeps running though its input has ended
		for range time.Tick(time.Hour) {
		}
	}
}

// there is what a server does, and what a test sees of it.
type there struct {
	started, cancelled chan struct{}
	stateless          bool           // speaks the newest version of the protocol, which has no sessions
	events             sdk.EventStore // nil: streams cannot be resumed
	release            chan struct{}  // ends the slow tool
	grow               func()
	site               *httptest.Server
}

func newThere() *there {
	return &there{started: make(chan struct{}, 10), cancelled: make(chan struct{}, 10)}
}

type sum struct {
	A int `json:"a"`
	B int `json:"b"`
}

type nothing struct{}

func says(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

func (h *there) server() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "there", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "add", Description: "adds", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *sdk.CallToolRequest, a sum) (*sdk.CallToolResult, any, error) {
			return says(fmt.Sprint(a.A + a.B)), nil, nil
		})
	add := func(name string, hints *sdk.ToolAnnotations, run func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
		sdk.AddTool(s, &sdk.Tool{Name: name, Annotations: hints}, func(ctx context.Context, r *sdk.CallToolRequest, _ nothing) (*sdk.CallToolResult, any, error) {
			result, err := run(ctx, r)
			return result, nil, err
		})
	}
	add("set", &sdk.ToolAnnotations{IdempotentHint: true, DestructiveHint: new(bool)}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		m := r.Params.Meta
		return says(fmt.Sprint("key ", m["dev.reprise/idempotency-key"], " trace ", m["traceparent"], " ", m["tracestate"])), nil
	})
	add("wipe", &sdk.ToolAnnotations{IdempotentHint: true}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, errors.New("no disk, and the key is " + os.Getenv("API_KEY"))
	})
	add("leak", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return says("the key is " + os.Getenv("API_KEY")), nil
	})
	described := func(name, description string) {
		s.AddTool(&sdk.Tool{Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object","title":"` + os.Getenv("API_KEY") + `"}`)}, nil)
	}
	described("secretive", "the key is "+os.Getenv("API_KEY"))
	described("verbose", strings.Repeat("a", 64<<10))
	add("picture", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: map[string]any{"n": 1}, Content: []sdk.Content{
			&sdk.ImageContent{MIMEType: "image/png", Data: []byte("1234")}, &sdk.ResourceLink{Name: "log", URI: "file:///log"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///b", Blob: []byte("12")}},
		}}, nil
	})
	add("slow", nil, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Total: 4})
		h.started <- struct{}{}
		select {
		case <-ctx.Done():
			h.cancelled <- struct{}{}
			return nil, ctx.Err()
		case <-h.release:
			return says("released"), nil
		}
	})
	add("stopped", nil, func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		<-h.cancelled
		return says("the slow one was cancelled"), nil
	})
	die := func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "out of cheese, and the key is "+os.Getenv("API_KEY"))
		os.Exit(3)
		return nil, nil
	}
	add("odd_line", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		fmt.Println(`{"jsonrpc":"2.0"}`)
		return says("strayed"), nil
	})
	add("large", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return says(strings.Repeat("x", 16<<20)), nil
	})
	add("die", nil, die)
	add("die_reading", &sdk.ToolAnnotations{ReadOnlyHint: true}, die)
	add("tattle", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: -32000, Message: "not with " + os.Getenv("API_KEY")}
	})
	for _, code := range []int64{-32000, -32003, -32004, -32005} {
		add(fmt.Sprint("refuse", code), nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return nil, &jsonrpc.Error{Code: code, Message: "closed on Sundays"}
		})
	}
	add("env", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		names := os.Environ()
		for i, e := range names {
			names[i], _, _ = strings.Cut(e, "=")
		}
		slices.Sort(names)
		return says(strings.Join(names, " ")), nil
	})
	h.grow = func() {
		add("grown", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return says("tall"), nil })
		s.RemoveTools("set")
	}
	add("grow", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		h.grow()
		return says("growing"), nil
	})
	for _, name := range []string{"same.name", "same name", "odd/näme", strings.Repeat("long", 20)} {
		add(name, nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return says("called " + name), nil
		})
	}
	return s
}

// program is a server in a process of its own.
func program(role string, env ...string) mcp.Config {
	return mcp.Config{Name: "there", Command: []string{os.Args[0]}, Env: append(env, roleVariable+"="+role)}
}

// web is a server that is reached over HTTP, behind what wrap makes of it.
func web(t *testing.T, h *there, wrap ...func(http.Handler) http.Handler) mcp.Config {
	t.Helper()
	s := h.server()
	var handler http.Handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: h.stateless, EventStore: h.events})
	for _, w := range wrap {
		handler = w(handler)
	}
	site := httptest.NewServer(handler)
	t.Cleanup(func() { site.CloseClientConnections(); site.Close() })
	h.site = site
	return mcp.Config{Name: "there", URL: site.URL}
}

// connect is a server that ends with the test.
func connect(t *testing.T, c mcp.Config) *mcp.Server {
	t.Helper()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := mcp.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// ready is connect for a server that is to be there.
func ready(t *testing.T, c mcp.Config) *mcp.Server {
	t.Helper()
	s := connect(t, c)
	if err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func source(t *testing.T, s *mcp.Server, v mcp.Selection) tool.Source {
	t.Helper()
	src, err := s.Select(v)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// tools are those of a server now, by name.
func tools(t *testing.T, s *mcp.Server, v ...mcp.Selection) map[string]tool.Tool {
	t.Helper()
	now, _ := source(t, s, append(v, mcp.Selection{})[0]).Tools()
	byName := make(map[string]tool.Tool)
	for _, made := range now {
		byName[made.Spec().Name] = made
	}
	return byName
}

// call calls a tool and returns its result or error as a text.
func call(ctx context.Context, made tool.Tool, arguments string) string {
	got, err := made.Call(ctx, json.RawMessage(arguments))
	if err != nil {
		return "error: " + err.Error()
	}
	return got
}

// life has a server hold a connection open while it lives.
type life struct {
	t      *testing.T
	listen net.Listener
}

func newLife(t *testing.T) *life {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return &life{t, l}
}

func (l *life) env() string { return lifeVariable + "=" + l.listen.Addr().String() }

// begun waits until a process lives, and returns what waits until it does not.
func (l *life) begun() (ended func()) {
	l.t.Helper()
	conn, err := l.listen.Accept()
	if err != nil {
		l.t.Fatal(err)
	}
	return func() {
		l.t.Helper()
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			l.t.Fatal("the process still lives")
		}
	}
}
