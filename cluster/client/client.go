// Package client sends inputs and commands to agents over NATS, and reads answers and views. It is
// for services that run no node; cluster.Node.Client returns the client of a node. Begin with
// [Connect], [Client.Ask] and [Client.Do].
//
// # Guarantees
//
//   - Every command carries an id, made here if the caller gives none, so that
//     trying again inside the caller's deadline has no second effect.
//   - If the agent or its node refuses, the error is a *messages.Error. Its method Temporary
//     reports whether trying again can help.
//   - Inputs and commands carry the trace context of the OpenTelemetry span in ctx.
//   - A Client is safe for concurrent use. On the connection it keeps one subscription,
//     for the answers to all its requests: make one Client for each connection.
//   - A reader that pauses delays no other. What waits for it is bounded; what is dropped
//     beyond that is asked for again.
package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// Client sends inputs and commands to agents, and reads answers and views. The agent of a method is
// an address: kind/key, or tenant/kind/key.
type Client struct {
	nc       *nats.Conn
	replies  *replies
	subjects messages.Subjects
	refused  *refusals
	person   string
}

// New returns a client on an existing connection. Root is the first token of the installation's
// subjects; empty means reprise.
func New(nc *nats.Conn, root string) *Client {
	return &Client{nc: nc, replies: &replies{nc: nc}, subjects: messages.Subjects{Root: root}}
}

// As returns a client on the same connection whose inputs, commands and answers are recorded with
// the name of a person. The name is recorded as claimed, unless the NATS server names the user of
// a tenant's account. Empty: no one is named.
func (c *Client) As(person string) *Client {
	other := *c
	other.person = person
	return &other
}

// from adds the person, and the trace context that is in ctx, to the headers of a message.
func (c *Client) from(ctx context.Context, h nats.Header) nats.Header {
	for name, value := range messages.TraceIn(ctx).Headers() {
		h.Set(name, value)
	}
	return c.named(h)
}

// named adds the person to the headers of a message.
func (c *Client) named(h nats.Header) nats.Header {
	if person := messages.ClaimedBy(c.person); person != nil {
		h.Set(messages.HeaderPerson, person.Name)
	}
	return h
}

const (
	// firstSilence is how long an endpoint may take to say that it has a request before
	// another one is given it too. It says so within a third of a second, unless its node
	// is frozen: the server keeps giving requests to one for minutes.
	firstSilence = 1500 * time.Millisecond
	// aliveSilence is how long an endpoint may be silent that has said it is there: it says
	// so every two seconds.
	aliveSilence = 7 * time.Second
	// silence is how long endpoints are asked in vain.
	silence = time.Minute
)

// Send publishes an input and returns its id when JetStream has stored it. It does not wait for the
// agent: an input that is stored is not lost, but may still be refused. It is then a dead letter,
// and the reason is also sent to its reply subject unless an owner dies meanwhile. If the server
// does not confirm the input, Send publishes it again under the same id until ctx ends, or for 12
// seconds if the stream has no leader.
func (c *Client) Send(ctx context.Context, agent string, in messages.Input) (id string, err error) {
	a, err := messages.ParseAgentID(agent)
	if err != nil {
		return "", err
	}
	in.ID = orNew(in.ID)
	return in.ID, c.publish(ctx, c.subjects.In(a), "input", in, nil)
}

func orNew(id string) string {
	if id == "" {
		return rand.Text()
	}
	return id
}

// Do sends a command to an agent, such as [messages.Approve], and waits until it is in the agent's
// log. A refusal is an error. If no answer comes, Do sends the command again under the same id,
// until ctx ends or a minute has passed. It succeeds if any copy was applied. After an error, a
// copy that a broken connection or a frozen server has held back may still be applied.
func (c *Client) Do(ctx context.Context, agent string, cmd messages.Command) (messages.Answer, error) {
	a, err := messages.ParseAgentID(agent)
	if err != nil {
		return messages.Answer{}, err
	}
	in := c.newInbox()
	defer in.close()
	mine := messages.IDOf(cmd) == ""
	cmd = messages.WithID(cmd, orNew(messages.IDOf(cmd)))
	answer, err := c.command(ctx, a, cmd, in)
	if err != nil {
		return messages.Answer{}, err
	}
	answer.Duplicate = answer.Duplicate && !mine // no one else knows the id
	if answer.Err != nil {
		return answer, answer.Err
	}
	return answer, nil
}

// answeredWithin is how long the answer to a command may take before it is published
// again; then twice as long, and so on.
const answeredWithin = 3 * time.Second

// command publishes a command until an answer comes to in.
func (c *Client) command(ctx context.Context, a messages.AgentID, cmd messages.Command, in *inbox) (messages.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	for within := answeredWithin; ; within *= 2 {
		if err := c.publish(ctx, c.subjects.Ctl(a), cmd.CommandType(), cmd, in); err != nil {
			return messages.Answer{}, err
		}
		answer, err := in.answer(ctx, within)
		if err == nil {
			return answer, nil
		}
		if in.refused != nil {
			err = fmt.Errorf("%w (it was published again; an earlier copy was refused: %v)", err, in.refused)
		}
		if !isLost(err) || ctx.Err() != nil {
			return messages.Answer{}, messages.Refuse(messages.Unavailable, "the %s was stored but %s has not answered: %v", cmd.CommandType(), a, err)
		}
	}
}

// publish stores a message. The answers come to in, for each copy on a subject of its own; nil:
// none is asked for.
func (c *Client) publish(ctx context.Context, subject, kind string, body any, in *inbox) error {
	fields, err := json.Marshal(body)
	if err != nil {
		return err
	}
	typed := append([]byte(`{"type":"`+kind+`",`), fields[1:]...)
	if len(fields) == len(`{}`) {
		typed = []byte(`{"type":"` + kind + `"}`)
	}
	msg := &nats.Msg{Subject: subject, Data: typed, Header: c.from(ctx, nats.Header{messages.HeaderContentType: {"application/json"}})}
	if in == nil {
		return c.store(ctx, msg, nil)
	}
	return c.store(ctx, msg, func() error {
		reply, err := in.open()
		msg.Header.Set(messages.HeaderReply, reply)
		return err
	})
}

// store publishes a message to the installation's streams. It publishes it again, until
// ctx ends, when the server's word that it has it does not come or the connection is made
// again, without a deadline for half a minute; and for waitsForLeader where no stream takes
// it. What is stored twice has one effect. Before each copy it calls begin, if that is not nil.
func (c *Client) store(ctx context.Context, msg *nats.Msg, begin func() error) error {
	js, err := jetstream.New(c.nc)
	if err != nil {
		return err
	}
	ctx, leave := c.refused.heed(ctx, msg.Subject)
	defer leave()
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	began := time.Now()
	for within, again := storedWithin, true; again; {
		if begin != nil {
			if err := begin(); err != nil {
				return c.unsent(why(ctx, err))
			}
		}
		attempt, end := c.unbroken(ctx, within)
		_, err = js.PublishMsg(attempt, msg)
		late := err != nil && (errors.Is(err, attempt.Err()) || errors.Is(err, nats.ErrDisconnected)) // the latter after nats.Conn.ForceReconnect
		end()
		switch {
		case late:
			within *= 2
		case noLeader(err):
			if !hasStream(ctx, js, msg.Subject) {
				return c.noStreams()
			}
			if time.Since(began) > waitsForLeader || ctx.Err() != nil {
				return messages.Refuse(messages.Unavailable, "no NATS server accepts what is published on %s now: its stream is electing a leader, or too many of its servers are down; try again with the same id", msg.Subject)
			}
		}
		again = (late || noLeader(err)) && ctx.Err() == nil
	}
	if err != nil {
		return c.unsent(why(ctx, err))
	}
	return nil
}

// noLeader reports whether nothing takes what was published.
func noLeader(err error) bool {
	return errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders)
}

// hasStream reports whether there is a stream for a subject, as far as that can be known: a user
// who may not ask gets no answer, and while the servers have no leader it is unknown.
func hasStream(ctx context.Context, js jetstream.JetStream, subject string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := js.StreamNameBySubject(ctx, subject)
	var api *jetstream.APIError
	return err == nil || errors.Is(err, ctx.Err()) || errors.As(err, &api) && api.ErrorCode == codeLeaderless
}

// storedWithin is how long the server may take to say that it has a message before that
// is published again; then twice as long, and so on.
const storedWithin = 3 * time.Second

// unbroken is ctx for what an answer is due to within some time, and before the
// connection is made again: then the answer may be lost. end must be called.
func (c *Client) unbroken(ctx context.Context, within time.Duration) (_ context.Context, end func()) {
	ctx, cancel := context.WithTimeout(ctx, within)
	connected := c.nc.StatusChanged(nats.CONNECTED)
	go func() {
		select {
		case _, open := <-connected:
			if open {
				cancel()
			}
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel()
		c.nc.RemoveStatusListener(connected)
	}
}

// codeLeaderless is the server's error while no leader answers for JetStream.
const codeLeaderless jetstream.ErrorCode = 10008

// The server's error codes that say that it has no room.
const (
	codeAccountFull  jetstream.ErrorCode = 10002
	codeServerFull   jetstream.ErrorCode = 10023
	codeStorageFull  jetstream.ErrorCode = 10047
	codeStoreRefused jetstream.ErrorCode = 10077 // a limit of the stream
)

// full reports whether the server has no space for what it was sent.
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

// unsent returns the error for a message that could not be published. Its code is temporary if
// trying again can help.
func (c *Client) unsent(err error) error {
	switch {
	case full(err):
		return messages.Refuse(messages.Unavailable, "the NATS server at %s has no room for this and has not stored it: %v; make room on its disk or raise its limit (max_file_store, or that of the account or stream), then try again with the same id",
			c.Server(), err)
	case errors.Is(err, nats.ErrMaxPayload):
		return messages.Refuse(messages.TooLarge, "this is larger than the NATS server at %s takes (%d bytes with its envelope, max_payload): send it in parts, send a reference to it, or raise max_payload there",
			c.Server(), c.nc.MaxPayload())
	case errors.Is(err, nats.ErrReconnectBufExceeded):
		return messages.Refuse(messages.Unavailable, "the connection to NATS is broken and is being restored: try again with the same id")
	}
	return err
}

func (c *Client) noStreams() error {
	return messages.Refuse(messages.Unavailable, "the NATS server at %s has no Reprise streams for root %q: start a node with `reprise serve --nats` or point --nats elsewhere",
		c.Server(), c.root())
}

func (c *Client) root() string {
	if c.subjects.Root == "" {
		return messages.DefaultRoot
	}
	return c.subjects.Root
}
