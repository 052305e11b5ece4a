package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/tool"
)

// keyField is where a call carries its idempotency key, in _meta.
const keyField = "dev.reprise/idempotency-key"

// rejected is the SDK's own error for a request that its transport could not send, or did not
// get an answer to. A server may use its code.
const rejected = "rejected by transport"

// remote is a tool of a server.
type remote struct {
	server    *Server
	name      string // as the server has it
	spec      tool.Spec
	schema    *jsonschema.Resolved // nil: only the server can check arguments
	approveIf func(arguments json.RawMessage) (bool, error)
}

// Spec says what the tool is.
func (r *remote) Spec() tool.Spec { return r.spec }

// NeedsApproval checks the arguments and reports whether a call with them waits for a person.
func (r *remote) NeedsApproval(arguments json.RawMessage) (bool, error) {
	if err := r.validate(arguments); err != nil {
		return false, err
	}
	if r.approveIf != nil {
		return r.approveIf(arguments)
	}
	return r.spec.Approval == tool.Always, nil
}

func (r *remote) validate(arguments json.RawMessage) error {
	if r.schema != nil {
		return tool.Validate(r.schema, arguments)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &object); err != nil {
		return &tool.ArgumentError{Err: fmt.Errorf("no JSON object: %w", err)}
	}
	return nil
}

// Call has the server run the tool.
func (r *remote) Call(ctx context.Context, arguments json.RawMessage) (string, error) {
	if err := r.validate(arguments); err != nil {
		return "", err
	}
	result, err := r.call(ctx, arguments)
	if err != nil {
		return "", err
	}
	text := r.server.hidden.Replace(shown(result))
	switch {
	case result.NeedsInput():
		return "", errors.New("the tool asks for input, which an agent cannot give it")
	case !result.IsError:
		return text, nil
	case text == "":
		text = "the tool failed without a word"
	}
	return "", errors.New(text)
}

// call sends the call once more, over a new connection, if the server cannot have taken it because the
// old one had ended.
func (r *remote) call(ctx context.Context, arguments json.RawMessage) (*sdk.CallToolResult, error) {
	for again := false; ; again = true {
		l, err := r.server.connected(ctx)
		if err != nil {
			return nil, err
		}
		if !r.server.has(r.name) {
			return nil, fmt.Errorf("MCP server %s has no tool %s any more", r.server.config.Name, r.name)
		}
		var d delivery
		result, err := r.send(withDelivery(ctx, &d), l, arguments)
		if err == nil {
			return result, nil
		}
		if !again && unsent(err, d.Load()) {
			select {
			case <-l.ended:
				continue
			case <-ctx.Done():
			}
		}
		return nil, r.failure(ctx, l, err, d.Load())
	}
}

// unsent reports whether a call did not reach a server because the connection had ended.
func unsent(err error, delivered int32) bool {
	closed := errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, sdk.ErrSessionMissing)
	return errors.As(err, new(unsentError)) || delivered == forgotten || delivered == 0 && closed
}

// send sends the call and waits for its answer. It returns when ctx ends, even while the server
// does not read.
func (r *remote) send(ctx context.Context, l *line, arguments json.RawMessage) (*sdk.CallToolResult, error) {
	token := r.server.begin(func(text string) { tool.Progress(ctx, r.server.hidden.Replace(text)) })
	params := &sdk.CallToolParams{Name: r.name, Arguments: arguments, Meta: sdk.Meta{"progressToken": token}}
	if key := tool.Key(ctx); key != "" {
		params.Meta[keyField] = key
	}
	for name, value := range messages.TraceIn(ctx).Headers() { // whose names are the keys of MCP, too
		params.Meta[name] = value
	}
	var result *sdk.CallToolResult
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = guarded(func() error {
			result, err = l.session.CallTool(ctx, params)
			return err
		})
	}()
	select {
	case <-done:
		r.server.end(token, err)
		return result, err
	case <-ctx.Done():
		r.server.end(token, ctx.Err())
		return nil, ctx.Err()
	}
}

// failure is what the model reads of a call that has no result. Where the server may have run
// it all the same, and running it twice may hurt, it says so.
func (r *remote) failure(ctx context.Context, l *line, err error, delivered int32) error {
	name := r.server.config.Name
	var refusal *jsonrpc.Error
	var dial *net.OpError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &refusal) && refusal.Message != rejected:
		return fmt.Errorf("MCP server %s refused the call: %s", name, r.server.words(refusal))
	case delivered >= sent && errors.Is(err, sdk.ErrConnectionClosed): // which the SDK makes of two codes of servers
		_, said, _ := strings.Cut(r.server.words(err), `calling "tools/call": `)
		return fmt.Errorf("MCP server %s refused the call: %s", name, said)
	case delivered >= 400 && delivered < 500:
		return fmt.Errorf("MCP server %s refused the call: HTTP %d %s", name, delivered, http.StatusText(int(delivered)))
	case delivered >= 300 && delivered < 400, errors.As(err, &dial) && dial.Op == "dial", unsent(err, delivered):
		return fmt.Errorf("MCP server %s was not reached: %s", name, r.server.words(err))
	}
	err = fmt.Errorf("MCP server %s did not answer: %s", name, r.server.words(l.because(err)))
	if r.spec.OnUnknown == tool.Pause {
		return &tool.UnknownError{Err: err}
	}
	return err
}

func (s *Server) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tools {
		if t.Name == name {
			return true
		}
	}
	return false
}
