package actorstest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// noting is a test that notes its errors.
type noting struct {
	testing.TB
	errors []string
}

func (t *noting) Helper()                   {}
func (t *noting) Errorf(f string, a ...any) { t.errors = append(t.errors, fmt.Sprintf(f, a...)) }

// greeting is the configuration of an agent that says hello.
func greeting(instructions string) actors.Config {
	return actors.Config{
		Providers:   providers.Set{"scripted": scripted.New(scripted.Say("Hello."))},
		Definitions: []actors.Definition{{Kind: "support", Model: "scripted/m", Instructions: instructions}},
	}
}

// recorded writes what an agent has recorded to a file, with its definition.
func recorded(t *testing.T) string {
	ann := actorstest.Agent("support", "ann")
	stage := actorstest.New(t, nil)
	stage.Start(greeting("Be kind.")).Do(ann, actorstest.Say("u1", "Hi"))
	stage.Until(ann, "turn.completed")
	path := filepath.Join(t.TempDir(), "ann.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	w, err := export.NewWriter(f, export.Head{Agent: ann.Full(), At: time.Unix(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	for _, frame := range stage.Frames(ann) {
		for _, c := range actorstest.Of[messages.AgentConfigured](frame.Events) {
			data, err := stage.Store().Definition(context.Background(), messages.Digest(c.Definition))
			if err == nil {
				err = w.Definition(messages.Digest(c.Definition), data)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Frame(frame); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(nil, nil); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestVerifyFile(t *testing.T) { // A82
	path := recorded(t)
	actorstest.VerifyFile(t, greeting("Be kind."), path)
	other := &noting{TB: t}
	actorstest.VerifyFile(other, greeting("Be brief."), path)
	if len(other.errors) != 1 || !strings.Contains(other.errors[0], "instructions: Be kind., now Be brief.") {
		t.Errorf("got %q, want the difference", other.errors)
	}
	none := &noting{TB: t}
	cfg := greeting("Be kind.")
	cfg.Definitions[0].Kind = "sales"
	actorstest.VerifyFile(none, cfg, path)
	if len(none.errors) != 1 || !strings.Contains(none.errors[0], `no agent kind is named "support"`) {
		t.Errorf("got %q, want that the kind is not defined", none.errors)
	}
}

// A recorded stream is kept as a test: it fails once a prompt, a tool or the code decides otherwise.
// VerifyFile does the same for the agents of a file that `reprise export` has written.
func ExampleStage_Verify() {
	t := new(exampleT) // in a test: its *testing.T
	defer t.end()
	ann := actorstest.Agent("support", "ann")
	stage := actorstest.New(t, nil)
	stage.Start(greeting("Be kind.")).Do(ann, actorstest.Say("u1", "Hi"))
	stage.Until(ann, "turn.completed")

	stage.Verify(ann, greeting("Be kind."))
	fmt.Println("equal")
	// Output: equal
}
