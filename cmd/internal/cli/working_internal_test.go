package cli

import (
	"context"
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// eventOf is an event as a stream has it.
func eventOf(t *testing.T, e messages.Event) client.Event {
	t.Helper()
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return client.Event{Type: e.EventType(), Turn: "t4", Data: data}
}

func TestWorking(t *testing.T) {
	retry := time.Now().Add(2 * time.Second)
	w := newWorking(&progress{})
	for _, step := range []struct {
		event messages.Event
		want  string
	}{
		{messages.ModelFailed{Kind: "overloaded", Message: "503", Attempt: 1, RetryAt: &retry, Cost: 500_000_000}, `^· model overloaded: 503; try 2 in [12]\.\d s$`},
		{messages.ModelFailed{Kind: "overloaded", Message: "503", Attempt: 2}, `^$`}, // the turn's end says so
		{messages.ModelCompleted{Cost: 1_000_000_000}, `^$`},
		{messages.ToolRequested{Call: "c1", Tool: "logs", Arguments: `{"service":"a","lines":3}`}, `^$`},
		{messages.ToolStarted{Call: "c1", Tool: "logs"}, `^$`},
		{messages.ToolCompleted{Call: "c1", Output: "x\ny\nz\n"}, `^> logs service=a lines=3 … \d+ ms, 3 lines$`},
		{messages.ToolRequested{Call: "c2", Tool: "pay", Arguments: `{"n":1}`}, `^$`},
		{messages.ToolStarted{Call: "c2", Tool: "pay", Arguments: `{"n":2}`}, `^$`},
		{messages.ToolFailed{Call: "c2", Kind: "error", Message: "no\x1b[31m money"}, `^> pay n=2 … \d+ ms, failed \(error\): no\\x1b\[31m money$`},
		{messages.ToolFailed{Call: "c3", Kind: "denied", Message: "it never ran"}, `^$`},
	} {
		if got := w.heard(eventOf(t, step.event)); !regexp.MustCompile(step.want).MatchString(got) {
			t.Errorf("%s: %q, want %s", step.event.EventType(), got, step.want)
		}
	}
	if got := w.used(&messages.Usage{Input: 140, Output: 20}); !regexp.MustCompile(`^· 160 tokens, cost 1\.5, \d+ ms$`).MatchString(got) {
		t.Errorf("used %q", got)
	}
}

func TestShortened(t *testing.T) {
	for width, want := range map[int]string{-1: "pay 日本語", 10: "pay 日本語", 8: "pay 日…", 1: "…"} {
		if got := shortened("pay 日本語", width); got != want {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
	}
}

func TestLeft(t *testing.T) {
	stop, cancel := context.WithCancel(t.Context())
	cancel()
	for want, test := range map[string]struct {
		turn turn
		ctx  context.Context
		err  error
	}{
		"stopped listening before a/b answered; if it accepted the input, its turn continues": {turn{}, stop, context.Canceled},
		"stopped listening; a/b has accepted the input, which waits for its turn":             {turn{queued: true}, stop, context.Canceled},
		"stopped listening; turn t4 of a/b continues":                                         {turn{queued: true, seen: "t4"}, stop, context.Canceled},
		"the input did not get its turn of a/b within 2s; it is accepted and waits":           {turn{queued: true}, t.Context(), context.DeadlineExceeded},
		"turn t4 of a/b did not end within 2s; it continues":                                  {turn{seen: "t4"}, t.Context(), context.DeadlineExceeded},
		client.ErrLost.Error() + "; a/b has accepted the input, which waits for its turn":     {turn{queued: true}, t.Context(), client.ErrLost},
	} {
		test.turn.app, test.turn.agent = &app{remote: remoteFlags{timeout: 2 * time.Second}}, "a/b"
		if got := test.turn.left(test.ctx, test.err); got.Error() != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
