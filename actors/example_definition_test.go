package actors_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

// What all agents of a kind have in common. Zero values are the defaults.
func ExampleDefinition() {
	temperature := float32(0.2)
	support := actors.Definition{
		Kind:            "support",
		Model:           "openai/gpt-5.5",
		Fallbacks:       []string{"local/qwen3"}, // for the rest of a turn, if the model fails
		Instructions:    "Be brief.",
		Tools:           []tool.Tool{toolbox.Calculator(), toolbox.Clock()},
		Settings:        providers.Settings{Temperature: &temperature, MaxOutputTokens: 2000},
		MaxSteps:        10,
		ApprovalTimeout: 24 * time.Hour,
		TurnLimits:      messages.Limits{MaxTokens: 50_000},
		PauseAtLimit:    true,
		Compact:         actors.Compaction{AtTokens: 60_000, Keep: 20},
		Retain:          400 * 24 * time.Hour,
	}
	text, err := json.Marshal(support.TurnLimits)
	fmt.Println(support.Kind, len(support.Tools), string(text), err)
	// Output: support 2 {"max_tokens":50000} <nil>
}
