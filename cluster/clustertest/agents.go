//go:build unix

package clustertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/openai"
	"github.com/reprise-dev/reprise/providers/profile"
	"github.com/reprise-dev/reprise/providers/tool"
)

// agents are what a node serves: every model call and every tool goes out of the
// process, and says which one it comes from.
func (r *nodeRole) agents() (providers.Set, []actors.Definition) {
	goes := func(name string, onUnknown tool.OnUnknown) *tool.Typed[order] {
		return tool.New(name, "Goes to the shop", onUnknown, func(ctx context.Context, o order) (string, error) {
			return r.visit(ctx, name, o)
		})
	}
	all := []tool.Tool{goes(Pay, tool.Rerun), goes(Once, tool.Pause), goes(Look, tool.ReadOnly), goes(Sign, tool.Rerun).ApproveAlways()}
	define := func(kind string, tools ...tool.Tool) actors.Definition {
		return actors.Definition{Kind: kind, Model: "outside/model", Tools: tools, MaxQueue: 2_000, MaxAttempts: 20,
			Compact: actors.Compaction{AtTokens: 4000, Keep: 16, How: messages.CompactWindow}}
	}
	set := providers.Set{"outside": openai.New(r.Name, openai.BaseURL(r.Model), openai.Profile(profile.ByURL("")))}
	return set, []actors.Definition{
		define(Worker, append(all[:len(all):len(all)], actors.AsTool(Helper, "Asks a helper").Named(Ask))...),
		define(Helper, all...),
	}
}

// visit goes to the shop for a call.
func (r *nodeRole) visit(ctx context.Context, name string, o order) (string, error) {
	call := tool.CallOf(ctx)
	body, err := json.Marshal(Visit{
		Node: r.Name, Tool: name, Key: call.Key, Attempt: call.Attempt, Agent: call.Agent.Full(), Input: o.Input, Position: o.Position,
	})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.Shop, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the shop says %s: %s", answer.Status, text)
	}
	return string(text), err
}
