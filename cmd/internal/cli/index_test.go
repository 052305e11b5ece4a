//go:build unix

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestIndex(t *testing.T) { // A52, A80, A87
	w := newOffice(t)
	w.run("effects", "--outcome", "done").exits(2, "requested, waiting, running")
	w.run("usage", "--by", "week").exits(2, "agent, kind, model")
	w.run("ls", "--deletd").exits(2, "unknown flag", "ls --help` shows what it takes")
	w.run("lst").exits(2, "--help` shows the commands")
	node := w.dev()
	w.run("approvals").exits(0, "no call waits")
	w.run("effects").exits(0, "no such calls")
	w.run("usage", "-o", "json").exits(0, `{"type":"total","calls":0,`)
	w.run("ask", "clerk/a", `Use note with word "milk".`).exits(0)
	w.run("ask", "clerk/b", "Use pay with amount 7.").exits(3)

	effects := w.run("effects", "-o", "json").exits(0)
	if len(effects.objects()) != 2 {
		t.Fatalf("effects: %s", effects.out)
	}
	wantKeys(t, effects.objects()[0], "agent", "n", "at", "turn", "step", "call", "tool", "on_unknown", "key", "arguments", "attempts", "outcome", "output", "output_bytes", "started", "started_at", "ended", "ended_at")
	wantKeys(t, effects.objects()[1], "agent", "n", "at", "turn", "step", "call", "tool", "arguments", "outcome", "args_hash", "asked", "asked_at")
	w.run("effects").exits(0, "AGENT", "clerk/a", "completed", "noted", "clerk/b", "waiting", `{"amount":7}`)
	for _, args := range [][]string{{"--tool", "pay"}, {"--outcome", "waiting"}, {"--where", "amount=7", "--since", "1h"}, {"--kind", "clerk", "--where", "amount=7"}, {"clerk/b"}} {
		if r := w.run(append([]string{"effects", "-o", "json"}, args...)...).exits(0).objects(); len(r) != 1 || r[0]["agent"] != "clerk/b" {
			t.Errorf("effects %v: %v", args, r)
		}
	}
	w.run("effects", "--where", "amount=8").exits(0, "no such calls")
	w.run("effects", "--until", "2020-01-01").exits(0, "no such calls")
	w.run("effects", "clerk/b", "--at", "4").exits(0, "no such calls")
	w.run("effects", "clerk/b", "--at", "5000").exits(1, "no event 5000")
	w.run("show", "clerk/b", "--at", "2").exits(0, "idle")
	w.run("show", "clerk/b", "--at", "5000").exits(1, "no event 5000")
	w.run("turns", "clerk/b").exits(0, "paused", "approval")
	w.run("turns", "clerk/b", "--at", "3").exits(0, "no turns")
	w.run("approvals", "--tool", "pay", "--where", "amount=7").exits(0, "clerk/b")
	w.run("approvals", "clerk/b", "--at", "2").exits(0, "no call waits")
	w.run("usage").exits(0, "demo", "total", "REASONING")
	sums := func(args ...string) (models []string, calls []float64) {
		for _, line := range w.run(append([]string{"usage", "-o", "json"}, args...)...).exits(0).objects() {
			if line["type"] == "model" || line["type"] == "total" {
				models, calls = append(models, fmt.Sprint(line["type"], " ", line["model"])), append(calls, line["calls"].(float64))
			}
		}
		return models, calls
	}
	for _, args := range [][]string{nil, {"--model", "demo/demo"}, {"clerk/a"}} { // named as in the configuration
		if models, calls := sums(args...); !slices.Equal(models, []string{"model demo/demo", "total <nil>"}) || calls[0] == 0 || calls[0] != calls[1] {
			t.Errorf("usage %v is of %q: %v", args, models, calls)
		}
	}
	if _, calls := sums("--model", "demo"); !slices.Equal(calls, []float64{0}) {
		t.Errorf("usage of a model that was never asked: %v", calls)
	}
	w.run("usage", "--by", "agent", "--kind", "clerk", "--since", "24h").exits(0, "clerk/a", "clerk/b", "total")
	w.run("ls", "--since", "1h", "--limit", "1").exits(0, "clerk/a")
	w.run("index").exits(0, "POSITION", "0 sequences behind, 0 frames unreadable", filepath.Join(".reprise", "index"))

	for _, wrong := range [][]string{
		{"effects", "--outcome", "done"}, {"effects", "--where", "amount"}, {"effects", "--where", "a=1", "--where", "a=2"}, {"effects", "--since", "soon"},
		{"effects", "--at", "3"}, {"effects", "clerk/a", "--kind", "clerk"}, {"effects", "--limit", "-1"}, {"ls", "--limit", "-1"},
		{"usage", "--by", "week"}, {"usage", "--at", "3"}, {"usage", "clerk/a", "--by", "day"}, {"approvals", "--at", "3"}, {"approvals", "clerk/a", "--kind", "clerk"},
	} {
		w.run(wrong...).exits(2)
	}
	w.run("effects", "--kind", "a b").exits(2, "are allowed")

	said := func() (text string) {
		for _, args := range [][]string{{"effects"}, {"approvals"}, {"usage", "--by", "agent"}, {"usage", "--by", "day"}} {
			text += w.run(append(args, "-o", "json")...).exits(0).out
		}
		return text
	}
	want := said()
	node.kill()
	for _, file := range []string{"index.db", "index.db-wal", "index.db-shm"} {
		if err := os.Remove(filepath.Join(w.dir, ".reprise", "index", file)); err != nil {
			t.Fatal(err)
		}
	}
	w.dev()
	if got := said(); got != want {
		t.Errorf("built again, the index says\n%s\nit said\n%s", got, want)
	}
}
