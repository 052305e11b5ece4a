package openai

import (
	"errors"

	api "github.com/sashabaranov/go-openai"

	"github.com/reprise-dev/reprise/providers"
)

// unsent is the error of a request that go-openai would not send.
func unsent(err error) error {
	e := &providers.Error{Kind: providers.Unsupported, Message: err.Error(), Err: err}
	switch {
	case errors.Is(err, api.ErrReasoningToolsRequireResponses):
		e.Kind = providers.BadRequest
		e.Message = "a call with tools to this model requires the Responses API: remove api: chat from its provider, " +
			"or set reasoning_effort to none where the model allows it"
	case errors.Is(err, api.ErrReasoningEffortUnsupported), errors.Is(err, api.ErrChatCompletionInvalidModel):
	default:
		e.Kind = providers.BadRequest
	}
	return e
}
