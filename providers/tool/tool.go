// Package tool holds the contract of a tool: what it is called, what it takes,
// and what to do with a call whose outcome is unknown.
//
// # Guarantees
//
//   - Every tool has an [OnUnknown]; its zero value is the careful one, [Pause].
//   - [Key] is the same in every attempt of one call, also after a crash and on
//     another node, and different for every other call.
//   - Arguments are checked against the schema before the function sees them,
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

// What to do. Every call has a [Key], whatever its tool wants.
const (
	ReadOnly  = messages.ReadOnly  // the tool only reads: run it again
	Rerun     = messages.Rerun     // run it again, with the same key
	Reconcile = messages.Reconcile // ask the tool what became of the key
	Pause     = messages.Pause     // pause the turn: a person decides
)

// Tool is something an agent can do.
type Tool interface {
	// Spec says what the tool is. It never changes.
	Spec() Spec
	// Call runs the tool. arguments is JSON that fits the schema. The result is
	// text for the model; an error's text is too. Call returns soon after ctx
	// ends. Safe for concurrent use.
	Call(ctx context.Context, arguments json.RawMessage) (string, error)
}

// Reconciler is a Tool with OnUnknown Reconcile: it reports what became of a call.
type Reconciler interface {
	// Reconcile tells what became of the call with this key: its result and
	// Done; NotDone if it surely had no effect, so that it may run; Unsure if
	// only a person can tell. An error means Unsure.
	Reconcile(ctx context.Context, key string) (string, Found, error)
}

// Source is a set of tools that may change while agents run.
type Source interface {
	// Tools returns the tools there are now, and a channel that is closed when that is no
	// longer so. It does not block. Safe for concurrent use.
	Tools() (now []Tool, changed <-chan struct{})
}

// UnknownError means that a call may or may not have had its effect: what became of it
// was lost on the way, as when a server ends before it has answered.
type UnknownError struct{ Err error }

// Error returns the cause, and what it leaves open.
func (e *UnknownError) Error() string {
	return e.Err.Error() + ": it is not known whether the call had its effect"
}

// Unwrap returns the cause.
func (e *UnknownError) Unwrap() error { return e.Err }

// Found is what a Reconciler knows.
type Found int

// What a Reconciler can know.
const (
	Unsure Found = iota
	Done
	NotDone
)

// Approval says which calls of a tool wait for a person's approval.
type Approval string

// The approvals. The zero value is Never.
const (
	Never  Approval = ""
	Always Approval = "always"
	Asked  Approval = "asked" // those that Gated says so of
)

// Gated is a Tool some of whose calls want a person's approval.
type Gated interface {
	// NeedsApproval reports whether a call with these arguments wants approval. An
	// *ArgumentError says that the call cannot run at all; any other error, and a
	// panic, counts as yes. Safe for concurrent use.
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
	// Approval says which calls wait for a person. A tool that says Asked is
	// Gated.
	Approval Approval `json:"approval,omitempty"`
	// ApproveRepeats wants approval, whatever Approval says, for a call with the
	// arguments of another one in the same turn. OnUnknown is Pause or Rerun.
	ApproveRepeats bool `json:"approve_repeats,omitempty"`
	// ApprovalTimeout denies a call that was not decided. Zero: the
	// definition's.
	ApprovalTimeout time.Duration `json:"approval_timeout,omitempty"`
}

// DefaultTimeout is how long a call may take when its tool does not say.
const DefaultTimeout = 2 * time.Minute

type callKey struct{}

// Call is what a running tool may know about its call.
type Call struct {
	Agent messages.AgentID
	Turn  messages.TurnID
	ID    messages.CallID
	// Key is the idempotency key.
	Key     string
	Attempt int
}

// WithCall puts a call into the context that its tool will see.
func WithCall(ctx context.Context, c Call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// CallOf is the call that a tool runs for; zero outside of one.
func CallOf(ctx context.Context) Call {
	c, _ := ctx.Value(callKey{}).(Call)
	return c
}

// Key is the idempotency key of the call that a tool runs for; empty outside
// of one.
func Key(ctx context.Context) string { return CallOf(ctx).Key }

type progressKey struct{}

// WithProgress puts what shows the progress of a call into the context that its tool will see.
func WithProgress(ctx context.Context, show func(text string)) context.Context {
	return context.WithValue(ctx, progressKey{}, show)
}

// Progress shows those who follow the agent how far the call is that a tool runs for. It is not
// kept. Outside of a call it does nothing.
func Progress(ctx context.Context, text string) {
	if show, ok := ctx.Value(progressKey{}).(func(string)); ok {
		show(text)
	}
}

// Typed is a Tool made of a plain function with a typed argument.
type Typed[A any] struct {
	spec      Spec
	schema    *jsonschema.Resolved
	fn        func(context.Context, A) (string, error)
	reconcile func(context.Context, string) (string, Found, error)
	approve   func(A) bool // of approval Asked
}

// New makes a tool of a function. The schema of its arguments comes from A, a
// struct: json tags name the fields, jsonschema tags describe them, fields
// without omitempty are required. It panics if A has no schema or is no
// struct, which is a mistake in the program and not in its input.
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

// Spec says what the tool is.
func (t *Typed[A]) Spec() Spec { return t.spec }

// Timeout is the same tool with a time limit for each call.
func (t *Typed[A]) Timeout(d time.Duration) *Typed[A] {
	c := *t
	c.spec.Timeout = d
	return &c
}

// ApproveAlways is the same tool with a person's approval before each call.
func (t *Typed[A]) ApproveAlways() *Typed[A] {
	c := *t
	c.spec.Approval, c.approve = Always, nil
	return &c
}

// ApproveIf is the same tool with a person's approval before those calls that
// fn says true of. fn is a quick look at the arguments: it has no effect and may
// be called from many goroutines; if it panics, the call wants approval.
// ApproveIf itself panics without a function.
func (t *Typed[A]) ApproveIf(fn func(A) bool) *Typed[A] {
	if fn == nil {
		panic(fmt.Sprintf("tool %s: ApproveIf has no function; ApproveAlways needs none", t.spec.Name))
	}
	c := *t
	c.spec.Approval, c.approve = Asked, fn
	return &c
}

// ApproveRepeats is the same tool with a person's approval also before a call with the
// arguments of another one in the same turn. It is for tools with OnUnknown Pause or Rerun.
func (t *Typed[A]) ApproveRepeats() *Typed[A] {
	c := *t
	c.spec.ApproveRepeats = true
	return &c
}

// ApprovalTimeout is the same tool, whose calls are denied when they were not
// decided for so long. Zero: the definition's.
func (t *Typed[A]) ApprovalTimeout(d time.Duration) *Typed[A] {
	c := *t
	c.spec.ApprovalTimeout = d
	return &c
}

// ReconcileWith is the same tool with OnUnknown Reconcile and the function that
// reports what became of a call.
func (t *Typed[A]) ReconcileWith(fn func(ctx context.Context, key string) (string, Found, error)) *Typed[A] {
	c := *t
	c.spec.OnUnknown, c.reconcile = Reconcile, fn
	return &c
}

// Reconcile asks the function given to ReconcileWith; without one it is Unsure.
func (t *Typed[A]) Reconcile(ctx context.Context, key string) (string, Found, error) {
	if t.reconcile == nil {
		return "", Unsure, nil
	}
	return t.reconcile(ctx, key)
}

// Call checks the arguments and runs the function. A misfit is an *ArgumentError.
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

// read checks the arguments and gives them their type.
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
