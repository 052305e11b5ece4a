//go:build unix

package cli_test

import (
	"strconv"
	"strings"
	"testing"
)

// A person compacts, and an agent does so by itself, with a model behind HTTP; what
// was said before can be seen as of then.
func TestCompact(t *testing.T) { // A52, A80, A86
	w := newWorld(t)
	url, asked := modelServer(t)
	w.env = append(w.env, "SOME_KEY="+key)
	w.file("reprise.yaml", `
agents:
  assistant:
    model: mine/large
    compact: {at_tokens: 60, keep: 1, how: summary, model: mine/small, instructions: Be very brief.}
providers:
  mine: {api_key: "${SOME_KEY}", base_url: "`+url+`"}
`)
	w.dev()
	w.run("compact", "assistant/a").exits(1, "does not exist")
	for _, text := range []string{"What is the weather like?", "And tomorrow?"} {
		w.run("ask", "assistant/a", text).exits(0, "Grüezi")
	}
	before := len(w.run("events", "assistant/a", "-o", "json").exits(0).objects())
	w.run("compact", "assistant/a", "--keep", "2", "--reason", "tidy up").exits(0, "asked for a summary")
	w.await("assistant/a", "history.compacted")
	w.run("history", "assistant/a").exits(0, "developer", "Grüezi", "And tomorrow?")
	if r := w.run("history", "assistant/a", "-o", "json").exits(0); len(r.objects()) != 3 || strings.Contains(r.out, "weather") {
		t.Errorf("history: %s", r.out)
	}
	if was := w.run("history", "assistant/a", "--at", strconv.Itoa(before), "-o", "json").exits(0).objects(); len(was) != 4 || was[0]["content"] != "What is the weather like?" {
		t.Errorf("history before it: %v", was)
	}
	w.run("replay", "assistant/a", "--wide").exits(0, "2 items are gone", "developer: Grüezi")
	w.run("replay", "assistant/a").exits(0, "compaction", "2 items replaced", "Grüezi")
	w.run("compact", "assistant/a", "--keep", "2").exits(0, "nothing changed: nothing can be compacted")

	w.run("ask", "assistant/a", strings.Repeat("This is a long text. ", 12)).exits(0, "Grüezi")
	w.run("usage", "assistant/a").exits(0, "mine/small", "no turn (summaries)")
	events := w.run("events", "assistant/a", "-o", "json").exits(0).objects()
	if done := of(events, "history.compacted"); len(done) != 1 {
		t.Errorf("too little would go, and it was compacted: %v", done)
	}
	w.run("ask", "assistant/a", "Thanks").exits(0, "Grüezi")
	events = w.run("events", "assistant/a", "-o", "json").exits(0).objects()
	done := of(events, "history.compacted")
	if len(done) != 2 || done[1]["turn"] == nil || data(done[1])["model"] != "mine/small" {
		t.Errorf("compacted: %v", done)
	}
	var models []string
	for range len(asked) {
		models = append(models, strings.Fields(<-asked)[0])
	}
	if got := strings.Join(models, " "); got != "large large small large small large" {
		t.Errorf("asked: %s", got)
	}
	w.run("ask", "assistant/a", "Bye").exits(0, "Grüezi")
	w.run("compact", "assistant/a", "--how", "window", "--keep", "1").exits(0, "compacted its history")
	w.run("history", "assistant/a").exits(0, "are left out here")
	w.run("compact", "assistant/a", "--how", "zip").exits(2, "summary or window")
	w.run("compact", "assistant/a", "--keep", "0").exits(2, "must be positive")
}
