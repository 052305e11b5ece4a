package turn_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

var rewrite = flag.Bool("rewrite", false, "write the answers in testdata anew; read the diff")

// TestStories plays every file of testdata. A file is made of blocks: lines of
// commands, a line of four dashes, and what follows from them up to an empty
// line: the events, then what is now to be done in the world. Lines that begin
// with # are for the reader. Run it with -rewrite to write the answers anew.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no stories", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(want))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("the story goes otherwise; first difference:\n%s", difference(string(want), got))
			}
		})
	}
}

// play gives the story with the answers as they are now.
func play(t *testing.T, text string) string { return newStage(t).play(text) }

func (s *stage) play(text string) string {
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if line != "----" {
			out.WriteString(line + "\n")
			if line != "" && line[0] != '#' {
				s.do(line)
			}
			continue
		}
		for i+1 < len(lines) && lines[i+1] != "" {
			i++ // the old answer
		}
		fmt.Fprintf(&out, "----\n%s", s.told())
	}
	return out.String()
}

func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// stage is an agent, its log and its clock.
type stage struct {
	t     *testing.T
	state *turn.State
	log   []*messages.Frame
	env   turn.Env
	out   bytes.Buffer
	acted bool // the effects may have changed
}

func newStage(t *testing.T) *stage {
	return &stage{t: t, state: &turn.State{}, env: turn.Env{
		Agent: messages.AgentID{Tenant: "default", Kind: "test", Key: "ada"},
		Definition: turn.Definition{Digest: "d1", Model: "scripted/m", MaxSteps: 20, MaxQueue: 10, MaxAttempts: 3, Parallel: 8,
			Tools: map[string]turn.Tool{"add": {Class: "pure"}, "pay": {Class: "keyed"}, "ship": {Class: "check"}, "mail": {Class: "once"}}},
		Now: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC), Jitter: 0.5,
	}}
}

// told is what the commands since the last call led to.
func (s *stage) told() string {
	if s.acted {
		for _, e := range s.state.Effects() {
			fmt.Fprintf(&s.out, "  do: %s%s\n", effectText(e), s.passed(e))
		}
	}
	s.acted = false
	defer s.out.Reset()
	return s.out.String()
}

// passed are the hooks that have paused where hooks are to be asked now.
func (s *stage) passed(e turn.Effect) string {
	if e.Do != turn.AskHooks {
		return ""
	}
	if hooked := s.state.Turn.Hooked(); len(hooked) > 0 {
		return ", not again " + strings.Join(hooked, " ")
	}
	return ""
}

func effectText(e turn.Effect) string {
	switch e.Do {
	case turn.CallModel:
		return fmt.Sprintf("call the model (%s)", e.Call)
	case turn.Wait:
		return fmt.Sprintf("wait until %s (%s)", clock(e.Until), e.Timer)
	case turn.RunTool:
		return fmt.Sprintf("run the tool of %s, attempt %d", e.Call, e.Attempt)
	case turn.Summarize:
		text := fmt.Sprintf("ask for a summary (%s)", e.Call)
		if !e.Until.IsZero() {
			text += ", not before " + clock(e.Until)
		}
		return text
	case turn.Begin:
		return "begin the next turn"
	case turn.AskHooks:
		return fmt.Sprintf("ask the hooks (%s)", e.Point)
	case turn.GiveTask:
		return fmt.Sprintf("give the task of %s", e.Call)
	case turn.PassDecision:
		return fmt.Sprintf("pass a decision down to %s", e.Call)
	case turn.TakeTask:
		return fmt.Sprintf("take the task of %s %s back", e.Turn, e.Call)
	case turn.TellParent:
		return fmt.Sprintf("tell the parent of %s, as of %d", e.ID, e.N)
	case turn.Bury:
		return "write the tombstone"
	case turn.Purge:
		return "remove all that was before the tombstone"
	}
	return fmt.Sprintf("ask the tool what became of %s", e.Call)
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.00") }

// do carries out one line.
func (s *stage) do(line string) {
	words := split(s.t, line)
	name, args := words[0], words[1:]
	if show, ok := shows[name]; ok {
		show(s)
		return
	}
	if set, ok := settings[name]; ok {
		set(s, args)
		return
	}
	make, ok := commands[name]
	if !ok {
		s.t.Fatalf("line %q: unknown command", line)
	}
	s.decide(make(s, args))
}

func (s *stage) decide(cmd any) {
	first, closed := s.state.Last+1, s.state.Buries()
	events, err := s.state.Decide(s.env, cmd)
	s.acted = true
	if err != nil {
		fmt.Fprintf(&s.out, "refused: %v\n", err)
		return
	}
	cause := messages.Cause{Type: "effect"}
	if c, ok := cmd.(messages.Command); ok {
		cause = messages.Cause{Type: c.CommandType(), ID: c.CommandID(), Door: "client"}
	} else if closed != nil {
		cause = closed.Cause()
	}
	s.append(first, cause, events)
}

func (s *stage) append(first messages.EventNumber, cause messages.Cause, events []messages.Event) {
	if len(events) == 0 {
		s.out.WriteString("nothing\n")
		return
	}
	f := &messages.Frame{ID: messages.FrameID(fmt.Sprint("f", first)), First: first, Time: s.env.Now, Cause: cause, Events: events}
	s.state.Spend(f)
	s.log = append(s.log, f)
	for i, ev := range events {
		fmt.Fprintf(&s.out, "%d %s%s\n", first+messages.EventNumber(i), ev.EventType(), eventText(ev))
	}
}

// toldFields are those of events that a reader can do with, in this order.
var toldFields = []string{"agent", "input", "disposition", "turn", "continues", "epoch", "hook", "point", "decision", "call", "calls", "tool", "of", "class", "attempt", "key",
	"timer", "for", "at", "cron", "tz", "ran_ms", "missed", "refused", "step", "scope", "limit", "inputs", "max_steps", "limits", "steps", "from", "to", "model", "tool_choice", "request",
	"command", "by", "person", "remember", "kind", "reason", "message", "retry_at", "shown", "expires_at", "text", "output", "blob", "finish", "answer", "arguments", "args_hash", "withheld", "note", "patch",
	"child", "parent", "n", "waiting", "waits", "how", "what", "upto", "dropped", "kept", "not_before", "detached", "busy", "tokens", "usage", "cost_nanos", "unknown", "deleted", "frames"}

// eventText is an event's fields.
func eventText(ev messages.Event) string {
	raw, _ := json.Marshal(ev)
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields)
	var b strings.Builder
	for _, name := range toldFields {
		value, ok := fields[name]
		if !ok || string(value) == "null" || string(value) == `""` && name != "text" {
			continue
		}
		if name == "key" && string(fields["attempt"]) == "1" {
			continue // it is made of turn and call, and matters when it is used again
		}
		if short, ok := shortened[name]; ok {
			name, value = short(value)
		}
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		} else if text == "" || text[0] == '"' || strings.ContainsAny(text, " \n") {
			text = strconv.Quote(text)
		}
		if name != "" {
			fmt.Fprintf(&b, " %s=%s", name, text)
		}
	}
	return b.String()
}

// shortened fields are written as a person would; one without a name is left
// out.
var shortened = map[string]func(json.RawMessage) (string, json.RawMessage){
	"at":         shortTime("at"),
	"retry_at":   shortTime("retry_at"),
	"expires_at": shortTime("expires_at"),
	"not_before": shortTime("not_before"),
	"person": func(v json.RawMessage) (string, json.RawMessage) {
		var p messages.Person
		_ = json.Unmarshal(v, &p)
		return "person", quoted(p.Name)
	},
	"ran_ms": func(v json.RawMessage) (string, json.RawMessage) {
		ms, _ := time.ParseDuration(string(v) + "ms")
		return "ran", quoted(ms.String())
	},
	"input": func(v json.RawMessage) (string, json.RawMessage) {
		var timed messages.TimedInput
		if json.Unmarshal(v, &timed) != nil {
			return "input", v
		}
		return "input", quoted(timed.ID + ": " + timed.Content.Text())
	},
	"cost_nanos": func(v json.RawMessage) (string, json.RawMessage) { return "cost", quoted(costText(v)) },
	"args_hash":  func(v json.RawMessage) (string, json.RawMessage) { return "args_hash", quoted(string(v[1:9]) + "…") },
	"child": func(v json.RawMessage) (string, json.RawMessage) {
		return "child", quoted(shortKey(strings.Trim(string(v), `"`)))
	},
	"parent":  shortParent,
	"waiting": shortWaiting,
	"limits":  func(v json.RawMessage) (string, json.RawMessage) { return "limits", quoted(limitsText(v)) },
	"usage": func(v json.RawMessage) (string, json.RawMessage) {
		var u messages.Usage
		if json.Unmarshal(v, &u) != nil || u == (messages.Usage{}) {
			return "", nil
		}
		return "usage", quoted(fmt.Sprintf("%d+%d", u.Input, u.Output))
	},
	"blob": func(v json.RawMessage) (string, json.RawMessage) {
		var b messages.Blob
		_ = json.Unmarshal(v, &b)
		return "blob", quoted(fmt.Sprintf("%s…+%d", b.SHA256[:8], b.Size))
	},
	// The model that every definition begins with goes without saying.
	"model": func(v json.RawMessage) (string, json.RawMessage) {
		if string(v) == `"scripted/m"` {
			return "", nil
		}
		return "model", v
	},
	// The digest of what goes out is told where a hook has changed it.
	"request": func(v json.RawMessage) (string, json.RawMessage) {
		if len(v) == len(messages.DigestOf(nil))+2 {
			return "", nil
		}
		return "request", v
	},
}

func shortTime(name string) func(json.RawMessage) (string, json.RawMessage) {
	return func(v json.RawMessage) (string, json.RawMessage) {
		var at time.Time
		_ = json.Unmarshal(v, &at)
		return name, quoted(clock(at))
	}
}

func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s)
	return b
}

func costText(v json.RawMessage) string {
	var c messages.Cost
	_ = json.Unmarshal(v, &c)
	return c.String()
}

func limitsText(v json.RawMessage) string {
	var l messages.Limits
	_ = json.Unmarshal(v, &l)
	var parts []string
	for _, p := range []struct {
		set  bool
		text string
	}{
		{l.MaxSteps != 0, fmt.Sprint("max_steps:", l.MaxSteps)},
		{l.MaxTokens != 0, fmt.Sprint("max_tokens:", l.MaxTokens)},
		{l.MaxCost != 0, fmt.Sprint("max_cost:", l.MaxCost)},
		{l.MaxDuration != 0, fmt.Sprint("max_duration:", time.Duration(l.MaxDuration)*time.Millisecond)},
	} {
		if p.set {
			parts = append(parts, p.text)
		}
	}
	return strings.Join(parts, ",")
}

// split cuts a line into words; a word, or what follows its first =", may hold
// quoted text.
func split(t *testing.T, line string) (words []string) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimLeft(line, " ") {
		word, rest, _ := strings.Cut(line, " ")
		key, _, isOption := strings.Cut(word, `="`)
		switch {
		case line[0] == '"':
			key = ""
		case isOption && !strings.ContainsAny(key, `{"`):
			key += "="
		default:
			words, line = append(words, word), rest
			continue
		}
		text, err := strconv.QuotedPrefix(line[len(key):])
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		line = line[len(key)+len(text):]
		text, _ = strconv.Unquote(text)
		words = append(words, key+text)
	}
	return words
}
