package cluster_test

import (
	"encoding/json"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// answer is a raw streamed reply.
type answer struct {
	chunks []string // bodies
	types  []string
	code   string // Nats-Service-Error-Code
	reason string
	ended  bool // by an empty message without headers
}

func (a answer) text() (s string) {
	for _, c := range a.chunks {
		var chunk struct{ Type, Data string }
		if json.Unmarshal([]byte(c), &chunk) == nil && chunk.Type == "response" {
			s += chunk.Data
		}
	}
	return s
}

// request sends what `nats req` would and reads the stream to its end.
func (w *world) request(subject, body string, header ...string) answer {
	w.t.Helper()
	sub, err := w.nc.SubscribeSync(w.nc.NewInbox())
	w.ok(err)
	defer func() { _ = sub.Unsubscribe() }()
	msg := &nats.Msg{Subject: subject, Reply: sub.Subject, Data: []byte(body), Header: nats.Header{}}
	for i := 0; i+1 < len(header); i += 2 {
		msg.Header.Set(header[i], header[i+1])
	}
	w.ok(w.nc.PublishMsg(msg))
	var a answer
	for {
		m, err := sub.NextMsgWithContext(w.ctx)
		if err != nil {
			w.t.Fatalf("%s: %v after %q", subject, err, a.chunks)
		}
		switch {
		case m.Header.Get("Status") == "503":
			a.code = "503"
			return a
		case m.Header.Get("Nats-Service-Error-Code") != "":
			a.code, a.reason = m.Header.Get("Nats-Service-Error-Code"), m.Header.Get("Nats-Service-Error")
		case len(m.Data) == 0:
			a.ended = len(m.Header) == 0
			return a
		default:
			var chunk struct{ Type string }
			_ = json.Unmarshal(m.Data, &chunk)
			a.chunks, a.types = append(a.chunks, string(m.Data)), append(a.types, chunk.Type)
		}
	}
}

// letters waits for so many dead letters.
func (w *world) letters(c *client.Client, tenant string, want int) (list []letter) {
	w.t.Helper()
	w.eventually("dead letters", func() bool {
		list = nil
		for line, err := range c.QueryTenant(w.ctx, tenant, messages.Query{View: "dlq"}) {
			w.ok(err)
			var l letter
			w.ok(json.Unmarshal(line, &l))
			list = append(list, l)
		}
		return len(list) >= want
	})
	return list
}

type letter struct {
	Subject, Code, Reason, Body string
	Size                        int
	Headers                     nats.Header
}
