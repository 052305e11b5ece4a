package verify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// commandsOf returns what Commands makes of a story, a line for each command; those that steered a turn follow
// the input that began it.
func commandsOf(t *testing.T, story string) string {
	t.Helper()
	list, err := Commands(tell(t, story).frames)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, g := range list {
		describe(&b, g.Command)
		for _, s := range g.Steers {
			fmt.Fprintf(&b, "  step %d: ", s.Step)
			describe(&b, s.Input)
		}
	}
	return b.String()
}

func describe(b *strings.Builder, c messages.Command) {
	switch c := c.(type) {
	case messages.Input:
		fmt.Fprintf(b, "input %s %q %s\n", c.ID, c.Content.Text(), c.Policy)
	case messages.Compact:
		fmt.Fprintf(b, "compact %s keep %d how %s\n", c.ID, c.Keep, c.How)
	case messages.SetState:
		fmt.Fprintf(b, "set-state %s %s\n", c.ID, c.Patch)
	default:
		fmt.Fprintf(b, "%s\n", c.CommandType())
	}
}

// Inputs are given with those that steered their turns; one that no turn has taken up and what a person
// did about a turn are left out.
func TestCommands(t *testing.T) {
	got := commandsOf(t, `
input u1 "One"
input u2 "Steered" policy=steer
input u3 "Three"
answers asks add c1 {"a":1,"b":2}
returns c1 "3"
input u4 "Later" policy=steer
answers "Done"
answers "Done again"
set_state s1 {"plan":"gold"}
clear k1
input u5 "Stopped"
input u6 "Never"
cancel x1 input u6
abort x2
`)
	want := `input u1 "One" 
  step 1: input u2 "Steered" steer
  step 2: input u4 "Later" steer
input u3 "Three" 
set-state s1 {"plan":"gold"}
clear
input u5 "Stopped" 
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A compact keeps what it kept, whatever the definition of today has it keep.
func TestCompactKeeps(t *testing.T) {
	var turns strings.Builder
	for i := range 15 {
		fmt.Fprintf(&turns, "input u%d \"Hi\"\nanswers \"Hello.\"\n", i)
	}
	for line, want := range map[string]string{
		"compact k1 how=window":         "compact k1 keep 20 how window\n",
		"compact k1 keep=4 how=window":  "compact k1 keep 4 how window\n",
		"compact k1 keep=6 how=summary": "compact k1 keep 6 how summary\n",
	} {
		if got := commandsOf(t, turns.String()+line+"\n"); !strings.HasSuffix(got, want) {
			t.Errorf("%s: got\n%s", line, got)
		}
	}
}

// Inputs of which texts were replaced are not what was asked.
func TestCommandsRedacted(t *testing.T) {
	imported := &messages.Frame{First: 1, Events: []messages.Event{messages.AgentImported{Redacted: []string{"email"}}}}
	if _, err := Commands([]*messages.Frame{imported}); err == nil || !strings.Contains(err.Error(), "texts were replaced before it was imported (email)") {
		t.Errorf("got %v", err)
	}
}
