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
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// Client sends to agents and reads what became of it.
type Client struct {
	nc       *nats.Conn
	subjects messages.Subjects
	refused  *refusals
}

// New makes a client of a connection. Root is the first token of the
// installation's subjects; empty means reprise.
func New(nc *nats.Conn, root string) *Client {
	return &Client{nc: nc, subjects: messages.Subjects{Root: root}}
}

const (
	// silence is how long a streamed reply may say nothing before it is given up.
	silence = time.Minute
	// askSilence is that for an ask, which hears something every two seconds.
	askSilence = 7 * time.Second
)

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
func (c *Client) Do(ctx context.Context, agent string, cmd messages.Command) (messages.Answer, error) {
	a, err := messages.ParseAgentID(agent)
	if err != nil {
		return messages.Answer{}, err
	}
	in, err := c.listen()
	if err != nil {
		return messages.Answer{}, err
	}
	defer in.close()
	cmd = messages.WithID(cmd, orNew(cmd.CommandID()))
	if err := c.publish(ctx, c.subjects.Ctl(a), cmd.CommandType(), cmd, in.sub.Subject); err != nil {
		return messages.Answer{}, err
	}
	msg, err := in.next(ctx, silence)
	if err != nil {
		return messages.Answer{}, messages.Refuse(messages.Unavailable, "the %s was stored but %s has not answered: %v", cmd.CommandType(), agent, err)
	}
	var answer messages.Answer
	if err := json.Unmarshal(msg.Data, &answer); err != nil {
		return messages.Answer{}, err
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
	return c.store(ctx, msg)
}

// store publishes a message to the installation's streams.
func (c *Client) store(ctx context.Context, msg *nats.Msg) error {
	js, err := jetstream.New(c.nc)
	if err != nil {
		return err
	}
	ctx, leave := c.refused.heed(ctx, msg.Subject)
	defer leave()
	_, err = js.PublishMsg(ctx, msg)
	if errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) {
		return c.noStreams()
	}
	if err != nil {
		return c.unsent(why(ctx, err))
	}
	return nil
}

// The server's error codes that say that it has no room.
const (
	codeAccountFull  jetstream.ErrorCode = 10002
	codeServerFull   jetstream.ErrorCode = 10023
	codeStorageFull  jetstream.ErrorCode = 10047
	codeStoreRefused jetstream.ErrorCode = 10077 // a limit of the stream
)

// full says that the server has no room for what it was given.
func full(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode {
	case codeAccountFull, codeServerFull, codeStorageFull, codeStoreRefused:
		return true
	}
	return false
}

// unsent says of what could not be published whether trying again can help.
func (c *Client) unsent(err error) error {
	switch {
	case full(err):
		return messages.Refuse(messages.Unavailable, "the NATS server at %s has no room for this and has not stored it: %v; make room on its disk or raise its limit (max_file_store, or that of the account or stream), then try again with the same id",
			c.nc.ConnectedUrlRedacted(), err)
	case errors.Is(err, nats.ErrMaxPayload):
		return messages.Refuse(messages.TooLarge, "this is larger than the NATS server at %s takes (%d bytes with its envelope, max_payload): send it in parts, send a reference to it, or raise max_payload there",
			c.nc.ConnectedUrlRedacted(), c.nc.MaxPayload())
	case errors.Is(err, nats.ErrReconnectBufExceeded):
		return messages.Refuse(messages.Unavailable, "the connection to NATS is broken and being made again: try again with the same id")
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
