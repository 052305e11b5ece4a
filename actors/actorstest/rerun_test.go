package actorstest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/actors/rerun"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// speaking is the configuration of greeting with a model that says something else.
func speaking(text string) actors.Config {
	cfg := greeting("Be kind.")
	cfg.Providers = providers.Set{"scripted": scripted.New(scripted.Say(text))}
	return cfg
}

func TestRerunFile(t *testing.T) { // A82
	path := recorded(t)
	r := actorstest.RerunFile(t, speaking("Hello."), path, rerun.Options{Model: true})
	if len(r) != 1 || r[0].Result != rerun.Same {
		t.Errorf("got %+v", r)
	}
	none := &noting{TB: t}
	cfg := speaking("Hello.")
	cfg.Definitions[0].Kind = "sales"
	actorstest.RerunFile(none, cfg, path, rerun.Options{Model: true})
	if len(none.errors) != 1 || !strings.Contains(none.errors[0], `no agent kind is named "support"`) {
		t.Errorf("got %q, want that the kind is not defined", none.errors)
	}
}

// A recorded stream is an evaluation of another model or prompt: a function scores the recorded run and the
// new one. RerunFile does the same for the agents of a file that `reprise export` has written.
func ExampleStage_Rerun() {
	t := new(exampleT) // in a test: its *testing.T
	defer t.end()
	ann := actorstest.Agent("support", "ann")
	stage := actorstest.New(t, nil)
	stage.Start(greeting("Be kind.")).Do(ann, actorstest.Say("u1", "Hi"))
	stage.Until(ann, "turn.completed")

	brief := func(_ context.Context, run rerun.AgentRun) (rerun.Score, error) {
		words := len(strings.Fields(run.Turns[0].Answer))
		return rerun.Score{Score: 1 / float64(words)}, nil
	}
	r := stage.Rerun(ann, speaking("Hello, what can I do for you?"), rerun.Options{Model: true, Grade: brief})
	fmt.Printf("%.2f, now %.2f\n", r.Grades.Recorded.Score, r.Grades.Now.Score)
	// Output: 1.00, now 0.14
}
