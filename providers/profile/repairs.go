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
	rules Rules
}

// repairs are refusals of the form of a request, as servers and chat templates word them.
// Those that name more come first.
var repairs = []repair{
	{[]string{"/v1/responses", "requires the responses api"}, Rules{API: Responses}},
	{[]string{"encrypted content is not supported"}, Rules{Encrypted: No}},
	{[]string{
		"required following item", "required 'reasoning' item", "items are not persisted", "encrypted content could not be decrypted",
		"could not decrypt the provided encrypted_content", "was not issued to this caller",
	}, Rules{Items: Rewritten}},
	{[]string{"use 'max_completion_tokens'"}, Rules{TokenLimit: "max_completion_tokens"}},
	{[]string{"max_completion_tokens"}, Rules{TokenLimit: "max_tokens"}},
	{[]string{"stream_options", "include_usage"}, Rules{StreamUsage: No}},
	{[]string{"only user and assistant roles"}, Rules{System: Nowhere, Notes: User, Roles: Alternate, Tools: AsText}},
	{[]string{"system role not supported"}, Rules{System: Nowhere, Notes: User}},
	{[]string{"system message must be at the beginning", "'system' after role"}, Rules{System: First, Notes: User}},
	{[]string{"unknown variant `developer`", "unexpected message role"}, Rules{Notes: User}},
	{[]string{"roles must alternate"}, Rules{System: First, Notes: User, Roles: Alternate}},
	{[]string{"after role 'tool'", "after the optional system message"}, Rules{AfterResults: Assistant, Roles: Alternate}},
	{[]string{"length of 9", "length 9"}, Rules{CallIDs: Nine}},
	{[]string{"maximum length 40", "should match pattern '^[a-za-z0-9_-]+$'"}, Rules{CallIDs: Word}},
	{[]string{"single tool-calls"}, Rules{Calls: One}},
	{[]string{"both content and thinking"}, Rules{Content: AsReasoning}},
	{[]string{"missing field `content`", "invalid message content type"}, Rules{Content: Empty}},
	{[]string{"must be passed back", "missing `reasoning_content`"}, Rules{Reasoning: All, ReasoningIn: "reasoning_content", ReasoningRequired: Yes}},
	{[]string{"'reasoning_content' is unsupported", `"reasoning_content"`, "reasoning is not supported"}, Rules{Reasoning: None, ReasoningRequired: No}},
	{[]string{"reasoning details to be preserved"}, Rules{Unsigned: ReasoningDetails, Echo: []string{"reasoning_details"}}},
	{[]string{"missing a thought_signature"}, Rules{Unsigned: ExtraContent, Echo: []string{"extra_content"}}},
	{[]string{"invalid `signature` in `thinking` block", "thought signature is not valid"}, Rules{Reasoning: None, Echo: []string{}}},
}

// Repair returns r changed as the message of a refusal asks for, but for the rules own of a
// configuration. It reports false if nothing is known that would change r.
func Repair(message string, r, own Rules) (Rules, bool) {
	message = strings.ToLower(message)
	for _, fix := range repairs {
		if !slices.ContainsFunc(fix.words, func(w string) bool { return strings.Contains(message, w) }) {
			continue
		}
		if changed := own.Or(fix.rules).Or(r); !reflect.DeepEqual(changed, r) {
			return changed, true
		}
	}
	return r, false
}
