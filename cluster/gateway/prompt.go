package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// chunk is a message of a prompt's streamed reply. Types beyond status,
// response and query are ours and ignored by other clients: reprise.events
// carries facts of one frame, a list in the shape of `reprise events -o json`;
// reprise.waiting says that the prompt is not accepted yet; reprise.child is a
// piece of the answer of an agent below, with the call that it works for.
type chunk struct {
	Type string `json:"type"`
	Data any    `json:"data"`
}

// prompt answers one prompt: it puts the input on its way before it returns,
// so that order is kept, and streams from a goroutine of its own.
func (g *Gateway) prompt(r request) {
	if !g.answerable(r) {
		return
	}
	g.prompts.Add(1)
	streams := false
	defer func() {
		if !streams {
			g.over(r)
		}
	}()
	in, a, err := g.parsePrompt(r)
	if err != nil {
		g.fail(r.Reply, messages.AsError(err))
		return
	}
	made := ""
	if in.ID == "" {
		made = "prompt:" + ulid.Make().String()
		in.ID = made
	}
	if g.elsewhere(a.Partition(), r, made) {
		return
	}
	feed, leave := g.Hub.follow(a)
	after := eventNumber(r.Header.Get(messages.HeaderAfter))
	delivered := make(chan func(context.Context) (messages.Answer, error), 1)
	streams = g.begin(func() {
		defer g.over(r)
		defer leave()
		waited := g.company(r.Reply)
		answer, err := (<-delivered)(g.ctx)
		waited()
		if err == nil && answer.Err != nil {
			err = answer.Err
		}
		if err != nil {
			g.fail(r.Reply, g.why(err))
			return
		}
		if answer.Timer != "" { // nothing comes of it now
			if g.ack(r.Reply) {
				g.end(r.Reply)
			}
			return
		}
		g.stream(a, in.ID, r.Reply, answer, after, feed)
	})
	if !streams {
		leave()
		g.fail(r.Reply, g.full())
		return
	}
	delivered <- g.Deliver(&actors.Deliver{Agent: a, Command: in, Cause: messages.Cause{Type: "input", ID: in.ID, Door: "prompt"}})
}

// parsePrompt reads plain text or a JSON envelope. Beyond the protocol the
// envelope may have the fields of an input body.
func (g *Gateway) parsePrompt(msg request) (messages.Input, messages.AgentID, error) {
	a, err := messages.ParsePrompt(msg.Subject)
	if err == nil {
		err = g.Serves(a.Kind)
	}
	if err != nil {
		return messages.Input{}, a, err
	}
	body, err := unwrap(msg.Data)
	if err != nil {
		return messages.Input{}, a, err
	}
	in, err := messages.ParseInput(a, msg.Header.Get, body)
	if err == nil {
		err = g.Subjects.AllowReply(in.Reply)
	}
	return in, a, err
}

// unwrap turns the protocol's envelope into an input body.
func unwrap(data []byte) ([]byte, error) {
	var envelope map[string]json.RawMessage
	if len(data) == 0 || data[0] != '{' || json.Unmarshal(data, &envelope) != nil || envelope["prompt"] == nil {
		return data, nil
	}
	var attachments []json.RawMessage
	if raw := envelope["attachments"]; raw != nil && (json.Unmarshal(raw, &attachments) != nil || len(attachments) > 0) {
		return nil, messages.Refuse(messages.BadInput, "attachments are not accepted (attachments_ok is false): send text")
	}
	envelope["content"] = envelope["prompt"]
	for _, field := range []string{"prompt", "attachments", "type"} {
		delete(envelope, field)
	}
	return json.Marshal(envelope)
}

// streaming is one prompt's reply on its way.
type streaming struct {
	g     *Gateway
	agent messages.AgentID
	to    string
	input string
	turn  messages.TurnID
	// after is the event up to which the caller knows everything already.
	after messages.EventNumber
	// shown is the text already streamed of the model call under way.
	shown strings.Builder
	call  messages.CallID
	// asked is the newest model call that was told of; deltas of others, and of
	// joined, are left out, for the caller came in the middle of it and is told
	// its text as a whole.
	asked, joined messages.CallID
	// said is the turn's newest text, of its model or of a hook; answer says that
	// it may be what the turn answers.
	said   string
	answer bool
	// offers asks the caller about calls that wait for approval.
	offers *offers
	// facts are those of the frame at hand that were not sent yet.
	facts []byte
}

// stream sends the ack, then everything of the input's turn until its end.
func (g *Gateway) stream(a messages.AgentID, input, to string, answer messages.Answer, after messages.EventNumber, feed *feed) {
	if !g.ack(to) {
		return
	}
	s := &streaming{g: g, agent: a, to: to, input: input, after: after, offers: g.offers(a, to)}
	w := &watcher{
		log: g.Log, agent: a, feed: feed, next: answer.N, fact: s.fact, told: s.tell, delta: s.delta,
		quietAfter: keepAlive, quiet: s.quiet,
	}
	more, err := true, error(nil)
	if answer.Disposition == messages.Joined {
		err = s.offers.catchUp(answer.N)
	}
	if err == nil && answer.Duplicate {
		if more = s.wait(g.again); more {
			more, err = w.past(g.ctx)
			<-g.again
		}
		s.joined = s.asked
	}
	if err == nil && more {
		s.offers.begin()
		if answer.Duplicate {
			s.offers.ask()
		}
		err = w.run(g.ctx)
	}
	s.offers.close()
	switch {
	case err == nil:
	case g.ctx.Err() != nil:
		g.fail(to, messages.Refuse(messages.Unavailable, "this node is shutting down; the turn goes on: ask again with id %q", input))
	default:
		g.fail(to, messages.AsError(err))
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

// company says every keepAlive, until leave, that a prompt which is not accepted
// yet is under way: many may be in front of it.
func (g *Gateway) company(to string) (leave func()) {
	ctx, stop := context.WithCancel(g.ctx)
	late := time.AfterFunc(keepAlive, func() {
		ticker := time.NewTicker(keepAlive)
		defer ticker.Stop()
		for ctx.Err() == nil && g.reply(to, chunk{"reprise.waiting", nil}) {
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	})
	return func() {
		late.Stop()
		stop()
	}
}

func (g *Gateway) ack(to string) bool { return g.reply(to, chunk{"status", "ack"}) }

// probe is how long a quiet stream waits to be told that its caller has gone.
const probe = 100 * time.Millisecond

// quiet sends a keep-alive, as a request: nobody answers it, but the server
// says at once if nobody is there to hear it.
func (s *streaming) quiet() bool {
	ctx, cancel := context.WithTimeout(s.g.ctx, probe)
	defer cancel()
	_, err := s.g.Conn.RequestWithContext(ctx, s.to, []byte(`{"type":"status","data":"ack"}`))
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
	s.text(f)
	if f.n > s.after {
		s.add(f)
	}
	s.offers.apply(f)
	if !over {
		s.leave(f.ev)
		return true
	}
	s.tell()
	s.offers.close() // nothing may follow the end
	if why != nil {
		s.g.fail(s.to, why)
	} else {
		s.g.end(s.to)
	}
	return false
}

// find learns from an event which turn is the input's.
func (s *streaming) find(ev messages.Event) {
	switch ev := ev.(type) {
	case messages.InputAccepted:
		if ev.Input == s.input {
			s.turn = ev.Turn
		}
	case messages.TurnStarted:
		if slices.Contains(ev.Inputs, s.input) {
			s.turn = ev.Turn
		}
	}
}

// leave forgets the turn if the input leaves it for one of its own.
func (s *streaming) leave(ev messages.Event) {
	if ev, ok := ev.(messages.InputRequeued); ok && ev.Input == s.input {
		s.turn = ""
	}
}

// ends says whether an event ends the input, and what its sender is told if
// there is no answer.
func (s *streaming) ends(ev messages.Event) (over bool, why *messages.Error) {
	if _, deleted := ev.(messages.AgentDeleted); deleted { // before its end could be told
		return true, messages.Refuse(messages.Conflict, "the agent was deleted, and with it what came of the input")
	}
	inputs, _ := messages.Ended(ev)
	if !slices.Contains(inputs, s.input) {
		return false, nil
	}
	switch ev := ev.(type) {
	case messages.TurnFailed:
		why = messages.Refuse(messages.Internal, "turn %s failed (%s): %s", ev.Turn, ev.Reason, ev.Message)
	case messages.TurnAborted:
		why = messages.Refuse(messages.Conflict, "turn %s was aborted (%s)%s", ev.Turn, ev.By, because(ev.Reason))
	case messages.InputWithdrawn:
		why = messages.Refuse(messages.Conflict, "input %q was withdrawn before a model had seen it%s", ev.Input, because(ev.Reason))
	case messages.InputDropped:
		why = messages.Refuse(messages.Conflict, "input %q was dropped (%s) before a model had seen it%s", ev.Input, ev.By, because(ev.Reason))
	}
	return true, why
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// mine says whether the caller is told of an event. Of other inputs it is not,
// nor of the end of a turn that goes on without its input. While its input
// waits it is told of what holds the turn before it.
func (s *streaming) mine(f fact) bool {
	switch ev := f.ev.(type) {
	case messages.InputAccepted:
		return ev.Input == s.input
	case messages.InputRequeued:
		return ev.Input == s.input
	case messages.TurnPaused, messages.TurnResumed:
		return s.turn == "" || f.turn() == s.turn
	case messages.TurnCompleted, messages.TurnFailed, messages.TurnAborted:
		return false
	}
	return s.turn != "" && f.turn() == s.turn
}

// add puts a fact with those of its frame.
func (s *streaming) add(f fact) {
	room := int(s.g.Conn.MaxPayload()) / 2
	begun := len(s.facts)
	if begun == 0 {
		s.facts = append(s.facts, `{"type":"reprise.events","data":[`...)
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
	s.g.reply(s.to, chunk{"reprise.events", []projections.EventJSON{line}})
}

// tell sends the facts of the frame at hand.
func (s *streaming) tell() {
	if len(s.facts) > 0 {
		_ = s.g.Conn.Publish(s.to, append(s.facts, `]}`...)) // a caller that is not there has its turn all the same
		s.facts = s.facts[:0]
	}
	s.offers.ask()
}
