package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
)

// servePrompts asks agents over TCP as a program that has a NATS client and
// nothing of ours, for the plans it reads.
func servePrompts(ctx context.Context, in io.Reader, out io.Writer) error {
	return serveAsker(ctx, in, out, func(t target) (starter, func(), error) {
		nc, err := nats.Connect(t.URL, nats.Name("reprise bench"))
		if err != nil {
			return nil, nil, err
		}
		return func(agent int) (func(context.Context) error, func(), error) {
			p := &prompts{nc: nc, subject: "agents.prompt." + kind + ".default." + agentID(agent, 0).Key}
			return p.turn, func() {}, nil
		}, nc.Close, nil
	})
}

// prompts asks one agent by the prompt protocol.
type prompts struct {
	nc      *nats.Conn
	subject string
}

// turn sends one request and reads its reply to the end.
func (p *prompts) turn(ctx context.Context) error {
	chunks := make(chan *nats.Msg, 64)
	sub, err := p.nc.ChanSubscribe(p.nc.NewInbox(), chunks)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only with the connection
	if err := p.nc.PublishRequest(p.subject, sub.Subject, []byte(userInput)); err != nil {
		return err
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	answer := ""
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late.C:
			return fmt.Errorf("%s: no end of the reply within %v", p.subject, patience)
		case m := <-chunks:
			text, more, err := p.chunk(m)
			if err != nil {
				return fmt.Errorf("%s: %w", p.subject, err)
			}
			if answer += text; !more && answer != modelAnswer {
				return fmt.Errorf("%s: the answer is %q, want %q", p.subject, answer, modelAnswer)
			}
			if !more {
				return nil
			}
		}
	}
}

// modelAnswer is the text of the model server's second answer.
const modelAnswer = "done"

// chunk reads one message of a reply. An empty one without an error ends it.
func (p *prompts) chunk(m *nats.Msg) (text string, more bool, err error) {
	if why := m.Header.Get("Nats-Service-Error") + m.Header.Get("Status"); why != "" {
		return "", false, fmt.Errorf("the prompt was refused: %s", why)
	}
	if len(m.Data) == 0 {
		return "", false, nil
	}
	var c struct {
		Type string
		Data json.RawMessage
	}
	if err := json.Unmarshal(m.Data, &c); err != nil || c.Type != "response" {
		return "", true, err
	}
	return text, true, json.Unmarshal(c.Data, &text)
}
