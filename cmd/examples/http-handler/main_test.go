package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// A caller that goes away in the middle of an answer does not stop the turn: asked again with the same id, the
// endpoint streams the same answer, and the model is not called again.
func TestCallerGoesAway(t *testing.T) {
	t.Parallel()
	gate := scripted.NewGate()
	model := scripted.New(scripted.Step{Text: "Good morning", Pieces: 2, Gate: gate, After: 1})
	node, err := cluster.Start(t.Context(), cluster.Config{Data: t.TempDir(), Sync: "relaxed", Logger: slog.New(slog.DiscardHandler),
		Providers: providers.Set{"scripted": model}, Agents: []actors.Definition{{Kind: "assistant", Model: "scripted/m"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Close() })
	mux := http.NewServeMux()
	mux.Handle("POST /agents/{key}", answer(node.Client()))
	site := httptest.NewServer(mux)
	t.Cleanup(site.Close)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := ask(ctx, t, site.URL)
	lines := bufio.NewScanner(first)
	for lines.Scan() && !strings.Contains(lines.Text(), `"text":"Good`) {
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
	cancel() // the caller goes away between the two pieces
	_ = first.Close()
	gate.Release()

	second := ask(t.Context(), t, site.URL)
	defer func() { _ = second.Close() }()
	all, err := io.ReadAll(second)
	if err != nil || !strings.Contains(string(all), "event: turn.completed\n") || !strings.Contains(string(all), `"output":"Good morning"`) {
		t.Errorf("got %v:\n%s", err, all)
	}
	if model.Calls() != 1 {
		t.Errorf("the model was called %d times", model.Calls())
	}
}

func ask(ctx context.Context, t *testing.T, site string) io.ReadCloser {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, site+"/agents/ann", strings.NewReader("Hello"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "q1")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Body
}
