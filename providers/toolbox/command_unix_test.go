//go:build unix

package toolbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/internal/process"
	"github.com/reprise-dev/reprise/providers/memory"
	"github.com/reprise-dev/reprise/providers/tool"
)

// long skips t in short mode, which make test uses, because it starts processes.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("left to make test-long: processes")
	}
}

// shell makes a tool of a shell script. In short mode it skips the test.
func shell(t *testing.T, script string, change ...func(*CommandConfig)) tool.Tool {
	t.Helper()
	long(t)
	c := CommandConfig{Name: "t", Command: []string{"sh", "-c", script}, Env: []string{"LIFELINE"}}
	for _, f := range change {
		f(&c)
	}
	made, err := Command(c)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func call(ctx context.Context, made tool.Tool, arguments string) string {
	got, err := made.Call(ctx, json.RawMessage(arguments))
	if err != nil {
		return "error: " + err.Error()
	}
	return got
}

// A31
func TestCommandResult(t *testing.T) {
	tests := []struct{ name, script, arguments, want string }{
		{"arguments come as one line on stdin", "cat", "{\n \"a\": 1.0 }", `{"a":1.0}`},
		{"newlines at the end are no part of the result", `printf ' a\nb\r\n\n'`, `{}`, " a\nb"},
		{"arguments may stay unread", "exec 0<&-; echo done", `{"a":"` + strings.Repeat("x", 1<<17) + `"}`, "done"},
		{"stderr of a success is no part of the result", "echo out; echo noise >&2", `{}`, "out"},
		{"a failure tells code and stderr", "echo out; echo ' no such order ' >&2; exit 3", `{}`, "error: exit code 3: no such order"},
		{"a failure without stderr tells stdout", "echo sorry; exit 1", `{}`, "error: exit code 1: sorry"},
		{"a failure without words", "exit 7", `{}`, "error: exit code 7"},
		{"a signal", "kill -TERM $$", `{}`, "error: the program ended by signal: terminated"},
		{"bytes that are no text", `printf 'a\377b\000'`, `{}`, "a\\xffb\x00"},
		{"arguments that are no JSON", "echo ran", `{"a":`, "error: the arguments do not fit: not JSON: unexpected end of JSON input"},
		{"arguments that do not fit", "echo ran", `[]`, `error: the arguments do not fit: type: [] has type "array", want "object"`},
	}
	for _, test := range tests {
		if got := call(t.Context(), shell(t, test.script), test.arguments); got != test.want {
			t.Errorf("%s: got %.200q; want %q", test.name, got, test.want)
		}
	}
}

func TestCommandBoundsWords(t *testing.T) {
	got := call(t.Context(), shell(t, `yes é | head -n 50000 | tr -d '\n' >&2; echo end >&2; exit 1`), `{}`)
	if !strings.HasPrefix(got, "error: exit code 1: …") || !strings.HasSuffix(got, "end") || len(got) > 2*maxStderr {
		t.Errorf("a long stderr becomes %d bytes: %.60q", len(got), got)
	}
}

func TestCommandBoundsOutput(t *testing.T) {
	const want = "error: the output is larger than 10 bytes: the program was stopped"
	small := func(c *CommandConfig) { c.MaxOutput = 10 }
	if got := call(t.Context(), shell(t, "printf 0123456789", small), `{}`); got != "0123456789" {
		t.Errorf("output as long as the limit: %q", got)
	}
	for _, script := range []string{"while :; do echo y; done", "echo 0123456789"} {
		if got := call(t.Context(), shell(t, script, small), `{}`); got != want {
			t.Errorf("%s: got %q; want %q", script, got, want)
		}
	}
}

func TestCommandEnvironment(t *testing.T) { // A56
	t.Setenv("NATS_URL", "nats://node:topsecret@127.0.0.1:4222")
	for _, e := range []string{"OPENAI_API_KEY", "DATABASE_URL", "GH_PAT", "PLAIN", "DB_PASSWORD", "KEPT_TOKEN"} {
		t.Setenv(e, "hidden")
	}
	t.Setenv("TZ", "Europe/Berlin")
	t.Setenv("https_proxy", "http://127.0.0.1:3128")
	made := shell(t, "env", func(c *CommandConfig) {
		c.Env = []string{"KEPT_TOKEN", "DB_PASSWORD=given", "REPRISE_CALL=forged", "TRACEPARENT=forged"}
	})
	agent := messages.AgentID{Tenant: "default", Kind: "a", Key: "b"}
	ctx := tool.WithCall(t.Context(), tool.Call{Agent: agent, Turn: "t1", ID: "c1", Key: "k1", Attempt: 2})
	ctx = messages.TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 a=1").Context(ctx)
	got := "\n" + call(ctx, made, `{}`) + "\n"
	for _, want := range []string{"TZ=Europe/Berlin", "https_proxy=http://127.0.0.1:3128", "KEPT_TOKEN=hidden", "DB_PASSWORD=given", "REPRISE_IDEMPOTENCY_KEY=k1",
		"REPRISE_AGENT=a/b", "REPRISE_TURN=t1", "REPRISE_CALL=c1", "REPRISE_ATTEMPT=2",
		"TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "TRACESTATE=a=1"} {
		if !strings.Contains(got, "\n"+want+"\n") {
			t.Errorf("the environment lacks %s", want)
		}
	}
	for _, never := range []string{"NATS_URL", "topsecret", "OPENAI_API_KEY", "DATABASE_URL", "GH_PAT", "PLAIN", "forged"} {
		if strings.Contains(got, never) {
			t.Errorf("the environment has %s", never)
		}
	}
}

// A22: a program gets its key as a field too, if it wants one there.
func TestCommandKeyField(t *testing.T) {
	withKey := func(c *CommandConfig) {
		c.KeyField, c.OnUnknown = "request_id", tool.Rerun
		c.Parameters = json.RawMessage(`{"type":"object","properties":{"cents":{"type":"integer"}}}`)
	}
	made := shell(t, "cat", withKey)
	ctx := tool.WithCall(t.Context(), tool.Call{ID: "c1", Key: `k"1<&`})
	for arguments, want := range map[string]string{
		`{"cents":9007199254740993,"a":"<b>"}`: `{"a":"<b>","cents":9007199254740993,"request_id":"k\"1<&"}`,
		`{}`:                                   `{"request_id":"k\"1<&"}`,
		`{"request_id":"the model's own"}`:     `{"request_id":"k\"1<&"}`,
	} {
		if got := call(ctx, made, arguments); got != want {
			t.Errorf("%s arrives as %s; want %s", arguments, got, want)
		}
	}
	for _, arguments := range []string{`{"cents":1,"cents":9900}`, `{"cents":1,"Cents":9900}`, `{"Request_ID":"mine"}`, `{"request_id":"a","request_id":"b"}`, `{"request_id":"a","REQUEST_ID":"b"}`} {
		if got := call(ctx, made, arguments); !strings.Contains(got, "do not fit") || !strings.Contains(got, "upper and lower case") {
			t.Errorf("%s arrives as %s", arguments, got)
		}
		if _, err := made.(tool.Gated).NeedsApproval(json.RawMessage(arguments)); !errors.As(err, new(*tool.ArgumentError)) {
			t.Errorf("somebody is asked about %s: %v", arguments, err)
		}
	}
	if s := string(made.Spec().Parameters); strings.Contains(s, "request_id") {
		t.Errorf("the model is told of the key: %s", s)
	}
	strict := shell(t, "cat", withKey, func(c *CommandConfig) {
		c.Parameters = json.RawMessage(`{"type":"object","additionalProperties":false}`)
	})
	if got := call(ctx, strict, `{"request_id":"x"}`); !strings.Contains(got, "do not fit") {
		t.Errorf("a field that the schema refuses: %s", got)
	}
	asked := shell(t, "exit 1", withKey, func(c *CommandConfig) {
		c.OnUnknown, c.Reconcile = tool.Reconcile, []string{"cat"}
	})
	if got, found, err := asked.(tool.Reconciler).Reconcile(ctx, "k9"); got != `{"request_id":"k9"}` || found != tool.Done || err != nil {
		t.Errorf("the program that is asked gets %s, %v, %v", got, found, err)
	}
}

// A31
func TestCommandThatCannotStart(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("plain.txt", "echo hi", 0o644)
	write("orphan.sh", "#!/no/such/interpreter\n", 0o755)
	write("garbage", "\x00\x01", 0o755)
	tests := []struct{ name, dir, program, want string }{
		{"missing in PATH", dir, "no-such-program", "program no-such-program: executable file not found in $PATH; for a file beside the others, write ./no-such-program"},
		{"missing file", dir, "./lookup.sh", "program ./lookup.sh cannot be run as " + dir + "/lookup.sh: no such file or directory"},
		{"missing absolute file", dir, "/no/such", "program /no/such cannot be run as /no/such: no such file or directory"},
		{"not executable", dir, "./plain.txt", "program ./plain.txt cannot be run as " + dir + "/plain.txt: permission denied"},
		{"a directory", dir, "./", "cannot be run as " + dir + ": is a directory"},
		{"missing dir", dir + "/none", "sh", "dir " + dir + "/none is no directory"},
		{"missing interpreter", dir, "./orphan.sh", "the interpreter that its first line names may be missing"},
		{"no program", dir, "./garbage", "exec format error"},
	}
	for _, test := range tests {
		made, err := Command(CommandConfig{Name: "t", Command: []string{test.program}, Dir: test.dir})
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if got := call(t.Context(), made, `{}`); !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q; want %q", test.name, got, test.want)
		}
	}
}

func TestCommandRelativeToDir(t *testing.T) {
	long(t)
	dir := t.TempDir()
	if err := os.Symlink("/bin/sh", filepath.Join(dir, "mine")); err != nil {
		t.Fatal(err)
	}
	c := CommandConfig{Name: "t", Command: []string{"./mine", "-c", `pwd -P; echo "$1"`, "mine", "x"}, Dir: dir}
	made, err := Command(c)
	if err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := call(t.Context(), made, `{}`); got != real+"\nx" {
		t.Errorf("a program in its dir says %q; want %q", got, real)
	}
	if path, err := c.Program(); err != nil || path != filepath.Join(dir, "mine") {
		t.Errorf("the program is found at %s, %v", path, err)
	}
}

// lifeline is a named pipe: a process that holds its other end is alive. Scripts
// find its path in $LIFELINE.
type lifeline struct {
	t    *testing.T
	path string
	read *bufio.Reader
	open chan *os.File
}

func newLifeline(t *testing.T) *lifeline {
	long(t)
	l := &lifeline{t: t, path: filepath.Join(t.TempDir(), "lifeline"), open: make(chan *os.File, 1)}
	if err := syscall.Mkfifo(l.path, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LIFELINE", l.path)
	go func() { // opens when a writer does
		f, err := os.Open(l.path)
		if err != nil {
			t.Error(err)
		}
		l.open <- f
	}()
	return l
}

// pid waits until the other end has said who it is.
func (l *lifeline) pid() int {
	f := <-l.open
	l.t.Cleanup(func() { _ = f.Close() })
	l.read = bufio.NewReader(f)
	line, err := l.read.ReadString('\n')
	if err != nil {
		l.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		l.t.Fatal(err)
	}
	return pid
}

// gone waits until no process holds the other end.
func (l *lifeline) gone() {
	if _, err := io.Copy(io.Discard, l.read); err != nil {
		l.t.Fatal(err)
	}
}

// lingering is a script whose grandchild holds the lifeline and stdout.
const lingering = `(exec 3>"$LIFELINE"; sh -c 'echo $$ >&3; echo started >&2; exec sleep 1000') & `

// A31
func TestCommandStoppedWithItsGroup(t *testing.T) {
	for _, cause := range []string{"cancel", "timeout", "deadline", "output"} {
		t.Run(cause, func(t *testing.T) {
			l := newLifeline(t)
			script, want := lingering+"wait", ""
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			made := shell(t, script)
			switch cause {
			case "cancel":
				want = "error: the program was stopped: context canceled: started"
			case "timeout":
				made = shell(t, script, func(c *CommandConfig) { c.Timeout = 100 * time.Millisecond })
				want = "error: the program was stopped: it took longer than 100ms: started"
			case "deadline":
				ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
				want = "error: the program was stopped: context deadline exceeded: started"
			case "output":
				made = shell(t, lingering+"while :; do echo y; done", func(c *CommandConfig) { c.MaxOutput = 1 << 16 })
				want = "error: the output is larger than 65536 bytes: the program was stopped"
			}
			result := make(chan string, 1)
			go func() { result <- call(ctx, made, `{}`) }()
			if cause == "cancel" {
				l.pid()
				cancel()
			}
			got := <-result        // by then, every live process holds the lifeline
			if cause != "cancel" { // it may end before the grandchild begins
				l.abandon()
			}
			if got != want && got != strings.TrimSuffix(want, ": started") {
				t.Errorf("got %q; want %q", got, want)
			}
			l.gone()
		})
	}
}

// abandon lets the lifeline open if no process opened its other end.
func (l *lifeline) abandon() {
	w, err := os.OpenFile(l.path, os.O_RDWR, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	f := <-l.open
	_ = w.Close()
	l.t.Cleanup(func() { _ = f.Close() })
	l.read = bufio.NewReader(f)
}

// A program is over when its first process is, and takes the others along.
func TestCommandLeavesNothingBehind(t *testing.T) {
	l := newLifeline(t)
	// The script waits for its grandchild to be ready by way of a second pipe.
	made := shell(t, `mkfifo "$LIFELINE.ready"
(exec 3>"$LIFELINE"; sh -c 'echo $$ >&3; echo ready >"$LIFELINE.ready"; exec sleep 1000') &
read -r _ <"$LIFELINE.ready"; echo result`)
	if got := call(t.Context(), made, `{}`); got != "result" {
		t.Errorf("got %q", got)
	}
	l.pid()
	l.gone()
}

// A process that leaves the group and keeps the output open cannot hold up the call.
func TestCommandEscaped(t *testing.T) {
	if _, err := process.Find("", "setsid"); err != nil {
		t.Skip("this system has no setsid")
	}
	l := newLifeline(t)
	made := shell(t, `mkfifo "$LIFELINE.ready"
setsid sh -c 'exec 3>"$LIFELINE"; echo $$ >&3; echo ready >"$LIFELINE.ready"; exec sleep 1000' &
read -r _ <"$LIFELINE.ready"; echo result`)
	made.(*program).drain = 0
	got := call(t.Context(), made, `{}`)
	if got != "result" {
		t.Errorf("got %q", got)
	}
	pid := l.pid()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("who left the group: %v", err)
	}
	l.gone()
}

// What a pipe holds at its deadline is read, also while a process holds it open and
// when nothing was read before; there is no wait for more.
func TestDrainPastTheDeadline(t *testing.T) {
	for _, content := range []string{"", "result\n", strings.Repeat("x", 4<<10)} {
		readers, writers, err := pipes(1)
		if err != nil {
			t.Fatal(err)
		}
		defer closeAll(append(readers, writers...))
		if _, err := writers[0].WriteString(content); err != nil {
			t.Fatal(err)
		}
		if err := readers[0].SetReadDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		if drainTo(&got, readers[0]); got.String() != content {
			t.Errorf("%d bytes are read, %d stood there", got.Len(), len(content))
		}
	}
}

func TestCommandCanceledBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := shell(t, "echo ran").Call(ctx, json.RawMessage(`{}`))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestCommandReconcile(t *testing.T) {
	tests := []struct {
		script, output string
		found          tool.Found
		fails          bool
	}{
		{`echo "paid $REPRISE_IDEMPOTENCY_KEY"`, "paid k9", tool.Done, false},
		{"echo no >&2; exit 3", "", tool.NotDone, false},
		{"echo the bank is closed >&2; exit 1", "", tool.Unsure, true},
		{"kill -KILL $$", "", tool.Unsure, true},
	}
	for _, test := range tests {
		made := shell(t, "exit 1", func(c *CommandConfig) {
			c.OnUnknown, c.Reconcile = tool.Reconcile, []string{"sh", "-c", test.script}
		})
		output, found, err := made.(tool.Reconciler).Reconcile(t.Context(), "k9")
		if output != test.output || found != test.found || (err != nil) != test.fails {
			t.Errorf("%s: got %q, %v, %v", test.script, output, found, err)
		}
	}
	if _, asked := shell(t, "true").(tool.Reconciler); asked {
		t.Error("a program without Reconcile can be asked")
	}
}

func TestCommandInParallel(t *testing.T) {
	made := shell(t, `read -r line; echo "$line"`)
	results := make(chan string)
	for i := range 20 {
		go func() {
			arguments := fmt.Sprintf(`{"i":%d}`, i)
			results <- strings.TrimPrefix(call(t.Context(), made, arguments), arguments)
		}()
	}
	for range 20 {
		if rest := <-results; rest != "" {
			t.Errorf("a call got another's result: %q", rest)
		}
	}
}

// TestOutputWithoutRoom holds that a program for whose output the node has no memory waits,
// and that one whose output can never fit is stopped with that reason.
func TestOutputWithoutRoom(t *testing.T) {
	printed := func(bytes int, timeout time.Duration) tool.Tool {
		return shell(t, fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", bytes), func(c *CommandConfig) { c.Timeout = timeout })
	}
	printing := func(timeout time.Duration) tool.Tool { return printed(2_000_000, timeout) }
	full := func(total int64) (b *memory.Bound, release func()) {
		b = memory.New(total)
		var drop [2]func()
		for i := range drop {
			holder, release := b.With(t.Context())
			if drop[i] = release; memory.Of(holder).AtLeast(holder, int(total/2/memory.Weight)) != nil {
				t.Fatal("the bound is too small")
			}
		}
		return b, func() { drop[0](); drop[1]() }
	}
	in := func(b *memory.Bound, made tool.Tool) (string, error) {
		ctx, release := b.With(t.Context())
		defer release()
		return made.Call(ctx, json.RawMessage("{}"))
	}
	b, release := full(16 << 20)
	defer release()
	var refused *providers.Error
	if got, err := in(b, printing(2*time.Second)); !errors.As(err, &refused) || refused.Kind != providers.NoMemory || !strings.Contains(refused.Message, "stopped") || !strings.Contains(refused.Message, "before its time of 2s was over") {
		t.Errorf("it did not wait: %d bytes, %v", len(got), err)
	}
	const short = memory.Free + 10_000 // the pipe takes what finds no memory, and the program ends
	if got, err := in(b, printed(short, 2*time.Second)); !errors.As(err, &refused) || refused.Kind != providers.NoMemory || !strings.Contains(refused.Message, "did run") {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(0, func() {
		for b.Waiting() == 0 {
			runtime.Gosched()
		}
		cancel()
	})
	waits, drop := b.With(ctx)
	defer drop()
	if got, err := printed(short, time.Minute).Call(waits, json.RawMessage("{}")); err == nil {
		t.Errorf("canceled: %d bytes", len(got))
	}
	failing := shell(t, fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; echo no such account >&2; exit 3", short), func(c *CommandConfig) { c.Timeout = 2 * time.Second })
	if _, err := in(b, failing); err == nil || !strings.Contains(err.Error(), "no such account") {
		t.Errorf("it failed by itself: %v", err)
	}
	release()
	if got, err := in(b, printing(time.Minute)); err != nil || len(got) != 2_000_000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if got, err := in(memory.New(1<<20), printing(time.Minute)); !errors.As(err, &refused) || refused.Kind != providers.NoMemory {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
