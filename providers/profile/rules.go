package profile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Rules are the rules of requests to a server. An empty field leaves the rule to the rules
// behind it (see [For]); plain has a value for each.
type Rules struct {
	// API is the API of requests: Chat (Chat Completions) or Responses.
	API Value
	// TokenLimit is the member that limits the tokens of an answer.
	TokenLimit Value
	// StreamUsage is Yes if stream_options asks for the usage of a streamed answer.
	StreamUsage Value
	// Effort is the member of the reasoning effort; with a dot, a member of a member.
	Effort Value
	// Seed is the member of the seed.
	Seed Value
	// Reasoning is which reasoning goes back to the model that wrote it, as text: None, that
	// of the current Turn (since the last user message), or All.
	Reasoning Value
	// ReasoningIn is the member of an assistant message that holds its reasoning. Content
	// means thinking parts of its content.
	ReasoningIn Value
	// ReasoningRequired is Yes if every assistant message has that member, empty if need be.
	ReasoningRequired Value
	// CallIDs is which ids of tool calls are accepted: Any, Word (at most 40 letters, digits,
	// dashes and underscores) or Nine (letters and digits). Others are rewritten.
	CallIDs Value
	// Calls is how many tool calls an assistant message may have: Any or One.
	Calls Value
	// Tools is AsText if tool calls and their results are written as text, because there are
	// no messages for them, else Any.
	Tools Value
	// System is where system messages may stand: Anywhere, First (one, before all others) or
	// Nowhere. Elsewhere their text becomes that of a user.
	System Value
	// Notes is the role of the runtime's notes: System, Developer or User.
	Notes Value
	// Roles is Alternate if user and assistant must take turns, else Any.
	Roles Value
	// AfterResults is Assistant if only an assistant message may follow the results of calls,
	// else Any.
	AfterResults Value
	// Content is the content beside tool calls where the model wrote none: Omit, Null or
	// Empty. AsReasoning moves content beside tool calls to the reasoning.
	Content Value
	// Unsigned is where the thought signature of calls that another model made stands, so
	// that Gemini accepts them: None, ExtraContent or ReasoningDetails.
	Unsigned Value
	// Output is what counts as output tokens: Completion for completion_tokens alone, or Total
	// for what total_tokens has beyond the prompt, if that is more.
	Output Value
	// Key is the header of the API key.
	Key Value
	// Encrypted is Yes if the Responses API is asked for the encrypted content of reasoning,
	// without which reasoning that the server has not stored cannot go back.
	Encrypted Value
	// Items is Whole if the items of the Responses API go back as they came, or Rewritten if
	// messages and tool calls go back without ids, and reasoning does not.
	Items Value
	// Refused are settings that the server refuses or ignores, by their names in a definition.
	Refused []string
	// Echo are members of an answer, and of its tool calls, that go back unchanged.
	Echo []string
}

// Value is the value of a rule: one of the constants, or the name of a member.
type Value string

// The values of rules.
const (
	Chat             Value = "chat"
	Responses        Value = "responses"
	Yes              Value = "yes"
	No               Value = "no"
	None             Value = "none"
	Any              Value = "any"
	Turn             Value = "turn"
	All              Value = "all"
	One              Value = "one"
	Word             Value = "word"
	Nine             Value = "nine"
	Anywhere         Value = "anywhere"
	First            Value = "first"
	Nowhere          Value = "nowhere"
	System           Value = "system"
	Developer        Value = "developer"
	User             Value = "user"
	Assistant        Value = "assistant"
	Alternate        Value = "alternate"
	Omit             Value = "omit"
	Null             Value = "null"
	Empty            Value = "empty"
	AsReasoning      Value = "as_reasoning"
	AsText           Value = "as_text"
	Content          Value = "content"
	ExtraContent     Value = "extra_content"
	ReasoningDetails Value = "reasoning_details"
	Completion       Value = "completion"
	Total            Value = "total"
	Whole            Value = "whole"
	Rewritten        Value = "rewritten"
)

// Field is a rule by its name in a configuration.
type Field struct {
	Name string
	// Values are the values it may have. Nil: any name of a member.
	Values []Value
	of     func(*Rules) *Value
}

var fields = []Field{
	{"api", []Value{Chat, Responses}, func(r *Rules) *Value { return &r.API }},
	{"token_limit", nil, func(r *Rules) *Value { return &r.TokenLimit }},
	{"stream_usage", []Value{Yes, No}, func(r *Rules) *Value { return &r.StreamUsage }},
	{"effort", nil, func(r *Rules) *Value { return &r.Effort }},
	{"seed", nil, func(r *Rules) *Value { return &r.Seed }},
	{"reasoning", []Value{None, Turn, All}, func(r *Rules) *Value { return &r.Reasoning }},
	{"reasoning_in", nil, func(r *Rules) *Value { return &r.ReasoningIn }},
	{"reasoning_required", []Value{Yes, No}, func(r *Rules) *Value { return &r.ReasoningRequired }},
	{"call_ids", []Value{Any, Word, Nine}, func(r *Rules) *Value { return &r.CallIDs }},
	{"calls", []Value{Any, One}, func(r *Rules) *Value { return &r.Calls }},
	{"tools", []Value{Any, AsText}, func(r *Rules) *Value { return &r.Tools }},
	{"system", []Value{Anywhere, First, Nowhere}, func(r *Rules) *Value { return &r.System }},
	{"notes", []Value{System, Developer, User}, func(r *Rules) *Value { return &r.Notes }},
	{"roles", []Value{Any, Alternate}, func(r *Rules) *Value { return &r.Roles }},
	{"after_results", []Value{Any, Assistant}, func(r *Rules) *Value { return &r.AfterResults }},
	{"content", []Value{Omit, Null, Empty, AsReasoning}, func(r *Rules) *Value { return &r.Content }},
	{"unsigned", []Value{None, ExtraContent, ReasoningDetails}, func(r *Rules) *Value { return &r.Unsigned }},
	{"output", []Value{Completion, Total}, func(r *Rules) *Value { return &r.Output }},
	{"encrypted", []Value{Yes, No}, func(r *Rules) *Value { return &r.Encrypted }},
	{"items", []Value{Whole, Rewritten}, func(r *Rules) *Value { return &r.Items }},
	{"key", nil, func(r *Rules) *Value { return &r.Key }},
}

// Fields returns the rules that have one value, by their names. API is not among them: a
// configuration has it as a setting of the provider.
func Fields() []Field { return fields[1:] }

// Set sets the field of r, and refuses a value that the field cannot have.
func (f Field) Set(r *Rules, v Value) error {
	if f.Values != nil && !slices.Contains(f.Values, v) || f.Values == nil && !f.names(string(v)) {
		return fmt.Errorf("%s cannot be %q: use %s", f.Name, v, f.Allowed())
	}
	*f.of(r) = v
	return nil
}

// memberName is the name of a member or, with a dot, of a member of a member; or that of a header.
var memberName = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)?$`)

// names reports whether v can be the member, or the header, of f.
func (f Field) names(v string) bool {
	first, _, nested := strings.Cut(v, ".")
	if f.Name == "key" {
		return memberName.MatchString(v) && !nested && !slices.Contains(ownHeaders, strings.ToLower(v))
	}
	return memberName.MatchString(v) && !slices.Contains(written, first)
}

// written are members that requests have anyway, and ownHeaders the headers.
var (
	written = []string{
		"model", "messages", "input", "instructions", "tools", "tool_choice", "stream", "stream_options", "temperature", "top_p", "stop",
		"presence_penalty", "frequency_penalty", "verbosity", "service_tier", "prompt_cache_key", "parallel_tool_calls",
	}
	ownHeaders = []string{"host", "content-type", "content-length", "transfer-encoding", "connection", "accept"}
)

// Allowed describes the values that f may have.
func (f Field) Allowed() string {
	switch {
	case f.Name == "key":
		return "the name of a header that requests do not have otherwise"
	case f.Values == nil:
		return "the name of a member that requests do not have otherwise"
	}
	names := make([]string, len(f.Values))
	for i, v := range f.Values {
		names[i] = string(v)
	}
	return strings.Join(names, ", ")
}

// Or returns r with its empty fields taken from s. A list that is empty and not nil is a value.
func (r Rules) Or(s Rules) Rules {
	for _, f := range fields {
		if v := f.of(&r); *v == "" {
			*v = *f.of(&s)
		}
	}
	if r.Refused == nil {
		r.Refused = s.Refused
	}
	if r.Echo == nil {
		r.Echo = s.Echo
	}
	return r
}
