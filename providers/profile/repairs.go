package profile

import (
	"reflect"
	"slices"
	"strings"
)

// repair is what a refusal asks for: other rules.
type repair struct {
	// words are texts of which the message has one, in lower case.
	words []string
	// unless are texts of which it has none: a value is refused, not the form.
	unless []string
	rules  Rules
	// once is true if the refusal is about one history, not about all requests.
	once bool
}

// repairs are refusals of the form of a request, as servers and chat templates word them.
// Those that name more come first.
var repairs = []repair{
	{words: []string{"v1/responses", "requires the responses api", "not a chat model"}, rules: Rules{API: Responses}},
	{words: []string{"encrypted content is not supported"}, rules: Rules{Encrypted: No}},
	{words: []string{
		"required following item", "required 'reasoning' item", "items are not persisted", "encrypted content could not be decrypted",
		"could not decrypt the provided encrypted_content", "was not issued to this caller",
	}, rules: Rules{Items: Rewritten}, once: true},
	{words: []string{"use 'max_completion_tokens'"}, rules: Rules{TokenLimit: "max_completion_tokens"}},
	{words: []string{"max_completion_tokens"}, unless: []string{"too large", "less than", "at most", "exceed"}, rules: Rules{TokenLimit: "max_tokens"}},
	{words: []string{"stream_options", "include_usage"}, rules: Rules{StreamUsage: No}},
	{words: []string{"only user and assistant roles"}, rules: Rules{System: Nowhere, Notes: User, Roles: Alternate, Tools: AsText}},
	{words: []string{"system role not supported"}, rules: Rules{System: Nowhere, Notes: User}},
	{words: []string{"system message must be at the beginning", "'system' after role"}, rules: Rules{System: First, Notes: User}},
	{words: []string{"unknown variant `developer`", "unexpected message role"}, rules: Rules{Notes: User}},
	{words: []string{"roles must alternate"}, rules: Rules{System: First, Notes: User, Roles: Alternate}},
	{words: []string{"after role 'tool'", "after the optional system message"}, rules: Rules{AfterResults: Assistant, Roles: Alternate}},
	{words: []string{"length of 9", "length 9"}, rules: Rules{CallIDs: Nine}},
	{words: []string{"maximum length 40", "should match pattern '^[a-za-z0-9_-]+$'"}, rules: Rules{CallIDs: Word}},
	{words: []string{"single tool-calls"}, rules: Rules{Calls: One}},
	{words: []string{"both content and thinking"}, rules: Rules{Content: AsReasoning}},
	{words: []string{"missing field `content`", "invalid message content type"}, rules: Rules{Content: Empty}},
	{words: []string{"must be passed back", "reasoning_content is missing", "missing `reasoning_content`"}, rules: Rules{Reasoning: All, ReasoningIn: "reasoning_content", ReasoningRequired: Yes}},
	{words: []string{"'reasoning_content' is unsupported", `"reasoning_content"`, "reasoning is not supported"}, rules: Rules{Reasoning: None, ReasoningRequired: No}},
	{words: []string{"reasoning details to be preserved"}, rules: Rules{Unsigned: ReasoningDetails, Echo: []string{"reasoning_details"}}},
	{words: []string{"missing a thought_signature"}, rules: Rules{Unsigned: ExtraContent, Echo: []string{"extra_content"}}},
	{words: []string{"invalid `signature` in `thinking` block", "thought signature is not valid"}, rules: Rules{Reasoning: None, Echo: []string{}}, once: true},
}

// Repair returns r changed as the message of a refusal asks for, but for the rules own of a
// configuration, and whether the change is lasting: else the refusal is about one history, and
// other requests are accepted as they are. It reports false if nothing is known that would
// change r.
func Repair(message string, r, own Rules) (changed Rules, lasting, ok bool) {
	message = strings.ToLower(message)
	for _, fix := range repairs {
		has := func(text string) bool { return strings.Contains(message, text) }
		if !slices.ContainsFunc(fix.words, has) || slices.ContainsFunc(fix.unless, has) {
			continue
		}
		if changed := own.Or(fix.rules).Or(r); !reflect.DeepEqual(changed, r) {
			return changed, !fix.once, true
		}
	}
	return r, false, false
}
