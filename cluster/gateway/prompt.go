package gateway

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
)

// chunk is a message of a prompt's streamed reply. Types beyond status,
// response and query are ours and ignored by other clients: reprise.event
// carries a fact in the shape of `reprise events -o json`.
type chunk struct {
	Type string `json:"type"`
	Data any    `json:"data"`
}

// prompt answers one prompt: it puts the input on its way before it returns,
// so that order is kept, and streams from a goroutine of its own.
func (g *Gateway) prompt(msg *nats.Msg) {
	if !g.answerable(msg) {
		return
	}
	in, a, err := g.parsePrompt(msg)
	if err != nil {
		g.fail(msg.Reply, messages.AsError(err))
		return
	}
	if g.elsewhere(a.Partition(), msg) {
		return
	}
	feed, leave := g.Hub.follow(a)
	wait := g.Deliver(&actors.Deliver{Agent: a, Command: in, Cause: messages.Cause{Type: "input", ID: in.ID, Door: "prompt"}})
	g.running.Go(func() {
		defer leave()
		answer, err := wait()
		if err == nil && answer.Err != nil {
			err = answer.Err
		}
		if err != nil {
			g.fail(msg.Reply, messages.AsError(err))
			return
		}
		g.stream(a, in.ID, msg.Reply, answer, feed)
	})
}

// parsePrompt reads plain text or a JSON envelope. Beyond the protocol the
// envelope may have the fields of an input body.
func (g *Gateway) parsePrompt(msg *nats.Msg) (messages.Input, messages.AgentID, error) {
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
	if in.ID == "" {
		in.ID = "prompt:" + ulid.Make().String()
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
	// shown is the text already streamed of the model call under way.
	shown strings.Builder
	call  messages.CallID
}

// stream sends the ack, then everything of the input's turn until its end.
func (g *Gateway) stream(a messages.AgentID, input, to string, answer actors.Answer, feed *feed) {
	if !g.ack(to) {
		return
	}
	s := &streaming{g: g, to: to, input: input}
	w := &watcher{
		log: g.Log, agent: a, feed: feed, next: answer.N, fact: s.fact, delta: s.delta,
		quietAfter: keepAlive, quiet: func() bool { return g.ack(to) },
	}
	more, err := true, error(nil)
	if answer.Duplicate {
		more, err = w.past(g.ctx)
	}
	if err == nil && more {
		err = w.run(g.ctx)
	}
	if err != nil {
		why := messages.AsError(err)
		if g.ctx.Err() != nil {
			why = messages.Refuse(messages.Unavailable, "this node is shutting down; the turn goes on: ask again with id %q", input)
		}
		g.fail(to, why)
	}
}

func (g *Gateway) ack(to string) bool { return g.reply(to, chunk{"status", "ack"}) }

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
	case messages.ModelCompleted:
		if ev.Turn == s.turn {
			s.rest(ev)
		}
	case messages.ModelFailed:
		s.cut(ev.Turn)
	case messages.ModelRestarted:
		s.cut(ev.Turn)
	case messages.TurnFailed:
		end = messages.Refuse(messages.Internal, "turn %s failed (%s): %s", ev.Turn, ev.Reason, ev.Message)
	case messages.TurnAborted:
		end = messages.Refuse(messages.Conflict, "turn %s was aborted (%s) %s", ev.Turn, ev.By, ev.Reason)
	}
	line := f.json()
	accepted, isInput := f.ev.(messages.InputAccepted)
	mine := isInput && accepted.Input == s.input || s.turn != "" && line.Turn == s.turn
	if !mine {
		return true
	}
	s.g.reply(s.to, chunk{"reprise.event", line})
	switch f.ev.(type) {
	case messages.TurnCompleted:
		s.g.end(s.to)
		return false
	case messages.TurnFailed, messages.TurnAborted:
		s.g.fail(s.to, end)
		return false
	}
	return true
}

func (s *streaming) delta(d actors.Delta) (more bool) {
	switch {
	case s.turn == "" || d.Turn != s.turn:
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
	if rest, ok := strings.CutPrefix(text.String(), shown); ok && rest != "" {
		s.g.reply(s.to, chunk{"response", rest})
	}
	s.shown.Reset()
	s.call = ""
}

// cut tells the reader that the text so far will not be continued.
func (s *streaming) cut(turn messages.TurnID) {
	if turn == s.turn && s.shown.Len() > 0 {
		s.g.reply(s.to, chunk{"response", "\n[the answer was cut off; the model is asked again]\n"})
		s.shown.Reset()
		s.call = ""
	}
}
