package messages

// ModelFailure is why a call of a model failed, as a word to branch on. A provider may report others.
type ModelFailure string

// The failures of model calls.
const (
	ModelFailureRateLimit     ModelFailure = "rate_limit"     // the server answers 429: too many requests
	ModelFailureOverloaded    ModelFailure = "overloaded"     // the server answers 5xx
	ModelFailureNetwork       ModelFailure = "network"        // there is no answer, or it is cut off
	ModelFailureAuth          ModelFailure = "auth"           // the server answers 401 or 403: the key is wrong
	ModelFailureNotFound      ModelFailure = "not_found"      // there is no such model, or no API at that address
	ModelFailureBadRequest    ModelFailure = "bad_request"    // the request itself was refused
	ModelFailureContextLength ModelFailure = "context_length" // the request is longer than the model takes
	ModelFailureContentFilter ModelFailure = "content_filter" // a filter of the server refused the content
	ModelFailureBadAnswer     ModelFailure = "bad_answer"     // the answer cannot be read
	ModelFailureRedirected    ModelFailure = "redirected"     // the server redirects, which is not followed
	ModelFailureCanceled      ModelFailure = "canceled"       // its context ended before the answer
	ModelFailureUnsupported   ModelFailure = "unsupported"    // the provider cannot express the request
	ModelFailureNoMemory      ModelFailure = "no_memory"      // the node has no memory for the payload
	ModelFailureTooLarge      ModelFailure = "too_large"      // the answer is larger than the limit
	ModelFailureBlobMissing   ModelFailure = "blob_missing"   // a payload of the request is not stored any more
	ModelFailureBlobDamaged   ModelFailure = "blob_damaged"   // a payload of the request is damaged
)

// The failures of calls for a summary, besides those of other model calls and FinishLength,
// FinishFilter and FinishRefusal of an answer that is no summary.
const (
	ModelFailureChanged     ModelFailure = "changed"     // of a summary: the history has changed since
	ModelFailureInterrupted ModelFailure = "interrupted" // of a summary: a command ended it
	ModelFailureRestarted   ModelFailure = "restarted"   // of a summary: its process was lost
)

// Code returns the code of the refusal that the sender of an input receives whose turn failed for
// it: Internal for failures that have none of their own.
func (f ModelFailure) Code() Code {
	if code := modelCode + Code(f); codes[code].status != 0 {
		return code
	}
	return Internal
}

// ToolFailure is why a call of a tool failed, as a word to branch on.
type ToolFailure string

// The failures of tool calls.
const (
	ToolFailureError        ToolFailure = "error"         // the tool returned an error
	ToolFailurePanic        ToolFailure = "panic"         // the tool panicked
	ToolFailureTimeout      ToolFailure = "timeout"       // it took too long
	ToolFailureUnknownTool  ToolFailure = "unknown_tool"  // there is no such tool
	ToolFailureBadArguments ToolFailure = "bad_arguments" // the tool does not take the arguments
	ToolFailureNotAllowed   ToolFailure = "not_allowed"   // the turn may not use the tool
	ToolFailureInterrupted  ToolFailure = "interrupted"   // the turn ended while it ran
	ToolFailureTooLarge     ToolFailure = "too_large"     // the result is larger than the limit
	ToolFailureNoMemory     ToolFailure = "no_memory"     // the node has no memory for the payload
	ToolFailureUnknown      ToolFailure = "unknown"       // whether it had its effect is not known
	ToolFailureRestarts     ToolFailure = "restarts"      // its process was lost too often
	ToolFailureHook         ToolFailure = "hook"          // a hook failed
	ToolFailureCutOff       ToolFailure = "cut_off"       // the answer that asks for it is incomplete
	ToolFailureChild        ToolFailure = "child"         // the child has ended without an answer
	ToolFailureLimit        ToolFailure = "limit"         // it is over a limit
)

// NoEffect reports whether the tool itself reports that the call had no effect.
func (f ToolFailure) NoEffect() bool {
	return f == ToolFailureError || f == ToolFailureBadArguments
}
