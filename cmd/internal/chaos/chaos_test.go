//go:build unix

package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/clustertest"
	"github.com/reprise-dev/reprise/cmd/internal/cli"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/providers/providertest"
)

var (
	rounds  = flag.Int("rounds", 2, "how often the node is killed")
	seed    = flag.Uint64("seed", 0, "what chances are drawn from; 0 makes one up")
	limit   = flag.Duration("limit", 9*time.Minute, "when the run is given up")
	program = flag.String("binary", "", "the reprise to be killed; empty builds it")
)

// TestMain runs as one of the tools if a node started it as such, and as a node or
// server if a test did.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case toolWord:
			os.Exit(runTool(os.Args[2:]))
		case nodeWord:
			go endWith(os.Stdin)
			fallthrough
		case commandWord:
			os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		}
	}
	clustertest.Main(m)
}

// patience is how many seconds a node may take to get to the event that ends
// its round, and the last one to come to rest.
const patience = 180

func TestChaos(t *testing.T) {
	// A28
	w := newSingle(t)
	for round := 1; round <= *rounds; round++ {
		if round%perGeneration == 0 {
			w.turnTo(int64(round / perGeneration))
		}
		w.begin(w.draw())
		w.load.Do(w.startLoad)
		w.wait()
		if round%20 == 0 {
			t.Logf("round %d: %s", round, w.book)
		}
	}
	w.begin(trigger{})
	w.load.Do(w.startLoad)
	w.finish()
}

// perGeneration is after how many rounds the load turns to new agents, so that
// histories do not grow without end.
const perGeneration = 20

// newSingle builds the binary and opens what is outside of it.
func newSingle(t *testing.T) *single {
	w := &single{world: newWorld(t, *limit), changed: make(chan struct{})}
	w.system, w.end = w, w.close
	w.command = func(ctx context.Context, args ...string) *exec.Cmd {
		return exec.CommandContext(ctx, w.binary, args...)
	}
	if w.binary = *program; w.binary != "" {
		var err error
		if w.binary, err = filepath.Abs(w.binary); err != nil { // nodes run in the folder
			t.Fatal(err)
		}
		return w
	}
	w.binary = filepath.Join(w.dir, "reprise")
	build := exec.CommandContext(w.ctx, "go", "build", "-ldflags", "-s -w", "-o", w.binary, "github.com/reprise-dev/reprise/cmd/reprise")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return w
}

// newWorld opens what is outside of all nodes.
func newWorld(t *testing.T, limit time.Duration) *world {
	embeddedtest.Long(t, "processes")
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	dir, err := os.MkdirTemp("", "reprise-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	w := &world{
		t: t, ctx: ctx, dir: dir, book: newBook(),
		random: rand.New(rand.NewPCG(*seed, 0)), stopping: make(chan struct{}), stood: clustertest.StoodStill(),
	}
	w.encrypted = *seed%2 == 0
	t.Logf("seed %d, encrypted %t, folder %s", *seed, w.encrypted, dir)
	t.Cleanup(func() { w.close(cancel) })
	if w.model, err = providertest.Start(w.answer, providertest.Config{Forget: true}); err != nil {
		t.Fatal(err)
	}
	if w.gate, err = openGate(func(what string) { w.system.met(what) }); err != nil {
		t.Fatal(err)
	}
	w.configure()
	return w
}

// close ends what is left and keeps the folder of a run that failed.
func (w *world) close(cancel context.CancelFunc) {
	cancel()
	if w.end != nil {
		w.end()
	}
	if w.gate != nil {
		w.gate.close()
	}
	if w.model != nil {
		_ = w.model.Close()
	}
	w.running.Wait()
	if w.t.Failed() {
		w.t.Logf("seed %d: the data is kept in %s", *seed, w.dir)
		return
	}
	_ = os.RemoveAll(w.dir)
}

// close ends what is left of the node.
func (w *single) close() {
	if l := w.life; l != nil {
		l.kill()
	}
	w.gate.close() // tools that are held there continue
	for _, l := range w.lives {
		<-l.quiet
	}
}

// configure writes the agents' definitions: tools of every on_unknown, and a model
// that answers from the history alone.
func (w *world) configure() {
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "providers:\n  books: {api_key: none, base_url: %q, profile: openai}\nagents:\n", w.model.URL)
	for kind, more := range map[string]string{
		"worker": ", ask, deep], parallel: 2", "clerk": ", ask, deep], compact: {at_tokens: 1500, keep: 14, how: window}",
		"middle": ", ask], parallel: 2", "helper": "], parallel: 2", "list": "]",
	} {
		fmt.Fprintf(&b, "  %s: {model: books/model, max_queue: 2000, max_attempts: 8, tools: [%s%s}\n", kind, strings.Join(tools, ", "), more)
	}
	b.WriteString("tools:\n  ask: {agent: helper, description: Ask another}\n  deep: {agent: middle, description: Ask one who asks another}\n")
	for _, name := range tools {
		command := func(mode string) string {
			return fmt.Sprintf("[%q, %s, %s, %s, %q, %q]", self, toolWord, mode, name, w.ledger(), w.gate.address())
		}
		fmt.Fprintf(&b, "  %s:\n    description: Write a line\n    command: %s\n", name, command(modeRun))
		b.WriteString("    parameters: {type: object, properties: {input: {type: string}, position: {type: integer}}, required: [input, position]}\n")
		switch name {
		case gated:
			b.WriteString("    on_unknown: rerun\n    approval: always\n")
		case large, "read_only":
			b.WriteString("    read_only: true\n")
		case "reconcile":
			fmt.Fprintf(&b, "    on_unknown: reconcile\n    reconcile: %s\n", command(modeReconcile))
		default:
			fmt.Fprintf(&b, "    on_unknown: %s\n", name)
		}
	}
	if err := os.WriteFile(w.key(), []byte(strings.Repeat("5a", 32)), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.config(), []byte(b.String()), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// finish lets the newest life work off what is left, stops it as an operator
// would, and proves.
func (w *single) finish() {
	until := time.Now()
	d, err := w.open(w.ctx)
	if err != nil {
		w.t.Fatal(errors.Join(errOver, err))
	}
	proof := w.rest(d.client)
	if err := w.life.stop(); err != nil {
		w.t.Errorf("told to stop, the node ended with %v\n%s", err, w.life.tail())
	}
	for _, l := range w.lives {
		<-l.quiet
	}
	w.judge(proof)
	f := figure(proof.owned(), proof.sent, until)
	w.t.Logf("%d kills: %s; %s; worst pauses %s, %s", len(w.lives)-1, w.book, proof, f.cluster, f.agent)
	w.punctual(f, w.outages(), false)
}

// rest wants no new load, waits until all agents have come to rest, and gathers
// what is to be proven.
func (w *world) rest(c *client.Client) *evidence {
	began := time.Now()
	close(w.stopping)
	w.publishing.Wait()
	w.t.Logf("the publishers have ended after %s", time.Since(began).Round(time.Millisecond))
	proof, err := w.gather(c)
	w.t.Logf("the agents rest after %s", time.Since(began).Round(time.Millisecond))
	if err == nil {
		err = errors.Join(proof.fetch(w.ctx, c), w.search(c.Server()))
	}
	if err != nil {
		w.t.Fatalf("the agents did not come to rest: %v\n%s\n%s", err, w.book.unended(), w.system.tail())
	}
	w.examine(c.Server())
	w.t.Logf("all is looked through after %s", time.Since(began).Round(time.Millisecond))
	return proof
}

// judge proves, when no tool runs any more.
func (w *world) judge(proof *evidence) {
	var err error
	if proof.ledger, err = readLedger(w.ledger()); err != nil {
		w.t.Fatal(err)
	}
	for _, v := range proof.prove() {
		w.t.Errorf("seed %d: %s", *seed, v)
	}
}

// examine asks the product's own doctor, and has all that is recorded decided again.
func (w *world) examine(server string) {
	if out, err := w.command(w.ctx, "doctor", "--deep", "--nats", server).CombinedOutput(); err != nil {
		w.t.Errorf("doctor: %v\n%s", err, out)
	}
	for _, tenant := range tenants {
		if out, err := w.command(w.ctx, "verify", "--all", "--tenant", tenant, "--nats", server).CombinedOutput(); err != nil {
			w.t.Errorf("verify the agents of %s: %v\n%s", tenant, err, out)
		}
	}
}

// errOver is the error of a run that was given up.
var errOver = errors.New("the time for the run is over; -limit sets it")

// world is everything outside of the nodes.
type world struct {
	t      *testing.T
	ctx    context.Context // ends with the test or at its limit
	dir    string
	system system
	// command is a run of the program.
	command func(ctx context.Context, args ...string) *exec.Cmd
	end     func() // ends the system
	book    *book
	model   *providertest.Server
	gate    *gate
	random  *rand.Rand // of the rounds
	// encrypted reports that the store is encrypted: it is if the seed is even.
	encrypted bool
	mortals   []*mortal
	stood     int // how often the machine had stood still before

	stopping   chan struct{} // closed when no new load is wanted
	publishing sync.WaitGroup
	running    sync.WaitGroup // readers and the person
	asked      atomic.Int64   // models
	// generation is that of the agents that the load turns to.
	generation atomic.Int64
}

func (w *world) data() string   { return filepath.Join(w.dir, "data") }
func (w *world) config() string { return filepath.Join(w.dir, "reprise.yaml") }
func (w *world) ledger() string { return filepath.Join(w.dir, "ledger") }
func (w *world) key() string    { return filepath.Join(w.dir, "key") }
func (w *world) log() string    { return filepath.Join(w.dir, "node.log") }
