//go:build unix

package chaos

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
)

// trigger is the event that ends a round: the nth of its kind. The zero value
// never comes.
type trigger struct {
	what string
	n    int64
	// hold keeps a tool that met it waiting until the next node is ready.
	hold bool
}

// The events that can end a round, with the greatest n of each. Ready comes
// once.
const (
	onAck    = "ack"    // an input was acknowledged
	onModel  = "model"  // a model is asked
	onBefore = "before" // a tool is about to have its effect
	onAfter  = "after"  // a tool has had its effect
	onFact   = "fact"   // a reader was shown an event
	onReady  = "ready"  // the node says that it is ready
	onChild  = "child"  // a reader was shown an event about a child
	onDelete = "delete" // the end of an agent was acknowledged
	onAnew   = "anew"   // an agent that was deleted was given its first input
	onFork   = "fork"   // a fork was acknowledged, and is to begin
)

// triggers are drawn from evenly. The small ones end a node while it recovers
// what the one before it left.
var triggers = []trigger{
	{what: onReady, n: 1},
	{what: onAck, n: 40}, {what: onAck, n: 40}, {what: onAck, n: 40},
	{what: onModel, n: 5}, {what: onModel, n: 120},
	{what: onBefore, n: 5}, {what: onBefore, n: 80},
	{what: onAfter, n: 5}, {what: onAfter, n: 80},
	{what: onFact, n: 20}, {what: onFact, n: 900},
	{what: onChild, n: 5}, {what: onChild, n: 30},
	{what: onDelete, n: 3}, {what: onAnew, n: 3},
	{what: onFork, n: 2}, {what: onFork, n: 2},
}

// draw chooses how the next round ends.
func (w *single) draw() trigger {
	c := triggers[w.random.IntN(len(triggers))]
	return trigger{what: c.what, n: 1 + w.random.Int64N(c.n), hold: w.random.IntN(2) == 0}
}

// single is one node that lives again and again.
type single struct {
	*world
	load   sync.Once
	binary string

	mu      sync.Mutex
	life    *life
	lives   []*life
	changed chan struct{} // closed when life changes
}

// life is one process of the node, from its start to its death.
type life struct {
	number   int
	cmd      *exec.Cmd
	end      trigger
	left     atomic.Int64
	endpoint *endpoint // once it is ready
	since    time.Time // when that was
	ended    time.Time // when it was killed
	log      string

	ctx    context.Context // ends with it
	cancel context.CancelFunc
	killed atomic.Bool
	ready  chan struct{} // closed when it says so
	dead   chan struct{} // closed when the process is gone
	// quiet is closed when its tools are gone, too: all of them hold the end of
	// one pipe that the node was given.
	quiet chan struct{}
	once  sync.Once
}

// begin starts the node once more.
func (w *single) begin(end trigger) {
	l := &life{number: len(w.lives) + 1, end: end, log: w.log(), ready: make(chan struct{}), dead: make(chan struct{}), quiet: make(chan struct{})}
	l.left.Store(end.n)
	l.ctx, l.cancel = context.WithCancel(w.ctx)
	if err := w.spawn(l); err != nil {
		w.t.Fatalf("life %d: %v", l.number, err)
	}
	w.mu.Lock()
	w.life, w.lives = l, append(w.lives, l)
	close(w.changed)
	w.changed = make(chan struct{})
	w.mu.Unlock()
}

// spawn starts the process and what watches it.
func (w *single) spawn(l *life) error {
	said, stdout, err := os.Pipe()
	if err != nil {
		return err
	}
	line, lifeline, err := os.Pipe()
	if err != nil {
		return err
	}
	errs, err := os.OpenFile(l.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(errs, "--- life %d, until %s %d\n", l.number, l.end.what, l.end.n)
	l.cmd = exec.Command(w.binary, "serve", "--config", w.config(), "--data", w.data(), "--listen", "127.0.0.1:0", "--idle", "1s", "--snapshot-every", "16")
	if w.encrypted {
		l.cmd.Args = append(l.cmd.Args, "--key-file", w.key())
	}
	l.cmd.Dir, l.cmd.Stdout, l.cmd.Stderr, l.cmd.ExtraFiles = w.dir, stdout, errs, []*os.File{lifeline}
	l.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "NO_COLOR=1"}
	err = l.cmd.Start()
	_, _, _ = stdout.Close(), lifeline.Close(), errs.Close() // the node has its own
	if err != nil {
		return errors.Join(err, said.Close(), line.Close())
	}
	go func() {
		_ = l.cmd.Wait() // how it ended is seen from its state
		close(l.dead)
		l.cancel()
	}()
	go func() {
		_, _ = io.Copy(io.Discard, line)
		_ = line.Close()
		close(l.quiet)
	}()
	go w.listen(l, said)
	return nil
}

// listen connects when the node says that it is ready.
func (w *single) listen(l *life, said *os.File) {
	defer func() { _ = said.Close() }()
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		_, rest, ok := strings.Cut(lines.Text(), "is ready: NATS ")
		if !ok {
			continue
		}
		url, _, _ := strings.Cut(rest, ",")
		c, err := reach(l.ctx, url)
		if err != nil {
			if !l.killed.Load() {
				w.t.Errorf("life %d says that it is ready but: %v", l.number, err)
			}
			return
		}
		context.AfterFunc(l.ctx, c.Close)
		l.since = time.Now()
		l.endpoint = &endpoint{number: l.number, client: c, ctx: l.ctx, close: func() {}}
		close(l.ready)
		w.met(onReady)
	}
}

// reach connects a client, and tries again while ctx lasts: a machine that stalls lets the time
// of an attempt pass.
func reach(ctx context.Context, url string) (*client.Client, error) {
	for {
		c, err := client.Connect(ctx, client.Options{URL: url, Name: "chaos"})
		if err == nil || ctx.Err() != nil {
			return c, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// kill ends the process as a power cut would and waits until it is gone.
func (l *life) kill() {
	l.once.Do(func() {
		l.killed.Store(true)
		l.ended = time.Now()
		_ = l.cmd.Process.Kill() // it may be gone already
	})
	<-l.dead
}

// stop asks the process to end in order, and returns how it did.
func (l *life) stop() error {
	l.killed.Store(true)
	if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-l.dead
	if !l.cmd.ProcessState.Success() {
		return errors.New(l.cmd.ProcessState.String())
	}
	return nil
}

// met is notified of an event. It kills the node if the round ends with it, and returns when the
// node is dead.
func (w *single) met(what string) {
	w.mu.Lock()
	l, changed := w.life, w.changed
	w.mu.Unlock()
	if l == nil || l.end.what != what || l.left.Add(-1) != 0 {
		return
	}
	l.kill()
	if what != onBefore || !l.end.hold {
		return
	}
	select {
	case <-changed:
	case <-w.ctx.Done():
		return
	}
	w.mu.Lock()
	next := w.life
	w.mu.Unlock()
	select {
	case <-next.ready:
	case <-next.dead:
	}
}

// wait waits for the end of the round. It counts seconds one by one: a machine that stalls for
// minutes takes one of them, not all.
func (w *single) wait() {
	l := w.life
	for range patience {
		select {
		case <-l.dead:
			if !l.killed.Load() {
				w.t.Fatalf("life %d ended by itself: %s\n%s", l.number, l.cmd.ProcessState, l.tail())
			}
			return
		case <-time.After(time.Second):
		case <-w.ctx.Done():
			w.t.Fatalf("seed %d, life %d: %v: %s", *seed, l.number, errOver, w.book)
		}
	}
	w.t.Fatalf("seed %d: life %d did not get to %s %d within %d s: %s\n%s\n%s",
		*seed, l.number, l.end.what, l.end.n, patience, w.book, w.book.unended(), l.tail())
}

// open returns an endpoint of a node that is ready, waiting for it.
func (w *single) open(ctx context.Context) (*endpoint, error) {
	for {
		w.mu.Lock()
		l, changed := w.life, w.changed
		w.mu.Unlock()
		select {
		case <-l.ready:
			if l.ctx.Err() == nil {
				return l.endpoint, nil
			}
		case <-l.ctx.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// calm waits until no process of an earlier life is left, tools included.
func (w *single) calm(ctx context.Context, _ string) error {
	w.mu.Lock()
	earlier := w.lives[:len(w.lives)-1]
	w.mu.Unlock()
	for _, l := range earlier {
		select {
		case <-l.quiet:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (w *single) tail() string { return w.life.tail() }

// tail is the end of what the nodes said.
func (l *life) tail() string {
	b, err := os.ReadFile(l.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-25):], nil))
}
