package toolbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/internal/process"
	"github.com/reprise-dev/reprise/providers/memory"
	"github.com/reprise-dev/reprise/providers/tool"
)

// program is the tool that Command makes.
type program struct {
	config CommandConfig
	schema *jsonschema.Resolved
	drain  time.Duration
}

// Spec says what the tool is.
func (p *program) Spec() tool.Spec {
	c := p.config
	return tool.Spec{
		Name: c.Name, Description: c.Description, Parameters: c.Parameters, OnUnknown: c.OnUnknown, Timeout: c.Timeout,
		Approval: c.Approval, ApproveRepeats: c.ApproveRepeats, ApprovalTimeout: c.ApprovalTimeout,
	}
}

// NeedsApproval checks the arguments, whatever the approval, and then reports
// whether a call with them waits for a person.
func (p *program) NeedsApproval(arguments json.RawMessage) (bool, error) {
	if err := tool.Validate(p.schema, arguments); err != nil {
		return false, err
	}
	if _, err := p.withKey(arguments, ""); err != nil {
		return false, err
	}
	if p.config.ApproveIf != nil {
		return p.config.ApproveIf(arguments)
	}
	return p.config.Approval == tool.Always, nil
}

// Call checks the arguments and runs the program.
func (p *program) Call(ctx context.Context, arguments json.RawMessage) (string, error) {
	if err := tool.Validate(p.schema, arguments); err != nil {
		return "", err
	}
	output, _, err := p.run(ctx, p.config.Command, arguments)
	return output, err
}

// reconciler is a program with OnUnknown Reconcile.
type reconciler struct{ *program }

// Reconcile runs the program that reports what became of the call with that key.
func (r *reconciler) Reconcile(ctx context.Context, key string) (string, tool.Found, error) {
	call := tool.CallOf(ctx)
	call.Key = key
	output, code, err := r.run(tool.WithCall(ctx, call), r.config.Reconcile, json.RawMessage("{}"))
	switch {
	case err == nil:
		return output, tool.Done, nil
	case code == notDone:
		return "", tool.NotDone, nil
	}
	return "", tool.Unsure, err
}

const (
	// maxStderr is how much of the end of standard error goes into an error.
	maxStderr = 4 << 10
	// drain is how long a pipe may stay open after everything in the process
	// group is dead: a process has left the group and taken the pipe along.
	drain = 2 * time.Second
)

var (
	errTimeout = errors.New("timed out")
	errOutput  = errors.New("too much output")
)

// run starts one program, feeds it, and waits until its process group is gone.
// The code is its exit code, or -1.
func (p *program) run(ctx context.Context, command []string, arguments json.RawMessage) (string, int, error) {
	path, err := process.Find(p.config.Dir, command[0])
	if err != nil {
		return "", -1, err
	}
	if arguments, err = p.withKey(arguments, tool.Key(ctx)); err != nil {
		return "", -1, err
	}
	timed, cancel := context.WithTimeoutCause(ctx, p.config.Timeout, errTimeout)
	defer cancel()
	stoppable, stop := context.WithCancelCause(timed)
	defer stop(nil)

	cmd := exec.CommandContext(stoppable, path, command[1:]...)
	cmd.Args[0] = command[0]
	cmd.Dir = p.config.Dir
	cmd.Env = environment(os.Environ(), p.config.Env, tool.CallOf(ctx), messages.TraceIn(ctx))
	// Not process.Bind: it would take a thread for each call. A program that outlives a killed
	// node finds its standard output closed; its call is settled by OnUnknown, as after any crash.
	process.Group(cmd)
	cmd.Cancel = func() error { return process.KillGroup(cmd) }

	stdout := &capture{limit: p.config.MaxOutput, stop: stop, room: func(n int) error { return memory.Of(ctx).Add(stoppable, n) }}
	stderr := &process.Tail{Limit: maxStderr}
	err = p.execute(cmd, line(arguments), stdout, stderr)
	code := -1
	if cmd.ProcessState != nil {
		code = cmd.ProcessState.ExitCode()
	}
	switch { // it may have ended before it could be killed
	case stdout.err == errOutput:
		return "", -1, fmt.Errorf("the output is larger than %d bytes: the program was stopped", p.config.MaxOutput)
	case stdout.err != nil && ctx.Err() == context.Canceled:
		return "", -1, p.stopped(context.Cause(ctx), stderr)
	case stdout.err != nil && code <= 0:
		return "", -1, p.noRoom(stdout.err, code)
	}
	if code == 0 { // also if it was to be stopped just then
		return strings.TrimRight(process.Visible(stdout.buf.Bytes()), "\r\n"), code, nil
	}
	if stoppable.Err() != nil {
		return "", -1, p.stopped(context.Cause(stoppable), stderr)
	}
	return "", code, failure(err, stderr, stdout)
}

// noRoom is the error of a program whose output found no memory, perhaps because its time
// was over meanwhile.
func (p *program) noRoom(why error, code int) error {
	what := "the program was stopped, because there was no memory for its output"
	if code == 0 {
		what = "the program did run, but there was no memory for its output"
	}
	var full *providers.Error
	if errors.As(why, &full) {
		what += ": " + full.Message
	} else {
		what += fmt.Sprintf(" before its time of %v was over", p.config.Timeout)
	}
	return &providers.Error{Kind: providers.NoMemory, Err: why, Message: what}
}

// given is a file that holds the whole input before the program starts. Were it
// written while the program runs, one that outlives us would read half of its
// arguments and act on them.
func given(input []byte) (*os.File, error) {
	f, err := os.CreateTemp("", "reprise-arguments-")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // it lives on for those who have it open, where the system allows that
	if _, err = f.Write(input); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// execute starts the program and returns when it is over and its output read.
// It does not use the goroutines of os/exec, which would wait for what
// holds the pipes before the group could be killed.
func (p *program) execute(cmd *exec.Cmd, input []byte, stdout, stderr io.Writer) error {
	stdin, err := given(input)
	if err != nil {
		return fmt.Errorf("the program cannot be started: %w", err)
	}
	defer func() { _, _ = stdin.Close(), os.Remove(stdin.Name()) }() // the name is gone already, but on Windows
	cmd.Stdin = stdin
	outputs, writers, err := pipes(2)
	if err != nil {
		return fmt.Errorf("the program cannot be started: %w", err)
	}
	cmd.Stdout, cmd.Stderr = writers[0], writers[1]
	err = cmd.Start()
	closeAll(writers)
	if err != nil {
		closeAll(outputs)
		return unstartable(cmd, err)
	}
	done := make(chan struct{}, 2)
	for i, w := range []io.Writer{stdout, stderr} {
		go func() {
			drainTo(w, outputs[i])
			done <- struct{}{}
		}()
	}
	err = cmd.Wait()
	// The group outlives its first process. Its number cannot have been given
	// to another one while a member lives; with none left the kill finds nothing.
	_ = process.KillGroup(cmd)
	for _, o := range outputs {
		_ = o.SetReadDeadline(time.Now().Add(p.drain))
	}
	<-done
	<-done
	closeAll(outputs)
	return err
}

// drainTo hands on what a pipe holds, to its end or until the deadline that execute sets.
// A reader that stood still until then still gets what the program has left in the pipe.
func drainTo(w io.Writer, pipe *os.File) {
	if _, err := io.Copy(w, pipe); errors.Is(err, os.ErrDeadlineExceeded) {
		held(w, pipe)
	}
}

// unstartable returns why the system refused to start a program that exists and may be
// run. The system's own message names the program where something else is missing.
func unstartable(cmd *exec.Cmd, err error) error {
	if info, e := os.Stat(cmd.Dir); cmd.Dir != "" && (e != nil || !info.IsDir()) {
		return fmt.Errorf("the program cannot be started: dir %s is no directory", cmd.Dir)
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("the program cannot be started: %w (the interpreter that its first line names may be missing)", err)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("the program cannot be started: %w (a script begins with a line such as #!/bin/sh)", err)
	}
	return fmt.Errorf("the program cannot be started: %w", err)
}

// pipes are n pipes, by their ends to read from and to write to.
func pipes(n int) (readers, writers []*os.File, err error) {
	for range n {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(append(readers, writers...))
			return nil, nil, err
		}
		readers, writers = append(readers, r), append(writers, w)
	}
	return readers, writers, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// withKey is the arguments with the idempotency key in its field, if there is one.
func (p *program) withKey(arguments json.RawMessage, key string) (json.RawMessage, error) {
	if p.config.KeyField == "" {
		return arguments, nil
	}
	fields, err := p.fields(arguments)
	if err != nil {
		return nil, &tool.ArgumentError{Err: err}
	}
	if fields[p.config.KeyField], err = encoded(key); err != nil {
		return nil, err
	}
	return encoded(fields)
}

// fields are those of the arguments, as they are written. Putting the key among
// them must change nothing else: a name that stands there
// twice is refused, also in other upper and lower case.
func (p *program) fields(arguments json.RawMessage) (map[string]json.RawMessage, error) {
	fields, seen := make(map[string]json.RawMessage), map[string]string{folded(p.config.KeyField): p.config.KeyField}
	d := json.NewDecoder(bytes.NewReader(arguments))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.New("they are no object")
	}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string) // the decoder lets nothing else stand here
		_, twice := fields[name]
		if other, ok := seen[folded(name)]; twice || ok && other != name {
			return nil, fmt.Errorf("the field %q stands there twice, or differs from another one by upper and lower case alone", name)
		}
		seen[folded(name)] = name
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		fields[name] = value
	}
	return fields, nil
}

// folded returns a name in a form that names which differ only in case share.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, name)
}

// encoded is v as JSON, with <, > and & as they are.
func encoded(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// line is the arguments as one line.
func line(arguments json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, arguments) != nil {
		return arguments
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// stopped returns why a program was killed.
func (p *program) stopped(cause error, stderr *process.Tail) error {
	if errors.Is(cause, errTimeout) {
		return said(fmt.Errorf("the program was stopped: it took longer than %s", p.config.Timeout), stderr.Text())
	}
	return said(fmt.Errorf("the program was stopped: %w", cause), stderr.Text())
}

// failure returns how a program failed, with what it printed, if it did.
func failure(err error, stderr *process.Tail, stdout *capture) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	words := stderr.Text()
	if words == "" {
		last := &process.Tail{Limit: maxStderr}
		_, _ = last.Write(stdout.buf.Bytes()) // never fails
		words = last.Text()
	}
	if exit.ExitCode() >= 0 {
		return said(fmt.Errorf("exit code %d", exit.ExitCode()), words)
	}
	return said(fmt.Errorf("the program ended by %s", exit.ProcessState), words) // such as "signal: killed"
}

// said adds a program's own words to an error, if there are any.
func said(err error, words string) error {
	if words == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, words)
}
