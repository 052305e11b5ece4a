// Package tool defines tools: functions that a model may call, with a name, typed arguments, and a rule
// for a call whose outcome is unknown. [New] makes one of a Go function. Package toolbox makes one
// of a program, package mcp those of an MCP server, and actors.AsTool one of another agent.
//
// # Guarantees
//
//   - Every tool has an [OnUnknown]. The zero value means [Pause].
//   - [Key] is the same in every attempt of one call, also after a crash and on
//     another node, and different for every other call.
//   - Arguments are checked against the schema before the function is called,
//     and before a person is asked to approve them.
package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/reprise-dev/reprise/messages"
)

// OnUnknown is what to do with a call when the node, not the tool, stopped before
// its result was stored. The zero value means Pause.
type OnUnknown = messages.OnUnknown

// The rules for a call whose outcome is unknown. With each of them, a call has a [Key].
const (
	ReadOnly  = messages.ReadOnly  // the tool only reads: run it again
	Rerun     = messages.Rerun     // run it again, with the same key
	Reconcile = messages.Reconcile // ask the tool what became of the key
	Pause     = messages.Pause     // pause the turn: a person decides
)

// Tool is something that a model may call.
type Tool interface {
	// Spec returns the description of the tool. It is always the same.
	Spec() Spec
	// Call runs the tool. arguments is JSON that fits the schema. The result is
	// text for the model; an error's text is too. Call returns soon after ctx
	// ends. Safe for concurrent use.
	Call(ctx context.Context, arguments json.RawMessage) (string, error)
}

// Reconciler is a Tool with OnUnknown Reconcile, which can look up the outcome of a call.
type Reconciler interface {
	// Reconcile returns the outcome of the call with this key: its result and Done if it had its
	// effect; NotDone if it certainly had none, so that it may run; Unsure if only a person can
	// find out. An error means Unsure.
	Reconcile(ctx context.Context, key string) (string, Found, error)
}

// Reconciles reports whether the tool can look up the outcome of a call: it is a [Reconciler], and one
// from [New] has a function of [Typed.ReconcileWith].
func Reconciles(t Tool) bool {
	_, is := t.(Reconciler)
	typed, ok := t.(interface{ reconciles() bool })
	return is && (!ok || typed.reconciles())
}

// Source is a set of tools that may change while agents run.
type Source interface {
	// Tools returns the current tools, and a channel that is closed when they change. It does not
	// block. Safe for concurrent use.
	Tools() (now []Tool, changed <-chan struct{})
}

// UnknownError is returned by a call that may or may not have had its effect, for example because a
// server ended before it answered.
type UnknownError struct{ Err error }

// Error returns the cause, and that the outcome is unknown.
func (e *UnknownError) Error() string {
	return e.Err.Error() + ": it is not known whether the call had its effect"
}

// Unwrap returns the cause.
func (e *UnknownError) Unwrap() error { return e.Err }

// Found is the outcome of a call as a Reconciler has found it.
type Found int

// The outcomes. The zero value is Unsure.
const (
	Unsure Found = iota
	Done
	NotDone
)

// Approval is which calls of a tool wait for a person's approval.
type Approval string

// The approvals. The zero value is Never.
const (
	Never  Approval = ""
	Always Approval = "always"
	Asked  Approval = "asked" // those that Gated says so of
)

// Gated is a Tool of which some calls need a person's approval.
type Gated interface {
	// NeedsApproval reports whether a call with these arguments needs approval. With an
	// *ArgumentError the call fails; any other error, and a panic, counts as yes. Safe for
	// concurrent use.
	NeedsApproval(arguments json.RawMessage) (bool, error)
}

// Spec describes a tool.
type Spec struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Parameters is the JSON schema of the arguments: an object.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	OnUnknown  OnUnknown       `json:"on_unknown,omitempty"`
	// Timeout ends a call that takes longer. Zero: DefaultTimeout.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Approval is which calls wait for a person. A tool with Asked is Gated.
	Approval Approval `json:"approval,omitempty"`
	// ApproveRepeats requires approval, whatever Approval is, for a call with the arguments of an
	// earlier one of the same turn. OnUnknown is Pause or Rerun.
	ApproveRepeats bool `json:"approve_repeats,omitempty"`
	// ApprovalTimeout is after how long a call without a decision is denied. Zero: that of the
	// definition.
	ApprovalTimeout time.Duration `json:"approval_timeout,omitempty"`
}

// DefaultTimeout is how long a call may take if Spec.Timeout is zero.
const DefaultTimeout = 2 * time.Minute

type callKey struct{}

// Call is the call that a tool runs for.
type Call struct {
	Agent messages.AgentID
	Turn  messages.TurnID
	ID    messages.CallID
	// Key is the idempotency key.
	Key     string
	Attempt int
}

// WithCall returns a context for a tool that runs for c, as in a test of the tool.
func WithCall(ctx context.Context, c Call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// CallOf returns the call that a tool runs for. It is zero outside of one.
func CallOf(ctx context.Context) Call {
	c, _ := ctx.Value(callKey{}).(Call)
	return c
}

// Key returns the idempotency key of the call that a tool runs for. It is empty outside of one.
func Key(ctx context.Context) string { return CallOf(ctx).Key }

type progressKey struct{}

// WithProgress returns a context in which [Progress] calls show.
func WithProgress(ctx context.Context, show func(text string)) context.Context {
	return context.WithValue(ctx, progressKey{}, show)
}

// Progress streams a text about the progress of a call to clients that follow the agent. It is not
// stored. Outside of a call it does nothing.
func Progress(ctx context.Context, text string) {
	if show, ok := ctx.Value(progressKey{}).(func(string)); ok {
		show(text)
	}
}

// Typed is a Tool that calls a Go function with a typed argument; see [New]. Its methods that change
// something return a changed copy.
type Typed[A any] struct {
	spec      Spec
	schema    *jsonschema.Resolved
	fn        func(context.Context, A) (string, error)
	reconcile func(context.Context, string) (string, Found, error)
	approve   func(A) bool // of approval Asked
}

// New returns a tool that calls fn. The schema of its arguments comes from A, a struct: json tags name
// the fields, jsonschema tags describe them, and fields without omitempty are required. The model
// reads the text that fn returns, or that of its error. fn must be safe for concurrent use, and
// must return soon after its context ends. New panics if A is no struct or has no schema.
func New[A any](name, description string, onUnknown OnUnknown, fn func(context.Context, A) (string, error)) *Typed[A] {
	schema, err := jsonschema.For[A](&jsonschema.ForOptions{TypeSchemas: typeSchemas()})
	if err != nil {
		panic(fmt.Sprintf("tool %s: its argument type has no JSON schema: %v", name, err))
	}
	if schema.Type != "object" {
		panic(fmt.Sprintf("tool %s: its argument type %s is no struct", name, reflect.TypeFor[A]()))
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", name, err))
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", name, err))
	}
	return &Typed[A]{
		spec:   Spec{Name: name, Description: description, Parameters: raw, OnUnknown: onUnknown},
		schema: resolved,
		fn:     fn,
	}
}

// Spec returns the description of the tool.
func (t *Typed[A]) Spec() Spec { return t.spec }

// Timeout returns the tool with a time limit for each call.
func (t *Typed[A]) Timeout(d time.Duration) *Typed[A] {
	c := *t
	c.spec.Timeout = d
	return &c
}

// ApproveAlways returns the tool with a person's approval before each call.
func (t *Typed[A]) ApproveAlways() *Typed[A] {
	c := *t
	c.spec.Approval, c.approve = Always, nil
	return &c
}

// ApproveIf returns the tool with a person's approval before calls for which fn returns true. fn must be
// quick, have no effects and be safe for concurrent use. If it panics, the call waits for approval.
// ApproveIf panics if fn is nil.
func (t *Typed[A]) ApproveIf(fn func(A) bool) *Typed[A] {
	if fn == nil {
		panic(fmt.Sprintf("tool %s: ApproveIf has no function; ApproveAlways needs none", t.spec.Name))
	}
	c := *t
	c.spec.Approval, c.approve = Asked, fn
	return &c
}

// ApproveRepeats returns the tool with a person's approval also before a call with the arguments of an
// earlier one of the same turn. It is for tools with OnUnknown Pause or Rerun.
func (t *Typed[A]) ApproveRepeats() *Typed[A] {
	c := *t
	c.spec.ApproveRepeats = true
	return &c
}

// ApprovalTimeout returns the tool with a time after which a call without a decision is denied. Zero:
// that of the definition.
func (t *Typed[A]) ApprovalTimeout(d time.Duration) *Typed[A] {
	c := *t
	c.spec.ApprovalTimeout = d
	return &c
}

// ReconcileWith returns the tool with OnUnknown Reconcile and a function that looks up the outcome of the
// call with a key; see [Reconciler].
func (t *Typed[A]) ReconcileWith(fn func(ctx context.Context, key string) (string, Found, error)) *Typed[A] {
	c := *t
	c.spec.OnUnknown, c.reconcile = Reconcile, fn
	return &c
}

func (t *Typed[A]) reconciles() bool { return t.reconcile != nil }

// Reconcile calls the function that was given to ReconcileWith. Without one it returns Unsure.
func (t *Typed[A]) Reconcile(ctx context.Context, key string) (string, Found, error) {
	if t.reconcile == nil {
		return "", Unsure, nil
	}
	return t.reconcile(ctx, key)
}

// Call checks the arguments and calls the function. If they do not fit, it returns an *ArgumentError.
func (t *Typed[A]) Call(ctx context.Context, arguments json.RawMessage) (string, error) {
	a, err := t.read(arguments)
	if err != nil {
		return "", err
	}
	return t.fn(ctx, a)
}

// NeedsApproval checks the arguments, whatever the approval, and then reports
// whether a call with them waits for a person. Its errors are *ArgumentError.
func (t *Typed[A]) NeedsApproval(arguments json.RawMessage) (bool, error) {
	a, err := t.read(arguments)
	switch {
	case err != nil:
		return false, err
	case t.approve != nil:
		return t.approve(a), nil
	}
	return t.spec.Approval == Always, nil
}

// read checks the arguments and decodes them into their type.
func (t *Typed[A]) read(arguments json.RawMessage) (A, error) {
	var a A
	if err := Validate(t.schema, arguments); err != nil {
		return a, err
	}
	if err := decode(arguments, &a); err != nil {
		return a, &ArgumentError{err}
	}
	return a, nil
}
