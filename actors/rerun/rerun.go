package rerun

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/verify"
	"github.com/reprise-dev/reprise/messages"
)

// Recorded is a stream that is run again.
type Recorded struct {
	Agent messages.AgentID
	// Frames are all of the agent's, oldest first, with payloads in their events. Those of a fork begin
	// with its parent's.
	Frames []*messages.Frame
	// Incomplete is why the frames do not hold what the agent was given. Such a stream is not run again:
	// a model would answer other inputs. Empty: they do.
	Incomplete string
}

// Tools are the tools that run.
type Tools string

// The tools that may run. Agents that are tools never do.
const (
	NoTools  Tools = ""          // every call has its recorded result
	ReadOnly Tools = "read-only" // those whose OnUnknown is tool.ReadOnly
	AllTools Tools = "all"       // all, with their effects
)

// Options are what a run differs in from the definitions.
type Options struct {
	// Model has the inputs answered by models. False: only the recorded calls are made again.
	Model bool
	// Set replaces the model, the instructions or the tools of the definition.
	Set   messages.ForkChanges
	Tools Tools
	// Grade scores the recorded run and the new one. Nil: neither has one.
	Grade Grader
}

// Run runs a recorded agent again with the definitions and providers of cfg, which needs no Store. Its
// error is that of ctx; what else fails is in the result.
func Run(ctx context.Context, cfg actors.Config, rec Recorded, o Options) (Result, error) {
	r := Result{Agent: rec.Agent}
	err := r.run(ctx, cfg, rec, o)
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if err != nil {
		r.Result, r.Why = Unreadable, messages.AsError(err).Message
	}
	return r, nil
}

func (r *Result) run(ctx context.Context, cfg actors.Config, rec Recorded, o Options) error {
	if rec.Incomplete != "" {
		return messages.Refuse(messages.BadInput, "%s", rec.Incomplete)
	}
	l := lived(rec.Frames)
	if l.life.Deleted != nil {
		return messages.Refuse(messages.NotFound, "it is deleted: there is nothing to run again")
	}
	def, err := definition(cfg, rec.Agent.Kind, l.forks.Set().Override(o.Set))
	if err != nil {
		return err
	}
	given, err := verify.Commands(rec.Frames)
	if err != nil {
		return err
	}
	record := newRecord(l.exchanges.RecordedCalls, o.Tools)
	if !o.Model {
		r.again(ctx, cfg, def, record)
		return nil
	}
	recorded := l.run(rec.Agent, RunRecorded)
	if len(recorded.Turns) == 0 {
		return messages.Refuse(messages.NotFound, "no turn has begun with an input of it: there is nothing to run again")
	}
	frames, why, err := play(ctx, cfg, def, rec.Agent, record, given)
	if err != nil {
		return err
	}
	replayed := lived(frames).run(rec.Agent, RunReplayed)
	r.compare(recorded, replayed, record, why)
	if why == "" && o.Grade != nil {
		r.Grades = grade(ctx, o.Grade, recorded, replayed)
	}
	return nil
}

// definition returns the definition of a kind with changes.
func definition(cfg actors.Config, kind string, set messages.ForkChanges) (actors.Definition, error) {
	var kinds []string
	for _, d := range cfg.Definitions {
		if d.Kind == kind {
			return d.Gathered(cmp.Or(cfg.Logger, slog.Default())).With(set)
		}
		kinds = append(kinds, d.Kind)
	}
	return actors.Definition{}, messages.Refuse(messages.UnknownKind, "no agent kind is named %q: those that are defined are %v", kind, kinds)
}
