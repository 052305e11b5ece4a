//go:build unix

package chaos

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// toolWord as first argument makes this program a tool of the node; then come
// the mode, the tool, the ledger and the gate.
const (
	toolWord      = "chaos-tool"
	modeRun       = "run"
	modeReconcile = "reconcile"
)

// gated is the tool whose calls a person must approve; its on_unknown is rerun. The
// other tools are named by their on_unknown.
const gated = "gated"

// large is a tool that only reads, whose result is larger than a frame.
const large = "large"

var tools = []string{"read_only", "rerun", "reconcile", gated, "pause", large}

// entry is a line of the ledger, the outside system that the tools act on.
type entry struct {
	// What is invoked for a program that began, effect for what it did.
	What, Tool, Key string
	Attempt         int
	Agent, Input    string
	// Position is the call's place in the plan of its input.
	Position int
}

// largeSize is more than a frame holds.
const largeSize = 540 << 10

// result is what the program says: the same for the same call.
func (e entry) result() string {
	line := fmt.Sprintf("%s:%s:%d", e.Tool, e.Input, e.Position)
	if e.Tool == large {
		line = strings.Repeat(line+"/", largeSize/len(line))
	}
	return line
}

// A line begins with a newline and has an end of its own: a program that is killed while it writes leaves
// a part of one, before which nothing was done.
const entryForm, entryEnd = "\n%s %s %s %d %s %s %d" + entryEnd, " ."

func (e entry) append(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, entryForm, e.What, e.Tool, e.Key, e.Attempt, e.Agent, e.Input, e.Position)
	return errors.Join(err, f.Sync(), f.Close())
}

// parseEntry reads a line of the ledger, if it is whole.
func parseEntry(line string) (e entry, whole bool, err error) {
	line, whole = strings.CutSuffix(line, entryEnd)
	if whole {
		_, err = fmt.Sscan(line, &e.What, &e.Tool, &e.Key, &e.Attempt, &e.Agent, &e.Input, &e.Position)
	}
	return e, whole, err
}

// readLedger reads every line; a ledger that is not there is empty.
func readLedger(path string) (all []entry, err error) {
	ledger, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.SplitSeq(string(ledger), "\n") {
		e, whole, err := parseEntry(line)
		if err != nil {
			return nil, fmt.Errorf("%s, after %d lines: %w", path, len(all), err)
		}
		if whole {
			all = append(all, e)
		}
	}
	return all, nil
}

// effectOf is what was done under a key, by the ledger as it is on the disk.
func effectOf(ledger []byte, tool, key string) (e entry, ok bool) {
	begins := "effect " + tool + " " + key + " "
	for line := range strings.SplitSeq(string(ledger), "\n") {
		if strings.HasPrefix(line, begins) {
			if e, whole, err := parseEntry(line); whole && err == nil {
				return e, true
			}
		}
	}
	return e, false
}

// TestTornLedger checks that what a program has left that was killed while it wrote hides no other line.
func TestTornLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	done := entry{What: "effect", Tool: "rerun", Key: "default/worker/a/t1/c1", Attempt: 2, Agent: "worker/a", Input: "p1-10", Position: 1}
	begun := done
	begun.What = "invoked"
	whole := fmt.Sprintf(entryForm, done.What, done.Tool, done.Key, 1, done.Agent, done.Input, done.Position)
	for n := range len(whole) {
		if err := os.WriteFile(path, []byte(whole[:n]), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(begun.append(path), done.append(path)); err != nil {
			t.Fatal(err)
		}
		if all, err := readLedger(path); err != nil || !slices.Equal(all, []entry{begun, done}) {
			t.Errorf("behind %q it has %+v, %v", whole[:n], all, err)
		}
		lines, err := os.ReadFile(path)
		if e, ok := effectOf(lines, done.Tool, done.Key); err != nil || !ok || e != done {
			t.Errorf("behind %q the effect is %+v, %v", whole[:n], e, err)
		}
	}
}

// runTool is a tool's program; it returns the exit code.
func runTool(args []string) int {
	here, err := attend(args[2], os.Getenv("REPRISE_IDEMPOTENCY_KEY"))
	if err != nil {
		return failTool(err)
	}
	defer func() { _ = here.Close() }()
	mode, ledger, gate := args[0], args[2], args[3]
	e := entry{Tool: args[1], Key: os.Getenv("REPRISE_IDEMPOTENCY_KEY"), Agent: os.Getenv("REPRISE_AGENT")}
	if _, err := fmt.Sscan(os.Getenv("REPRISE_ATTEMPT"), &e.Attempt); err != nil {
		return failTool(err)
	}
	if mode == modeReconcile {
		return e.reconcile(ledger)
	}
	if err := json.NewDecoder(os.Stdin).Decode(&e); err != nil {
		return failTool(err)
	}
	e.What = "invoked"
	if err := e.append(ledger); err != nil {
		return failTool(err)
	}
	tell(gate, onBefore)
	if err := e.act(ledger); err != nil {
		return failTool(err)
	}
	tell(gate, onAfter)
	fmt.Println(e.result())
	return 0
}

func failTool(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// act has the effect: none for read_only, one for each run with pause, and at most one for
// each key with the others, as the outside system would see to.
func (e entry) act(ledger string) error {
	e.What = "effect"
	switch e.Tool {
	case "read_only", large:
		return nil
	case "pause":
		return e.append(ledger)
	}
	return locked(ledger, func(lines []byte) error {
		if _, done := effectOf(lines, e.Tool, e.Key); done {
			return nil
		}
		return e.append(ledger)
	})
}

// reconcile reports what became of a call. Of some it is unsure.
func (e entry) reconcile(ledger string) int {
	const notDone, notSure = 3, 1
	code := notDone
	err := locked(ledger, func(lines []byte) error {
		done, ok := effectOf(lines, e.Tool, e.Key)
		switch {
		case unsure(e.Key):
			code = notSure
		case ok:
			code = 0
			fmt.Println(done.result())
		}
		return nil
	})
	if err != nil {
		return failTool(err)
	}
	return code
}

// unsure reports whether nothing can be said of a call.
func unsure(key string) bool {
	h := fnv.New32a()
	_, _ = io.WriteString(h, key) // never fails
	return h.Sum32()%5 == 0
}

// locked reads the ledger under its lock: no other process changes it meanwhile.
func locked(ledger string, do func(lines []byte) error) error {
	f, err := os.OpenFile(ledger+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // releases the lock
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	lines, err := os.ReadFile(ledger)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // nothing was done yet
		return err
	}
	return do(lines)
}

// attend records that a program works for a call, as long as the file is open.
func attend(ledger, key string) (*os.File, error) {
	return attendance(ledger, key, syscall.LOCK_SH)
}

// attended reports whether a program works for a call.
func attended(ledger, key string) (bool, error) {
	f, err := attendance(ledger, key, syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return true, nil
	case err != nil:
		return false, err
	}
	return false, f.Close()
}

func attendance(ledger, key string, how int) (*os.File, error) {
	f, err := os.OpenFile(ledger+"."+string(digest(key)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), how); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// tell says where the tool is and waits until the gate has taken note. If the
// gate is gone the run is over, and it does not matter.
func tell(gate, where string) {
	c, err := net.Dial("tcp", gate)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	if _, err := fmt.Fprintln(c, where); err == nil {
		_, _ = io.Copy(io.Discard, c)
	}
}

// gate is where tools say how far they are, so that the node can be killed just
// there.
type gate struct {
	listener net.Listener
	met      func(string)
	serving  sync.WaitGroup
}

func openGate(met func(string)) (*gate, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &gate{listener: l, met: met}
	g.serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			g.serving.Go(func() { g.serve(c) })
		}
	})
	return g, nil
}

func (g *gate) address() string { return g.listener.Addr().String() }

func (g *gate) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	where, err := bufio.NewReader(c).ReadString('\n')
	if err == nil {
		g.met(strings.TrimSpace(where))
	}
}

func (g *gate) close() {
	_ = g.listener.Close() // it may be closed already
	g.serving.Wait()
}
