package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/providers/providertest"
	"github.com/reprise-dev/reprise/providers/scripted"
)

const screen = "../cmd/examples/refund/main.go"

// Another module builds the example refund against this tree. The program is killed in the middle
// of a tool; run again, it calls the tool with the same key and completes the turn.
func TestLibraryFromOutside(t *testing.T) { // A22
	embeddedtest.Long(t, "processes")
	t.Parallel()
	program := buildScreen(t) // which takes as long as the machine needs
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()

	keys := make(chan string, 10)
	hold := scripted.NewGate()
	payments := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		keys <- r.FormValue("key") + " order " + r.FormValue("order")
		_ = hold.Wait(r.Context()) // until its caller is gone
	}))
	defer payments.Close()
	model, err := providertest.Start(providertest.Play(providertest.Steps(
		scripted.Ask(scripted.Call{Name: "refund", Arguments: `{"order":7,"cents":1250}`}), scripted.Say("Paid back."))...), providertest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = model.Close() }()
	dir := t.TempDir()
	run := func() (*exec.Cmd, *bytes.Buffer) {
		cmd, out := exec.CommandContext(ctx, program), &bytes.Buffer{}
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
		cmd.Env = append(os.Environ(), "OPENAI_API_KEY=sk-test-0123456789", "OPENAI_BASE_URL="+model.URL, "PAYMENTS_URL="+payments.URL)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, out
	}
	key := func(out *bytes.Buffer) string {
		select {
		case k := <-keys:
			return k
		case <-ctx.Done():
			t.Fatalf("the tool was not called:\n%s", out)
			return ""
		}
	}

	killed, out := run()
	first := key(out)
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := killed.Wait(); !errors.As(err, &exit) {
		t.Fatalf("killed: %v", err)
	}
	hold.Release()
	again, out := run()
	second := key(out)
	if err := again.Wait(); err != nil || !strings.Contains(out.String(), "Paid back.") {
		t.Fatalf("%v:\n%s", err, out)
	}
	if first != second || !strings.HasSuffix(first, " order 7") || len(first) < len("x order 7") || len(keys) != 0 || model.Calls() != 2 {
		t.Errorf("called with %q, then %q; %d model calls", first, second, model.Calls())
	}
	if strings.Contains(out.String(), "sk-test-0123456789") { // A56
		t.Error("the key was printed")
	}
}

func buildScreen(t *testing.T) (program string) {
	t.Helper()
	tree, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := map[string]string{}
	for name, from := range map[string]string{"main.go": screen, "go.mod": "../go.mod", "go.sum": "../go.sum"} {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
	}
	// The same requirements, so that nothing is fetched.
	files["go.mod"] = regexp.MustCompile(`(?m)^module .*$`).ReplaceAllString(files["go.mod"], "module example.com/outside") +
		"\nrequire github.com/reprise-dev/reprise v0.0.0\nreplace github.com/reprise-dev/reprise => " + tree + "\n"
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program = filepath.Join(dir, "outside.exe")
	build := exec.CommandContext(t.Context(), "go", "build", "-mod=mod", "-ldflags", "-s -w", "-o", program, ".")
	build.Dir = dir
	// Without cgo, as make test has built the same packages: they are found in the cache.
	build.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

// A root that cannot be is refused before anything is made.
func TestRefusesRoots(t *testing.T) { // A102
	dir := filepath.Join(t.TempDir(), "data")
	for _, root := range []string{"a.b", "a b", "*", "_x", "agents"} {
		if n, err := cluster.Start(t.Context(), cluster.Config{Data: dir, Root: root}); err == nil {
			_ = n.Close()
			t.Errorf("%q is taken", root)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("there is a store")
	}
}
