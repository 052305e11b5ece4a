//go:build unix

package cli_test

import (
	"strings"
	"testing"
)

// An input for later outlives its node, and is listed and taken back.
func TestTimers(t *testing.T) { // A6
	w := newWorld(t)
	node := w.dev()
	w.run("timers", "assistant/a").exits(1, "does not exist")
	w.run("send", "assistant/a", "Good morning", "--cron", "0 9 * * 1-5", "--tz", "Europe/Berlin", "--name", "morning").exits(0)
	w.run("send", "assistant/a", "Happy new year", "--at", "2031-01-01T00:00", "--tz", "Asia/Tokyo", "--id", "year").exits(0)
	id := strings.TrimSpace(w.run("send", "assistant/a", "What is 6 times 7?", "--in", "2s").exits(0).out) // last: it comes however slow the others are
	w.until("assistant/a", "the last timer", func(ev map[string]any) bool { return data(ev)["timer"] == id })
	node.kill()

	w.dev()
	fired := of(w.await("assistant/a", "turn.completed"), "timer.fired")
	if len(fired) != 1 || data(fired[0])["input"] != id {
		t.Errorf("fired: %v", fired)
	}
	w.run("timers", "assistant/a").exits(0, "morning", "09:00:00 CE", "0 9 * * 1-5 Europe/Berlin", "Good morning", "year", "cancel assistant/a --timer TIMER")
	w.run("show", "assistant/a").exits(0, "2 inputs, the next at")
	lines := w.run("timers", "assistant/a", "-o", "json").exits(0).objects()
	if len(lines) != 2 || lines[1]["timer"] != "year" || lines[1]["next"] != "2030-12-31T15:00:00Z" || lines[1]["text"] != "Happy new year" {
		t.Errorf("timers: %v", lines)
	}
	w.run("cancel", "assistant/a", "--timer", "morning", "--reason", "holidays").exits(0, "cancelled timer morning")
	w.run("cancel", "assistant/a", "--timer", "morning").exits(1, "no timer", "morning")
	w.run("doctor", "--quick").exits(0, "ok    dead letters  none; commands that were refused")
	w.run("cancel", "assistant/a", "--all").exits(0, "cancelled every input that waited and every timer")
	w.run("cancel", "assistant/a", "--all").exits(0, "nothing changed")
	w.run("timers", "assistant/a").exits(0, "no input is scheduled")
	if lines := w.run("timers", "assistant/a", "--at", "5", "-o", "json").exits(0).objects(); len(lines) != 3 {
		t.Errorf("timers as of event 5: %v", lines)
	}
}

func TestFlagsThatMeanNothing(t *testing.T) { // A102
	w := newWorld(t)
	for _, tc := range [][]string{ // before anything is sent
		{"field 1, the minute", "--cron", "61 9 * * *"},
		{"has 4 fields", "--cron", "0 9 * *"},
		{"IANA", "--cron", "0 9 * * *", "--tz", "Europe/Berln"},
		{"IANA", "--at", "2031-01-01T00:00", "--tz", "Europe/Berln"},
		{"leave --tz Asia/Tokyo out", "--at", "2031-01-01T00:00:00Z", "--tz", "Asia/Tokyo"},
		{"has passed", "--at", "2020-01-01T00:00:00Z"},
		{"write a time", "--at", "tomorrow"},
		{"ten years", "--at", "2099-01-01T00:00:00Z"},
		{"ten years", "--in", "90000h"},
		{"must be positive", "--in", "-1h"},
		{"with a unit", "--in", "2"},
		{"--in is empty", "--in", ""}, {"--cron is empty", "--cron", ""}, {"--at is empty", "--at", ""},
		{"exclude one another", "--in", "2h", "--cron", "@daily"},
		{"set in, at or cron", "--name", "x"},
		{"no last moment", "--cron", "@daily", "--deadline", "1h"},
		{"before the input is delivered", "--in", "1h", "--deadline", "5s"},
		{"before the input is delivered", "--at", "2031-01-01T00:00:00Z", "--deadline", "2030-12-31T23:59:59Z"},
	} {
		w.run(append([]string{"send", "assistant/a", "hi"}, tc[1:]...)...).exits(2, tc[0])
	}
	for _, tc := range [][]string{
		{"answers are never published under", "--reply", "reprise.in.default.assistant.b"}, {"one plain subject", "--reply", "a.*"},
		{"has passed already", "--deadline", "0s"}, {"has passed already", "--deadline", "2020-01-01T00:00:00Z"}, {"write a duration", "--deadline", "soon"},
	} {
		w.run(append([]string{"send", "assistant/a", "hi"}, tc[1:]...)...).exits(2, tc[0])
	}
	for _, tc := range [][]string{ // a variable that is not set is no way to leave a word out
		{"send", "assistant/a", "hi", "--id", ""}, {"send", "assistant/a", "hi", "--reply", ""}, {"ask", "assistant/a", "hi", "--deadline", ""},
		{"approve", "assistant/a", "c1", "--turn", ""}, {"approve", "assistant/a", "c1", "--args-hash", ""},
		{"dev", "--key-file", ""}, {"serve", "--nats", ""}, {"serve", "--root", ""}, {"effects", "--tool", ""}, {"ls", "--phase", ""}, {"cancel", "assistant/a", "--input", ""}, {"cancel", "assistant/a", "--timer", ""}, {"show", "assistant/a", "--data", ""},
	} {
		w.run(tc...).exits(2, tc[len(tc)-2]+" is empty")
	}
	w.run("ls", "--kind", "").exits(2, "--kind is empty")
	for _, tc := range [][]string{ // nor a name
		{"approve", "assistant/a", ""}, {"deny", "assistant/a", ""}, {"decide", "assistant/a", "", "retry"}, {"approvals", "forget", "assistant/a", ""},
		{"blob", "assistant/a", ""}, {"drain", ""},
	} {
		w.run(tc...).exits(2, "is empty: name one, as")
	}
	w.run("usage", "--kind", "a.b").exits(2, "--kind", "'.'")
	w.run("doctor", "assistant/a", "--tenant", "other").exits(2, "other/assistant/a")
	for _, tc := range [][]string{ // zero is no way to leave a number out
		{"show", "assistant/a", "--at", "0"}, {"replay", "assistant/a", "--at", "0"}, {"compact", "assistant/a", "--keep", "0"},
		{"resume", "assistant/a", "--max-steps", "0"}, {"resume", "assistant/a", "--agent-max-cost", "0"}, {"ask", "assistant/a", "hi", "--max-steps", "0"},
	} {
		w.run(tc...).exits(2, tc[len(tc)-2]+" 0: it must be positive")
	}
	for _, tc := range [][]string{{"ls"}, {"ask", "assistant/a", "hi"}, {"backup", "f.tar"}, {"doctor"}, {"drain", "n"}} {
		w.run(append(tc, "--timeout", "-90s")...).exits(2, "--timeout -1m30s: it must be positive")
	}
	for root, part := range map[string]string{"a b": "' '", "a.b": "'.'", ">": "'>'", "_x": "belong to others", "agents": "belong to others", "": "--root is empty"} {
		for _, tc := range [][]string{
			{"ask", "assistant/a", "hi"}, {"backup", "f.tar"}, {"doctor"}, {"nodes"}, {"permissions", "--role", "node"},
			{"restore", "f.tar"}, {"serve"}, {"store", "scale", "--replicas", "3"},
		} {
			w.run(append(tc, "--root", root)...).exits(2, "--root", part)
		}
	}
	w.run("ask", "assistant/a", "hi", "--in", "2h").exits(2, "send", "events assistant/a --follow")
}
