// Package providers defines how models are called. Its folders have the providers (openai, anthropic,
// demo, scripted) and the tools (tool, toolbox, mcp).
//
// # Guarantees
//
//   - A provider never stores, logs or shows a key; errors carry none.
//   - A failed call is an [Error] that reports whether trying again can help.
//   - Providers do not retry: each attempt is a fact of the agent that makes it.
package providers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Provider reaches the models of one vendor or server.
type Provider interface {
	// Generate calls a model once and returns its whole answer. While it
	// streams, emit is called with each piece, in order and from one goroutine;
	// emit never blocks for long. Generate returns soon after ctx ends. Its
	// errors are *Error. Safe for concurrent use.
	//
	// What it keeps of the answer it adds to memory.Of(ctx), from package
	// providers/memory, as it reads: the node bounds the sum of all answers by that.
	Generate(ctx context.Context, r Request, emit func(Delta)) (Response, error)
}

// Func is a function that is a Provider.
type Func func(ctx context.Context, r Request, emit func(Delta)) (Response, error)

// Generate calls f.
func (f Func) Generate(ctx context.Context, r Request, emit func(Delta)) (Response, error) {
	return f(ctx, r, emit)
}

// Set holds providers by the name that stands before the slash of a model.
type Set map[string]Provider

// Split returns the provider of a model, and its name without the provider: "openai/gpt-5.5" is the
// model "gpt-5.5" of the provider "openai".
func (s Set) Split(model string) (Provider, string, error) {
	name, rest, ok := strings.Cut(model, "/")
	if !ok || rest == "" {
		return nil, "", fmt.Errorf("model %q: write provider/model, such as openai/gpt-5.5", model)
	}
	p := s[name]
	if p == nil {
		return nil, "", fmt.Errorf("model %q: no provider is named %q", model, name)
	}
	return p, rest, nil
}

// Request is one model call. The receiver must not change what it points to.
type Request struct {
	// Model is the name without the provider.
	Model string
	// Instructions come before everything else. Empty: none.
	Instructions string
	// Items is the history, oldest first; every function_call has its output.
	Items []messages.Item
	Tools []ToolSpec
	// ToolChoice is required (some tool), none, or the name of the one tool that
	// must be called. Empty: the model chooses.
	ToolChoice string
	// Agent and Call are those that the call is made for, for logs and scripted models.
	Agent messages.AgentID
	Call  messages.CallID
	// Settings are the definition's; zero values leave the provider's.
	Settings Settings
}

// ToolSpec is the description of a tool for a model.
type ToolSpec struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Parameters is the JSON schema of the arguments.
	Parameters []byte `json:"parameters"`
}

// Delta is a piece of an answer on its way.
type Delta struct {
	// Kind is text or reasoning.
	Kind DeltaKind
	// Text is empty for activity that is not shown, such as the arguments of a call.
	Text string
}

// DeltaKind is what a piece belongs to.
type DeltaKind string

// The kinds of delta.
const (
	DeltaText      DeltaKind = "text"
	DeltaReasoning DeltaKind = "reasoning"
)

// Response is a model's whole answer.
type Response struct {
	// Items are messages, refusals, reasoning and calls, in order.
	Items []messages.Item
	// Finish is why the answer ended: one of the Finish constants of package messages, or
	// another word of the provider.
	Finish string
	// Model is the one that answered, as the provider names it.
	Model string
	Usage messages.Usage
}

// ErrorKind is why a model call failed, a word to branch on.
type ErrorKind = messages.ModelFailure

// The kinds of error.
const (
	RateLimit     = messages.ModelFailureRateLimit     // 429
	Overloaded    = messages.ModelFailureOverloaded    // 5xx
	Network       = messages.ModelFailureNetwork       // no answer, or one cut off
	Auth          = messages.ModelFailureAuth          // 401, 403
	NotFound      = messages.ModelFailureNotFound      // no such model, or no API at that address
	BadRequest    = messages.ModelFailureBadRequest    // the request itself was refused
	ContextLength = messages.ModelFailureContextLength // the request is longer than the model takes
	ContentFilter = messages.ModelFailureContentFilter // a filter of the server refused the content
	BadAnswer     = messages.ModelFailureBadAnswer     // an answer that cannot be read
	Redirected    = messages.ModelFailureRedirected    // an HTTP redirect, which is not followed
	Canceled      = messages.ModelFailureCanceled      // ctx ended
	Unsupported   = messages.ModelFailureUnsupported   // the provider cannot carry the request
	NoMemory      = messages.ModelFailureNoMemory      // the node has no memory for the payload
)

// Error is a failed model call.
type Error struct {
	Kind    ErrorKind
	Status  int // HTTP status; 0 where there was none
	Message string
	// Temporary reports whether the same call may succeed later.
	Temporary bool
	// RetryAfter is what the server asked for. Zero: nothing.
	RetryAfter time.Duration
	// Usage is what the failed attempt consumed, where known.
	Usage messages.Usage
	Err   error
}

// Error is the kind and the message.
func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s (HTTP %d): %s", e.Kind, e.Status, e.Message)
	}
	return string(e.Kind) + ": " + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// AsError is err as an *Error; one that is none is a permanent BadAnswer, and
// the end of a context is Canceled.
func AsError(err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &Error{Kind: Canceled, Message: err.Error(), Err: err}
	}
	return &Error{Kind: BadAnswer, Message: err.Error(), Err: err}
}
