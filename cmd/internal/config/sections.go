package config

import (
	"slices"
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/profile"
	"github.com/reprise-dev/reprise/providers/tool"
)

// The patterns of names.
const (
	agentNames    = `^[A-Za-z0-9_=-]{1,128}$`
	wordNames     = `^[A-Za-z0-9_-]{1,64}$`
	variableNames = `^[A-Za-z_][A-Za-z0-9_]{0,127}$`
	modelNames    = `^[^/]+/.`
)

// million is the most that a whole number may be unless its key says otherwise.
const million = 1_000_000

// The sections, in the order of the reference. A section that is part of another comes behind it.
var sections = []*section{
	&fileKeys, &agentKeys, &modelKeys, &settingsKeys, &budgetKeys, &turnBudgetKeys, &agentBudgetKeys, &compactKeys, &useKeys,
	&toolKeys, &serverKeys, &providerKeys, &ruleKeys, &priceKeys, &encryptionKeys, &telemetryKeys,
}

var fileKeys = section{title: "Top level", keys: []key{
	{"agents", value{"names of agents: " + agentKeys.link(), func() *jsonschema.Schema {
		return &jsonschema.Schema{Type: "object", PropertyNames: matching(agentNames), AdditionalProperties: agentKeys.schema(), MinProperties: new(1)}
	}}, needed, "The kinds of agents. The name of an entry is the kind in addresses: `support` in `support/ticket-42`."},
	{"tools", entriesOf("names of tools", &toolKeys, wordNames), "none",
		"Tools that are programs, and tools that are other agents. The built-in tools `calculator`, `clock` and `echo` need no entry."},
	{"providers", entriesOf("names of providers", &providerKeys, wordNames), "only `demo`",
		"Model servers. The provider `demo` is built in: it needs no key, works offline and gives the same answer each time."},
	{"mcp", entriesOf("names of servers", &serverKeys, wordNames), "none",
		"MCP servers. A node starts or connects to each server once, for all agents that use it."},
	{"prices", entriesOf("names of models", &priceKeys, modelNames), "no prices",
		"What tokens cost, by `provider/model`. Without a price, calls of the model count as free, and `max_cost` cannot be used."},
	{"encryption", inSection(&encryptionKeys), "see [Encryption](#encryption)",
		"Where the wrapping key is. With a key, events, snapshots and payloads of each agent are encrypted."},
	{"retain_to", plain("a folder"), "`archive` in the data folder",
		"Where agents are archived before `retain` deletes them. A node with `--nats` has no data folder and needs this key if an agent has `retain`."},
	{"telemetry", inSection(&telemetryKeys), "nothing is sent", "Where a node sends the OpenTelemetry spans of turns."},
}}

var agentKeys = section{title: "Agents", bound: oneOf("model", "models"), keys: []key{
	{"model", aModel(), "required, or `models`", "The model that answers, such as `openai/gpt-5.5`. The part before the slash is a provider of the file, or `demo`."},
	{"models", value{"a list of `provider/model` or " + modelKeys.link(), func() *jsonschema.Schema {
		return &jsonschema.Schema{Type: "array", Items: anyOf(modelSchema(), modelKeys.schema()), MinItems: new(1)}
	}}, "required, or `model`", "The model to begin with and its fallbacks, in order. A fallback answers for the rest of the turn when the model before it and its retries have failed."},
	{"instructions", plain("text"), "none", "What the model reads before the history in every call."},
	{"tools", value{"a list of tools, or " + useKeys.link(), func() *jsonschema.Schema {
		return &jsonschema.Schema{Types: []string{"array", "null"}, Items: anyOf(&jsonschema.Schema{Type: "string"}, useKeys.schema())}
	}}, "none", "The tools of the agent: built-in ones, entries of `tools`, and tools of MCP servers."},
	{"tool_choice", plain("`auto`, `required`, `none`, or a tool"), "`auto`",
		"Whether a turn must use a tool before it answers: `required` for any tool, or the name of one. `none` forbids tools."},
	{"stop_on", texts("tools"), "none", "Tools whose result ends the turn and is its output. A call that fails does not end it."},
	{"approval_timeout", aDuration(), "no timeout", "A call that waits this long for approval is denied. A tool may have a timeout of its own."},
	{"prompt_approves", aFlag(), "`false`; in `dev` `true`",
		"Whether clients of the agent protocol that prompt the agent are asked on their stream about calls that wait for approval. Otherwise only users who may send commands to the agent decide."},
	{"max_steps", wholeTo(million), strconv.Itoa(actors.DefaultMaxSteps), "How many model calls one turn may make. The attempts at one call count as one."},
	{"max_queue", wholeTo(actors.MostQueued), grouped(actors.DefaultMaxQueue), "How many inputs may wait: queued ones, and ones that steer the running turn and that no model has seen. More are refused as `queue_full`, except those with the policy `interrupt`."},
	{"max_attempts", wholeTo(million), strconv.Itoa(actors.DefaultMaxAttempts), "How often a call of one model is tried in all if it fails for a temporary reason. Then the next of `models` is called."},
	{"parallel", wholeTo(million), strconv.Itoa(actors.DefaultParallel), "How many tool calls of one step may run at the same time."},
	{"show_at_most", wholeTo(maxPayload), grouped(1 << 20),
		"How many bytes the model sees of a text that is too large for an event and is stored as a blob: the first three quarters of them and the last quarter. The blob has the whole text."},
	{"budget", inSection(&budgetKeys), "no limits", "Limits on tokens, cost and time, for one turn and for all turns of an agent."},
	{"when_reached", oneWord("fail", "pause"), "`fail`", "What a turn does at a limit, `max_steps` included. `reprise resume` continues either with a higher limit."},
	{"compact", inSection(&compactKeys), "only when a person asks, or a model refuses long requests",
		"When and how the history that the model sees is made shorter. The log keeps everything."},
	{"settings", inSection(&settingsKeys), "those of the provider", "Settings of model calls, such as `temperature`."},
	{"retain", someDays(), "agents are kept",
		"How long an agent may be idle before it is archived and deleted, from its newest event on. An agent with a timer, or whose turn waits for a person, is not idle. Forks, and agents that have forks, are kept."},
}}

var modelKeys = section{title: "Models of an agent", keys: []key{
	{"model", aModel(), needed, "The name of the model."},
	{"settings", inSection(&settingsKeys), "those of the agent", "Settings of this model. They come before the settings of the agent."},
}}

var settingsKeys = section{title: "Settings", keys: []key{
	{"temperature", decimals(0, 2), "the provider's", "Randomness of the answer. Low values give answers that vary less."},
	{"top_p", decimals(0, 1), "the provider's", "The share of likely tokens that the model chooses from. Set this or `temperature`, not both."},
	{"max_output_tokens", wholeTo(million), "the provider's", "The most tokens of one answer. A budget reserves this many before a call; without it an answer may exceed the budget."},
	{"stop", texts("texts"), "none", "Texts that end an answer. The Responses API does not have them."},
	{"seed", value{"a whole number", func() *jsonschema.Schema {
		return anyOf(&jsonschema.Schema{Type: "integer"}, matching(`^-?[0-9]+(_[0-9]+)+$|`+variableText))
	}}, "the provider's", "The seed of the sampling, for servers that have one. The Responses API does not have it."},
	{"presence_penalty", decimals(-2, 2), "the provider's", "Positive values discourage words that already occur. The Responses API does not have it."},
	{"frequency_penalty", decimals(-2, 2), "the provider's", "Positive values discourage words that occur often. The Responses API does not have it."},
	{"reasoning_effort", plain("text"), "the provider's", "How much a reasoning model thinks, in the words of the model, such as `low`."},
	{"verbosity", plain("text"), "the provider's", "How long answers are, in the words of the model, such as `high`."},
	{"service_tier", plain("text"), "the provider's", "The service tier of the provider, such as `flex`."},
	{"parallel_tool_calls", aFlag(), "the provider's", "Whether one answer may have more than one tool call."},
	{"cache_key", plain("text"), "none", "Requests with the same key share a prompt cache, where the server has one."},
	{"hosted_tools", value{"a list of JSON objects with `type`", func() *jsonschema.Schema {
		tool := &jsonschema.Schema{Type: "object", Required: []string{"type"}, Properties: map[string]*jsonschema.Schema{"type": {Type: "string", MinLength: new(1)}}}
		return &jsonschema.Schema{Type: "array", Items: tool}
	}}, "none", "Tools that the server runs, such as `{type: web_search}`. They need the Responses API."},
	{"extra_body", anything("JSON members", essential), "none",
		"Members that are added to the JSON of each request. They replace those of the same name, except `model`, `messages`, `input`, `tools` and `stream`."},
}}

var budgetKeys = section{title: "Budget", keys: []key{
	{"turn", inSection(&turnBudgetKeys), "no limits", "Limits of each turn, beside `max_steps` of the agent."},
	{"agent", inSection(&agentBudgetKeys), "no limits", "Limits of all turns of an agent together."},
}}

var turnBudgetKeys = section{title: "Budget of a turn", keys: limitKeys("the turn")}

var agentBudgetKeys = section{title: "Budget of an agent", keys: append([]key{
	{"max_steps", wholeTo(maxTokenBudget), "no limit", "The most model calls of all turns of the agent. The attempts at one call count as one."},
}, limitKeys("all turns of the agent")...)}

func limitKeys(of string) []key {
	return []key{
		{"max_tokens", wholeTo(maxTokenBudget), "no limit", "The most input and output tokens of " + of + "."},
		{"max_cost", decimals(0, maxMoney), "no limit", "The most that " + of + " may cost, in the currency of `prices`. Each model of the agent needs a price. The least value is 0.000000001."},
		{"max_duration", aDuration(), "no limit", "How long " + of + " may run, at least 1ms; a fraction of a millisecond is dropped. Time in the queue, and time in which a turn waits for a person, does not count; time in which no node runs does."},
	}
}

var compactKeys = section{title: "Compaction", keys: []key{
	{"at_tokens", wholeTo(maxTokenBudget), "only when a person asks, or a model refuses long requests", "The history is compacted before a model call that is expected to have more tokens, at four bytes a token, if that removes at least an eighth of it."},
	{"keep", wholeTo(million), "20", "How many of the newest items stay, at least. Inputs, answers, calls and results count one each. Fewer may stay after a model has refused a request as too long."},
	{"how", oneWord(messages.CompactSummary, messages.CompactWindow), "`summary`", "`summary`: a model writes a summary of what is left out. `window`: a line stands in its place."},
	{"model", aModel(), "the agent's", "The model that writes summaries."},
	{"instructions", plain("text"), "built in", "The instructions of the model that writes summaries."},
}}

var useKeys = section{title: "Tools of an MCP server", bound: notBoth("read_only", "on_unknown"), keys: []key{
	{"mcp", plain("a server"), needed, "The server, by its name below `mcp` at the top of the file."},
	{"only", someTexts("names or patterns"), "all tools", "The tools of the server that the agent has. `*` in a pattern is any run of characters."},
	{"except", texts("names or patterns"), "none", "Tools of the server that the agent does not have."},
	{"prefix", value{"1 to 32 of `A-Z a-z 0-9 _ -`", func() *jsonschema.Schema { return matching(`^[A-Za-z0-9_-]{1,32}$|` + variableText) }}, "none",
		"What comes before the name of each tool, so that tools of several servers have different names."},
	{"read_only", aFlag(), "by the hints of the server", "`true`: no tool of the server changes anything, and each may run again after a crash."},
	{"on_unknown", perTool(oneWord(string(tool.ReadOnly), string(tool.Rerun), string(tool.Pause))), "by the hints of the server",
		"What to do with a call whose outcome a crash has left unknown, for all tools or by names and patterns; the first that matches applies. `read_only` here means that a tool only reads."},
	{"approval", perTool(plain("`never`, `always`, or an [expression](#approval-expressions)")), "`never`",
		"Which calls wait for a person, for all tools or by names and patterns; the first that matches applies."},
}}

// perTool is one value for all tools of a server, or a mapping of names and patterns to values.
func perTool(v value) value {
	return value{v.words + "; or a mapping of tools to these", func() *jsonschema.Schema {
		return anyOf(v.schema(), &jsonschema.Schema{Type: "object", AdditionalProperties: v.schema()})
	}}
}

var toolKeys = section{title: "Tools", bound: boundTool, keys: []key{
	{"command", someTexts("texts"), "required, or `agent`",
		"The program and its arguments. It reads the call's arguments as one line of JSON from standard input and writes the result to standard output. A relative path starts at `dir`."},
	{"agent", plain("an agent"), "required, or `command`", "The agent that does the work, by its name below `agents`. Each call creates a child of that kind."},
	{"description", plain("text"), needed, "What the tool does, for the model."},
	{"parameters", value{"the JSON schema of an object", func() *jsonschema.Schema {
		return &jsonschema.Schema{Type: "object", Required: []string{"type"}, Properties: map[string]*jsonschema.Schema{"type": {Enum: []any{"object"}}}}
	}}, "no arguments; for an agent one text, `input`", "The arguments of a call. Arguments that do not match are returned to the model as an error. Variables are not expanded here."},
	{"read_only", aFlag(), "`false`", "`true`: the program changes nothing, and a call may run again after a crash. Not for agents."},
	{"on_unknown", oneWord(string(tool.Rerun), string(tool.Reconcile), string(tool.Pause)), "`pause`",
		"What to do with a call whose outcome a crash has left unknown: run it again with the same idempotency key, run the program of `reconcile`, or pause the turn until a person decides. Not for agents."},
	{"reconcile", someTexts("texts"), "none", "The program that reports what became of a call, for `on_unknown: reconcile`. Exit code 0: done, the result is on standard output; 3: not done; others: unknown."},
	{"approval", plain("`never`, `always`, or an [expression](#approval-expressions)"), "`never`",
		"Which calls wait for a person. A tool that is an agent has `never` and `always` only."},
	{"approve_repeats", aFlag(), "`false`", "Whether a call waits for a person if it has the arguments of another call of the turn. Only with `on_unknown: rerun` or `pause`."},
	{"approval_timeout", aDuration(), "the agent's", "A call that waits this long for approval is denied."},
	{"key_field", value{"1 to 64 of `A-Z a-z 0-9 _ -`", func() *jsonschema.Schema { return matching(wordNames + `|` + variableText) }}, "none",
		"A field that is added to the arguments and holds the idempotency key. The program always has it in `REPRISE_IDEMPOTENCY_KEY`. Not for agents."},
	{"timeout", aDuration(), tool.DefaultTimeout.String(), "A call that runs longer is ended, and fails. Not for agents."},
	{"max_output", wholeTo(maxPayload), grouped(64 << 20), "The most bytes that the program may write to standard output. One that writes more is killed, and the call fails. A result of more than 64 MiB fails in any case. Not for agents."},
	{"env", textsByName("names and values", variableNames), "none", "Variables for the program. It inherits only a few others, such as `PATH` and `HOME`."},
	{"dir", plain("a folder"), "the folder of the file", "Where the program runs. A relative path starts at the folder of the file."},
	{"wait", aFlag(), "`true`", "`false`: the call of an agent returns at once, and the child continues on its own. Only for agents."},
	{"max_children", wholeTo(million), strconv.Itoa(messages.MaxChildren), "How many children one turn may create before this tool refuses. Only for agents."},
}}

// boundTool adds that a tool is a program or an agent, and what each of them has.
func boundTool(s *jsonschema.Schema) {
	oneOf("command", "agent")(s)
	notBoth("read_only", "on_unknown")(s)
	none := func(names ...string) *jsonschema.Schema {
		out := &jsonschema.Schema{Properties: make(map[string]*jsonschema.Schema), PropertyOrder: names}
		for _, name := range names {
			out.Properties[name] = never()
		}
		return out
	}
	s.If = &jsonschema.Schema{Required: []string{"agent"}}
	s.Then, s.Else = none(slices.Concat(programOnly, []string{"max_output"})...), none(agentOnly...)
	s.Then.Properties["approval"] = oneWord("never", "always").schema()
}

var serverKeys = section{title: "MCP servers", bound: oneOf("command", "url"), keys: []key{
	{"command", someTexts("texts"), "required, or `url`", "The program of the server and its arguments. It speaks MCP on standard input and output."},
	{"url", webAddress(), "required, or `command`", "The address of a server that speaks streamable HTTP. Redirects are not followed."},
	{"headers", textsByName("names and values", wordNames), "none", "Headers of each request to `url`."},
	{"env", textsByName("names and values", variableNames), "none", "Variables for the program of `command`."},
	{"dir", plain("a folder"), "the folder of the file", "Where the program runs. A relative path starts at the folder of the file."},
	{"timeout", aDuration(), tool.DefaultTimeout.String(), "A call that runs longer is ended, and fails."},
}}

var providerKeys = section{title: "Providers", keys: []key{
	{"api_key", plain("text"), "none", "The key. It is required unless `base_url` names another server than OpenAI's. Write `\"${OPENAI_API_KEY}\"`, not the key itself."},
	{"base_url", webAddress(), "OpenAI's", "Where the server's API begins, such as `https://api.example.com/v1`. Redirects are not followed."},
	{"api", oneWord("auto", string(profile.Chat), string(profile.Responses)), "`auto`", "Chat Completions or the Responses API. `auto` chooses by model."},
	{"type", oneWord("openai"), "`openai`", "The protocol. All providers speak that of OpenAI."},
	{"profile", oneWord(profile.Names()...), "by the host of `base_url`", "Which server it is: servers differ in what they accept."},
	{"rules", inSection(&ruleKeys), "those of the profile", "Rules that come before those of the profile."},
	{"headers", textsByName("names and values", "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"), "none", "Headers of each request."},
	{"query", textsByName("names and values", ""), "none", "Query parameters of each request."},
	{"extra_body", anything("JSON members", essential), "none", "Members of the JSON of each request, as in [Settings](#settings)."},
	{"timeout", aDuration(), "no limit", "The longest time for one answer. A model that streams nothing for ten minutes is given up in any case."},
}}

var ruleKeys = section{title: "Rules of a provider", keys: []key{
	{"token_limit", profileRule("token_limit"), "the profile's", "The member of the request for `max_output_tokens`."},
	{"stream_usage", profileRule("stream_usage"), "the profile's", "Whether `stream_options` asks for the usage of a streamed answer."},
	{"effort", profileRule("effort"), "the profile's", "The member for `reasoning_effort`. `reasoning.effort` is a member inside another one."},
	{"seed", profileRule("seed"), "the profile's", "The member for `seed`."},
	{"reasoning", profileRule("reasoning"), "the profile's", "Which reasoning goes back to the model that wrote it: none, that of the current turn, or all."},
	{"reasoning_in", profileRule("reasoning_in"), "the profile's", "The member of a message that holds its reasoning. `content`: thinking parts of the content."},
	{"reasoning_required", profileRule("reasoning_required"), "the profile's", "Whether messages of the assistant without reasoning have the member, with an empty text."},
	{"call_ids", profileRule("call_ids"), "the profile's", "Which ids of tool calls the server accepts: any, up to 40 letters, digits, `-` and `_`, or nine letters and digits. Others are rewritten."},
	{"calls", profileRule("calls"), "the profile's", "How many tool calls a message may have."},
	{"tools", profileRule("tools"), "the profile's", "Whether tool calls and their results are messages, or are written as text."},
	{"system", profileRule("system"), "the profile's", "Where system messages may stand. In other places their text becomes that of a user."},
	{"notes", profileRule("notes"), "the profile's", "The role of the notes of the runtime."},
	{"roles", profileRule("roles"), "the profile's", "Whether messages of the user and of the assistant must alternate."},
	{"after_results", profileRule("after_results"), "the profile's", "Whether only a message of the assistant may follow the results of tools."},
	{"content", profileRule("content"), "the profile's", "The content of a message with tool calls and no text. Write `\"null\"` in quotes."},
	{"unsigned", profileRule("unsigned"), "the profile's", "Where Gemini's mark for tool calls of other models stands."},
	{"output", profileRule("output"), "the profile's", "What counts as output tokens: `completion_tokens`, or also what only `total_tokens` contains."},
	{"encrypted", profileRule("encrypted"), "the profile's", "Whether the Responses API is asked for the encrypted content of reasoning."},
	{"items", profileRule("items"), "the profile's", "Whether items of the Responses API go back as they came, or are rewritten without ids and reasoning."},
	{"key", profileRule("key"), "the profile's", "The header of the API key."},
	{"refused", value{"a list of [Settings](#settings)", func() *jsonschema.Schema {
		return &jsonschema.Schema{Types: []string{"array", "null"}, Items: enum(settings)}
	}}, "the profile's", "Settings that the server refuses. They are an error in the agent, and a fallback does not inherit them."},
	{"echo", texts("member names"), "the profile's", "Members of answers and of tool calls that go back to the server unchanged."},
}}

var priceKeys = section{title: "Prices", keys: []key{
	{"input", decimals(0, maxPrice), needed, "The price of a million input tokens."},
	{"output", decimals(0, maxPrice), needed, "The price of a million output tokens."},
	{"cached", decimals(0, maxPrice), "that of `input`", "The price of a million input tokens that the provider read from its cache."},
	{"cache_write", decimals(0, maxPrice), "that of `input`", "The price of a million input tokens that the provider wrote to its cache."},
}}

var encryptionKeys = section{title: "Encryption", bound: oneOf("key", "key_file"), keys: []key{
	{"key", plain("text"), "required, or `key_file`", "The wrapping key: 32 bytes in hex or base64. Several are separated by commas, the newest first. Write `\"${REPRISE_KEY}\"`, not the key itself."},
	{"key_file", plain("a file"), "required, or `key`", "A file with the wrapping keys. A relative path starts at the folder of the file."},
}}

var telemetryKeys = section{title: "Telemetry", keys: []key{
	{"otlp", webAddress(), "`$OTEL_EXPORTER_OTLP_ENDPOINT`", "The base address of an OpenTelemetry collector that accepts OTLP over HTTP. `--otlp` comes before it."},
	{"headers", textsByName("names and values", wordNames), "`$OTEL_EXPORTER_OTLP_HEADERS`", "Headers of each request to the collector."},
	{"content", aFlag(), "`false`", "Whether spans contain questions, answers, arguments and results. Those of encrypted agents never do."},
}}

// redactionKeys are those of a file of redaction rules, which is no part of reprise.yaml.
var redactionKeys = section{title: "Redaction rules", keys: []key{
	{"patterns", textsByName("names and regular expressions", ""), "none", "Regular expressions (RE2). Each match in any text is replaced by the name of the rule and a hash."},
	{"paths", textsByName("names and paths", ""), "none", "Paths of values: the type of an event, its field, and what is below it in JSON, such as `tool.requested.arguments.card`. The values are replaced wherever they occur."},
}}
