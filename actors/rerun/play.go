package rerun

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/actors/verify"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
)

// player sends an agent the commands of a recorded one, each when what came of the one before is
// over. What a person did about a turn that ran, such as an interrupt, is not repeated.
type player struct {
	*host
	record *record
	// answered are the calls that were decided about, and, without a call, the turns that were aborted.
	answered map[callKey]bool
	// turns counts the inputs that began one.
	turns int

	mu sync.Mutex
	// steers are the inputs that come into the running turn.
	steers []verify.Steer
}

// play runs an agent and returns its frames, and why it ended before the last command; empty: it
// did not.
func play(ctx context.Context, cfg actors.Config, d actors.Definition, agent messages.AgentID, r *record, given []verify.Given) (frames []*messages.Frame, why string, err error) {
	p := &player{record: r, answered: make(map[callKey]bool)}
	d.Hooks = append(slices.Clip(d.Hooks), actors.Hook{Name: "rerun", AroundModel: p.aroundModel})
	cfg.Definitions = []actors.Definition{replayedTools(d, r)}
	if p.host, err = begin(ctx, cfg, agent); err != nil {
		return nil, "", err
	}
	defer p.end()
	why = p.all(ctx, given)
	frames, err = Stored(ctx, p.store, agent, p.committed())
	return frames, why, err
}

// all sends all commands. Inputs that did not come into the turn that they steered follow it.
func (p *player) all(ctx context.Context, given []verify.Given) (why string) {
	for _, g := range given {
		p.steer(g.Steers)
		for next := []messages.Command{g.Command}; len(next) > 0; next = p.left() {
			for _, c := range next {
				if why := p.one(ctx, c); why != "" {
					return why
				}
			}
		}
	}
	return ""
}

// one sends one command and waits until what came of it is over. It returns why the run cannot
// continue; empty: it can.
func (p *player) one(ctx context.Context, c messages.Command) (why string) {
	if _, ok := c.(messages.Input); ok {
		p.turns++
	}
	n, err := p.do(c)
	if err != nil {
		why = fmt.Sprintf("the recorded command %s is refused: %v", c.CommandType(), err)
		if p.turns > 0 {
			why = fmt.Sprintf("turn %d: %s", p.turns, why)
		}
		return why
	}
	for {
		var idle bool
		var answers []messages.Command
		changed := p.now(func(s *turn.State) {
			idle = s.Last >= n && s.Turn == nil && s.Summary == nil && len(s.Inputs.Queued) == 0
			if t := s.Turn; t != nil && t.Paused() != "" {
				answers = p.answers(t)
			}
			if t := s.Ended; idle && t != nil && t.Kind != "" {
				why = fmt.Sprintf("turn %d: %s: %s", p.turns, failureText(t), t.Message)
			}
		})
		if idle {
			return why
		}
		for _, answer := range answers {
			if _, err := p.do(messages.WithID(answer, rand.Text())); err != nil {
				return fmt.Sprintf("turn %d: it is paused and cannot be continued: %v", p.turns, err)
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err().Error()
		}
	}
}

// failureText describes how a model failed.
func failureText(t *projections.TurnState) string {
	switch {
	case t.Kind == providers.Network:
		return "the model could not be reached"
	case t.Status != 0:
		return fmt.Sprintf("the model failed (%s, status %d)", t.Kind, t.Status)
	}
	return fmt.Sprintf("the model failed (%s)", t.Kind)
}

// answers returns what continues a paused turn: decisions about the calls that wait for approval. A turn
// that waits for anything else is aborted, for no person is there.
func (p *player) answers(t *projections.TurnState) (list []messages.Command) {
	waits := false
	for _, c := range t.Calls {
		if !c.Waits() {
			continue
		}
		waits = true
		if key := (callKey{c.Turn, c.ID}); !p.answered[key] {
			p.answered[key] = true
			list = append(list, p.record.decision(c))
		}
	}
	if key := (callKey{turn: t.ID}); !waits && !p.answered[key] {
		p.answered[key] = true
		list = append(list, messages.Abort{Turn: t.ID, Reason: "paused (" + t.Paused() + "), and no person is there: " + t.Message})
	}
	return list
}

// aroundModel calls the model once the inputs have come that came before the answer of the same step
// in the record.
func (p *player) aroundModel(ctx context.Context, in actors.HookInfo, _ providers.Request, next func(context.Context) (providers.Response, error)) (providers.Response, error) {
	for _, s := range p.due(in.Step) {
		if _, err := p.do(s.Input); err != nil {
			return providers.Response{}, &providers.Error{Kind: providers.BadRequest, Message: "a recorded input is refused: " + err.Error(), Err: err}
		}
	}
	return next(ctx)
}

// steer sets the inputs that come into the next turn.
func (p *player) steer(inputs []verify.Steer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steers = inputs
}

// due returns the inputs that come while a step of the turn runs.
func (p *player) due(step int) (due []verify.Steer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.steers) && p.steers[n].Step <= step {
		n++
	}
	due, p.steers = p.steers[:n], p.steers[n:]
	return due
}

// left returns the inputs that did not come into the turn.
func (p *player) left() (left []messages.Command) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.steers {
		left = append(left, s.Input)
	}
	p.steers = nil
	return left
}
