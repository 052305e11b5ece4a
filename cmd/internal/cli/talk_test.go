package cli_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestTalk(t *testing.T) {
	w := newWorld(t)
	w.dev()
	w.part("ask", talkAsk)
	w.part("ask in JSON", talkJSON)
	w.part("send", talkSend)
	w.part("chat without a terminal", talkChat)
	w.part("hostile content", talkHostile)
}

func talkAsk(t *testing.T, w *world) {
	if r := w.run("ask", "assistant/main", "What is", "17 times 3?").exits(0); r.out != "17 times 3 is 51.\n" || r.err != "" {
		t.Errorf("stdout %q, stderr %q", r.out, r.err)
	}
	w.feed("What is 6 times 7?\n", "ask", "tenant1/assistant/main", "-", "--verbose").exits(0, "42", "tool.started")
	w.run("ask", "--id", "x", "assistant/main", "What is 2 times 9?").exits(0, "18")
	w.run("ask", "--id", "x", "assistant/main", "What is 2 times 9?").exits(0, "18")
	w.run("ask", "--id", "x", "assistant/main", "something else").exits(1, "used with other content")
	w.run("ask", "nokind/a", "hi").exits(1, "nokind", "assistant")
	w.run("ask", "assi.stant/a", "hi").exits(2, "'.'")
	w.run("ask", "assistant", "hi").exits(2, "kind/key")
	w.run("ask", "assistant/a").exits(2)
	w.run("ask", "assistant/a", " ").exits(2, "empty")
	w.feed("\x00\xff\xfe garbage \x80", "ask", "assistant/a", "-").exits(1, "UTF-8")
	w.run("ask", "--policy", "soon", "assistant/a", "hi").exits(2, "queue, steer, interrupt or reject")
	w.run("chat", "--policy", "soon", "assistant/a").exits(2, "queue, steer, interrupt or reject")
	w.run("send", "--max-steps", "-1", "assistant/a", "hi").exits(2, "--max-steps")
	w.run("ask", "--deadline", "soon", "assistant/a", "hi").exits(2, "30s")
	w.run("ask", "--deadline", "2001-01-01T00:00:00Z", "assistant/a", "hi").exits(2, "has passed already")
	w.run("ask", "--max-steps", "1", "assistant/m", "What is 4 times 4?").exits(1, "max_steps", "resume assistant/m --max-steps")
	w.run("resume", "assistant/m", "--max-steps", "-5").exits(2, "--max-steps")
	w.run("resume", "assistant/m", "--agent-max-tokens", "-5").exits(2, "--agent-max-tokens")
	w.run("resume", "assistant/m", "--max-cost", "NaN").exits(2, "--max-cost")
	w.run("resume", "assistant/m", "--agent-max-duration", "-1s").exits(2, "--agent-max-duration")
	w.run("resume", "assistant/m", "--max-steps", "5", "--reason", "more").exits(0, "resumed turn")
	w.await("assistant/m", "turn.completed")
}

func talkJSON(t *testing.T, w *world) {
	lines := w.run("ask", "assistant/json", "What is 17 times 3?", "-o", "json").exits(0).objects()
	text, deltas := "", 0
	for i, o := range lines {
		if o["type"] == "delta" {
			text, deltas = text+o["text"].(string), deltas+1
			wantKeys(t, o, "type", "text")
			continue
		}
		keys := []string{"n", "seq", "frame", "type", "at", "data"}
		if o["person"] != nil { // of what the input has recorded
			keys = append(keys, "person")
		}
		if o["turn"] != nil {
			keys = append(keys, "turn")
		}
		if o["step"] != nil {
			keys = append(keys, "step")
		}
		if i == len(lines)-1 {
			keys = append(keys, "output", "usage")
		}
		wantKeys(t, o, keys...)
	}
	last := lines[len(lines)-1]
	if last["type"] != "turn.completed" || last["output"] != "17 times 3 is 51." || text != last["output"] || deltas < 2 {
		t.Errorf("%d deltas %q, last %v", deltas, text, last)
	}
	usage, _ := last["usage"].(map[string]any)
	if usage["input_tokens"] == nil || usage["output_tokens"] == nil {
		t.Errorf("usage %v", usage)
	}
}

func wantKeys(t *testing.T, o map[string]any, keys ...string) {
	t.Helper()
	got := slices.Sorted(maps.Keys(o))
	slices.Sort(keys)
	if !slices.Equal(got, keys) {
		t.Errorf("the keys are %v, want %v", got, keys)
	}
}

func talkSend(t *testing.T, w *world) {
	sub := subscribe(t, w, "answers.here")
	o := w.run("send", "assistant/s", "What is 5 times 5?", "--id", "s-1", "--reply", "answers.here", "-o", "json").exits(0).objects()[0]
	if o["id"] != "s-1" || o["subject"] != "reprise.in.default.assistant.s" {
		t.Errorf("send: %v", o)
	}
	for done := false; !done; {
		msg, err := sub.NextMsgWithContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		done = strings.Contains(string(msg.Data), "turn.completed") && strings.Contains(string(msg.Data), "25")
	}
	if r := w.run("send", "assistant/s", "hi").exits(0); len(strings.TrimSpace(r.out)) < 20 {
		t.Errorf("no id: %q", r.out)
	}
	w.run("send", "assistant/s", "hi", "--reply", "reprise.in.default.assistant.s").exits(2, "answers are never published")
	w.run("send", "assistant/s.x", "hi").exits(2, "'.'")
}

func talkChat(t *testing.T, w *world) {
	r := w.feed("What is 17 times 3?\n\n/state\n/history\n/interrupt\n/help\n/quit\nnever read\n", "chat", "assistant/c").exits(0, "51", "{}", "user", "result", "/interrupt", "nothing to interrupt")
	if strings.Contains(r.out, "never") {
		t.Errorf("it continued after /quit: %s", r.out)
	}
	w.feed("/nonsense\nWhat is 6 times 7?", "chat", "assistant/c").exits(1, "no /nonsense", "42")
}

func talkHostile(t *testing.T, w *world) {
	evil := "say \x1b]0;owned\x07\x1b[2J \u202ereversed \u009b31m"
	w.feed(evil, "ask", "parrot/p", "-").exits(0)
	for _, args := range [][]string{
		{"events", "parrot/p"}, {"history", "parrot/p"}, {"replay", "parrot/p"}, {"replay", "parrot/p", "--wide"}, {"show", "parrot/p"},
		{"ask", "parrot/p", evil}, {"ls"}, {"set-state", "parrot/p", fmt.Sprintf(`{"a":%q}`, "\u202e")}, {"state", "parrot/p"},
		{"events", "parrot/p", "-o", "json"}, {"history", "parrot/p", "-o", "json"}, {"replay", "parrot/p", "-o", "json"}, {"replay", "parrot/p", "--wide", "-o", "json"},
		{"ask", "parrot/p", evil, "-o", "json"}, {"state", "parrot/p", "-o", "json"}, {"traces", "parrot/p", "--content", "-o", "json"},
		{"fork", "parrot/p", "parrot/q", "--set", "instructions=" + evil}, {"diff", "parrot/p", "parrot/q"}, {"diff", "parrot/p", "parrot/q", "--wide"}, {"diff", "parrot/p", "parrot/q", "-o", "json"},
	} {
		r := w.run(args...).exits(0)
		if i := strings.IndexAny(r.out+r.err, "\x1b\x07\u202e\u009b"); i >= 0 {
			t.Errorf("%v lets %q through", args, (r.out + r.err)[i:])
		}
	}
}
