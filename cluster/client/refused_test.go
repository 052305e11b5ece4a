package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

func TestConnectTooLate(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	_, err := client.Connect(ctx, client.Options{URL: "nats://127.0.0.1:1"})
	if !errors.Is(err, context.DeadlineExceeded) || messages.AsError(err).Code != messages.Unavailable || strings.Contains(err.Error(), "invalid") {
		t.Errorf("the error is %v", err)
	}
}

// A user who lacks a permission learns of it from the call that needs it, at once, and not from a
// library on standard error.
func TestNotAllowed(t *testing.T) { // A102
	may := &server.SubjectPermission{Allow: []string{">"}, Deny: []string{"reprise.ctl.>", "reprise.in.>", "reprise.q.>"}}
	srv := start(t, &server.Options{
		Users: []*server.User{{Username: "some", Password: "some", Permissions: &server.Permissions{Publish: may}}},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := client.Connect(ctx, client.Options{URL: strings.Replace(srv.ClientURL(), "//", "//some:some@", 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	refused := func(what string, err error, subject string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), subject) || !strings.Contains(err.Error(), "--creds") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = c.Send(ctx, "assistant/a", messages.Input{Content: messages.TextContent("hello")})
	refused("send", err, "reprise.in.default.assistant.a")
	_, err = c.Do(ctx, "assistant/a", messages.Interrupt{})
	refused("interrupt", err, "reprise.ctl.default.assistant.a")
	for _, err := range c.Query(ctx, "assistant/a", messages.Query{View: "show"}) {
		refused("show", err, "Publish to")
	}
	if ctx.Err() != nil {
		t.Error("it was waited for")
	}
}
