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
// carries facts of one frame, a list in the shape of `reprise events -o json`.
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
		answer, err := (<-delivered)(g.ctx)
		if err == nil && answer.Err != nil {
			err = answer.Err
		}
		if err != nil {
			g.fail(r.Reply, g.why(err))
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
	to    string
	input string
	turn  messages.TurnID
	// after is the event up to which the caller knows everything already.
	after messages.EventNumber
	// shown is the text already streamed of the model call under way.
	shown strings.Builder
	call  messages.CallID
	// asked is the newest model call; deltas of joined are left out, for the
	// caller came in the middle of it and is told its text as a whole.
	asked, joined messages.CallID
	// facts are those of the frame at hand that were not sent yet.
	facts []byte
}

// stream sends the ack, then everything of the input's turn until its end.
func (g *Gateway) stream(a messages.AgentID, input, to string, answer messages.Answer, after messages.EventNumber, feed *feed) {
	if !g.ack(to) {
		return
	}
	s := &streaming{g: g, to: to, input: input, after: after}
	w := &watcher{
		log: g.Log, agent: a, feed: feed, next: answer.N, fact: s.fact, told: s.tell, delta: s.delta,
		quietAfter: keepAlive, quiet: s.quiet,
	}
	more, err := true, error(nil)
	if answer.Duplicate {
		more, err = w.past(g.ctx)
		s.joined = s.asked
	}
	if err == nil && more {
		err = w.run(g.ctx)
	}
	switch {
	case err == nil:
	case g.ctx.Err() != nil:
		g.fail(to, messages.Refuse(messages.Unavailable, "this node is shutting down; the turn goes on: ask again with id %q", input))
	default:
		g.fail(to, messages.AsError(err))
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

func (s *streaming) fact(f fact) (more bool) {
	var end *messages.Error
	switch ev := f.ev.(type) {
	case messages.InputAccepted:
		if ev.Input != s.input {
			return true
		}
		s.turn = ev.Turn
	case messages.TurnStarted:
		if slices.Contains(ev.Inputs, s.input) {
			s.turn = ev.Turn
		}
	case messages.ModelRequested:
		if ev.Turn == s.turn {
			s.asked = ev.Call
		}
	case messages.ModelCompleted:
		if ev.Turn == s.turn && f.n > s.after {
			s.rest(ev)
		}
	case messages.ModelFailed:
		s.cut(ev.Turn, ev.RetryAt != nil)
	case messages.ModelRestarted:
		s.cut(ev.Turn, true)
	case messages.TurnFailed:
		end = messages.Refuse(messages.Internal, "turn %s failed (%s): %s", ev.Turn, ev.Reason, ev.Message)
	case messages.TurnAborted:
		end = messages.Refuse(messages.Conflict, "turn %s was aborted (%s) %s", ev.Turn, ev.By, ev.Reason)
	}
	accepted, isInput := f.ev.(messages.InputAccepted)
	mine := isInput && accepted.Input == s.input || s.turn != "" && f.turn() == s.turn
	if !mine {
		return true
	}
	if f.n > s.after {
		s.add(f)
	}
	switch f.ev.(type) {
	case messages.TurnCompleted:
		s.tell()
		s.g.end(s.to)
		return false
	case messages.TurnFailed, messages.TurnAborted:
		s.tell()
		s.g.fail(s.to, end)
		return false
	}
	return true
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
}

func (s *streaming) delta(d actors.Delta) (more bool) {
	switch {
	case s.turn == "" || d.Turn != s.turn || d.Call == s.joined:
	case d.Kind == "text":
		if d.Call != s.call {
			s.call = d.Call
			s.shown.Reset()
		}
		s.shown.WriteString(d.Text)
		return s.g.reply(s.to, chunk{"response", d.Text})
	default:
		return s.g.reply(s.to, chunk{"reprise." + d.Kind, d.Text})
	}
	return true
}

// rest streams what the answer holds beyond what was streamed of it: all of
// it, if the model does not stream.
func (s *streaming) rest(ev messages.ModelCompleted) {
	var text strings.Builder
	for _, item := range ev.Items {
		if item.Type == messages.ItemMessage || item.Type == messages.ItemRefusal {
			text.WriteString(item.Content.Text())
		}
	}
	shown := ""
	if s.call == ev.Call {
		shown = s.shown.String()
	}
	rest, ok := strings.CutPrefix(text.String(), shown)
	if !ok { // pieces were dropped: the caller did not keep up
		rest = "\n[a part was lost; the whole answer again]\n" + text.String()
	}
	if rest != "" {
		s.tell()
		s.g.reply(s.to, chunk{"response", rest})
	}
	s.shown.Reset()
	s.call = ""
}

// cut tells the reader that the text so far will not be continued.
func (s *streaming) cut(turn messages.TurnID, again bool) {
	if turn == s.turn && s.shown.Len() > 0 {
		s.tell()
		note := "\n[the answer was cut off]\n"
		if again {
			note = "\n[the answer was cut off; the model is asked again]\n"
		}
		s.g.reply(s.to, chunk{"response", note})
		s.shown.Reset()
		s.call = ""
	}
}
