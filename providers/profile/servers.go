package profile

// signatures are the members in which servers send what must go back to them unchanged.
var signatures = []string{"extra_content", "reasoning_details"}

// openAIReasoning are OpenAI's models that think before they answer.
// https://platform.openai.com/docs/guides/reasoning
var openAIReasoning = Template{
	Name: "openai-reasoning", Models: []string{"o1*", "o3*", "o4*", "gpt-5*", "gpt-6*"},
	Rules: Rules{
		TokenLimit: "max_completion_tokens",
		Refused:    []string{"temperature", "top_p", "stop", "presence_penalty", "frequency_penalty"},
	},
}

// openAIResponses are those of them that take tools over the Responses API only, unless their
// reasoning is switched off, or that are served over no other.
// https://platform.openai.com/docs/guides/latest-model
var openAIResponses = Template{
	Name: "openai-responses", Models: []string{"gpt-5.4*", "gpt-5.5*", "gpt-5.6*", "gpt-6*", "gpt-5*-pro*", "gpt-5*-codex*", "o1-pro*", "o3-pro*", "o*-deep-research*"},
	Rules: Rules{API: Responses}.Or(openAIReasoning.Rules),
}

// openAIOlder are OpenAI's models that do not think.
var openAIOlder = Template{
	Name: "openai-older", Models: []string{"gpt-3.5*", "gpt-4*", "chatgpt-4o*"},
	Rules: Rules{Refused: []string{"reasoning_effort", "verbosity"}},
}

// Unsampled are the models of Anthropic that take no temperature and no top_p, as patterns of path.Match.
// https://platform.claude.com/docs/en/about-claude/models/migration-guide
var Unsampled = []string{"claude-opus-4-[78]*", "claude-opus-5*", "claude-sonnet-5*", "claude-fable-5*", "claude-haiku-5*"}

// ignored are the settings that Anthropic's compatible endpoint ignores.
var ignored = []string{"seed", "presence_penalty", "frequency_penalty", "reasoning_effort", "verbosity", "service_tier", "cache_key"}

// servers are all profiles. A field that a row leaves empty is that of plain.
var servers = []Server{
	{Name: "openai", Hosts: []string{"api.openai.com"}, Models: []Template{openAIResponses, openAIReasoning, openAIOlder}, Rules: Rules{
		TokenLimit: "max_completion_tokens", System: Anywhere, Notes: System, Roles: Any, Echo: []string{},
	}},
	{Name: "azure", Hosts: []string{"openai.azure.com", "openai.azure.us", "cognitiveservices.azure.com", "api.cognitive.microsoft.com", "services.ai.azure.com"}, Models: []Template{openAIResponses, openAIReasoning, openAIOlder}, Rules: Rules{
		TokenLimit: "max_completion_tokens", System: Anywhere, Notes: System, Roles: Any, Key: "api-key", Echo: []string{},
	}},
	// https://ai.google.dev/gemini-api/docs/openai, …/thought-signatures. Unknown members are refused.
	{Name: "gemini", Hosts: []string{"generativelanguage.googleapis.com", "aiplatform.googleapis.com", "-aiplatform.googleapis.com"}, Rules: Rules{
		Unsigned: ExtraContent, Echo: []string{"extra_content"},
		Refused: []string{"seed", "presence_penalty", "frequency_penalty", "verbosity", "service_tier", "cache_key"},
	}},
	// https://platform.claude.com/docs/en/api/openai-sdk. It moves system messages to the front
	// and ignores what is listed here.
	{Name: "anthropic", Hosts: []string{"api.anthropic.com"},
		Models: []Template{{Name: "unsampled", Models: Unsampled, Rules: Rules{Refused: append([]string{"temperature", "top_p"}, ignored...)}}},
		Rules:  Rules{Echo: []string{}, Refused: ignored},
	},
	// https://openrouter.ai/docs/use-cases/reasoning-tokens. Details of another model are refused.
	{Name: "openrouter", Hosts: []string{"openrouter.ai"}, Templates: true,
		Models: []Template{{Name: "gemini", Models: []string{"gemini-*"}, Rules: Rules{Unsigned: ReasoningDetails}}},
		Rules:  Rules{Effort: "reasoning.effort", Echo: []string{"reasoning_details"}},
	},
	// https://console.groq.com/docs/reasoning. reasoning is accepted of models that reason.
	{Name: "groq", Hosts: []string{"api.groq.com"}, Rules: Rules{
		TokenLimit: "max_completion_tokens", Reasoning: Turn, ReasoningIn: "reasoning", Echo: []string{},
		Refused: []string{"verbosity", "cache_key"},
	}},
	// https://docs.mistral.ai/capabilities/reasoning. Unknown members are refused; usage comes unasked.
	{Name: "mistral", Hosts: []string{"api.mistral.ai"}, Rules: Rules{
		StreamUsage: No, Seed: "random_seed", Reasoning: All, ReasoningIn: Content, CallIDs: Nine, AfterResults: Assistant,
		Echo: []string{}, Refused: []string{"verbosity", "service_tier"},
	}},
	// https://api-docs.deepseek.com/guides/thinking_mode
	{Name: "deepseek", Hosts: []string{"api.deepseek.com"}, Rules: Rules{
		Reasoning: All, ReasoningIn: "reasoning_content", ReasoningRequired: Yes, Echo: []string{},
	}},
	// https://docs.x.ai/docs/guides/reasoning, litellm#16265
	{Name: "xai", Hosts: []string{"api.x.ai"},
		Models: []Template{
			{Name: "grok-unreasoned", Models: []string{"grok-3", "grok-3-fast*", "grok-3-latest", "*non-reasoning*"}, Rules: Rules{Refused: []string{"reasoning_effort"}}},
			{Name: "grok-4", Models: []string{"grok-4", "grok-4-0*", "grok-4-latest"}, Rules: Rules{
				Refused: []string{"presence_penalty", "frequency_penalty", "stop", "reasoning_effort"},
			}},
		},
		Rules: Rules{TokenLimit: "max_completion_tokens", Echo: []string{}, Refused: []string{"presence_penalty", "frequency_penalty", "stop"}},
	},
	// Servers of models that one runs oneself. Ollama and vLLM read reasoning, llama.cpp
	// reasoning_content; each ignores the other.
	{Name: "ollama", Templates: true, Rules: Rules{Reasoning: Turn, ReasoningIn: "reasoning"}},
	{Name: "vllm", Templates: true, Rules: Rules{Reasoning: Turn, ReasoningIn: "reasoning"}},
	{Name: "llamacpp", Templates: true, Rules: Rules{Reasoning: Turn, ReasoningIn: "reasoning_content"}},
	{Name: Plain, Templates: true, Rules: Rules{
		API: Chat, TokenLimit: "max_tokens", StreamUsage: Yes, Effort: "reasoning_effort", Seed: "seed", Reasoning: None,
		ReasoningIn: "reasoning_content", ReasoningRequired: No, CallIDs: Word, Calls: Any, Tools: Any, System: First, Notes: User,
		Roles: Alternate, AfterResults: Any, Content: Empty, Unsigned: None, Output: Total, Encrypted: Yes, Items: Whole, Key: "Authorization",
		Refused: []string{}, Echo: signatures,
	}},
}
