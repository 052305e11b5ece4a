package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// transcript is what a plain NATS client sends and receives: for each message a
// line with its direction and subject, its headers, and its body with each event
// on a line of its own.
type transcript struct {
	*world
	out strings.Builder
}

// send publishes a message. Header is names and values, one after the other.
func (s *transcript) send(subject, reply, body string, header ...string) {
	s.t.Helper()
	msg := &nats.Msg{Subject: subject, Reply: reply, Data: []byte(body), Header: nats.Header{}}
	for i := 0; i+1 < len(header); i += 2 {
		msg.Header.Set(header[i], header[i+1])
	}
	s.write("> "+subject, msg)
	s.ok(s.nc.PublishMsg(msg))
}

// subscribe returns the messages that come to a subject.
func (s *transcript) subscribe(subject string) *nats.Subscription {
	s.t.Helper()
	sub, err := s.nc.SubscribeSync(subject)
	s.ok(err)
	s.ok(s.nc.Flush())
	return sub
}

// request sends a request and returns the messages of its answer.
func (s *transcript) request(subject, body string, header ...string) *nats.Subscription {
	s.t.Helper()
	inbox := s.nc.NewInbox()
	sub := s.subscribe(inbox)
	s.send(subject, inbox, body, header...)
	return sub
}

// receive reads messages up to one whose body has a text in it; an empty text
// means the empty message that ends a stream. Keep-alives are left out, because
// their number depends on the machine.
func (s *transcript) receive(sub *nats.Subscription, upTo string) *nats.Msg {
	s.t.Helper()
	for acked := false; ; {
		msg, err := sub.NextMsgWithContext(s.ctx)
		if err != nil {
			s.t.Fatalf("waiting for %q: %v\n%s", upTo, err, s.text())
		}
		if msg.Header.Get("Reprise-Alive") != "" {
			continue
		}
		body := string(msg.Data)
		if ack := body == `{"type":"status","data":"ack"}`; ack && acked || strings.Contains(body, `"reprise.waiting"`) {
			continue
		} else if ack {
			acked = true
		}
		to := msg.Subject
		if strings.HasPrefix(to, "_INBOX.") {
			to = "the inbox"
		}
		s.write("< "+to, msg)
		if upTo == "" && body == "" && msg.Header.Get("Nats-Service-Error") == "" || upTo != "" && strings.Contains(body, upTo) {
			return msg
		}
	}
}

func (s *transcript) write(head string, msg *nats.Msg) {
	fmt.Fprintln(&s.out, head)
	for _, name := range slices.Sorted(maps.Keys(msg.Header)) {
		for _, value := range msg.Header[name] {
			fmt.Fprintf(&s.out, "%s: %s\n", name, value)
		}
	}
	fmt.Fprintf(&s.out, "%s\n\n", strings.ReplaceAll(string(msg.Data), `},{"n":`, "},\n{\"n\":"))
}

var (
	randomIDs   = regexp.MustCompile(`\b[0-9A-Z]{26}\b`)
	wallTimes   = regexp.MustCompile(`\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	durationsMS = regexp.MustCompile(`_ms":\d+`)
	streamedIDs = regexp.MustCompile(`\bin:[^"\s]+`)
)

// text is the transcript with masks: ids are numbered as they appear.
func (s *transcript) text() string {
	text := storedSeq.ReplaceAllString(s.out.String(), `"seq":"SEQ"`)
	text = wallTimes.ReplaceAllString(text, "TIME")
	text = durationsMS.ReplaceAllString(text, `_ms":"MS"`)
	text = streamedIDs.ReplaceAllString(text, "in:STORED")
	text = digests.ReplaceAllString(text, "$1…")
	ids := make(map[string]string)
	return randomIDs.ReplaceAllStringFunc(text, func(id string) string {
		if ids[id] == "" {
			ids[id] = fmt.Sprint("ID", len(ids)+1)
		}
		return ids[id]
	})
}

type order struct {
	Order string `json:"order"`
}

// shopping is an agent whose model looks an order up, asks to pay it back, which needs
// an approval, and reports.
func shopping(c *cluster.Config) {
	agents(scripted.New(
		scripted.Step{Text: "Let me see.", Calls: []scripted.Call{{ID: "c1", Name: "lookup", Arguments: `{"order":"7"}`}}},
		scripted.Ask(scripted.Call{ID: "c2", Name: "refund", Arguments: `{"order":"7","cents":9900}`}),
		scripted.Step{Text: "Order 7 is paid back.", Pieces: 3},
	), func(d *actors.Definition) {
		d.Tools = []tool.Tool{
			tool.New("lookup", "Look an order up", tool.ReadOnly, func(context.Context, order) (string, error) { return "99.00", nil }),
			tool.New("refund", "Pay an order back", tool.Rerun, func(context.Context, refund) (string, error) { return "paid", nil }).ApproveAlways(),
		}
	})(c)
	c.PromptDecides = func(kind, tool string) bool { return tool == "refund" }
}

// A prompt, as any client of the agent protocol sends it: a tool call, a question
// about another one, and the answer.
func TestTranscriptOfAPrompt(t *testing.T) {
	s := &transcript{world: newWorld(t)}
	s.node(shopping)
	stream := s.request("agents.prompt.assistant.default.till", `{"prompt":"Pay order 7 back"}`, "Reprise-Id", "u1")
	var query struct {
		Data struct {
			ReplySubject string `json:"reply_subject"`
		}
	}
	s.ok(json.Unmarshal(s.receive(stream, `"type":"query"`).Data, &query))
	s.send(query.Data.ReplySubject, "", "perhaps")
	s.receive(stream, `"type":"query"`)
	s.send(query.Data.ReplySubject, "", "yes")
	s.receive(stream, "")
	s.golden("wire/prompt", s.text())
}

// An input on the input subject whose sender names a subject for replies: the
// acceptance, the approval that the turn waits for, and the end come there, and so
// do the answers of commands that name it.
func TestTranscriptOfReplies(t *testing.T) {
	s := &transcript{world: newWorld(t)}
	s.node(shopping)
	replies := s.subscribe("my.replies")
	s.send("reprise.in.default.assistant.till", "", "Pay order 7 back", "Reprise-Id", "u1", "Reprise-Reply", "my.replies")
	s.receive(replies, `"approval.requested"`)
	for _, body := range []string{
		`{"type":"approve","id":"a1","call":"c9"}`,
		`{"type":"approve","id":"a2","call":"c2","args_hash":"` + strings.Repeat("0", 64) + `"}`,
		`{"type":"cancel","id":"a3","timer":"t9"}`,
		`{"type":"set_state","id":"a4","patch":{"plan":"gold"}}`,
		`{"type":"set_state","id":"a4","patch":{"plan":"gold"}}`,
	} {
		s.send("reprise.ctl.default.assistant.till", "", body, "Reprise-Reply", "my.replies")
		s.receive(replies, `"type":`)
	}
	s.send("reprise.ctl.default.assistant.till", "", `{"type":"approve","id":"a5","call":"c2","reason":"it is right"}`)
	s.receive(replies, `"turn.completed"`)
	s.golden("wire/replies", s.text())
}

// An interrupt while the answer of a model is streamed, as the client of the prompt
// sees it, and the one who sends the interrupt.
func TestTranscriptOfAnInterrupt(t *testing.T) {
	s := &transcript{world: newWorld(t)}
	gate := scripted.NewGate()
	s.node(agents(scripted.New(scripted.Step{Text: "One two three.", Pieces: 2, Gate: gate, After: 1}), nil))
	stream := s.request("agents.prompt.assistant.default.talk", "Count", "Reprise-Id", "u1")
	s.receive(stream, `"response"`)
	replies := s.subscribe("my.replies")
	s.send("reprise.ctl.default.assistant.talk", "", `{"type":"interrupt","id":"i1","reason":"enough"}`, "Reprise-Reply", "my.replies")
	s.receive(stream, "")
	s.receive(replies, `"type":`)
	s.send("reprise.ctl.default.assistant.talk", "", `{"type":"interrupt","id":"i2"}`, "Reprise-Reply", "my.replies")
	s.receive(replies, `"type":`)
	s.golden("wire/interrupt", s.text())
}

// A view that is read page by page, and refusals of a view and of a prompt.
func TestTranscriptOfViews(t *testing.T) {
	s := &transcript{world: newWorld(t)}
	n := s.node()
	s.say(n.Client(), "assistant/a", "u1", "hello")
	for _, q := range []string{
		`{"view":"events","limit":2}`,
		`{"view":"events","limit":5,"from":3}`,
		`{"view":"turns","limit":1}`,
		`{"view":"nothing"}`,
		`{"view":"show","at":100}`,
		`{"view":`,
	} {
		s.receive(s.request("reprise.q.default.assistant.a", q), "")
	}
	s.receive(s.request("reprise.q.default.assistant.a", `{"view":"state"}`, "Reprise-Alive", "1"), "")
	s.receive(s.request("agents.prompt.assistant.default.a", `{"prompt":""}`), "")
	s.receive(s.request("agents.prompt.nobody.default.a", "hello"), "")
	s.golden("wire/views", s.text())
}
