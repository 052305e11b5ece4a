package actorstest

import (
	"context"
	"log/slog"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/rerun"
	"github.com/reprise-dev/reprise/messages"
)

// RerunFile runs the agents of a file that `reprise export` has written again, with the models and
// definitions of cfg, and returns what came of each. It fails the test for each that cannot be run to its
// end or graded; that an answer differs is no failure. Payloads must be in the file, and no text of it
// replaced.
func RerunFile(t testing.TB, cfg actors.Config, path string, o rerun.Options) (results []rerun.Result) {
	t.Helper()
	for _, a := range exported(t, path) {
		recorded, err := rerun.Exported(a)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		results = append(results, runAgain(t, cfg, recorded, o))
	}
	return results
}

// Rerun does for an agent of the stage what [RerunFile] does for those of a file.
func (s *Stage) Rerun(a messages.AgentID, cfg actors.Config, o rerun.Options) rerun.Result {
	s.t.Helper()
	frames, err := rerun.Stored(context.Background(), s.store, a, s.Frames(a))
	if err != nil {
		s.t.Fatal(err)
	}
	return runAgain(s.t, cfg, rerun.Recorded{Agent: a, Frames: frames}, o)
}

func runAgain(t testing.TB, cfg actors.Config, recorded rerun.Recorded, o rerun.Options) rerun.Result {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	r, err := rerun.Run(context.Background(), cfg, recorded, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Result == rerun.Failed || r.Result == rerun.Unreadable || r.Grades != nil && r.Grades.Error != "" {
		t.Errorf("%s", r.Text())
	}
	return r
}
