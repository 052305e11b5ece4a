package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// chunk is a message of a prompt's streamed reply: see [messages.ChunkResponse].
type chunk struct {
	Type string `json:"type"`
	Data any    `json:"data"`
}

// prompt answers one prompt: it puts the input on its way before it returns,
// so that order is kept, and streams from a goroutine of its own.
func (g *Gateway) prompt(r *nats.Msg) {
	if !g.answerable(r) {
		return
	}
	to := g.replying(r)
	in, a, err := g.parsePrompt(r)
	end := g.counts.begin("prompt", a.Kind)
	if err != nil {
		to.fail(messages.AsError(err))
		end(to.failed)
		return
	}
	if in.ID == "" {
		in.ID = "prompt:" + ulid.Make().String()
	}
	feed, leave := g.Hub.follow(a)
	s := &streaming{
		g: g, agent: a, to: to, input: in.ID, after: eventNumber(r.Header.Get(messages.HeaderAfter)),
		brief: r.Header.Get(messages.HeaderFacts) == messages.FactsEnd, offers: g.offers(a, to),
	}
	d := &actors.Deliver{Agent: a, Command: in, Cause: messages.Cause{Type: in.CommandType(), ID: in.ID, Endpoint: messages.EndpointPrompt}.From(personOf(r))}
	if !to.attentive {
		d.Cause.Stream = &messages.Stream{Node: g.Self, Reply: r.Reply}
	}
	delivered := make(chan func(context.Context) (messages.Answer, error), 1)
	later := in.Scheduled() // nothing comes of it now
	streams := g.begin(func() {
		defer func() {
			leave()
			end(to.failed)
		}()
		waited := to.company(func() { to.say(chunk{messages.ChunkWaiting, nil}) })
		defer waited()
		if answer := s.accepted(<-delivered, later); answer != nil {
			s.run(answer, feed, waited)
		}
	})
	if !streams {
		leave()
		to.fail(g.full())
		end(to.failed)
		return
	}
	delivered <- g.Deliver(d)
}

// accepted waits for the answer to the input, and returns it unless the input comes later. It is
// no part of run: the stack that it takes is not kept while a model is waited for.
func (s *streaming) accepted(delivered func(context.Context) (messages.Answer, error), later bool) *messages.Answer {
	answer, err := delivered(s.g.ctx)
	if err == nil && answer.Err != nil {
		err = answer.Err
	}
	if err != nil {
		s.to.fail(s.g.why(err))
		return nil
	}
	s.to.ack()
	if later {
		s.to.end(nats.NewMsg(s.to.to))
		return nil
	}
	return &answer
}

// parsePrompt reads a prompt: plain text, the protocol's envelope, or an input body.
func (g *Gateway) parsePrompt(msg *nats.Msg) (messages.Input, messages.AgentID, error) {
	a, err := messages.ParsePrompt(msg.Subject)
	if root := msg.Header.Get(messages.HeaderRoot); err == nil && !g.Subjects.Names(root) {
		err = messages.Refuse(messages.Unavailable, "this door belongs to another installation in the same NATS account, and the prompt is for root %q: ask again; better, give each installation an account of its own", root)
	}
	if err == nil {
		err = g.Serves(a.Kind)
	}
	if err != nil {
		return messages.Input{}, a, err
	}
	in, err := messages.ParsePromptInput(a, msg.Header.Get, msg.Data)
	if err == nil {
		err = g.Subjects.AllowNamedReply(a.Tenant, in.Reply)
	}
	return in, a, err
}

// streaming is one prompt's reply on its way.
type streaming struct {
	g     *Gateway
	agent messages.AgentID
	to    *replying
	input string
	turn  messages.TurnID
	// after is the event up to which the caller knows everything already.
	after messages.EventNumber
	// brief reports that the caller wants no facts but the pauses and the end.
	brief bool
	// shown is the text already streamed of the model call under way.
	shown shownText
	call  messages.CallID
	// asked is the newest model call that was told of; deltas of others, and of
	// partial, are left out, for the caller came in the middle of it and is told
	// its text as a whole.
	asked, partial messages.CallID
	// said is what the turn answers if nothing follows, by its newest text, of its model or of
	// a hook. Nil: more follows.
	said *projections.Output
	// lost is how many bytes of the text at hand are lost or damaged, err why it cannot be
	// read now.
	lost int64
	err  error
	// offers asks the caller about calls that wait for approval.
	offers *offers
	// facts are those of the frame at hand that were not sent yet.
	facts []byte
}

// run sends everything of the input's turn until its end. What has come before is
// told first; then waited is called.
func (s *streaming) run(answer *messages.Answer, feed *feed, waited func()) {
	g := s.g
	if !s.to.attentive {
		waited()
	}
	w := &watcher{
		log: g.Log, agent: s.agent, feed: feed, next: answer.N, fact: s.fact, told: s.tell, delta: s.delta,
		quietAfter: keepAlive, quiet: s.quiet,
	}
	more, err := true, error(nil)
	if answer.Disposition == messages.Steered {
		err = s.offers.catchUp(answer.N)
	}
	if err == nil && answer.Duplicate {
		if more = s.wait(g.again); more {
			more, err = w.past(g.ctx)
			<-g.again
		}
		s.partial = s.asked
	}
	if err == nil && more {
		s.offers.begin()
		if answer.Duplicate {
			s.offers.ask()
		}
		waited()
		err = w.run(g.ctx)
	}
	if err == nil {
		err = s.err
	}
	s.offers.close()
	switch {
	case err == nil:
	case g.ctx.Err() != nil:
		s.to.fail(messages.Refuse(messages.Unavailable, "this node is shutting down; the turn goes on: ask again with id %q", s.input))
	default:
		s.to.fail(g.why(err))
	}
}

// wait takes a place among those who read, and keeps the caller company until
// there is one; false if the caller has gone.
func (s *streaming) wait(places chan struct{}) bool {
	late := time.NewTicker(keepAlive)
	defer late.Stop()
	for {
		select {
		case places <- struct{}{}:
			return true
		case <-late.C:
			if !s.quiet() {
				return false
			}
		case <-s.g.ctx.Done():
			return false
		}
	}
}

// quietProbe is how long a quiet stream waits to be told that its caller has gone.
const quietProbe = 100 * time.Millisecond

// quiet sends a keep-alive and reports whether the caller may still be there. The server,
// or our own client, answers one for a caller that has gone. It is a request by the
// connection's own inbox, for there may be many such streams. A caller in another account
// cannot be seen: after unseenFor without news it is refused, and asks again.
func (s *streaming) quiet() bool {
	msg := s.to.alive()
	msg.Data = []byte(`{"type":"status","data":"ack"}`)
	if messages.Across(s.to.to) {
		_ = s.g.Conn.PublishMsg(msg) // the next one follows
		if s.to.silent() <= unseenFor {
			return true
		}
		s.to.fail(messages.Refuse(messages.Unavailable, "nothing has happened for %v, and whether anybody is still there cannot be seen from another account; the turn goes on: ask again with id %q", unseenFor, s.input))
		return false
	}
	ctx, cancel := context.WithTimeout(s.g.ctx, quietProbe)
	defer cancel()
	_, err := s.g.Conn.RequestMsgWithContext(ctx, msg)
	return !errors.Is(err, nats.ErrNoResponders)
}

// fact streams an event of the input or of its turn, up to the one that ends
// the input.
func (s *streaming) fact(f fact) (more bool) {
	s.find(f.ev)
	over, why := s.ends(f.ev)
	if !over && !s.mine(f) {
		return true
	}
	if s.text(f); s.err != nil {
		return false
	}
	if f.n > s.after && (over || !s.brief || messages.Is(f.ev.EventType(), messages.HoldsTurn)) {
		s.add(f)
	}
	s.offers.apply(f)
	if !over {
		s.leave(f.ev)
		return true
	}
	s.offers.close() // nothing may follow the end
	last := nats.NewMsg(s.to.to)
	last.Data = s.take()
	if why == nil {
		s.to.end(last)
		return false
	}
	if len(last.Data) > 0 {
		_ = s.to.send(last) // as in tell
	}
	s.to.fail(why)
	return false
}

// find learns from an event which turn is the input's.
func (s *streaming) find(ev messages.Event) {
	if messages.Is(ev.EventType(), messages.JoinsTurn) && slices.Contains(messages.InputsOf(ev), s.input) {
		s.turn = messages.TurnOf(ev)
	}
}

// leave forgets the turn if the input leaves it for one of its own.
func (s *streaming) leave(ev messages.Event) {
	if messages.Is(ev.EventType(), messages.LeavesTurn) && slices.Contains(messages.InputsOf(ev), s.input) {
		s.turn = ""
	}
}

// ends says whether an event ends the input, and what its sender is told if
// there is no answer.
func (s *streaming) ends(ev messages.Event) (over bool, why *messages.Error) {
	if messages.Is(ev.EventType(), messages.EndsAgent) { // before its end could be told
		return true, messages.Refuse(messages.Conflict, "the agent was deleted, and with it what came of the input")
	}
	inputs, _ := messages.Ended(ev)
	if !slices.Contains(inputs, s.input) && projections.NotDue(ev) != s.input {
		return false, nil
	}
	return true, projections.WhyEnded(ev)
}

// mine says whether the caller is told of an event. Of other inputs it is not,
// nor of the end of a turn that goes on without its input. While its input
// waits it is told of what holds the turn before it.
func (s *streaming) mine(f fact) bool {
	switch traits := messages.TraitsOf(f.ev.EventType()); {
	case traits&messages.EndsTurn != 0:
		return false
	case traits&messages.HoldsTurn != 0:
		return s.turn == "" || f.turn() == s.turn
	case traits&(messages.JoinsTurn|messages.LeavesTurn) != 0:
		return slices.Contains(messages.InputsOf(f.ev), s.input)
	}
	return s.turn != "" && f.turn() == s.turn
}

// add puts a fact with those of its frame.
func (s *streaming) add(f fact) {
	room := int(s.g.Conn.MaxPayload()) / 2
	begun := len(s.facts)
	if begun == 0 {
		s.facts = append(s.facts, `{"type":"`+messages.ChunkEvents+`","data":[`...)
	} else {
		s.facts = append(s.facts, ',')
	}
	s.facts = f.append(s.facts)
	if len(s.facts) <= room {
		return
	}
	if begun > 0 { // those before it first
		s.facts = s.facts[:begun]
		s.tell()
		s.add(f)
		return
	}
	line := f.json()
	line.Data = json.RawMessage(`{"omitted":"it is too large for a message: read the agent's events"}`)
	s.facts = nil
	if b, err := json.Marshal(chunk{messages.ChunkEvents, []projections.EventJSON{line}}); err == nil {
		_ = s.to.data(b)
	}
}

// tell sends the facts of the frame at hand. A caller that is not there has its turn
// all the same.
func (s *streaming) tell() {
	if b := s.take(); b != nil {
		_ = s.to.data(b)
	}
	s.offers.ask()
}

// take returns the facts of the frame at hand as a message, which is valid until the next
// one is added. Nil: there are none.
func (s *streaming) take() (message []byte) {
	if len(s.facts) > 0 {
		message = append(s.facts, `]}`...)
		s.facts = message[:0]
	}
	return message
}
