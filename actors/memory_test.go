package actors_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/memory"
	"github.com/reprise-dev/reprise/providers/openai"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// peak records the largest heap and the most memory held by a bound.
type peak struct {
	bound      *memory.Bound
	heap, held atomic.Int64
}

// look measures both after a garbage collection.
func (p *peak) look() {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	raise(&p.heap, int64(sample[0].Value.Uint64()))
	raise(&p.held, p.bound.Held())
}

func raise(to *atomic.Int64, n int64) {
	for old := to.Load(); old < n && !to.CompareAndSwap(old, n); old = to.Load() {
	}
}

// hashed is a log that discards blobs, so that they are not part of the measured memory.
type hashed struct {
	eventlog.Blobs
	peak *peak
}

func (l hashed) PutBlob(_ context.Context, _ messages.AgentID, r io.ReadSeeker) (messages.Blob, error) {
	h := sha256.New()
	size, err := io.Copy(h, r)
	l.peak.look()
	return messages.Blob{SHA256: messages.Digest(hex.EncodeToString(h.Sum(nil))), Size: size}, err
}

// flood is a model server whose answers have size bytes of text, in pieces of 1 MiB or in one
// document. It sends the first piece of every answer before the second of any.
func flood(t *testing.T, answers, size int, document bool) *openai.Provider {
	text := strings.Repeat("x", 1<<20)
	kind, begin, piece, end := "text/event-stream", "", fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}`+"\n\n", text),
		`data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n"
	if document {
		kind, begin, piece, end = "application/json", `{"choices":[{"index":0,"message":{"content":"`, text, `"},"finish_reason":"stop"}]}`
	}
	var begun sync.WaitGroup
	begun.Add(answers)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, begin)
		for sent := 0; sent < size; sent += 1 << 20 {
			_, _ = io.WriteString(w, piece)
			if sent == 0 {
				begun.Done()
				begun.Wait()
			}
		}
		_, _ = io.WriteString(w, end)
	}))
	t.Cleanup(server.Close)
	return openai.New("", openai.BaseURL(server.URL))
}

// TestLargeAnswersAtOnce holds that concurrent large answers to many agents stay within the
// memory bound of the node, and that all of them arrive.
func TestLargeAnswersAtOnce(t *testing.T) {
	for name, document := range map[string]bool{"streamed": false, "in one document": true} {
		t.Run(name, func(t *testing.T) { largeAnswersAtOnce(t, document) })
	}
}

func largeAnswersAtOnce(t *testing.T, document bool) {
	const answers = 12
	size, bound := 60<<20, int64(1<<30)
	if testing.Short() { // the same with less data
		size, bound = size/10, bound/10
	}
	s := actorstest.New(t, nil)
	p := &peak{bound: memory.New(bound)}
	cfg := config(flood(t, answers, size, document))
	cfg.Store.Blobs, cfg.Memory = hashed{s.Store().Blobs, p}, p.bound
	node := s.Start(cfg)
	p.look()
	before := p.heap.Load()
	agent := func(i int) messages.AgentID { return actorstest.Agent("test", fmt.Sprint("a", i)) }
	for i := range answers {
		node.Must(agent(i), actorstest.Say("u1", "much"))
	}
	for i := range answers {
		s.Await(agent(i), func(all []messages.Event) bool {
			if failed := actorstest.Of[messages.ModelFailed](all); len(failed) > 0 {
				t.Fatalf("got the failure %+v, want none", failed[0])
			}
			return actorstest.Count(all, "turn.completed") > 0
		})
	}
	heap, held := p.heap.Load()-before, p.held.Load()
	t.Logf("at most %d MiB on the heap and %d MiB held", heap>>20, held>>20)
	if heap > bound || held > bound || held < int64(memory.Weight*size) {
		t.Errorf("got %d bytes on the heap and %d held, want at most %d", heap, held, bound)
	}
}

// tiny is a memory bound that does not suffice for a payload of much.
var (
	tiny = memory.New(1 << 20)
	much = many("x") + many("y")
)

func TestResultWithoutMemory(t *testing.T) {
	s := actorstest.New(t, nil)
	var runs atomic.Int32
	cfg := config(scripted.New(scripted.Ask(call("c1", "large")), scripted.Say("done")), giving("large", much, &runs))
	cfg.Memory = tiny
	s.Start(cfg).Must(ada, say("u1", "go"))
	failed := actorstest.Of[messages.ToolFailed](s.Until(ada, "turn.completed"))
	if len(failed) != 1 || failed[0].Kind != "no_memory" || !strings.Contains(failed[0].Message, "did run") || runs.Load() != 1 {
		t.Errorf("got %d runs and %+v, want 1 run and one failure for lack of memory", runs.Load(), failed)
	}
}

// TestToolTimeAndMemory holds that the result of a tool that ended in time is stored, however
// long storing it waits for memory.
func TestToolTimeAndMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, bound := actorstest.New(t, nil), memory.New(16<<20)
		for range 2 { // one for each half of the bound
			ctx, release := bound.With(t.Context())
			if err := memory.Of(ctx).Add(ctx, 2<<20); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(30*time.Second, release)
		}
		var runs atomic.Int32
		cfg := config(scripted.New(scripted.Ask(call("c1", "large")), scripted.Say("done")), giving("large", much, &runs).Timeout(time.Second))
		cfg.Memory = bound
		node := s.Start(cfg)
		defer end(node)
		node.Must(ada, say("u1", "go"))
		all := s.Until(ada, "turn.completed")
		if done := actorstest.Of[messages.ToolCompleted](all); len(done) != 1 || runs.Load() != 1 {
			t.Errorf("got %d runs and the failures %+v, want 1 run and its result", runs.Load(), actorstest.Of[messages.ToolFailed](all))
		}
	})
}

// failsOnce is a log that fails to store the first blob of ada.
type failsOnce struct {
	eventlog.Blobs
	tries atomic.Int32
}

func (l *failsOnce) PutBlob(ctx context.Context, a messages.AgentID, r io.ReadSeeker) (messages.Blob, error) {
	if a == ada && l.tries.Add(1) == 1 {
		_, _ = io.Copy(io.Discard, r)
		return messages.Blob{}, errors.New("the disk is full")
	}
	return l.Blobs.PutBlob(ctx, a, r)
}

// TestChildAnswerIsCopiedInPieces holds that a parent stores the large answer of its child on
// a node without enough memory for the whole of it, also at a second attempt.
func TestChildAnswerIsCopiedInPieces(t *testing.T) {
	s := actorstest.New(t, nil)
	model := scripted.Func(func(r providers.Request) scripted.Step {
		switch last := r.Items[len(r.Items)-1]; {
		case r.Agent.Kind == "helper":
			return scripted.Say(many("large "))
		case last.Type == messages.ItemCallOutput:
			return scripted.Say("done")
		}
		return scripted.Ask(scripted.Call{ID: "c1", Name: "helper", Arguments: `{"input":"say much"}`})
	})
	log := &failsOnce{Blobs: s.Store().Blobs}
	node := s.Start(actors.Config{Store: eventlog.Store{Blobs: log}, Memory: tiny, Providers: providers.Set{"scripted": model}, Definitions: []actors.Definition{
		{Kind: "test", Model: "scripted/m", Tools: []tool.Tool{actors.AsTool("helper", "helps")}, ShowAtMost: 1 << 10},
		{Kind: "helper", Model: "scripted/m"},
	}})
	node.Must(ada, say("u1", "go"))
	done := actorstest.Of[messages.ToolCompleted](s.Until(ada, "turn.completed"))
	if len(done) != 1 || done[0].Blob == nil || log.tries.Load() != 2 {
		t.Fatalf("got %d attempts and %+v, want 2 and one result in a blob", log.tries.Load(), done)
	}
	r, err := s.Store().Blob(t.Context(), ada, *done[0].Blob)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if got, err := io.ReadAll(r); err != nil || string(got) != many("large ") {
		t.Errorf("got %d bytes and error %v, want the whole answer", len(got), err)
	}
}

func TestPayloadWithoutMemory(t *testing.T) {
	s := actorstest.New(t, nil)
	model := scripted.New(scripted.Say("seen"))
	cfg := with(config(model), func(d *actors.Definition) { d.ShowAtMost = 1 << 20 })
	cfg.Memory = tiny
	s.Start(cfg).Must(ada, say("u1", much))
	failed := actorstest.Of[messages.ModelFailed](s.Until(ada, "turn.failed"))
	if len(failed) != 1 || failed[0].Kind != "no_memory" || failed[0].RetryAt != nil || model.Calls() != 0 {
		t.Errorf("got %d model calls and %+v, want none and one failure for lack of memory", model.Calls(), failed)
	}
}

// TestNoFallbackWithoutMemory holds that an answer for which the node has no memory is not a
// failure of its model: no fallback is called, and the reason is recorded.
func TestNoFallbackWithoutMemory(t *testing.T) {
	s := actorstest.New(t, nil)
	second := scripted.New(scripted.Say("instead"))
	cfg := with(config(flood(t, 1, 1<<20, false)), func(d *actors.Definition) { d.Fallbacks = []string{"second/m"} })
	cfg.Providers["second"], cfg.Memory = second, tiny
	s.Start(cfg).Must(ada, say("u1", "go"))
	failed := actorstest.Of[messages.ModelFailed](s.Until(ada, "turn.failed"))
	if len(failed) != 1 || failed[0].Kind != "no_memory" || failed[0].RetryAt != nil || second.Calls() != 0 {
		t.Errorf("got %d calls of the fallback and %+v, want none and one failure for lack of memory", second.Calls(), failed)
	}
}
