package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
)

// world is a folder of its own in which programs run, with nothing of the
// machine's own configuration.
type world struct {
	t   *testing.T
	dir string
	env []string
}

func newWorld(t *testing.T) *world {
	embeddedtest.Long(t, "processes")
	t.Parallel()
	dir := t.TempDir()
	return &world{t: t, dir: dir, env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "NO_COLOR=1"}}
}

// part runs a part of the test in its own name, with the nodes that run already.
func (w *world) part(name string, run func(t *testing.T, w *world)) {
	w.t.Run(name, func(t *testing.T) {
		own := *w
		own.t = t
		run(t, &own)
	})
}

// file writes a file into the folder.
func (w *world) file(name, content string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// command is the program, killed when ctx ends.
func (w *world) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir, cmd.Env = w.dir, w.env
	return cmd
}

// result is how a program ended.
type result struct {
	t        *testing.T
	what     string
	code     int
	out, err string
}

// run runs the program to its end.
func (w *world) run(args ...string) result { return w.feed("", args...) }

// feed is run with standard input.
func (w *world) feed(in string, args ...string) result {
	w.t.Helper()
	return w.begin(in, args...)()
}

// begin starts the program and returns a function that waits for its end. It is killed after
// three minutes.
func (w *world) begin(in string, args ...string) (wait func() result) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Minute)
	w.t.Cleanup(cancel)
	cmd := w.command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &out, &errs
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return func() result {
		w.t.Helper()
		err := cmd.Wait()
		cancel()
		if ended := new(exec.ExitError); err != nil && !errors.As(err, &ended) {
			w.t.Fatal(err)
		}
		return result{w.t, strings.Join(args, " "), cmd.ProcessState.ExitCode(), out.String(), errs.String()}
	}
}

// exits holds the exit code and parts of what was printed on either stream.
func (r result) exits(code int, parts ...string) result {
	r.t.Helper()
	if r.code != code {
		r.t.Fatalf("reprise %s: exit code %d, want %d\nstdout: %s\nstderr: %s", r.what, r.code, code, r.out, r.err)
	}
	for _, part := range parts {
		if !strings.Contains(r.out+r.err, part) {
			r.t.Errorf("reprise %s: %q is missing\nstdout: %s\nstderr: %s", r.what, part, r.out, r.err)
		}
	}
	if code != 0 && r.err != "" && !strings.Contains(r.err, "reprise: ") {
		r.t.Errorf("reprise %s: the error does not name the program: %s", r.what, r.err)
	}
	return r
}

// objects reads standard output as one JSON object a line.
func (r result) objects() []map[string]any {
	r.t.Helper()
	var all []map[string]any
	for line := range strings.Lines(r.out) {
		all = append(all, object(r.t, line))
	}
	return all
}

func object(t *testing.T, line string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(line), &o); err != nil {
		t.Fatalf("%v in line %q", err, line)
	}
	return o
}

// proc is a running node.
type proc struct {
	t     *testing.T
	cmd   *exec.Cmd
	up    chan struct{} // closed when ready is known
	ready string        // the line that says so
	rest  *bytes.Buffer
	errs  *lockedBuffer
	done  chan struct{}
}

// node starts a node and returns when it is ready.
func (w *world) node(args ...string) *proc {
	w.t.Helper()
	p := w.launch(args...)
	if <-p.up; !strings.Contains(p.ready, "ready") {
		p.end(syscall.SIGKILL)
		w.t.Fatalf("%v ended before it was ready\n%s", args, p.errs)
	}
	return p
}

// launch starts a node.
func (w *world) launch(args ...string) *proc {
	w.t.Helper()
	cmd := w.command(w.t.Context(), args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	p := &proc{t: w.t, cmd: cmd, rest: new(bytes.Buffer), errs: new(lockedBuffer), up: make(chan struct{}), done: make(chan struct{})}
	cmd.Stderr = p.errs
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		lines := bufio.NewReader(out)
		for err := error(nil); err == nil && !strings.Contains(p.ready, "ready"); {
			p.ready, err = lines.ReadString('\n')
		}
		close(p.up)
		_, _ = io.Copy(p.rest, lines)
	}()
	w.t.Cleanup(func() { p.end(syscall.SIGKILL) })
	return p
}

// end sends a signal and waits; more than once does nothing.
func (p *proc) end(s syscall.Signal) (code int) {
	_ = p.cmd.Process.Signal(s)
	<-p.done
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

func (p *proc) kill() { p.end(syscall.SIGKILL) }

// lockedBuffer may be read while a process writes it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// dev starts a node with the demo agents or the folder's reprise.yaml.
func (w *world) dev() *proc {
	w.t.Helper()
	return w.node("dev", "--listen", "127.0.0.1:0", "--sync", "relaxed")
}

// await follows an agent's log until an event of this type, and returns the events from one on.
func (w *world) await(agent, kind string) (seen []map[string]any) {
	w.t.Helper()
	return w.until(agent, kind, func(ev map[string]any) bool { return ev["type"] == kind })
}

// awaitInput follows an agent's log until it has accepted an input.
func (w *world) awaitInput(agent, id string) {
	w.t.Helper()
	w.until(agent, "input "+id, func(ev map[string]any) bool {
		return ev["type"] == "input.accepted" && data(ev)["input"] == id
	})
}

// data is what an event says beyond its place.
func data(ev map[string]any) map[string]any {
	d, _ := ev["data"].(map[string]any)
	return d
}

// until follows an agent's log until the event that is waited for, which what describes, and
// returns the events from one on.
func (w *world) until(agent, what string, is func(map[string]any) bool) (seen []map[string]any) {
	w.t.Helper()
	cmd := w.command(w.t.Context(), "events", agent, "--follow", "--from", "1", "-o", "json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			w.t.Fatalf("events of %s ended before %s came: %v", agent, what, err)
		}
		seen = append(seen, object(w.t, line))
		if is(seen[len(seen)-1]) {
			return seen
		}
	}
}

// of is those of the events that have this type.
func of(events []map[string]any, kind string) (found []map[string]any) {
	for _, ev := range events {
		if ev["type"] == kind {
			found = append(found, ev)
		}
	}
	return found
}
