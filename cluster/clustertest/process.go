//go:build unix

package clustertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// envRole holds what a process of this program is, if it is not the test itself.
const envRole = "REPRISE_CLUSTERTEST"

// role is what a process is started as. One of its fields is set.
type role struct {
	Node   *nodeRole   `json:",omitempty"`
	Server *serverRole `json:",omitempty"`
}

// Main runs the tests of a package, or the process that one of its worlds has
// started. It does not return. A package that makes a [World] calls it from
// TestMain.
func Main(m *testing.M) {
	text, is := os.LookupEnv(envRole)
	if !is {
		go pulse(func(time.Duration) { stood.Add(1) })
		os.Exit(m.Run())
	}
	var r role
	err := json.Unmarshal([]byte(text), &r)
	if err == nil {
		err = r.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (r role) run() error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(2) // the test is gone
	}()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	go pulse(func(late time.Duration) { log.Info(stoodStill, "for", late) })
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	if r.Node != nil {
		return r.Node.run(stop)
	}
	return r.Server.run(stop)
}

// stoodStill is what a process says of itself.
const stoodStill = "this process stood still"

// stood counts how often the process of the test did, through which all wires go.
var stood atomic.Int64

// StoodStill is how often the process of the test has stood still for a second so far,
// which is never by its own doing: the machine did.
func StoodStill() int { return int(stood.Load()) }

// pulse calls tell when the process came a second late or more to what it does ten times a
// second: one that stalls for three is no member any more, and rightly so.
func pulse(tell func(late time.Duration)) {
	const every = 100 * time.Millisecond
	ticker := time.NewTicker(every)
	for last := time.Now(); ; last = time.Now() {
		<-ticker.C
		if late := time.Since(last) - every; late > time.Second {
			tell(late)
		}
	}
}

// say notifies the test that the process is ready.
func say(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }

// process is one that a world has started.
type process struct {
	cmd    *exec.Cmd
	log    string
	input  io.Closer     // its end is the process's
	said   chan []byte   // its first line; closed when there will be none
	dead   chan struct{} // closed when it is gone
	killed sync.Once
}

// spawn starts this program in a role. What it logs is added to a file.
func spawn(r role, log string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envRole+"="+string(text))
	return start(cmd, log)
}

// start starts a process. What it logs is added to a file.
func start(cmd *exec.Cmd, log string) (*process, error) {
	errs, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = errs.Close() }() // the process has its own
	p := &process{cmd: cmd, log: log, said: make(chan []byte, 1), dead: make(chan struct{})}
	p.cmd.Stderr = errs
	// A group of its own: if the test dies, the kernel ends also who is frozen.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.input = input
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.watch(out)
	return p, nil
}

// watch reads the first line and reaps the process.
func (p *process) watch(out io.Reader) {
	r := bufio.NewReader(out)
	if line, err := r.ReadBytes('\n'); err == nil {
		p.said <- line
	}
	close(p.said)
	_, _ = io.Copy(io.Discard, r)
	_ = p.cmd.Wait() // how it ended is seen from its state
	close(p.dead)
}

// signal sends one; a process that is gone receives none.
func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// kill ends the process as loss of power would, and returns when it is gone.
func (p *process) kill() {
	p.killed.Do(func() {
		p.signal(syscall.SIGKILL) // also to one that is frozen
		_ = p.input.Close()
	})
	<-p.dead
}

// alive reports whether the process runs, frozen or not.
func (p *process) alive() bool {
	select {
	case <-p.dead:
		return false
	default:
		return true
	}
}

// ended is how the process ended: nil if in order.
func (p *process) ended() error {
	if !p.cmd.ProcessState.Success() {
		return errors.New(p.cmd.ProcessState.String())
	}
	return nil
}

// tail is the end of what the process has logged.
func (p *process) tail() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	return p.log + ":\n" + string(bytes.Join(lines[max(0, len(lines)-15):], nil))
}
