package cluster_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// Agents that were touched and have nothing to do leave memory, all of them, and
// come back when they are asked, at once however long their log is. go test touches
// 2,500; REPRISE_AGENTS set, and make soak with it, touches more. It comes before all
// parallel tests, for it looks at the heap, and at the clock.
func TestTouchedAgentsLeaveMemory(t *testing.T) { // A95
	agentsTouched, patience := 2_500, 5*time.Minute
	if n, err := strconv.Atoi(os.Getenv("REPRISE_AGENTS")); err == nil {
		agentsTouched, patience = n, time.Hour
	} else if testing.Short() {
		agentsTouched = 500
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	log := new(embeddedtest.Words)
	cfg := cluster.Config{Data: t.TempDir(), Sync: "relaxed", Logger: log.Logger(), IdleAfter: 200 * time.Millisecond}
	var node atomic.Pointer[cluster.Node]
	agents(providers.Func(func(context.Context, providers.Request, func(providers.Delta)) (providers.Response, error) {
		if n := node.Load(); n != nil && n.InMemory() < 1 {
			t.Error("an agent that asks a model is not in memory")
		}
		return providers.Response{Items: []messages.Item{messages.Text(messages.RoleAssistant, "hello to you")}}, nil
	}), nil)(&cfg)
	cfg.Providers["long"], cfg.Agents = lifelong(), append(cfg.Agents, actors.Definition{
		Kind: "long", Model: "long/model", Tools: []tool.Tool{giving("look", "seen")}, MaxSteps: longTurn,
	})
	n, err := cluster.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Close() }()
	node.Store(n)
	text := strings.Repeat("word ", min(64<<10, 200<<20/agentsTouched)/5) // less than all disks have
	touch(ctx, t, n, "first", 500, text)                                  // what the process needs once and for all
	if !testing.Short() {
		live(ctx, t, n)
	}
	rest(ctx, t, n)
	before := inUse()
	touch(ctx, t, n, "agent", agentsTouched, text)
	rest(ctx, t, n)
	most := int64(len(text) / 2) // the row of reprise ls, and what tables do not give back
	if agentsTouched < 5_000 {   // fewer share what the process keeps
		most = int64(len(text) / 4)
	}
	servers := most
	if testing.Short() { // it takes the server a quarter of a minute
		servers = math.MaxInt64
	}
	each := stays(ctx, before, int64(agentsTouched), heap{most, servers})
	t.Logf("%d agents of %d bytes and more, %d bytes each stay, and %d in the server", agentsTouched, len(text), each.own, each.server)
	if each.own > most || each.server > servers {
		t.Errorf("%+v bytes stay in memory of each agent that is not", each)
	}
	for _, agent := range []string{"assistant/agent-0", fmt.Sprint("assistant/agent-", agentsTouched-1)} {
		if err := ask(ctx, n, agent, "2", "hello"); err != nil {
			t.Errorf("%s: %v", agent, err)
		}
	}
	if !testing.Short() {
		again(ctx, t, n)
	}
	if got := n.InMemory(); got > 2 {
		t.Errorf("%d agents are in memory", got)
	}
}

// The log of an agent with a long history: so many turns of so many model calls, each of
// which calls eight tools.
const (
	longTurns, longTurn = 20, 40
	longHistory         = longTurns * longTurn * 24 // events at least
)

// lifelong is the model of an agent that is given work, and answers anything else.
func lifelong() providers.Provider {
	return scripted.Func(func(r messagesRequest) scripted.Step {
		said := 0
		for _, item := range r.Items {
			if item.Type == "message" {
				said++
			}
		}
		if steps := (len(r.Items) - said) / 16; said > 1 || r.Items[0].Content.Text() != "work" || steps == longTurn-1 {
			return scripted.Say("hello to you")
		}
		return calling(slices.Repeat([]string{"look"}, 8)...)
	})
}

// live gives long/a its history. What its model is shown is cleared after each turn, so
// that nothing but the log grows.
func live(ctx context.Context, t *testing.T, n *cluster.Node) {
	t.Helper()
	began, events := time.Now(), messages.EventNumber(0)
	for i := range longTurns {
		for e, err := range n.Client().AskInput(ctx, "long/a", input(fmt.Sprint("work-", i), "work")) {
			if events = max(events, e.N); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := n.Client().Do(ctx, "long/a", messages.Clear{}); err != nil {
			t.Fatal(err)
		}
	}
	if events < longHistory {
		t.Errorf("long/a has %d events, want %d", events, longHistory)
	}
	t.Logf("%d events of one agent were written in %v", events, time.Since(began))
}

// slowest is ten times what is taken for milliseconds.
const slowest = 100 * time.Millisecond

// again asks agents that are not in memory, in turn ones that did one turn and one with a
// long history: that one answers as fast as the others, and all within milliseconds.
func again(ctx context.Context, t *testing.T, n *cluster.Node) {
	t.Helper()
	took := make(map[bool][]time.Duration)
	for i := range 15 {
		for long, agent := range map[bool]string{false: fmt.Sprint("assistant/agent-", i+1), true: "long/a"} {
			rest(ctx, t, n)
			began := time.Now()
			if err := ask(ctx, n, agent, fmt.Sprint("again-", i), "hello"); err != nil {
				t.Fatalf("%s: %v", agent, err)
			}
			took[long] = append(took[long], time.Since(began))
		}
	}
	median := func(all []time.Duration) time.Duration { return slices.Sorted(slices.Values(all))[len(all)/2] }
	short, long := median(took[false]), median(took[true])
	t.Logf("touched again, agents of one turn answer after %v (median), one of %d events after %v", short, longHistory, long)
	if most := min(10*short, slowest); long > most || short > slowest {
		t.Errorf("an agent with %d events answers after %v, more than %v, or one with few after %v", longHistory, long, most, short)
	}
}

// touch lets so many agents do a turn.
func touch(ctx context.Context, t *testing.T, n *cluster.Node, name string, count int, text string) {
	t.Helper()
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 32 {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < count && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := ask(ctx, n, fmt.Sprint("assistant/", name, "-", i), "1", text); err != nil {
					t.Errorf("agent %d: %v", i, err)
					return
				}
				if i%10_000 == 9_999 {
					t.Logf("%d agents touched, %d in memory", i+1, n.InMemory())
				}
			}
		})
	}
	workers.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func ask(ctx context.Context, n *cluster.Node, agent, id, text string) error {
	var last error
	for _, err := range n.Client().AskInput(ctx, agent, input(id, text)) {
		last = err
	}
	return last
}

// rest waits until no agent is in memory.
func rest(ctx context.Context, t *testing.T, n *cluster.Node) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for n.InMemory() > 0 {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("%d agents stay in memory", n.InMemory())
		}
	}
}

// heap is what is in use of it: the node's own, and what the server that is embedded here
// has allocated.
type heap struct{ own, server int64 }

// stays is how much more than before is in use for each of count agents, once it
// is not more than most: snapshots and the index come after, and the server
// keeps blocks of streams for seconds.
func stays(ctx context.Context, before heap, count int64, most heap) heap {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for looks := 1; ; looks++ {
		now := inUse()
		each := heap{(now.own - before.own) / count, (now.server - before.server) / count}
		if each.own <= most.own && each.server <= most.server || looks == 600 {
			return each
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return each
		}
	}
}

// inUse is what is in use of the heap. The server's part is apart: what it keeps is by its
// own settings, not by what nodes do.
// The heap's profile is a sample, which is scaled as package runtime/pprof does.
func inUse() (h heap) {
	runtime.GC()
	runtime.GC() // the profile is that of the collection before the last one
	records := make([]runtime.MemProfileRecord, 50_000)
	count, ok := runtime.MemProfile(records, false)
	if !ok {
		panic("the heap has more places of allocation than expected")
	}
	for _, r := range records[:count] {
		if r.InUseObjects() == 0 {
			continue
		}
		size := float64(r.InUseBytes()) / float64(r.InUseObjects())
		bytes := int64(float64(r.InUseBytes()) / (1 - math.Exp(-size/float64(runtime.MemProfileRate))))
		if strings.Contains(stack(r.Stack()), "github.com/nats-io/nats-server/") {
			h.server += bytes
		} else {
			h.own += bytes
		}
	}
	return h
}

// stack are the functions of a call stack.
func stack(at []uintptr) string {
	var b strings.Builder
	frames := runtime.CallersFrames(at)
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		b.WriteString(f.Function + "\n")
	}
	return b.String()
}
