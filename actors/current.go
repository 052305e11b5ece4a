package actors

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/actors/verify"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/tool"
)

// Current returns the newest definition of a kind, to compare recorded streams with. Definitions of
// the past are read with ctx. It refuses a kind that is not defined here, as [Runtime.Serves] does.
func (r *Runtime) Current(ctx context.Context, kind string) (verify.Current, error) {
	return r.current(ctx, kind, messages.ForkChanges{})
}

// current returns the newest definition of a kind with the changes of a fork.
func (r *Runtime) current(ctx context.Context, kind string, set messages.ForkChanges) (verify.Current, error) {
	if err := r.Serves(kind); err != nil {
		return verify.Current{}, err
	}
	def, err := r.kinds[kind].with(ctx, set)
	if err != nil {
		return verify.Current{}, err
	}
	return verify.Current{
		Turn: def.turn, Stored: def.stored, Review: def.review,
		Recorded: func(digest string) (json.RawMessage, error) {
			return r.store.Definition(ctx, messages.Digest(digest))
		},
		Of: func(kind string, set messages.ForkChanges) (verify.Current, error) { return r.current(ctx, kind, set) },
	}, nil
}

// review asks a tool about a call as an answer's review does, but without a time limit. It reports
// false if the tool is not asked, or does not answer.
func (def *definition) review(name, arguments string) (turn.Review, bool) {
	t := def.tools[name]
	gated, ok := t.(tool.Gated)
	if !ok || !asked(t) || !json.Valid([]byte(arguments)) {
		return turn.Review{}, false
	}
	need, err := protect(nil, func() (bool, error) { return gated.NeedsApproval(json.RawMessage(arguments)) })
	var misfit *tool.ArgumentError
	if errors.As(err, &misfit) {
		return turn.Review{Misfit: printable(err.Error(), maxMessage)}, true
	}
	return turn.Review{Free: !need}, err == nil
}

// asked reports whether a tool is asked about each of its calls. An agent is: there is no other
// place where its arguments are checked.
func asked(t tool.Tool) bool {
	_, child := t.(*AgentTool)
	return child || t.Spec().Approval != tool.Never || t.Spec().ApproveRepeats
}
