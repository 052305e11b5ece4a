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
func play(t *testing.T, text string) string {
	var out strings.Builder
	s := newStage(t)
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
			Classes: map[string]string{"add": "pure", "pay": "keyed", "ship": "check", "mail": "once"}},
		Now: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC), Jitter: 0.5,
	}}
}

// told is what the commands since the last call led to.
func (s *stage) told() string {
	if s.acted {
		for _, e := range s.state.Effects() {
			fmt.Fprintf(&s.out, "  do: %s\n", effectText(e))
		}
	}
	s.acted = false
	defer s.out.Reset()
	return s.out.String()
}

func effectText(e turn.Effect) string {
	switch e.Do {
	case turn.CallModel:
		return fmt.Sprintf("call the model (%s)", e.Call)
	case turn.Wait:
		return fmt.Sprintf("wait until %s (%s)", clock(e.Until), e.Call)
	case turn.RunTool:
		return fmt.Sprintf("run the tool of %s, attempt %d", e.Call, e.Attempt)
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
	first := s.state.Last + 1
	events, err := s.state.Decide(s.env, cmd)
	s.acted = true
	if err != nil {
		fmt.Fprintf(&s.out, "refused: %v\n", err)
		return
	}
	cause := messages.Cause{Type: "effect"}
	if c, ok := cmd.(messages.Command); ok {
		cause = messages.Cause{Type: c.CommandType(), ID: c.CommandID(), Door: "client"}
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

// eventText is an event's fields, those that a reader can do without left out.
func eventText(ev messages.Event) string {
	raw, _ := json.Marshal(ev)
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields)
	var b strings.Builder
	for _, name := range []string{"agent", "input", "disposition", "turn", "continues", "epoch", "call", "calls", "tool", "class", "attempt", "step", "inputs", "max_steps", "steps",
		"command", "by", "kind", "reason", "message", "retry_at", "output", "arguments", "note", "patch"} {
		value, ok := fields[name]
		if !ok || string(value) == "null" || string(value) == `""` {
			continue
		}
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		} else if strings.ContainsAny(text, " \n\"") {
			text = strconv.Quote(text)
		}
		fmt.Fprintf(&b, " %s=%s", name, text)
	}
	return b.String()
}

// split cuts a line into words; a word may hold quoted text.
func split(t *testing.T, line string) (words []string) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimLeft(line, " ") {
		if line[0] == '"' {
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			text, _ := strconv.Unquote(quoted)
			words, line = append(words, text), line[len(quoted):]
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		words, line = append(words, word), rest
	}
	return words
}
