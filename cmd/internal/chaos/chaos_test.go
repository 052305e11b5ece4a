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

	"github.com/reprise-dev/reprise/providers/providertest"
)

var (
	rounds  = flag.Int("rounds", 3, "how often the node is killed")
	seed    = flag.Uint64("seed", 0, "what chances are drawn from; 0 makes one up")
	limit   = flag.Duration("limit", 5*time.Minute, "when the run is given up")
	program = flag.String("binary", "", "the reprise to be killed; empty builds it")
)

// TestMain runs as one of the tools if a node started it as such.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == toolWord {
		os.Exit(runTool(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// patience is how many seconds a node may take to get to the event that ends
// its round, and the last one to come to rest.
const patience = 60

func TestChaos(t *testing.T) {
	// A28
	w := newWorld(t)
	for round := 1; round <= *rounds; round++ {
		w.generation.Store(int64(round / perGeneration))
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

// perGeneration is after how many rounds the load turns to new agents, lest
// histories grow without end.
const perGeneration = 20

// newWorld builds the binary and opens what is outside of it.
func newWorld(t *testing.T) *world {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	dir, err := os.MkdirTemp("", "reprise-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), *limit)
	w := &world{
		t: t, ctx: ctx, dir: dir, binary: *program, book: newBook(), changed: make(chan struct{}),
		random: rand.New(rand.NewPCG(*seed, 0)), stopping: make(chan struct{}),
	}
	w.sealed = *seed%2 == 0
	t.Logf("seed %d, encrypted %t, folder %s", *seed, w.sealed, dir)
	t.Cleanup(func() { w.close(cancel) })
	if w.binary != "" {
		w.binary, err = filepath.Abs(w.binary) // nodes run in the folder
	} else {
		w.binary = filepath.Join(dir, "reprise")
		build := exec.CommandContext(ctx, "go", "build", "-o", w.binary, "github.com/reprise-dev/reprise/cmd/reprise")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if w.model, err = providertest.Start(w.answer, providertest.Config{Forget: true}); err != nil {
		t.Fatal(err)
	}
	if w.gate, err = openGate(w.met); err != nil {
		t.Fatal(err)
	}
	w.configure()
	return w
}

// close ends what is left and keeps the folder of a run that failed.
func (w *world) close(cancel context.CancelFunc) {
	cancel()
	if l := w.life; l != nil {
		l.kill()
	}
	if w.gate != nil {
		w.gate.close()
	}
	if w.model != nil {
		_ = w.model.Close()
	}
	for _, l := range w.lives {
		<-l.quiet
	}
	w.running.Wait()
	if w.t.Failed() {
		w.t.Logf("seed %d after %d lives: the data is kept in %s", *seed, len(w.lives), w.dir)
		return
	}
	_ = os.RemoveAll(w.dir)
}

// configure writes the agents' definitions: tools of each class, and a model
// that answers from the history alone.
func (w *world) configure() {
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "providers:\n  books: {api_key: none, base_url: %q}\nagents:\n", w.model.URL)
	for kind, more := range map[string]string{
		"worker": ", ask, deep], parallel: 2", "clerk": ", ask, deep], compact: {at_tokens: 1500, keep: 14, how: window}",
		"middle": ", ask], parallel: 2", "helper": "], parallel: 2",
	} {
		fmt.Fprintf(&b, "  %s: {model: books/model, max_queue: 100000, max_attempts: 8, tools: [%s%s}\n", kind, strings.Join(tools, ", "), more)
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
			b.WriteString("    class: keyed\n    approval: always\n")
		case large:
			b.WriteString("    class: pure\n")
		case "check":
			fmt.Fprintf(&b, "    class: check\n    reconcile: %s\n", command(modeReconcile))
		default:
			fmt.Fprintf(&b, "    class: %s\n", name)
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
func (w *world) finish() {
	close(w.stopping)
	w.publishing.Wait()
	proof, err := w.gather()
	if err == nil {
		err = errors.Join(proof.fetch(w.ctx, w.life.client), w.search())
	}
	if err != nil {
		w.t.Fatalf("the agents did not come to rest: %v\n%s\n%s", err, w.book.unended(), w.life.tail())
	}
	w.examine()
	if err := w.life.stop(); err != nil {
		w.t.Errorf("told to stop, the node ended with %v\n%s", err, w.life.tail())
	}
	for _, l := range w.lives {
		<-l.quiet
	}
	if proof.ledger, err = readLedger(w.ledger()); err != nil {
		w.t.Fatal(err)
	}
	for _, v := range proof.prove() {
		w.t.Errorf("seed %d: %s", *seed, v)
	}
	w.t.Logf("%d kills: %s; %s", len(w.lives)-1, w.book, proof)
}

// examine asks the product's own doctor.
func (w *world) examine() {
	out, err := exec.CommandContext(w.ctx, w.binary, "doctor", "--deep", "--nats", w.life.client.Server()).CombinedOutput()
	if err != nil {
		w.t.Errorf("doctor: %v\n%s", err, out)
	}
}

// errOver says that the run was given up.
var errOver = errors.New("the time for the run is over; -limit sets it")

// world is everything outside of the node, and the node's lives.
type world struct {
	t      *testing.T
	ctx    context.Context // ends with the test or at its limit
	dir    string
	binary string
	book   *book
	model  *providertest.Server
	gate   *gate
	random *rand.Rand // of the rounds
	// sealed says that the store is encrypted: it is if the seed is even.
	sealed  bool
	mortals []*mortal

	mu      sync.Mutex
	life    *life
	lives   []*life
	changed chan struct{} // closed when life changes

	load       sync.Once
	stopping   chan struct{} // closed when no new load is wanted
	publishing sync.WaitGroup
	running    sync.WaitGroup // readers and the person
	// generation is that of the agents that the load turns to.
	generation atomic.Int64
}

func (w *world) data() string   { return filepath.Join(w.dir, "data") }
func (w *world) config() string { return filepath.Join(w.dir, "reprise.yaml") }
func (w *world) ledger() string { return filepath.Join(w.dir, "ledger") }
func (w *world) key() string    { return filepath.Join(w.dir, "key") }
func (w *world) log() string    { return filepath.Join(w.dir, "node.log") }
