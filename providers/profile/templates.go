package profile

// templates are the chat templates of families of models; the first that matches is taken.
// Roles that alternate, and a system message that comes first, are already the rules of plain.
var templates = []Template{
	openAIReasoning,
	// Refuses content and reasoning beside the same tool call.
	{Name: "gpt-oss", Models: []string{"gpt-oss*"}, Rules: Rules{Content: AsReasoning}},
	// Wants the reasoning of earlier tool calls.
	{Name: "deepseek", Models: []string{"deepseek-v3.[2-9]*", "deepseek-v[4-9]*", "deepseek-reasoner*", "deepseek-chat*"}, Rules: Rules{
		Reasoning: All, ReasoningRequired: Yes,
	}},
	// Expects the ids that it made, functions.name:0 and so on, and its reasoning.
	{Name: "kimi", Models: []string{"kimi-*"}, Rules: Rules{CallIDs: Any, Reasoning: All, ReasoningRequired: Yes}},
	// Refuses messages with more than one tool call.
	{Name: "llama3", Models: []string{"llama-3*", "llama3*", "meta-llama-3*"}, Rules: Rules{Calls: One}},
	// Has no system role and none for the results of tools.
	{Name: "gemma", Models: []string{"gemma-2*", "gemma2*", "gemma-3*", "gemma3*", "gemma-7b*", "gemma-2b*"}, Rules: Rules{System: Nowhere, Tools: AsText}},
	// Wants ids of nine characters, and an answer between the results of tools and a user.
	{Name: "mistral", Models: []string{
		"mistral*", "mixtral*", "ministral*", "magistral*", "devstral*", "codestral*", "pixtral*", "open-mi?tral*",
	}, Rules: Rules{CallIDs: Nine, AfterResults: Assistant}},
}
