package rerun

import (
	"context"
	"fmt"
	"sync"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/actors/verify"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
)

// player gives an agent the commands of a recorded one, each when what came of the one before is
// over. What a person did about a turn that ran, such as an interrupt, is not repeated.
type player struct {
	*host
	record *record
	// decided are the calls that were decided about, answered counts the commands for that.
	decided  map[callKey]bool
	answered int

	mu sync.Mutex
	// steers are the inputs that come into the running turn, calls its model calls so far.
	steers []verify.Given
	calls  map[messages.CallID]bool
}

// play runs an agent and returns its frames, and why it ended before the last command; empty: it
// did not.
func play(ctx context.Context, cfg actors.Config, d actors.Definition, agent messages.AgentID, r *record, given []verify.Given) (frames []*messages.Frame, why string, err error) {
	p := &player{record: r, decided: make(map[callKey]bool)}
	set := make(providers.Set, len(cfg.Providers))
	for name, provider := range cfg.Providers {
		set[name] = steering{provider, p}
	}
	cfg.Providers, cfg.Definitions = set, []actors.Definition{replayedTools(d, r)}
	if p.host, err = begin(ctx, cfg, agent); err != nil {
		return nil, "", err
	}
	defer p.end()
	if why, err = p.all(ctx, given); err != nil {
		return nil, "", err
	}
	frames, err = p.whole(ctx)
	return frames, why, err
}

// all gives all commands. Inputs that steered a turn are given while the turn runs that their turn's
// first input begins, or behind it if it ends too soon.
func (p *player) all(ctx context.Context, given []verify.Given) (why string, err error) {
	steers := make(map[messages.TurnID][]verify.Given)
	for _, g := range given {
		if g.Steered {
			steers[g.Turn] = append(steers[g.Turn], g)
		}
	}
	turns := 0
	for _, g := range given {
		if g.Steered {
			continue
		}
		if g.Turn != "" {
			turns++
			p.steer(steers[g.Turn])
			delete(steers, g.Turn)
		}
		for next := []verify.Given{g}; len(next) > 0; next = p.left() {
			for _, g := range next {
				switch why, err := p.one(ctx, g.Command); {
				case err != nil:
					return "", err
				case why != "":
					return fmt.Sprintf("turn %d: %s", turns, why), nil
				}
			}
		}
	}
	return "", nil
}

// steer sets the inputs that come into the next turn.
func (p *player) steer(inputs []verify.Given) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steers, p.calls = inputs, make(map[messages.CallID]bool)
}

// left returns the inputs that did not come into the turn.
func (p *player) left() []verify.Given {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.steers
	p.steers = nil
	return left
}

// one gives one command and waits until what came of it is over. why is why the run cannot continue;
// empty: it can.
func (p *player) one(ctx context.Context, c messages.Command) (why string, err error) {
	n, err := p.do(c)
	if err != nil {
		return "", fmt.Errorf("a recorded command is refused: %w", err)
	}
	for {
		var idle bool
		var answers []messages.Command
		changed := p.now(func(s *turn.State) {
			idle = s.Last >= n && s.Turn == nil && s.Summary == nil && len(s.Inputs.Queued) == 0
			if t := s.Turn; t != nil && t.Paused() != "" {
				answers = p.answers(t)
			}
			if t := s.Ended; t != nil && idle && t.Kind != "" {
				why = failureText(t)
			}
		})
		if idle {
			return why, nil
		}
		for _, answer := range answers {
			p.answered++
			if _, err := p.do(messages.WithID(answer, fmt.Sprintf("rerun-%d", p.answered))); err != nil {
				return "", fmt.Errorf("a paused turn cannot be continued: %w", err)
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// failureText returns why a turn has failed whose model has.
func failureText(t *projections.TurnState) string {
	if t.Status != 0 {
		return fmt.Sprintf("the model failed (%s, status %d): %s", t.Kind, t.Status, t.Message)
	}
	return fmt.Sprintf("the model failed (%s): %s", t.Kind, t.Message)
}

// answers returns what continues a paused turn: decisions about the calls that wait for approval. A turn
// that waits for anything else is aborted, for no person is there.
func (p *player) answers(t *projections.TurnState) (list []messages.Command) {
	waits := false
	for _, c := range t.Calls {
		if !c.Waits() {
			continue
		}
		if key := (callKey{c.Turn, c.ID}); !p.decided[key] {
			p.decided[key] = true
			list = append(list, p.record.decision(c))
		}
		waits = true
	}
	if !waits && !p.decided[callKey{turn: t.ID}] {
		p.decided[callKey{turn: t.ID}] = true
		list = append(list, messages.Abort{Turn: t.ID, Reason: "paused (" + t.Paused() + "), and no person is there: " + t.Message})
	}
	return list
}

// steering is a provider that is called once the inputs have come that came before its call's answer
// in the record.
type steering struct {
	providers.Provider
	p *player
}

// Generate gives the inputs that are due, and calls the model.
func (s steering) Generate(ctx context.Context, r providers.Request, emit func(providers.Delta)) (providers.Response, error) {
	for _, g := range s.p.due(r.Call) {
		in := g.Command.(messages.Input)
		in.Policy = messages.PolicySteer
		if _, err := s.p.do(in); err != nil {
			return providers.Response{}, &providers.Error{Kind: providers.BadRequest, Message: "a recorded input is refused: " + err.Error(), Err: err}
		}
	}
	return s.Provider.Generate(ctx, r, emit)
}

// Refuses returns what the provider returns.
func (s steering) Refuses(model string) []string {
	if r, ok := s.Provider.(providers.Refuser); ok {
		return r.Refuses(model)
	}
	return nil
}

// due returns the inputs that come while a call of the model runs.
func (p *player) due(call messages.CallID) (due []verify.Given) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[call] {
		return nil // another attempt
	}
	p.calls[call] = true
	for len(p.steers) > 0 && p.steers[0].Step <= len(p.calls) {
		due, p.steers = append(due, p.steers[0]), p.steers[1:]
	}
	return due
}
