// Package client talks to agents over NATS, for services that only send and
// read. It imports only messages and nats.go.
//
// # Guarantees
//
//   - Every command carries an id, made here if the caller gives none, so that
//     trying again inside the caller's deadline has no second effect.
//   - An error is a *messages.Error where the agent or its node refused; its
//     Temporary method says whether trying again can help.
//   - A Client is safe for concurrent use and keeps nothing but its connection.
package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// Client sends to agents and reads what became of it.
type Client struct {
	nc       *nats.Conn
	subjects messages.Subjects
}

// New makes a client of a connection. Root is the first token of the
// installation's subjects; empty means reprise.
func New(nc *nats.Conn, root string) *Client { return &Client{nc, messages.Subjects{Root: root}} }

// silence is how long a streamed reply may say nothing before it is given up;
// nodes send something at least every 20 seconds.
const silence = time.Minute

// Answer is what became of a command.
type Answer struct {
	// N is the event that tells of it.
	N           messages.EventNumber `json:"n"`
	Turn        messages.TurnID      `json:"turn,omitempty"`
	Disposition messages.Disposition `json:"disposition,omitempty"`
	// Noop says why it changed nothing. Empty: it did.
	Noop string `json:"noop,omitempty"`
	// Duplicate says that its id was applied before; this is its first answer.
	Duplicate bool            `json:"duplicate,omitempty"`
	Err       *messages.Error `json:"error,omitempty"`
}

// Send publishes an input and returns its id once JetStream has it: from then
// on it is not lost, though it may still be refused, as its reply subject or
// the dead letters tell.
func (c *Client) Send(ctx context.Context, agent string, in messages.Input) (id string, err error) {
	a, err := messages.ParseAgentID(agent)
	if err != nil {
		return "", err
	}
	in.ID = orNew(in.ID)
	return in.ID, c.publish(ctx, c.subjects.In(a), "input", in, "")
}

func orNew(id string) string {
	if id == "" {
		return rand.Text()
	}
	return id
}

// Do publishes a command to the agent's command subject and waits for the
// answer. A refusal is the error.
func (c *Client) Do(ctx context.Context, agent string, cmd messages.Command) (Answer, error) {
	a, err := messages.ParseAgentID(agent)
	if err != nil {
		return Answer{}, err
	}
	sub, err := c.nc.SubscribeSync(c.nc.NewInbox())
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	cmd = messages.WithID(cmd, orNew(cmd.CommandID()))
	if err := c.publish(ctx, c.subjects.Ctl(a), cmd.CommandType(), cmd, sub.Subject); err != nil {
		return Answer{}, err
	}
	msg, err := sub.NextMsgWithContext(ctx)
	if err != nil {
		return Answer{}, messages.Refuse(messages.Unavailable, "the %s was stored but %s has not answered: %v", cmd.CommandType(), agent, err)
	}
	var answer Answer
	if err := json.Unmarshal(msg.Data, &answer); err != nil {
		return Answer{}, err
	}
	if answer.Err != nil {
		return answer, answer.Err
	}
	return answer, nil
}

func (c *Client) publish(ctx context.Context, subject, kind string, body any, reply string) error {
	fields, err := json.Marshal(body)
	if err != nil {
		return err
	}
	typed := append([]byte(`{"type":"`+kind+`",`), fields[1:]...)
	if len(fields) == len(`{}`) {
		typed = []byte(`{"type":"` + kind + `"}`)
	}
	msg := &nats.Msg{Subject: subject, Data: typed, Header: nats.Header{messages.HeaderContentType: {"application/json"}}}
	if reply != "" {
		msg.Header.Set(messages.HeaderReply, reply)
	}
	js, err := jetstream.New(c.nc)
	if err != nil {
		return err
	}
	_, err = js.PublishMsg(ctx, msg)
	if errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) {
		return c.noStreams()
	}
	return err
}

func (c *Client) noStreams() error {
	return messages.Refuse(messages.Unavailable, "the NATS server at %s has no Reprise streams for root %q: start a node with `reprise serve --nats` or point --nats elsewhere",
		c.nc.ConnectedUrlRedacted(), c.root())
}

func (c *Client) root() string {
	if c.subjects.Root == "" {
		return messages.DefaultRoot
	}
	return c.subjects.Root
}

// Event is a piece of an answer or a fact of its turn.
type Event struct {
	// Type is delta, reasoning, or the type of an event such as tool.started.
	Type string `json:"type"`
	// Text is that of a delta or of reasoning.
	Text string `json:"text,omitempty"`
	// N, Turn, Step, At and Data belong to facts.
	N    messages.EventNumber `json:"n,omitempty"`
	Turn messages.TurnID      `json:"turn,omitempty"`
	Step int                  `json:"step,omitempty"`
	At   time.Time            `json:"at,omitzero"`
	Data json.RawMessage      `json:"data,omitempty"`
	// Output and Usage are the turn's, on its terminal fact.
	Output string          `json:"output,omitempty"`
	Usage  *messages.Usage `json:"usage,omitempty"`
}

// Terminal says that the turn has ended with this event.
func (e Event) Terminal() bool {
	return e.Type == "turn.completed" || e.Type == "turn.failed" || e.Type == "turn.aborted"
}

// Ask prompts an agent with text and yields what its turn does until it ends.
// A turn that failed or was aborted yields its terminal event and then the
// error. Leaving the loop does not stop the turn.
func (c *Client) Ask(ctx context.Context, agent, text string) iter.Seq2[Event, error] {
	return c.AskInput(ctx, agent, messages.Input{Content: messages.TextContent(text)})
}

// AskInput is Ask for an input with more than text. If the agent's owner
// cannot be reached it tries again, with the same id, until ctx ends.
func (c *Client) AskInput(ctx context.Context, agent string, in messages.Input) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		a, err := messages.ParseAgentID(agent)
		if err != nil {
			yield(Event{}, err)
			return
		}
		in.ID = orNew(in.ID)
		body, err := json.Marshal(in)
		if err != nil {
			yield(Event{}, err)
			return
		}
		asking := &asking{c: c, yield: yield}
		for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
			err := c.stream(ctx, messages.Prompt(a), body, asking.message)
			var refused *messages.Error
			again := errors.As(err, &refused) && refused.Code == messages.Unavailable && !asking.accepted
			if asking.left || err == nil {
				return
			}
			if !again || !wait(ctx, pause) {
				yield(Event{}, err)
				return
			}
		}
	}
}

func wait(ctx context.Context, pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// asking turns the agent protocol's chunks into events.
type asking struct {
	c        *Client
	yield    func(Event, error) bool
	accepted bool
	left     bool
}

func (s *asking) message(data []byte) (more bool, err error) {
	var chunk struct {
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(data, &chunk); err != nil {
		return false, err
	}
	var e Event
	switch chunk.Type {
	case "response", "reprise.reasoning":
		if e.Type = "delta"; chunk.Type != "response" {
			e.Type = "reasoning"
		}
		if json.Unmarshal(chunk.Data, &e.Text) != nil {
			var object struct{ Text string }
			if err := json.Unmarshal(chunk.Data, &object); err != nil {
				return false, err
			}
			e.Text = object.Text
		}
	case "reprise.event":
		if err := json.Unmarshal(chunk.Data, &e); err != nil {
			return false, err
		}
		if e.Terminal() {
			var end struct {
				Output string
				Usage  *messages.Usage
			}
			if err := json.Unmarshal(e.Data, &end); err != nil {
				return false, err
			}
			e.Output, e.Usage = end.Output, end.Usage
		}
	default:
		s.accepted = true
		return true, nil
	}
	s.left = !s.yield(e, nil)
	return !s.left, nil
}

// Query asks for a view of an agent and yields its JSON lines, page by page.
// With q.Follow it goes on until ctx ends or the loop is left.
func (c *Client) Query(ctx context.Context, agent string, q messages.Query) iter.Seq2[json.RawMessage, error] {
	a, err := messages.ParseAgentID(agent)
	return c.pages(ctx, c.subjects.Query(a), q, err)
}

// QueryTenant asks for a view of a tenant: agents or dlq.
func (c *Client) QueryTenant(ctx context.Context, tenant string, q messages.Query) iter.Seq2[json.RawMessage, error] {
	return c.pages(ctx, c.subjects.TenantQuery(tenant), q, messages.ValidateToken("tenant", tenant))
}

func (c *Client) pages(ctx context.Context, subject string, q messages.Query, err error) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		left, lines, limit := false, 0, q.Limit
		for err == nil {
			if limit > 0 {
				q.Limit = limit - lines
			}
			var body []byte
			if body, err = json.Marshal(q); err != nil {
				break
			}
			var next messages.EventNumber
			next, err = c.page(ctx, subject, body, func(line json.RawMessage) bool {
				lines++
				left = !yield(line, nil)
				return !left
			})
			if left || err == nil && (next == 0 || limit > 0 && lines >= limit) {
				return
			}
			q.From = next
		}
		yield(nil, err)
	}
}

func (c *Client) page(ctx context.Context, subject string, body []byte, line func(json.RawMessage) bool) (next messages.EventNumber, err error) {
	end, err := c.streamUntil(ctx, subject, body, func(data []byte) (bool, error) {
		for len(data) > 0 {
			var one []byte
			one, data = cutLine(data)
			if !line(one) {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil || end == nil {
		return 0, err
	}
	if h := end.Header.Get(messages.HeaderNext); h != "" {
		n, err := strconv.ParseUint(h, 10, 64)
		return messages.EventNumber(n), err
	}
	return 0, nil
}

func cutLine(data []byte) (line, rest []byte) {
	for i, b := range data {
		if b == '\n' {
			return data[:i:i], data[i+1:]
		}
	}
	return data, nil
}

func (c *Client) stream(ctx context.Context, subject string, body []byte, message func([]byte) (bool, error)) error {
	_, err := c.streamUntil(ctx, subject, body, message)
	return err
}

// streamUntil sends a request and gives each message of its streamed reply to
// message, until the empty one that ends it, which it returns.
func (c *Client) streamUntil(ctx context.Context, subject string, body []byte, message func([]byte) (bool, error)) (end *nats.Msg, err error) {
	sub, err := c.nc.SubscribeSync(c.nc.NewInbox())
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := c.nc.PublishRequest(subject, sub.Subject, body); err != nil {
		return nil, err
	}
	for {
		msg, err := c.next(ctx, sub)
		switch {
		case err != nil:
			return nil, err
		case msg.Header.Get("Status") == "503":
			return nil, messages.Refuse(messages.Unavailable, "no Reprise node answers at %s: is one running?", c.nc.ConnectedUrlRedacted())
		case msg.Header.Get("Nats-Service-Error") != "":
			return nil, &messages.Error{Code: messages.Code(msg.Header.Get("Reprise-Code")), Message: msg.Header.Get("Nats-Service-Error")}
		case len(msg.Data) == 0:
			return msg, nil
		}
		if more, err := message(msg.Data); err != nil || !more {
			return nil, err
		}
	}
}

func (c *Client) next(ctx context.Context, sub *nats.Subscription) (*nats.Msg, error) {
	within, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	msg, err := sub.NextMsgWithContext(within)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		return nil, messages.Refuse(messages.Unavailable, "nothing was heard for %v", silence)
	}
	return msg, err
}
