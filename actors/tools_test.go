package actors_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

func TestToolFailures(t *testing.T) { // A31, A36 until blobs exist
	fails := toolOf("fails", tool.Pause, func(context.Context) (string, error) { return "", errors.New("no such order \xff\x00") })
	panics := toolOf("panics", tool.Pause, func(context.Context) (string, error) { panic("index out of range") })
	leaves := toolOf("leaves", tool.Pause, func(context.Context) (string, error) { runtime.Goexit(); return "", nil })
	hangs := toolOf("hangs", tool.Pause, func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }).Timeout(time.Millisecond)
	huge := toolOf("huge", tool.Pause, func(context.Context) (string, error) { return strings.Repeat("x", 10<<20), nil })
	garbled := toolOf("garbled", tool.Pause, func(context.Context) (string, error) { return strings.Repeat("a\xff", 90<<10), nil })
	typed := tool.New("typed", "takes a number", tool.Pause, func(_ context.Context, a struct {
		N int `json:"n"`
	}) (string, error) {
		return "fits", nil
	})
	fine := toolOf("fine", tool.Pause, func(context.Context) (string, error) { return "fine", nil })
	model := scripted.New(scripted.Ask(call("c1", "fails"), call("c2", "panics"), call("c3", "leaves"), call("c4", "hangs"), call("c5", "huge"),
		call("c6", "nosuch"), scripted.Call{ID: "c7", Name: "fine", Arguments: "{oops"}, scripted.Call{ID: "c8", Name: "typed", Arguments: `{"n":"x"}`},
		call("c9", "garbled"), call("c10", "fine")), scripted.Say("done"))
	s := actorstest.New(t, nil)
	cfg := config(model, fails, panics, leaves, hangs, huge, garbled, typed, fine)
	cfg.MaxPayload = 192 << 10
	node := s.Start(cfg)
	node.Must(ada, say("u1", "go"))
	all := s.Until(ada, "turn.completed")
	ends(t, all)
	results := map[string]string{}
	for _, line := range brief(model.Requests()[1]) {
		if rest, ok := strings.CutPrefix(line, "result "); ok {
			id, text, _ := strings.Cut(rest, " ")
			results[id] = text
		}
	}
	for id, want := range map[string]string{
		"c1": "no such order \uFFFD\x00", "c2": "the tool panicked: index out of range", "c3": "the tool ended its goroutine",
		"c4": "did not finish within 1ms", "c5": "the result has 10485760 bytes: the limit is", "c6": `there is no tool named "nosuch"`,
		"c7": "the arguments are not valid JSON", "c8": "the arguments do not fit: n", "c9": "[cut]", "c10": "fine",
	} {
		if !strings.Contains(results[id], want) {
			t.Errorf("%s: got result %.100q, want %q", id, results[id], want)
		}
	}
	kinds := map[messages.CallID]messages.ToolFailure{}
	for _, f := range actorstest.Of[messages.ToolFailed](all) {
		kinds[f.Call] = f.Kind
	}
	for id, want := range map[messages.CallID]messages.ToolFailure{"c1": "error", "c2": "panic", "c3": "panic", "c4": "timeout", "c5": "too_large", "c6": "unknown_tool", "c7": "bad_arguments", "c8": "bad_arguments"} {
		if kinds[id] != want {
			t.Errorf("%s: got kind %q, want %q", id, kinds[id], want)
		}
	}
}

// Results that fit into a frame one by one, but not together, are stored in several frames.
func TestManyLargeResults(t *testing.T) {
	large := toolOf("large", tool.ReadOnly, func(context.Context) (string, error) { return strings.Repeat("x", 150<<10), nil })
	var calls []scripted.Call
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		calls = append(calls, call(id, "large"))
	}
	s := actorstest.New(t, nil)
	s.Start(config(scripted.New(scripted.Ask(calls...), scripted.Say("done")), large)).Must(ada, say("u1", "go"))
	if all := s.Until(ada, "turn.completed"); count(all, "tool.completed") != 8 {
		t.Errorf("got events %v, want 8 tool.completed", s.Types(ada))
	}
}

func TestModelFailures(t *testing.T) { // A50, A52
	many := make([]scripted.Call, 5000)
	for i := range many {
		many[i] = scripted.Call{Name: "nosuch", Arguments: "{}"}
	}
	for name, c := range map[string]struct {
		step scripted.Step
		kind messages.ModelFailure
	}{
		"permanent":       {scripted.Fail(&providers.Error{Kind: providers.Auth, Message: "the key is wrong"}), "auth"},
		"long message":    {scripted.Fail(&providers.Error{Kind: providers.BadRequest, Message: strings.Repeat("no\xff", 1<<20)}), "bad_request"},
		"any text":        {scripted.Fail(&providers.Error{Kind: "rate limit", Message: "no"}), "rate limit"},
		"long kind":       {scripted.Fail(&providers.Error{Kind: providers.ErrorKind(strings.Repeat("k", 1<<20)), Message: "no"}), messages.ModelFailure(strings.Repeat("k", 128) + " [cut]")},
		"plain error":     {scripted.Fail(errors.New("boom")), "bad_answer"},
		"too large":       {scripted.Say(strings.Repeat("x", 1<<20)), "too_large"},
		"long name":       {scripted.Ask(scripted.Call{Name: strings.Repeat("n", 300<<10), Arguments: "{}"}), "too_large"},
		"long id":         {scripted.Ask(call(strings.Repeat("i", 300<<10), "x")), "too_large"},
		"too many calls":  {scripted.Ask(many...), "too_large"},
		"a large picture": {scripted.Step{Items: []messages.Item{{Type: messages.ItemMessage, Content: messages.Content{{Type: "image_url", ImageURL: strings.Repeat("d", 600<<10)}}}}}, "too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			s := actorstest.New(t, nil)
			model := scripted.New(c.step)
			cfg := config(model)
			cfg.MaxPayload = 192 << 10
			s.Start(cfg).Must(ada, say("u1", "go"))
			all := s.Until(ada, "turn.failed")
			ends(t, all)
			failed := actorstest.Of[messages.ModelFailed](all)
			if model.Calls() != 1 || len(failed) != 1 || failed[0].Kind != c.kind || failed[0].RetryAt != nil || len(failed[0].Message) > 20<<10 {
				t.Errorf("got %d calls, failed as %.200s, want 1 call, failed as %s", model.Calls(), failed[0].Kind, c.kind)
			}
		})
	}
}

func TestProviderPanics(t *testing.T) {
	for name, p := range map[string]func(){"panic": func() { panic("bug") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			s := actorstest.New(t, nil)
			broken := providers.Func(func(context.Context, providers.Request, func(providers.Delta)) (providers.Response, error) {
				p()
				return providers.Response{}, nil
			})
			s.Start(config(broken)).Must(ada, say("u1", "go"))
			ends(t, s.Until(ada, "turn.failed"))
		})
	}
}

func TestRetries(t *testing.T) { // A50
	temporary := func(after time.Duration) scripted.Step {
		return scripted.Fail(&providers.Error{Kind: providers.Overloaded, Status: 503, Message: "busy", Temporary: true, RetryAfter: after})
	}
	t.Run("then succeeds", func(t *testing.T) {
		t.Parallel()
		s := actorstest.New(t, nil)
		model := scripted.New(temporary(300*time.Millisecond), scripted.Say("hello"))
		node, begun := s.Start(config(model)), time.Now()
		node.Must(ada, say("u1", "go"))
		all := s.Until(ada, "turn.completed")
		failed := actorstest.Of[messages.ModelFailed](all)[0]
		var before, again time.Time
		for _, f := range s.Frames(ada) {
			switch {
			case count(f.Events, "model.failed") > 0:
				before = f.Time
			case count(f.Events, "model.requested") > 0 && !before.IsZero():
				again = f.Time
			}
		}
		if failed.RetryAt.Sub(begun) < 200*time.Millisecond || again.Before(*failed.RetryAt) || failed.Status != 503 {
			t.Errorf("failed at %v, retry due at %v, retried at %v, want it at its time", before, failed.RetryAt, again)
		}
	})
	t.Run("all fail", func(t *testing.T) {
		t.Parallel()
		s := actorstest.New(t, nil)
		model := scripted.New(temporary(0), temporary(0), scripted.Say("never"))
		s.Start(with(config(model), func(d *actors.Definition) { d.MaxAttempts = 2 })).Must(ada, say("u1", "go"))
		all := s.Until(ada, "turn.failed")
		ends(t, all)
		if model.Calls() != 2 || count(all, "model.failed") != 2 || actorstest.Of[messages.TurnFailed](all)[0].Reason != "model" {
			t.Errorf("got %d calls and events %v, want 2 failed calls", model.Calls(), s.Types(ada))
		}
	})
}
