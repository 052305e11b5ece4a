package mcp

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/reprise-dev/reprise/providers/internal/process"
)

const (
	// maxStderr is how much of the end of standard error goes into an error.
	maxStderr = 4 << 10
	// writeLimit is how long a program may leave a message unread.
	writeLimit = 30 * time.Second
)

// program is a server in a process of its own.
type program struct {
	cmd           *exec.Cmd
	stdin, stdout *os.File
	stderr        process.Tail
	exited        chan struct{}
	err           error // how it ended, once exited is closed
}

// unsentError means that a message has not reached the server as a whole.
type unsentError struct{ error }

// start starts the program of a server.
func start(c Config) (*program, error) {
	path, err := c.Program()
	if err != nil {
		return nil, err
	}
	p := &program{cmd: exec.Command(path, c.Command[1:]...), stderr: process.Tail{Limit: maxStderr}, exited: make(chan struct{})}
	p.cmd.Args[0], p.cmd.Dir = c.Command[0], c.Dir
	p.cmd.Env = process.Environment(os.Environ(), c.Env)
	p.cmd.Stderr, p.cmd.WaitDelay = &p.stderr, closing
	process.Group(p.cmd)
	theirs, err := p.pipes()
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		defer process.Bind(p.cmd)()
		err := p.cmd.Start()
		if started <- err; err == nil {
			p.err = p.cmd.Wait()
			close(p.exited)
		}
	}()
	err = <-started
	for _, f := range theirs {
		_ = f.Close()
	}
	if err != nil {
		_, _ = p.stdin.Close(), p.stdout.Close()
		return nil, err
	}
	return p, nil
}

// pipes connects the program, and returns its ends.
func (p *program) pipes() (theirs [2]*os.File, err error) {
	in, stdin, err := os.Pipe()
	if err != nil {
		return theirs, err
	}
	stdout, out, err := os.Pipe()
	if err != nil {
		_, _ = in.Close(), stdin.Close()
		return theirs, err
	}
	p.stdin, p.stdout, p.cmd.Stdin, p.cmd.Stdout = stdin, stdout, in, out
	return [2]*os.File{in, out}, nil
}

// Write sends the program a message. One that it does not take in time is an error.
func (p *program) Write(b []byte) (int, error) {
	_ = p.stdin.SetWriteDeadline(time.Now().Add(writeLimit)) // where pipes have none a write waits for the end
	n, err := p.stdin.Write(b)
	if err != nil {
		return n, unsentError{err}
	}
	return n, nil
}

// Close ends the program's input.
func (p *program) Close() error { return p.stdin.Close() }

// stop ends the program in order if it does so soon, and then kills what is left of its group.
func (p *program) stop() {
	_ = p.stdin.Close()
	select {
	case <-p.exited:
	case <-time.After(closing):
	}
	_ = process.KillGroup(p.cmd)
	<-p.exited
	_ = p.stdout.Close()
}

// why is how the program ended, in its own words where it had any.
func (p *program) why() error {
	select {
	case <-p.exited:
	case <-time.After(closing):
		return errors.New("its program closed its output, or does not read its input")
	}
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	if said := p.stderr.Text(); said != "" {
		how += ": " + said
	}
	return fmt.Errorf("its program has ended: %s", how)
}
