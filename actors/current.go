package actors

import (
	"context"
	"encoding/json"

	"github.com/reprise-dev/reprise/actors/verify"
	"github.com/reprise-dev/reprise/messages"
)

// Current returns the newest definition of a kind, to compare recorded streams with. Definitions of
// the past are read with ctx. It refuses a kind that is not defined here, as [Runtime.Serves] does.
func (r *Runtime) Current(ctx context.Context, kind string) (verify.Current, error) {
	if err := r.Serves(kind); err != nil {
		return verify.Current{}, err
	}
	def := r.kinds[kind].now.Load()
	return verify.Current{Turn: def.turn, Stored: def.stored, Recorded: func(digest string) (json.RawMessage, error) {
		return r.store.Definition(ctx, messages.Digest(digest))
	}}, nil
}
