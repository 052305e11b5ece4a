package turntest

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// Stage is an agent, its log and its clock. It is not safe for concurrent use.
type Stage struct {
	// State is folded from Log.
	State *turn.State
	Log   []*messages.Frame
	// Env is what the next command is decided with.
	Env turn.Env

	t     testing.TB
	out   bytes.Buffer
	acted bool // the effects may have changed
}

// New returns the stage of agent default/test/ada, which has no events yet.
func New(t testing.TB) *Stage {
	return &Stage{t: t, State: &turn.State{}, Env: turn.Env{
		Agent: messages.AgentID{Tenant: "default", Kind: "test", Key: "ada"},
		Definition: turn.Definition{Digest: "d1", Model: "scripted/m", MaxSteps: 20, MaxQueue: 10, MaxAttempts: 3, Parallel: 8,
			Tools: map[string]turn.Tool{"add": {OnUnknown: messages.ReadOnly}, "pay": {OnUnknown: messages.Rerun}, "ship": {OnUnknown: messages.Reconcile}, "mail": {OnUnknown: messages.Pause}}},
		Now: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC), Jitter: 0.5,
	}}
}

// answer returns the events since the last call, and the effects if they may have
// changed.
func (s *Stage) answer() string {
	if s.acted {
		for _, e := range s.State.Effects() {
			fmt.Fprintf(&s.out, "  do: %s%s\n", effectText(s.State, e), s.passed(e))
		}
	}
	s.acted = false
	defer s.out.Reset()
	return s.out.String()
}

// passed lists the hooks that have paused already, for an effect that asks hooks.
func (s *Stage) passed(e turn.Effect) string {
	if e.Do != turn.AskHooks {
		return ""
	}
	if hooked := s.State.Turn.Hooked; len(hooked) > 0 {
		return ", not again " + strings.Join(hooked, " ")
	}
	return ""
}

// Do carries out one line of a story.
func (s *Stage) Do(line string) {
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
	command, ok := commands[name]
	if !ok {
		s.t.Fatalf("line %q: unknown command", line)
	}
	s.Decide(command(s, args))
}

// Decide passes a command or an outcome to the machine and appends its events.
func (s *Stage) Decide(cmd any) {
	first := s.State.Last + 1
	events, err := s.State.Decide(s.Env, cmd)
	s.acted = true
	if err != nil {
		fmt.Fprintf(&s.out, "refused: %v\n", err)
		return
	}
	cause := messages.Cause{Type: messages.CauseEffect}
	if c, ok := cmd.(messages.Command); ok {
		cause = messages.Cause{Type: c.CommandType(), ID: messages.IDOf(c), Endpoint: messages.EndpointClient}
	}
	if del, ok := cmd.(messages.Delete); ok && s.State.Life.Deleted == nil { // the frame before the tombstone
		cause = messages.Cause{Type: del.CommandType(), Endpoint: messages.EndpointClient}
	}
	s.append(first, cause, events)
}

func (s *Stage) append(first messages.EventNumber, cause messages.Cause, events []messages.Event) {
	if len(events) == 0 {
		s.out.WriteString("nothing\n")
		return
	}
	f := &messages.Frame{ID: messages.FrameID(fmt.Sprint("f", first)), First: first, Time: s.Env.Now, Cause: cause, Trace: s.Env.Trace, Events: events}
	s.State.Record(f)
	s.Log = append(s.Log, f)
	for i, ev := range events {
		fmt.Fprintf(&s.out, "%d %s%s\n", first+messages.EventNumber(i), ev.EventType(), EventText(ev))
	}
}

// split cuts a line into words. A word, or what follows its first =, may be
// quoted.
func split(t testing.TB, line string) (words []string) {
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
