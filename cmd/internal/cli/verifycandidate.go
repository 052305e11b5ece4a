package cli

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"strings"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/verify"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cmd/internal/config"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

// candidate decides with the definitions of a file. Safe for concurrent use.
type candidate struct{ rt *actors.Runtime }

// errRehearsed is the error of what a rehearsal must not do.
var errRehearsed = errors.New("a rehearsal sends nothing")

// candidate loads the definitions of a file. end stops the MCP servers that it names.
func (a *app) candidate(ctx context.Context, file string) (with *candidate, end func(), err error) {
	cfg, end, err := a.rehearsal(ctx, file, "")
	if err != nil {
		return nil, nil, err
	}
	cfg.Store = memlog.NewStore()
	cfg.Send = func(context.Context, messages.AgentID, messages.Command) error { return errRehearsed }
	rt, err := actors.NewRuntime(ctx, cfg)
	if err != nil {
		end()
		return nil, nil, err
	}
	return &candidate{rt}, end, nil
}

// rehearsal returns what a file configures for agents, without a store, and with the provider of a model
// that no agent of the file may have. end stops the MCP servers that it names.
func (a *app) rehearsal(ctx context.Context, file, model string) (cfg actors.Config, end func(), err error) {
	c, err := config.Load(file)
	if err != nil {
		return cfg, nil, err
	}
	agents, err := definitions(c, toolbox.Command)
	if err == nil {
		err = validate(c, agents)
	}
	if err != nil {
		return cfg, nil, err
	}
	logger := a.logger(slog.LevelWarn)
	n := &node{app: a, file: c, cfg: cluster.Config{Agents: agents, Logger: logger}}
	end, err = n.serveTools(ctx)
	if err != nil {
		return cfg, nil, err
	}
	provider, _, _ := strings.Cut(model, "/")
	for i := range c.Providers {
		c.Providers[i].Used = c.Providers[i].Used || c.Providers[i].Name == provider
	}
	set := withDemo()
	addProviders(set, c)
	return actors.Config{Providers: set, Definitions: n.cfg.Agents, Prices: c.Prices, Logger: logger}, end, nil
}

// verify compares frames. recorded are the definitions that they name, as far as they are known;
// those that come with the frames may be added meanwhile.
func (c *candidate) verify(ctx context.Context, agent messages.AgentID, recorded map[string]json.RawMessage, redacted bool, frames iter.Seq2[*messages.Frame, error]) verify.Result {
	current, err := c.rt.Current(ctx, agent.Kind)
	if err != nil {
		return verify.Result{Agent: agent, Result: verify.Unreadable, Why: messages.AsError(err).Message}
	}
	current.Redacted = redacted
	current.Recorded = func(digest string) (json.RawMessage, error) {
		if data, ok := recorded[digest]; ok {
			return data, nil
		}
		return nil, messages.Refuse(messages.NotFound, "definition %s is not there", digest)
	}
	return verify.Stream(agent, current, frames)
}
