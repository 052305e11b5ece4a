package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// prompts answers the prompts that assistant/a is sent: each is given its number and where its answers go.
func prompts(t *testing.T, answer func(nc *nats.Conn, n int, reply string)) (*client.Client, context.Context) {
	t.Helper()
	return endpoints(t, answer, func(_ *nats.Conn, take func(string)) {
		take(messages.Prompt(messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}))
	})
}

// ended is the last fact of a turn.
const ended = `{"type":"reprise.events","data":[{"n":%d,"type":"turn.completed","data":{"output":%q}}]}`

// All requests of a client have one subscription, and each gets its own answers.
func TestOneInbox(t *testing.T) {
	t.Parallel()
	const asks = 50
	var mu sync.Mutex
	var waiting []string
	var most uint32
	srv := startServer(t, &server.Options{})
	connect := func() *nats.Conn {
		nc, err := nats.Connect(srv.ClientURL(), nats.Timeout(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	node := connect()
	if _, err := node.Subscribe("agents.prompt.>", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		if waiting = append(waiting, m.Reply+" "+strings.TrimPrefix(m.Subject, "agents.prompt.assistant.default.")); len(waiting) < asks {
			publish(t, node, m.Reply, `{"type":"status","data":"ack"}`)
			return
		}
		most = srv.NumSubscriptions()
		for _, one := range waiting {
			reply, key, _ := strings.Cut(one, " ")
			publish(t, node, reply, fmt.Sprintf(ended, 3, key), "")
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := node.Flush(); err != nil {
		t.Fatal(err)
	}
	before := srv.NumSubscriptions()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := client.New(connect(), "")
	var done sync.WaitGroup
	for i := range asks {
		done.Go(func() {
			key, got := fmt.Sprintf("a%d", i), ""
			for e, err := range c.As("somebody").Ask(ctx, "assistant/"+key, "hello") {
				if err != nil {
					t.Error(err)
				}
				got += e.Output
			}
			if got != key {
				t.Errorf("%s is answered %q", key, got)
			}
		})
	}
	done.Wait()
	if most != before+1 {
		t.Errorf("%d requests have %d subscriptions, want 1", asks, most-before)
	}
}

// A caller that leaves is reported to the endpoint as the server would report it: there is
// no subscriber at that subject.
func TestCallerLeaves(t *testing.T) {
	t.Parallel()
	type request struct {
		nc    *nats.Conn
		reply string
	}
	came := make(chan request, 2)
	c, ctx := prompts(t, func(nc *nats.Conn, _ int, reply string) {
		publish(t, nc, reply, `{"type":"response","data":"hi"}`)
		came <- request{nc, reply}
	})
	for range c.Ask(ctx, "assistant/a", "hello") {
		break
	}
	r := <-came
	if _, err := r.nc.RequestWithContext(ctx, r.reply, []byte(`{"type":"status","data":"ack"}`)); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("a keep-alive for one that has left is answered with %v", err)
	}
}

// A reader that pauses delays no other one. What it does not read is bounded, and beyond
// that its stream is asked for again.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	piece := `{"type":"reprise.waiting","data":"` + strings.Repeat("x", 512<<10) + `"}`
	sent := make(chan struct{})
	c, ctx := prompts(t, func(nc *nats.Conn, n int, reply string) {
		if n > 0 {
			publish(t, nc, reply, fmt.Sprintf(ended, 300, "again"), "")
			return
		}
		publish(t, nc, reply, `{"type":"reprise.events","data":[{"n":1,"type":"turn.started"}]}`)
		for range 140 { // 70 MiB
			publish(t, nc, reply, piece)
		}
		publish(t, nc, reply, fmt.Sprintf(ended, 2, "whole"), "")
		if err := nc.Flush(); err != nil {
			t.Error(err)
		}
		close(sent)
	})
	var output string
	for e, err := range c.AskFacts(ctx, "assistant/a", messages.Input{Content: messages.TextContent("hello")}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.N == 1 {
			<-sent
			if got, err := shown(ctx, c); err != nil || len(got) != 0 { // its answer comes behind all of that
				t.Errorf("another request: %q, %v", got, err)
			}
		}
		output += e.Output
	}
	if output != "again" {
		t.Errorf("the slow one is answered %q", output)
	}
}

// A user that may not read where answers come learns it of each request.
func TestNoInboxTwice(t *testing.T) {
	t.Parallel()
	srv := startServer(t, &server.Options{
		Users: []*server.User{{Username: "some", Password: "some", Permissions: &server.Permissions{Subscribe: &server.SubjectPermission{Deny: []string{"_INBOX.>"}}}}},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := client.Connect(ctx, client.Options{URL: strings.Replace(srv.ClientURL(), "//", "//some:some@", 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 {
		if _, err := shown(ctx, c); !errors.Is(err, client.ErrNotAllowed) || !strings.Contains(err.Error(), "--inbox-prefix") {
			t.Errorf("shown: %v", err)
		}
	}
}

// Ask wants no facts but the end. One that is asked again is so behind the last answer of
// a model that it has seen, and does not begin again.
func TestAskedAgainBehindWhatWasSeen(t *testing.T) {
	t.Parallel()
	asked := make(chan nats.Header, 2)
	c, ctx := endpoints(t, nil, func(nc *nats.Conn, _ func(string)) {
		if _, err := nc.Subscribe("agents.prompt.>", func(m *nats.Msg) {
			asked <- m.Header
			if len(asked) == 1 {
				publish(t, nc, m.Reply, `{"type":"response","data":"one moment, "}`)
				seen := nats.NewMsg(m.Reply)
				seen.Header.Set(messages.HeaderAfter, "4")
				seen.Data = []byte(`{"type":"reprise.child","data":{"type":"child.text"}}`)
				if err := nc.PublishMsg(seen); err != nil {
					t.Error(err)
				}
				refuse(t, nc, m.Reply, messages.Unavailable, "electing a leader")
				return
			}
			publish(t, nc, m.Reply, `{"type":"response","data":"done"}`)
			end := nats.NewMsg(m.Reply)
			end.Header.Set(messages.HeaderEnd, "1") // no empty message follows
			end.Data = fmt.Appendf(nil, ended, 6, "done")
			if err := nc.PublishMsg(end); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Error(err)
		}
	})
	text := ""
	for e, err := range c.Ask(ctx, "assistant/a", "hello") {
		if err != nil {
			t.Fatal(err)
		}
		text += e.Text + e.Output
	}
	first, again := <-asked, <-asked
	if text != "one moment, donedone" || first.Get(messages.HeaderAfter) != "" || again.Get(messages.HeaderAfter) != "4" || again.Get(messages.HeaderFacts) != messages.FactsEnd {
		t.Errorf("heard %q, asked with %v and %v", text, first, again)
	}
}
