package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// Event is a piece of an answer, or an event of its turn.
type Event struct {
	// Type is delta, reasoning, cut, query, notice, or the type of an event such as
	// tool.started. A piece of the answer of an agent below is child.text or
	// child.reasoning. After a cut the deltas and the reasoning of the model call at hand are
	// void: those that follow begin again.
	Type string `json:"type"`
	// Text is a piece of the answer (delta, child.text) or of the reasoning, the reason of a cut,
	// the question of a query, or a notice for a person, such as why nothing comes.
	Text string `json:"text,omitempty"`
	// Question is set for a query; [Client.Answer] answers it.
	Question *Question `json:"question,omitempty"`
	// Child is the agent whose answer a child.text is a piece of, ChildCall the tool call that
	// it works for.
	Child     string          `json:"child,omitempty"`
	ChildCall messages.CallID `json:"call,omitempty"`
	// N, Seq, Frame, Turn, Step, At, Person and Data are set for events of the log. Person is
	// whose command caused the event; nil: no one is named. Data is the event as JSON: decode it
	// into the type of package messages that Type names, such as [messages.TurnPaused] for
	// turn.paused.
	N      messages.EventNumber `json:"n,omitempty"`
	Seq    uint64               `json:"seq,omitempty"`
	Frame  messages.FrameID     `json:"frame,omitempty"`
	Turn   messages.TurnID      `json:"turn,omitempty"`
	Step   int                  `json:"step,omitempty"`
	At     time.Time            `json:"at,omitzero"`
	Person *messages.Person     `json:"person,omitempty"`
	Data   json.RawMessage      `json:"data,omitempty"`
	// Output and Usage are those of the turn, in its terminal event. Output is complete, also if
	// it is stored as a blob.
	Output string          `json:"output,omitempty"`
	Usage  *messages.Usage `json:"usage,omitempty"`
}

// Question is what an agent asks in the middle of a turn, such as whether a call may run. The turn
// waits for an answer. Other clients may get the same question.
type Question struct {
	ID string `json:"id"`
	// ReplySubject takes the answer until the stream ends.
	ReplySubject string `json:"reply_subject"`
	// Prompt is a text for a person, with the answers that are understood.
	Prompt string `json:"prompt"`
}

// Terminal reports whether the input ends with this event: with its turn, or because it was
// cancelled or dropped before a model saw it.
func (e Event) Terminal() bool {
	return messages.Is(e.Type, messages.EndsInput)
}

// Ask sends text to an agent and yields its answer: pieces of it as they come, questions, the
// pauses of the turn, and last the event that ends the input, with output and usage. If the turn
// failed or was aborted, or the input was cancelled or dropped, the terminal event is followed
// by an error. Leaving the loop does not stop the turn.
//
// A turn that waits for a person yields turn.paused, and the loop continues when the turn does.
// The pause may be over when turn.paused is read: an input that is asked again under its id
// yields those of the past, too. [Client.Show] returns what the agent waits for now. While the
// input is in the queue, turn.paused and turn.resumed of the turns before it are yielded; their
// Turn is another one.
func (c *Client) Ask(ctx context.Context, agent, text string) iter.Seq2[Event, error] {
	return c.AskInput(ctx, agent, messages.Input{Content: messages.TextContent(text)})
}

// AskInput is [Client.Ask] for an input with an id, a policy or more than text. An input that steers a
// running turn yields the rest of that turn. If the agent's owner cannot be reached, or goes away
// in the middle, AskInput sends the input again under the same id and continues after the last
// event, until ctx ends; without a deadline it gives up after half a minute in which nothing
// came. If that takes seconds, a notice has the reason.
func (c *Client) AskInput(ctx context.Context, agent string, in messages.Input) iter.Seq2[Event, error] {
	return c.ask(ctx, agent, in, messages.FactsEnd)
}

// AskFacts is [Client.AskInput] that yields every event of the input and its turn.
func (c *Client) AskFacts(ctx context.Context, agent string, in messages.Input) iter.Seq2[Event, error] {
	return c.ask(ctx, agent, in, "")
}

// ask yields what becomes of an input, with the facts that [messages.HeaderFacts] says.
func (c *Client) ask(ctx context.Context, agent string, in messages.Input, facts string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		a, err := messages.ParseAgentID(agent)
		if err != nil {
			yield(Event{}, err)
			return
		}
		if in.Scheduled() {
			yield(Event{}, messages.Refuse(messages.BadInput, "an input that comes later has no answer now: send it"))
			return
		}
		in.ID = orNew(in.ID)
		body, err := messages.EncodePrompt(in)
		if err != nil {
			yield(Event{}, err)
			return
		}
		s := &asking{yield: yield, wants: facts, read: func(b messages.Blob) (string, error) {
			var text strings.Builder
			_, err := c.Blob(ctx, agent, b.SHA256, &text)
			return text.String(), err
		}}
		if err := s.run(ctx, c, messages.Prompt(a), body); err != nil && !s.left {
			yield(Event{}, err)
		}
	}
}

// asking turns the agent protocol's chunks into events.
type asking struct {
	yield func(Event, error) bool
	read  func(messages.Blob) (string, error)
	wants string // messages.HeaderFacts
	left  bool
	last  messages.EventNumber // up to which everything was yielded
	try   trying
	// came is when something of the answer came, or it was asked first; told is set once
	// the reader knows that nothing has come since.
	came time.Time
	told bool
	// partial reports whether text was yielded of a model call that has not ended.
	partial bool
}

// run asks until the stream has ended.
func (s *asking) run(ctx context.Context, c *Client, subject string, body []byte) error {
	s.progress()
	for {
		header := c.from(ctx, nats.Header{messages.HeaderRoot: {c.root()}})
		if s.wants != "" {
			header.Set(messages.HeaderFacts, s.wants)
		}
		if s.last > 0 {
			header.Set(messages.HeaderAfter, strconv.FormatUint(uint64(s.last), 10))
		}
		_, err := c.stream(ctx, call{subject, header, body}, s.message)
		if err == nil || s.left {
			return nil
		}
		if s.stalls(err); s.left {
			return nil
		}
		if err := s.try.again(ctx, err); err != nil {
			return err
		}
		if s.partial {
			s.partial = false
			if !s.give(Event{Type: "cut", Text: "the stream was cut off; the answer begins again"}) {
				return nil
			}
		}
	}
}

// stallsAfter is how long nothing may come before the reader is told why.
const stallsAfter = 3 * time.Second

// stalls tells the reader, once, why nothing comes, as while a node cannot write.
func (s *asking) stalls(err error) {
	var refused *messages.Error
	if !s.told && errors.As(err, &refused) && refused.Code == messages.Unavailable && time.Since(s.came) > stallsAfter {
		s.told = true
		s.give(Event{Type: "notice", Text: "No answer yet, the request is repeated: " + refused.Message})
	}
}

// progress notes that something has come.
func (s *asking) progress() { s.came, s.told = time.Now(), false }

// chunkOf takes a message of a reply apart. Its data is decoded once, by who wants it.
func chunkOf(message []byte) (kind string, data []byte, err error) {
	rest, is := bytes.CutPrefix(message, []byte(`{"type":"`))
	name, rest, cut := bytes.Cut(rest, []byte(`","data":`))
	if data, end := bytes.CutSuffix(rest, []byte{'}'}); is && cut && end && !bytes.ContainsAny(name, "\"\\") {
		return string(name), data, nil
	}
	var chunk struct {
		Type string
		Data json.RawMessage
	}
	err = json.Unmarshal(message, &chunk)
	return chunk.Type, chunk.Data, err
}

func (s *asking) message(msg *nats.Msg) (more bool, err error) {
	s.try = trying{}
	s.seen(msg.Header.Get(messages.HeaderAfter))
	kind, data, err := chunkOf(msg.Data)
	if err != nil {
		return false, err
	}
	switch kind {
	case messages.ChunkResponse, messages.ChunkReasoning:
		e, err := piece(kind, data)
		if err != nil {
			return false, err
		}
		s.partial = true
		s.progress()
		return s.give(e), nil
	case messages.ChunkCut:
		var c messages.Cut
		if err := json.Unmarshal(data, &c); err != nil {
			return false, err
		}
		s.partial = false
		return s.give(Event{Type: "cut", Text: c.Reason.String()}), nil
	case messages.ChunkQuery:
		q := new(Question)
		if err := json.Unmarshal(data, q); err != nil {
			return false, err
		}
		return s.give(Event{Type: "query", Text: q.Prompt, Question: q}), nil
	case messages.ChunkNotice:
		e := Event{Type: "notice"}
		if err := json.Unmarshal(data, &e.Text); err != nil {
			return false, err
		}
		return s.give(e), nil
	case messages.ChunkChild:
		var e Event
		if err := json.Unmarshal(data, &e); err != nil {
			return false, err
		}
		return s.give(e), nil
	case messages.ChunkEvents:
		return s.facts(data)
	}
	return true, nil
}

// seen notes up to which event everything was yielded, from the header of a message that
// comes without the facts.
func (s *asking) seen(after string) {
	if after == "" {
		return
	}
	if n, err := strconv.ParseUint(after, 10, 64); err == nil && messages.EventNumber(n) > s.last {
		s.last, s.partial = messages.EventNumber(n), false
	}
}

func (s *asking) give(e Event) (more bool) {
	s.left = !s.yield(e, nil)
	return !s.left
}

func (s *asking) facts(data []byte) (more bool, err error) {
	var list []Event
	if err := json.Unmarshal(data, &list); err != nil {
		return false, err
	}
	for _, e := range list {
		if e.N <= s.last {
			continue
		}
		if err := e.finish(s.read); err != nil {
			return false, err
		}
		s.last = e.N
		s.progress()
		s.partial = s.partial && !endsCall(messages.TraitsOf(e.Type))
		if !s.give(e) {
			return false, nil
		}
	}
	return true, nil
}

// endsCall reports whether no model call of the turn is under way after an event with the traits.
func endsCall(t messages.Trait) bool {
	return t&messages.HoldsTurn != 0 || t&messages.EndsModelCall != 0 && t&messages.Summarizes == 0
}

func piece(chunkType string, data json.RawMessage) (e Event, err error) {
	if e.Type = "delta"; chunkType != messages.ChunkResponse {
		e.Type = "reasoning"
	}
	if json.Unmarshal(data, &e.Text) == nil {
		return e, nil
	}
	var object struct{ Text string }
	err = json.Unmarshal(data, &object)
	e.Text = object.Text
	return e, err
}

// finish reads the output and usage of a terminal event.
func (e *Event) finish(read func(messages.Blob) (string, error)) (err error) {
	if !e.Terminal() {
		return nil
	}
	var end struct {
		Output string
		Blob   *messages.Blob
		Usage  *messages.Usage
	}
	if err := json.Unmarshal(e.Data, &end); err != nil {
		return err
	}
	e.Output, e.Usage = end.Output, end.Usage
	if end.Blob != nil {
		e.Output, err = read(*end.Blob)
	}
	return err
}
