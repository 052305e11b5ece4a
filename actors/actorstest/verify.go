package actorstest

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"os"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/verify"
	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
)

// VerifyFile decides the streams of a file that `reprise export` has written again, with this
// code and the definitions of cfg, and fails the test for each that comes out differently or
// cannot be read. No model is asked and no tool is called. cfg needs Definitions, Providers and
// Prices.
func VerifyFile(t testing.TB, cfg actors.Config, path string) {
	t.Helper()
	rt := rehearsal(t, cfg)
	for _, recorded := range exported(t, path) {
		id, err := messages.ParseAgentID(recorded.Head.Agent)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		check(t, rt, id, len(recorded.Head.Redacted) > 0, verify.Frames(recorded.Frames), func(digest string) (json.RawMessage, error) {
			if data, ok := recorded.Definitions[messages.Digest(digest)]; ok {
				return data, nil
			}
			return nil, messages.Refuse(messages.NotFound, "%s does not hold definition %s", path, digest)
		})
	}
}

// exported returns the agents of a file, and fails the test if it cannot be read.
func exported(t testing.TB, path string) (list []*export.Agent) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for recorded, err := range export.Agents(f) {
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		list = append(list, recorded)
	}
	return list
}

// Verify does for an agent of the stage what [VerifyFile] does for those of a file.
func (s *Stage) Verify(a messages.AgentID, cfg actors.Config) {
	s.t.Helper()
	check(s.t, rehearsal(s.t, cfg), a, false, verify.Frames(s.Frames(a)), func(digest string) (json.RawMessage, error) {
		return s.store.Definition(context.Background(), messages.Digest(digest))
	})
}

// rehearsal returns a runtime with the definitions of cfg, which runs no agent.
func rehearsal(t testing.TB, cfg actors.Config) *actors.Runtime {
	t.Helper()
	cfg.Store, cfg.Observer = memlog.NewStore(), nil
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	cfg.Send = func(context.Context, messages.AgentID, messages.Command) error { return context.Canceled }
	rt, err := actors.NewRuntime(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func check(t testing.TB, rt *actors.Runtime, a messages.AgentID, redacted bool, frames iter.Seq2[*messages.Frame, error], recorded func(string) (json.RawMessage, error)) {
	t.Helper()
	current, err := rt.Current(context.Background(), a.Kind)
	if err != nil {
		t.Errorf("%s: %v", a, err)
		return
	}
	current.Redacted, current.Recorded = redacted, recorded
	if r := verify.Stream(a, current, frames); r.Result != verify.Equal {
		t.Errorf("%s", r.Text())
	}
}
