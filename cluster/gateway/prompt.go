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

// stream is the reply to one prompt, from its acceptance to the end of its turn: the text of the answer
// in pieces, the facts, and questions about calls that wait for approval. Its methods are for
// the goroutine that runs it.
type stream struct {
	g     *Gateway
	agent messages.AgentID
	input string
	reply *reply
	// after is the event up to which the caller has everything already.
	after messages.EventNumber
	// brief reports that the caller wants no facts but the pauses and the end.
	brief bool

	turn      messages.TurnID // that the input is in; empty: it waits
	text      answerText
	questions *questions
	// facts are those of the frame at hand that were not sent yet.
	facts []byte
	// err is why the text cannot be read now.
	err error
}

// prompt answers one prompt: it delivers the input before it returns, so that order is kept, and
// streams from a goroutine of its own.
func (g *Gateway) prompt(r *nats.Msg) {
	if !g.answerable(r) {
		return
	}
	to := g.replyTo(r)
	in, a, err := g.parsePrompt(r)
	count := g.counts.begin("prompt", a.Kind)
	refuse := func(why *messages.Error) {
		to.fail(why)
		count(why)
	}
	if err != nil {
		refuse(messages.AsError(err))
		return
	}
	s := &stream{
		g: g, agent: a, input: in.ID, reply: to, after: eventNumber(r.Header.Get(messages.HeaderAfter)),
		brief: r.Header.Get(messages.HeaderFacts) == messages.FactsEnd, questions: g.questionsTo(to, a),
	}
	feed, leave := g.Broker.follow(a)
	d := &actors.Deliver{Agent: a, Command: in, Cause: messages.Cause{Type: in.CommandType(), ID: in.ID, Endpoint: messages.EndpointPrompt}.From(personOf(r)), Trace: messages.TraceOf(r.Header.Get)}
	if !to.numbered { // the caller cannot notice by itself that this node is gone
		d.Cause.Stream = &messages.Stream{Node: g.Self, Reply: r.Reply}
	}
	delivered := make(chan func(context.Context) (messages.Answer, error), 1)
	if !g.begin(func() {
		if answer := s.accept(<-delivered, in.Scheduled()); answer != nil {
			s.run(answer, feed)
		}
		leave()
		count(to.failed)
	}) {
		leave()
		refuse(g.full())
		return
	}
	delivered <- g.Deliver(d)
}

// parsePrompt reads the input of a prompt and adds an id if it has none.
func (g *Gateway) parsePrompt(msg *nats.Msg) (messages.Input, messages.AgentID, error) {
	a, err := messages.ParsePrompt(msg.Subject)
	if root := msg.Header.Get(messages.HeaderRoot); err == nil && !g.Subjects.Names(root) {
		err = messages.Refuse(messages.Unavailable, "this endpoint belongs to another installation in the same NATS account, and the prompt is for root %q: ask again; better, give each installation an account of its own", root)
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
	if in.ID == "" {
		in.ID = "prompt:" + ulid.Make().String()
	}
	return in, a, err
}

// accept waits for the agent's answer to the input and acknowledges the prompt. It returns nil where the
// stream has ended with that: the input was refused, or it comes later. It is no part of run, so that the stack
// that it takes is not kept while a model is waited for.
func (s *stream) accept(delivered func(context.Context) (messages.Answer, error), later bool) *messages.Answer {
	stop := s.reply.keepAlive(messages.ChunkWaiting, nil)
	answer, err := delivered(s.g.ctx)
	stop()
	if err == nil && answer.Err != nil {
		err = answer.Err
	}
	if err != nil {
		s.reply.fail(s.g.why(err))
		return nil
	}
	s.reply.chunk(messages.ChunkStatus, messages.StatusAck)
	if later {
		s.reply.end(nats.NewMsg(s.reply.to))
		return nil
	}
	return &answer
}

// run streams what becomes of an accepted input until its end, beginning with what has come before.
func (s *stream) run(answer *messages.Answer, feed *feed) {
	w := &watcher{
		log: s.g.Log, agent: s.agent, feed: feed, next: answer.N, named: answer.N, fact: s.event, flush: s.flush, delta: s.delta,
		idleAfter: keepAlive, idle: s.idle,
	}
	more, err := true, error(nil)
	if answer.Duplicate || answer.Disposition == messages.Steered {
		stop := s.reply.keepAlive(messages.ChunkStatus, messages.StatusAck)
		more, err = s.past(w, answer)
		stop()
	}
	if err == nil && more {
		ctx := s.questions.begin(s.g.ctx)
		if answer.Duplicate {
			s.questions.ask()
		}
		if err = w.run(ctx); err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}
	if err == nil {
		err = s.err
	}
	s.questions.close()
	switch {
	case err == nil:
	case s.g.ctx.Err() != nil:
		s.reply.fail(messages.Refuse(messages.Unavailable, "this node is shutting down; the turn continues: ask again with id %q", s.input))
	default:
		s.reply.fail(s.g.why(err))
	}
}

// past streams what the turn has had when the caller came to it, as soon as there is a place among those who
// read. It reports whether more follows.
func (s *stream) past(w *watcher, answer *messages.Answer) (more bool, err error) {
	if answer.Disposition == messages.Steered {
		if err := s.questions.catchUp(answer.N); err != nil {
			return false, err
		}
	}
	if !answer.Duplicate {
		return true, nil
	}
	select {
	case s.g.again <- struct{}{}:
	case <-s.g.ctx.Done():
		return false, s.g.ctx.Err()
	}
	more, err = w.past(s.g.ctx)
	<-s.g.again
	s.text.joined = s.text.call
	return more, err
}

// goneWithin is how long an idle stream waits for the answer that its caller has gone.
const goneWithin = 100 * time.Millisecond

// idle sends a keep-alive and reports whether the caller may still be there. The server,
// or our own client, answers one for a caller that has gone. It is a request by the
// connection's own inbox, for there may be many such streams. A caller in another account
// cannot be seen: after unseenFor without news it is refused, and asks again.
func (s *stream) idle() (more bool) {
	msg := s.reply.alive()
	msg.Data = []byte(`{"type":"` + messages.ChunkStatus + `","data":"` + messages.StatusAck + `"}`)
	if messages.Across(s.reply.to) {
		_ = s.g.Conn.PublishMsg(msg) // the next one follows
		if s.reply.silence() <= unseenFor {
			return true
		}
		s.reply.fail(messages.Refuse(messages.Unavailable, "nothing has happened for %v, and this node cannot see callers in another account; the turn continues: ask again with id %q", unseenFor, s.input))
		return false
	}
	ctx, cancel := context.WithTimeout(s.g.ctx, goneWithin)
	defer cancel()
	_, err := s.g.Conn.RequestMsgWithContext(ctx, msg)
	return !errors.Is(err, nats.ErrNoResponders)
}

// event streams an event of the input or of its turn, up to the one that ends the input.
func (s *stream) event(f fact) (more bool) {
	names := func(trait messages.Trait) bool {
		return messages.Is(f.ev.EventType(), trait) && slices.Contains(messages.InputsOf(f.ev), s.input)
	}
	if names(messages.JoinsTurn) {
		s.turn = messages.TurnOf(f.ev)
	}
	over, why := s.ends(f.ev)
	if !over && !s.concerns(f) {
		return true
	}
	if s.streamed(f); s.err != nil {
		return false
	}
	if f.n > s.after && (over || !s.brief || messages.Is(f.ev.EventType(), messages.HoldsTurn)) {
		s.add(f)
	}
	s.questions.apply(f)
	if over {
		s.end(why)
		return false
	}
	if names(messages.LeavesTurn) { // for one of its own
		s.turn = ""
	}
	return true
}

// end ends the stream with the facts at hand, and with the reason if there is no answer.
func (s *stream) end(why *messages.Error) {
	s.questions.close() // nothing may follow the end
	last := nats.NewMsg(s.reply.to)
	last.Data = s.take()
	if why == nil {
		s.reply.end(last)
		return
	}
	if len(last.Data) > 0 {
		_ = s.reply.send(last) // as in flush
	}
	s.reply.fail(why)
}

// ends reports whether an event ends the input, and why there is no answer; nil: there is one.
func (s *stream) ends(ev messages.Event) (over bool, why *messages.Error) {
	if messages.Is(ev.EventType(), messages.EndsAgent) { // its own end was purged
		return true, messages.Refuse(messages.Conflict, "the agent was deleted, and the outcome of the input with it")
	}
	inputs, _ := messages.Ended(ev)
	if !slices.Contains(inputs, s.input) && projections.NotDue(ev) != s.input {
		return false, nil
	}
	return true, projections.WhyEnded(ev)
}

// concerns reports whether the caller gets an event. It gets those of no other input,
// nor the end of a turn that its input has left. While its input waits it gets what holds the turn before it.
func (s *stream) concerns(f fact) bool {
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
func (s *stream) add(f fact) {
	room := int(s.g.Conn.MaxPayload()) / 2
	before := len(s.facts)
	if before == 0 {
		s.facts = append(s.facts, `{"type":"`+messages.ChunkEvents+`","data":[`...)
	} else {
		s.facts = append(s.facts, ',')
	}
	s.facts = f.append(s.facts)
	if len(s.facts) <= room {
		return
	}
	if before > 0 { // those before it first
		s.facts = s.facts[:before]
		s.flush()
		s.add(f)
		return
	}
	line := f.json()
	line.Data = json.RawMessage(`{"omitted":"it is too large for a message: read the agent's events"}`)
	s.facts = nil
	s.reply.chunk(messages.ChunkEvents, []projections.EventJSON{line})
}

// flush sends the facts of the frame at hand, and asks what has come to wait. A caller that is not there has its turn
// all the same.
func (s *stream) flush() {
	if b := s.take(); b != nil {
		_ = s.reply.data(b)
	}
	s.questions.ask()
}

// take returns the facts of the frame at hand as a message, which is valid until the next
// one is added. Nil: there are none.
func (s *stream) take() (message []byte) {
	if len(s.facts) > 0 {
		message = append(s.facts, `]}`...)
		s.facts = message[:0]
	}
	return message
}
