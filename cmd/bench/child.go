package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/cmd/internal/bench"
)

// child is a child process of this program, which reads and writes JSON. It inherits the
// environment: what this process has set up for itself alone, such as GOMAXPROCS,
// stays its own.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *os.File
	from  *json.Decoder
	log   bytes.Buffer // read when it has ended
	ended chan struct{}
	err   error // of its end
}

// begin starts a child process, which ends with ctx at the latest.
func begin(ctx context.Context, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, self, args...), ended: make(chan struct{})}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, in, err := os.Pipe() // one that Wait does not close before it is read
	if err != nil {
		return nil, err
	}
	c.cmd.Stdout, c.cmd.Stderr, c.out, c.from = in, &c.log, out, json.NewDecoder(out)
	err = errors.Join(c.cmd.Start(), in.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", strings.Join(args, " "), err), out.Close())
	}
	go func() {
		defer close(c.ended)
		c.err = c.cmd.Wait()
	}()
	return c, nil
}

// say writes an object that the process reads.
func (c *child) say(what any) error { return json.NewEncoder(c.in).Encode(what) }

// hear decodes an object that the process writes in time; else the process is killed.
func (c *child) hear(within time.Duration, what any) error {
	late := time.AfterFunc(within, c.kill)
	defer late.Stop()
	if err := c.from.Decode(what); err != nil {
		c.kill()
		<-c.ended
		return fmt.Errorf("%w: %w", err, c.failure())
	}
	return nil
}

// failure is how a process has ended, with the end of what it wrote.
func (c *child) failure() error {
	said := bytes.TrimSpace(c.log.Bytes())
	return fmt.Errorf("%s ended (%v): %s", strings.Join(c.cmd.Args[1:], " "), c.cmd.ProcessState, said[max(0, len(said)-2<<10):])
}

func (c *child) kill() { _ = c.cmd.Process.Kill() } // fails only if it has ended

// stop ends the process by a signal, and by the end of its input, and waits for it.
func (c *child) stop(ctx context.Context, how os.Signal) error {
	if how != nil && c.cmd.Process.Signal(how) != nil {
		c.kill() // as on systems without signals; one that has ended is left alone
	}
	_ = c.in.Close()                     // it was closed with the process
	defer func() { _ = c.out.Close() }() // it was only read
	late := time.AfterFunc(2*bench.Patience, c.kill)
	defer late.Stop()
	<-c.ended
	if c.err != nil && ctx.Err() == nil {
		return c.failure()
	}
	return nil
}

// once runs a child process that reads one object and writes another.
func once(ctx context.Context, name string, question, answer any) (err error) {
	c, err := begin(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop(ctx, nil)) }()
	if err := c.say(question); err != nil {
		return err
	}
	err = c.hear(time.Hour, answer) // it bounds its work itself
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// cpuOf is the CPU time, user and system, that processes have used. It is known on
// Linux alone, in steps of 10 ms; elsewhere, and of those that have ended, it is 0.
func cpuOf(pids ...int) (used time.Duration) {
	for _, pid := range pids {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || runtime.GOOS != "linux" {
			continue
		}
		_, stat, _ = bytes.Cut(stat, []byte(") ")) // the command's name is the only field with spaces
		const utime, stime = 11, 12                // counted from the state, the first one behind the name
		for i, field := range bytes.Fields(stat) {
			if i == utime || i == stime {
				ticks, _ := strconv.Atoi(string(field))
				used += time.Duration(ticks) * time.Second / 100 // USER_HZ
			}
		}
	}
	return used
}

// driveBeside is [bench.Drive] where the CPU time of other processes is measured, too.
func driveBeside(ctx context.Context, pids []int, n int, warm, window time.Duration, do bench.Work) (got bench.Tally, theirs time.Duration, err error) {
	done := make(chan time.Duration, 1)
	go func() {
		bench.Sleep(ctx, warm)
		before := cpuOf(pids...)
		bench.Sleep(ctx, window)
		done <- cpuOf(pids...) - before
	}()
	got, err = bench.Drive(ctx, n, warm, window, do)
	return got, <-done, err
}
