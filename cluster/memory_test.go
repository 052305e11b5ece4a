package cluster_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

// Agents that were touched and have nothing to do leave memory, all of them, and
// come back when they are asked. go test touches 2,500; REPRISE_AGENTS set, and
// make soak with it, touches more. It comes before all parallel tests, for it
// looks at the heap.
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
	n, err := cluster.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Close() }()
	node.Store(n)
	text := strings.Repeat("word ", min(8<<10, 200<<20/agentsTouched)/5) // less than all disks have
	touch(ctx, t, n, "first", 500, text)                                 // what the process needs once and for all
	rest(ctx, t, n)
	before := inUse()
	touch(ctx, t, n, "agent", agentsTouched, text)
	rest(ctx, t, n)
	most := int64(4 << 10) // the row of reprise ls, and what tables do not give back
	switch {               // fewer share what the process keeps
	case agentsTouched < 1000:
		most *= 4
	case agentsTouched < 5000:
		most *= 2 // less than the text of one that is kept
	}
	each := stays(ctx, before, int64(agentsTouched), most)
	t.Logf("%d agents of %d bytes and more, %d bytes each stay", agentsTouched, len(text), each)
	if each > most {
		t.Errorf("%d bytes stay in memory of each agent that is not", each)
	}
	for _, agent := range []string{"agent-0", fmt.Sprint("agent-", agentsTouched-1)} {
		if err := ask(ctx, n, agent, "2", "hello"); err != nil {
			t.Errorf("%s: %v", agent, err)
		}
	}
	if got := n.InMemory(); got > 2 {
		t.Errorf("%d agents are in memory", got)
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
				if err := ask(ctx, n, fmt.Sprint(name, "-", i), "1", text); err != nil {
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

func ask(ctx context.Context, n *cluster.Node, key, id, text string) error {
	var last error
	for _, err := range n.Client().AskInput(ctx, "assistant/"+key, input(id, text)) {
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

// stays is how much more than before is in use for each of count agents, once it
// is not more than most: snapshots and the views of the fleet come after.
func stays(ctx context.Context, before, count, most int64) int64 {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for looks := 1; ; looks++ {
		each := (inUse() - before) / count
		if each <= most || looks == 600 {
			return each
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return each
		}
	}
}

// inUse is what is in use of the heap, but for what the server that is embedded
// here has allocated: it keeps blocks of streams for seconds.
// The heap's profile is a sample, which is scaled as package runtime/pprof does.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // the profile is that of the collection before the last one
	records := make([]runtime.MemProfileRecord, 50_000)
	count, ok := runtime.MemProfile(records, false)
	if !ok {
		panic("the heap has more places of allocation than expected")
	}
	bytes := 0.0
	for _, r := range records[:count] {
		if r.InUseObjects() > 0 && !strings.Contains(stack(r.Stack()), "github.com/nats-io/nats-server/") {
			size := float64(r.InUseBytes()) / float64(r.InUseObjects())
			bytes += float64(r.InUseBytes()) / (1 - math.Exp(-size/float64(runtime.MemProfileRate)))
		}
	}
	return int64(bytes)
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
