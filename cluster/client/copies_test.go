package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// A command whose answer may be lost is published again. That an older copy was refused
// says nothing while a newer one may be obeyed: the agent may have come to life in between.
func TestCopiesOfACommand(t *testing.T) {
	refused := messages.Answer{Err: messages.Refuse(messages.NotFound, "there is no such agent")}
	obeyed := messages.Answer{N: 7}
	for name, c := range map[string]struct {
		first, later *messages.Answer // nil: none is given
		want         messages.Answer
	}{
		"refused, then obeyed": {&refused, &obeyed, obeyed},
		"refused each time":    {&refused, &refused, refused},
		"obeyed, then refused": {&obeyed, &refused, obeyed}, // as when the agent was deleted in between
		"lost, then refused":   {nil, &refused, refused},
		"obeyed, then lost":    {&obeyed, nil, obeyed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, &server.Options{})
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			connect := func() *nats.Conn {
				nc, err := nats.Connect(srv.ClientURL(), nats.Timeout(time.Minute))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(nc.Close)
				return nc
			}
			node, sender := connect(), connect()
			js, err := jetstream.New(node)
			if err == nil {
				_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "REPRISE_IN", Subjects: []string{"reprise.ctl.>"}})
			}
			if err != nil {
				t.Fatal(err)
			}
			answer := func(m *nats.Msg, a *messages.Answer) {
				if a == nil {
					return
				}
				body, err := json.Marshal(a)
				if err == nil {
					err = node.Publish(m.Header.Get(messages.HeaderReply), body)
				}
				if err != nil && !errors.Is(err, nats.ErrConnectionClosed) { // one copy more may come when all is over
					t.Error(err)
				}
			}
			var first *nats.Msg
			if _, err := node.Subscribe("reprise.ctl.>", func(m *nats.Msg) {
				if first == nil {
					first = m
					if err := sender.ForceReconnect(); err != nil {
						t.Error(err)
					}
					return
				}
				answer(first, c.first) // each time, for what is sent while no one listens is lost
				answer(m, c.later)
			}); err != nil {
				t.Fatal(err)
			}
			if err := node.Flush(); err != nil {
				t.Fatal(err)
			}
			got, err := client.New(sender, "").Do(ctx, "assistant/a", messages.Interrupt{})
			var told *messages.Error
			if errors.As(err, &told) != (c.want.Err != nil) || told != nil && told.Code != c.want.Err.Code || told == nil && (err != nil || got.N != c.want.N) {
				t.Errorf("answered %+v, %v", got, err)
			}
		})
	}
}
