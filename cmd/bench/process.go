package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// process is a child process that writes JSON to its output, one object for
// each that it reads. Its error output is kept for errors.
type process struct {
	name string
	ctx  context.Context
	cmd  *exec.Cmd
	in   io.WriteCloser
	to   *json.Encoder
	from *json.Decoder
	log  tail
}

// spawn starts a program, which ends with ctx at the latest. It inherits the
// environment: whatever this process has set up for itself alone, such as
// GOMAXPROCS, stays its own.
func spawn(ctx context.Context, name, program string, args ...string) (*process, error) {
	p := &process{name: name, ctx: ctx, cmd: exec.CommandContext(ctx, program, args...)}
	p.cmd.Stderr = &p.log
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the %s: %w", name, err)
	}
	p.in, p.to, p.from = in, json.NewEncoder(in), json.NewDecoder(out)
	return p, nil
}

// child starts one of the child processes of this package.
func (l *lab) child(ctx context.Context, name string) (*process, error) {
	return spawn(ctx, name, l.Program, "bench", name)
}

// ready decodes the first object that the process writes. One that has written
// nothing after patience is killed.
func (p *process) ready(first any) error {
	late := time.AfterFunc(patience, p.kill)
	defer late.Stop()
	return p.read(first)
}

// ask writes one object and decodes the next one that the process writes.
func (p *process) ask(question, answer any) error {
	if err := p.to.Encode(question); err != nil {
		return p.failed(err)
	}
	return p.read(answer)
}

func (p *process) read(answer any) error {
	if err := p.from.Decode(answer); err != nil {
		return p.failed(err)
	}
	return nil
}

// failed ends the process and adds to err what it wrote, or returns the cause of ctx.
func (p *process) failed(err error) error {
	p.kill()
	_ = p.cmd.Wait() // err is the reason; what the process wrote is complete now
	if p.ctx.Err() != nil {
		return context.Cause(p.ctx)
	}
	return fmt.Errorf("the %s failed (%w, %v): %s", p.name, err, p.cmd.ProcessState, &p.log)
}

// interrupt stops a process that serves until it is interrupted.
func (p *process) interrupt() error {
	if p.cmd.ProcessState == nil && p.cmd.Process.Signal(os.Interrupt) != nil {
		p.kill() // as on systems without signals
	}
	return p.stop()
}

// stop ends the process by the end of its input and waits for it.
func (p *process) stop() error {
	if p.cmd.ProcessState != nil {
		return nil // failed has reported it
	}
	_ = p.in.Close()
	late := time.AfterFunc(patience, p.kill)
	defer late.Stop()
	if err := p.cmd.Wait(); err != nil && p.ctx.Err() == nil {
		return fmt.Errorf("the %s failed (%w): %s", p.name, err, &p.log)
	}
	return nil
}

func (p *process) kill() { _ = p.cmd.Process.Kill() } // fails only if it has ended

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

// mostTail is how much of it.
const mostTail = 2 << 10

// Write appends.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - mostTail; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

// String is the end.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.buf))
}
