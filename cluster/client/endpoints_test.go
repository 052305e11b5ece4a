package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// endpoints answers the requests for a view, and those on the subjects that more passes to take.
// answer gets how many requests came before, and the subject to reply to.
func endpoints(t *testing.T, answer func(nc *nats.Conn, n int, reply string), more ...func(nc *nats.Conn, take func(subject string))) (*client.Client, context.Context) {
	t.Helper()
	srv := startServer(t, &server.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	nc, err := nats.Connect(srv.ClientURL(), nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	var n atomic.Int64
	take := func(subject string) {
		if _, err := nc.Subscribe(subject, func(m *nats.Msg) {
			answer(nc, int(n.Add(1)-1), m.Reply)
		}); err != nil {
			t.Error(err)
		}
	}
	take("reprise.q.>")
	for _, more := range more {
		more(nc, take)
	}
	return client.New(nc, ""), ctx
}

// shown are the lines of an agent's view.
func shown(ctx context.Context, c *client.Client) (lines []string, err error) {
	for line, err := range c.Query(ctx, "assistant/a", messages.Query{View: "show"}) {
		if err != nil {
			return lines, err
		}
		lines = append(lines, string(line))
	}
	return lines, nil
}

// publish sends the messages of a reply.
func publish(t *testing.T, nc *nats.Conn, reply string, bodies ...string) {
	for _, body := range bodies {
		if err := nc.Publish(reply, []byte(body)); err != nil && !errors.Is(err, nats.ErrConnectionClosed) { // who has its answer may have left
			t.Error(err)
		}
	}
}

// An endpoint that does not answer is not waited for: another one is asked, and only the one of
// both that answers first is read.
func TestDoorThatSaysNothing(t *testing.T) {
	var lines []string
	for i := range 2000 {
		lines = append(lines, fmt.Sprintln(i))
	}
	for name, answering := range map[string][2]bool{"frozen": {false, true}, "slow": {true, false}, "both": {true, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var first string
			c, ctx := endpoints(t, func(nc *nats.Conn, n int, reply string) {
				if n == 0 {
					first = reply
					return
				}
				for _, text := range slices.Concat(lines, []string{""}) {
					if answering[0] {
						publish(t, nc, first, text)
					}
					if answering[1] {
						publish(t, nc, reply, text)
					}
				}
			})
			if got, err := shown(ctx, c); err != nil || strings.Join(got, "\n")+"\n" != strings.Join(lines, "") {
				t.Errorf("shown %d lines, %v", len(got), err)
			}
		})
	}
}

// refuse answers with an error.
func refuse(t *testing.T, nc *nats.Conn, reply string, code messages.Code, why string) {
	m := nats.NewMsg(reply)
	m.Header.Set("Nats-Service-Error", why)
	m.Header.Set(messages.HeaderCode, string(code))
	if err := nc.PublishMsg(m); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		t.Error(err)
	}
}

// A caller that asks an agent whose node cannot answer for seconds, as with a full disk, is
// notified of that once, and continues to ask.
func TestCallerKnowsWhyNothingComes(t *testing.T) {
	t.Parallel()
	var told atomic.Bool
	more := 2 // refusals after the caller was notified
	c, ctx := endpoints(t, func(nc *nats.Conn, n int, reply string) {
		publish(t, nc, reply, `{"type":"reprise.waiting"}`, `{"type":"status","data":"ack"}`)
		if told.Load() {
			more--
		}
		if more >= 0 {
			refuse(t, nc, reply, messages.Unavailable, "the disk is full")
			return
		}
		publish(t, nc, reply, `{"type":"reprise.events","data":[{"n":3,"type":"turn.completed","data":{"output":"done"}}]}`, "")
	}, func(_ *nats.Conn, take func(string)) {
		take(messages.Prompt(messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}))
	})
	var types []string
	for e, err := range c.Ask(ctx, "assistant/a", "hello") {
		if err != nil {
			t.Fatal(err)
		}
		if types = append(types, e.Type); e.Type == "notice" {
			told.Store(strings.Contains(e.Text, "the disk is full"))
		}
	}
	if !slices.Equal(types, []string{"notice", "turn.completed"}) {
		t.Errorf("the caller gets %q", types)
	}
}

// A reader of an answer learns that text is void from an event of its own, also where the stream
// itself broke off.
func TestVoidText(t *testing.T) {
	t.Parallel()
	c, ctx := endpoints(t, func(nc *nats.Conn, n int, reply string) {
		if n == 0 {
			publish(t, nc, reply, `{"type":"response","data":"one"}`, `{"type":"reprise.cut","data":{"call":"m3","reason":"repeated"}}`, `{"type":"response","data":"two"}`)
			refuse(t, nc, reply, messages.Unavailable, "shutting down")
			return
		}
		publish(t, nc, reply, `{"type":"response","data":"three"}`, `{"type":"reprise.events","data":[{"n":3,"type":"turn.completed","data":{"output":"three"}}]}`, "")
	}, func(_ *nats.Conn, take func(string)) {
		take(messages.Prompt(messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}))
	})
	var got []string
	for e, err := range c.Ask(ctx, "assistant/a", "hello") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Type+" "+e.Text)
	}
	want := []string{
		"delta one", "cut the answer was cut off; the model is asked again", "delta two",
		"cut the stream was cut off; the answer begins again", "delta three", "turn.completed ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the reader gets %q, want %q", got, want)
	}
}

// An endpoint that cannot serve a view now is asked again for a while, and no line is yielded
// twice; a refusal that time does not change is returned at once.
func TestDoorThatCannotNow(t *testing.T) {
	c, ctx := endpoints(t, func(nc *nats.Conn, n int, reply string) {
		publish(t, nc, reply, "1\n")
		if n == 0 {
			refuse(t, nc, reply, messages.Unavailable, "electing a leader")
			return
		}
		publish(t, nc, reply, "2\n", "")
	})
	if got, err := shown(ctx, c); err != nil || !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("shown %q, %v", got, err)
	}
	var asked atomic.Int64
	c, ctx = endpoints(t, func(nc *nats.Conn, n int, reply string) {
		asked.Add(1)
		refuse(t, nc, reply, messages.NotFound, "electing a leader")
	})
	began := time.Now()
	_, err := shown(ctx, c)
	most := 1 + time.Since(began)/(1500*time.Millisecond) // an endpoint that is silent for so long is one of two that are asked
	if n := asked.Load(); err == nil || !strings.Contains(err.Error(), "electing") || n < 1 || n > int64(most) {
		t.Errorf("refused with %v by %d, want %d at most", err, n, most)
	}
}

// What no stream takes is published again while there is a stream that may elect a leader,
// and refused at once where there is none.
func TestNoLeader(t *testing.T) {
	for name, answers := range map[string]string{
		"electing": `"total":1,"offset":0,"limit":1024,"streams":["REPRISE_IN"]`, "nothing there": `"total":0,"offset":0,"limit":1024,"streams":[]`,
		"no leader": `"error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var err error
			for began := time.Now(); ; began = time.Now() {
				c, ctx := endpoints(t, func(nc *nats.Conn, _ int, reply string) {
					publish(t, nc, reply, `{"stream":"REPRISE_IN","seq":1}`)
				}, func(nc *nats.Conn, take func(subject string)) {
					if _, err := nc.Subscribe("$JS.API.STREAM.NAMES", func(m *nats.Msg) {
						take("reprise.in.>") // the leader is elected
						publish(t, nc, m.Reply, `{"type":"io.nats.jetstream.api.v1.stream_names_response",`+answers+`}`)
					}); err != nil {
						t.Fatal(err)
					}
				})
				_, err = c.Send(ctx, "assistant/a", messages.Input{Content: messages.TextContent("hello")})
				if name != "nothing there" || err != nil || time.Since(began) < time.Second { // else the client was not answered in time
					break
				}
			}
			if is := name != "nothing there"; (err == nil) != is || !is && !strings.Contains(err.Error(), "has no Reprise streams") {
				t.Errorf("sent: %v", err)
			}
		})
	}
}
