package gateway

import (
	"context"
	"crypto/rand"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
)

// answered takes a caller's answer to a query and makes it a command of the
// agent's. Each answer has an id of its own that cannot be guessed and used
// before it: what a second answer means is the agent's to say. An answer to a
// stream that has ended means nothing.
func (g *Gateway) answered(r *nats.Msg) {
	q := g.queries.find(r.Subject)
	if q == nil {
		return
	}
	v, err := messages.ParseDecision(string(r.Data))
	if err != nil {
		q.offers.again(q, messages.AsError(err))
		return
	}
	delivered := make(chan func(context.Context) (messages.Answer, error), 1)
	if !g.begin(func() { g.heeded(q, <-delivered) }) {
		q.offers.again(q, g.full()) // before it is delivered: nobody would tell what came of it
		return
	}
	c := messages.WithID(v.Command(q.approval), "query:"+rand.Text())
	// The agent that was prompted passes on what is about a call below it.
	delivered <- g.Deliver(&actors.Deliver{Agent: q.offers.agent, Command: c, Cause: messages.Cause{Type: c.CommandType(), ID: messages.IDOf(c), Endpoint: messages.EndpointPrompt}.From(personOf(r))})
}

// heeded waits for what became of an answer. One that had its effect is told by
// the facts of the turn. Somebody else has decided if it conflicts with what
// was, or if its call is gone; after any other refusal the caller is asked again.
func (g *Gateway) heeded(q *query, wait func(context.Context) (messages.Answer, error)) {
	answer, err := wait(g.ctx)
	if err == nil && answer.Err != nil {
		err = answer.Err
	}
	if g.ctx.Err() != nil {
		return // the stream ends with words of its own
	}
	if err == nil {
		if answer.Noop != "" {
			q.offers.unheeded(q, answer.Noop)
		}
		return
	}
	switch why := messages.AsError(err); why.Code {
	case messages.Conflict, messages.NotFound:
		q.offers.unheeded(q, why.Message)
	default:
		q.offers.again(q, why)
	}
}
