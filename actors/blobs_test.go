package actors_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// blobLog is a log whose blob operations pass through put and get.
type blobLog struct {
	eventlog.Blobs
	put func(ctx context.Context, store func() (messages.Blob, error)) (messages.Blob, error)
	get func(messages.Blob) error
}

func (s *blobLog) PutBlob(ctx context.Context, a messages.AgentID, r io.ReadSeeker) (messages.Blob, error) {
	store := func() (messages.Blob, error) { return s.Blobs.PutBlob(ctx, a, r) }
	if s.put == nil {
		return store()
	}
	return s.put(ctx, store)
}

func (s *blobLog) Blob(ctx context.Context, a messages.AgentID, b messages.Blob) (io.ReadCloser, error) {
	if s.get != nil {
		if err := s.get(b); err != nil {
			return nil, err
		}
	}
	return s.Blobs.Blob(ctx, a, b)
}

// many repeats a text until it is too large for a frame.
func many(of string) string { return strings.Repeat(of, 256<<10/len(of)) }

func giving(name, text string, runs *atomic.Int32) *tool.Typed[none] {
	return toolOf(name, tool.Pause, func(context.Context) (string, error) { runs.Add(1); return text, nil })
}

func blobsOf(t *testing.T, s *actorstest.Stage, a messages.AgentID) (list []messages.Blob) {
	t.Helper()
	for b, err := range s.Store().ListBlobs(context.Background(), a) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, b)
	}
	return list
}

// The node crashes after a large result is stored as a blob and before the frame that refers
// to it is appended. The outcome of the call is unknown, as after any crash, and the orphaned
// blob does no harm.
func TestCrashAfterBlob(t *testing.T) { // A20, A36
	var runs atomic.Int32
	s := actorstest.New(t, nil)
	stored := make(chan struct{})
	var once sync.Once
	model := scripted.New(scripted.Ask(call("c1", "large")), scripted.Say("done"))
	cfg := config(model, toolOf("large", tool.Rerun, func(context.Context) (string, error) {
		return many(fmt.Sprint("run ", runs.Add(1), " ")), nil
	}))
	cfg.Store.Blobs = &blobLog{Blobs: s.Store().Blobs, put: func(ctx context.Context, store func() (messages.Blob, error)) (messages.Blob, error) {
		b, err := store()
		once.Do(func() { close(stored); <-ctx.Done() })
		return b, err
	}}
	node := s.Start(cfg)
	node.Must(ada, say("u1", "go"))
	<-stored
	node.Crash()
	if count(s.Events(ada), "tool.completed") != 0 {
		t.Fatal("got a result in the log of the crashed node, want none")
	}
	s.Start(cfg).Activate(ada)
	all := s.Until(ada, "turn.completed")
	ends(t, all)
	done := actorstest.Of[messages.ToolCompleted](all)
	if want := messages.DigestOf([]byte(many("run 2 "))); len(done) != 1 || done[0].Blob == nil || done[0].Blob.SHA256 != want || runs.Load() != 2 {
		t.Errorf("got %d runs and %+v, want 2 runs and one result with the blob of the second", runs.Load(), done)
	}
	if n := len(blobsOf(t, s, ada)); n != 2 { // one is an orphan
		t.Errorf("got %d blobs, want 2", n)
	}
}

// The outcome of an effect cannot be produced again, so it is kept until the blob store
// accepts it.
func TestBlobStoreUnavailable(t *testing.T) { // A30, A36
	var runs, tries atomic.Int32
	s := actorstest.New(t, nil)
	cfg := config(scripted.New(scripted.Ask(call("c1", "large")), scripted.Say("done")), giving("large", many("x"), &runs))
	cfg.Store.Blobs = &blobLog{Blobs: s.Store().Blobs, put: func(_ context.Context, store func() (messages.Blob, error)) (messages.Blob, error) {
		switch tries.Add(1) {
		case 1:
			return messages.Blob{}, errors.New("no connection")
		case 2:
			_, _ = store() // its reply is lost
			return messages.Blob{}, errors.New("no answer")
		}
		return store()
	}}
	s.Start(cfg).Must(ada, say("u1", "go"))
	all := s.Until(ada, "turn.completed")
	ends(t, all)
	if runs.Load() != 1 || tries.Load() != 3 || count(all, "tool.completed") != 1 || len(blobsOf(t, s, ada)) != 1 {
		t.Errorf("got %d runs and %d tries, want 1 and 3, with one result in one blob: %v", runs.Load(), tries.Load(), s.Types(ada))
	}
}

// An interrupt does not wait for a blob store that fails.
func TestInterruptWhileStoring(t *testing.T) { // A14, A36
	var runs atomic.Int32
	tried := make(chan struct{}, 100)
	s := actorstest.New(t, nil)
	cfg := config(scripted.New(scripted.Ask(call("c1", "large")), scripted.Say("done")), giving("large", many("x"), &runs))
	cfg.Store.Blobs = &blobLog{Blobs: s.Store().Blobs, put: func(context.Context, func() (messages.Blob, error)) (messages.Blob, error) {
		tried <- struct{}{}
		return messages.Blob{}, errors.New("no connection")
	}}
	node := s.Start(cfg)
	node.Must(ada, say("u1", "go"))
	<-tried
	node.Must(ada, messages.Interrupt{ID: "i1"})
	node.Must(ada, say("u2", "and now"))
	ends(t, s.Until(ada, "turn.completed"))
}

// Inputs keep their order while a large one is stored. Callers that wait are answered when the
// node stops.
func TestInputWhileStoring(t *testing.T) { // A1, A36
	for _, stops := range []bool{false, true} {
		t.Run(fmt.Sprint("stops ", stops), func(t *testing.T) {
			storing, goOn := make(chan struct{}), make(chan struct{})
			var once sync.Once
			s := actorstest.New(t, nil)
			cfg := config(echo())
			cfg.Store.Blobs = &blobLog{Blobs: s.Store().Blobs, put: func(ctx context.Context, store func() (messages.Blob, error)) (messages.Blob, error) {
				once.Do(func() { close(storing) })
				select {
				case <-goOn:
					return store()
				case <-ctx.Done():
					return messages.Blob{}, ctx.Err()
				}
			}}
			node := s.Start(cfg)
			large := node.Ask(ada, say("u1", many("x")))
			<-storing
			behind := node.Ask(ada, say("u2", "small"))
			again := node.Ask(ada, say("u1", many("x")))
			if stops {
				node.Stop()
				close(goOn)
				for _, wait := range []func() messages.Answer{large, behind, again} {
					wantCode(t, wait(), messages.Unavailable)
				}
				return
			}
			close(goOn)
			first, second := large(), behind()
			if first.Err != nil || second.Err != nil || first.N >= second.N {
				t.Errorf("got %+v and %+v, want both accepted in order", first, second)
			}
			if a := again(); !a.Duplicate || a.N != first.N {
				t.Errorf("the first input again: got %+v, want a duplicate", a)
			}
			all := s.Until(ada, "turn.completed", 2)
			ends(t, all)
			in := actorstest.Of[messages.InputAccepted](all)[0]
			if in.Content[0].Text != "" || in.Content[0].Blob == nil || in.Content[0].Blob.Size != 256<<10 {
				t.Errorf("got input %.300v, want its text in a blob", in)
			}
			if out := actorstest.Of[messages.TurnCompleted](all)[0]; out.Output != "" || out.Blob == nil || out.Blob.Size != 256<<10+int64(len("heard ")) {
				t.Errorf("got turn %.300v, want its output in a blob", out)
			}
		})
	}
}

// A refused input stores no blob.
func TestRefusedInputIsNotStored(t *testing.T) { // A36
	gate := scripted.NewGate()
	s := actorstest.New(t, nil)
	node := s.Start(config(scripted.New(scripted.Held(gate, scripted.Say("done")))))
	node.Must(ada, say("u1", "go"))
	wantCode(t, node.Do(ada, under(messages.PolicyReject, "u2", many("x"))), messages.Busy)
	wantCode(t, node.Do(ada, say("u3", strings.Repeat("x", actors.DefaultMaxPayload+1))), messages.TooLarge)
	if list := blobsOf(t, s, ada); list != nil {
		t.Errorf("got blobs %v, want none", list)
	}
	gate.Release()
	s.Until(ada, "turn.completed")
}

// An input that cannot be stored is refused.
func TestInputStoreUnavailable(t *testing.T) { // A30, A36
	synctest.Test(t, func(t *testing.T) {
		s := actorstest.New(t, nil)
		var away atomic.Bool
		away.Store(true)
		cfg := config(echo())
		cfg.Store.Blobs = &blobLog{Blobs: s.Store().Blobs, put: func(_ context.Context, store func() (messages.Blob, error)) (messages.Blob, error) {
			if away.Load() {
				return messages.Blob{}, errors.New("no connection")
			}
			return store()
		}}
		node := s.Start(cfg)
		wait := node.Ask(ada, say("u1", many("x")))
		behind := node.Ask(ada, say("u2", "small"))
		wantCode(t, wait(), messages.Unavailable)
		if a := behind(); a.Err != nil {
			t.Error(a.Err)
		}
		away.Store(false)
		node.Must(ada, say("u1", many("x")))
		ends(t, s.Until(ada, "turn.completed", 2))
		end(node)
	})
}

// A model receives an excerpt of a large text, cut at character boundaries.
func TestShownExcerpt(t *testing.T) { // A36
	text := many("äbc") // two bytes, one, one
	sum := messages.DigestOf([]byte(text))
	for most, want := range map[int][2]string{
		4:       {"äb", "c"},
		5:       {"äbc", "c"},
		6:       {"äbc", "c"},
		8:       {"äbcä", "bc"},
		12:      {"äbcäbcä"[:9], "bc"},
		16:      {"äbcäbcäbc", "äbc"},
		1 << 30: {text, ""},
	} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			var runs atomic.Int32
			model := scripted.New(scripted.Ask(call("c1", "large")), scripted.Say("done"))
			s := actorstest.New(t, nil)
			s.Start(with(config(model, giving("large", text, &runs)), func(d *actors.Definition) { d.ShowAtMost = most })).Must(ada, say("u1", "go"))
			s.Until(ada, "turn.completed")
			got := model.Requests()[1].Items[2].Output
			if want[1] == "" {
				if got != text {
					t.Errorf("got %d bytes, want all %d", len(got), len(text))
				}
				return
			}
			head, rest, _ := strings.Cut(got, "\n")
			note, tail, _ := strings.Cut(rest, "\n")
			left := len(text) - len(head) - len(tail)
			if said := fmt.Sprintf("[%d bytes are left out here; the whole, %d bytes, is kept under sha256 %s]", left, len(text), sum); note != said {
				t.Errorf("got the note %q, want %q", note, said)
			}
			if !utf8.ValidString(got) || len(head) > most-most/4 || len(tail) > most/4 || !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) ||
				len(head) < most-most/4-1 || len(tail) < most/4-1 {
				t.Errorf("got %q … %q, want three quarters of the bytes at the head and one at the tail", head, tail)
			}
		})
	}
}

// Only the runtime adds blob references: those in the answer of a provider or a hook are
// removed.
func TestForeignReferences(t *testing.T) { // A36
	forged := &messages.Blob{SHA256: messages.DigestOf(nil), Size: 1}
	answer := messages.Item{Type: messages.ItemMessage, Role: messages.RoleAssistant, Blob: forged, RawBlob: forged,
		Content: messages.Content{{Type: "text", Text: "hello", Blob: forged}}}
	s := actorstest.New(t, nil)
	s.Start(config(scripted.New(scripted.Step{Items: []messages.Item{answer}}))).Must(ada, say("u1", "go"))
	for _, ev := range s.Until(ada, "turn.completed") {
		if len(messages.BlobsOf(ev)) > 0 {
			t.Errorf("got %+v, want no blob reference", ev)
		}
	}
}

// Hooks before a model call see the excerpt that the model receives; later hooks see results
// and answers in full.
func TestHooksSeeBlobs(t *testing.T) { // A62, A36
	var runs atomic.Int32
	seen := make(map[string]int)
	var mu sync.Mutex
	note := func(point string, size int) (actors.Verdict, error) {
		mu.Lock()
		defer mu.Unlock()
		seen[point] = size
		return actors.Verdict{}, nil
	}
	hook := actors.Hook{
		Name: "watch",
		BeforeModel: func(_ context.Context, _ actors.HookInfo, r providers.Request) (actors.Verdict, error) {
			last := r.Items[len(r.Items)-1]
			if last.HasBlob() {
				t.Error("got a blob reference in a hook, want text")
			}
			return note("before_model", len(last.Output))
		},
		AfterTool: func(_ context.Context, _ actors.HookInfo, _ actors.HookedCall, r actors.HookedResult) (actors.Verdict, error) {
			return note("after_tool", len(r.Output))
		},
		AfterModel: func(_ context.Context, _ actors.HookInfo, r providers.Response) (actors.Verdict, error) {
			return note("after_model", len(r.Items[0].Content.Text()))
		},
		TurnEnd: func(_ context.Context, _ actors.HookInfo, end actors.HookedEnd) (actors.Verdict, error) {
			return note("turn_end", len(end.Output))
		},
	}
	s := actorstest.New(t, nil)
	s.Start(with(config(scripted.New(scripted.Ask(call("c1", "large")), scripted.Say(many("y"))), giving("large", many("x"), &runs)),
		func(d *actors.Definition) { d.Hooks, d.ShowAtMost = []actors.Hook{hook}, 100<<10 })).Must(ada, say("u1", "go"))
	s.Until(ada, "turn.completed")
	mu.Lock()
	defer mu.Unlock()
	if n := seen["before_model"]; n < 100<<10 || n > 101<<10 || seen["after_tool"] != 256<<10 || seen["after_model"] != 256<<10 || seen["turn_end"] != 256<<10 {
		t.Errorf("got sizes %v, want an excerpt before the model and 256 KiB elsewhere", seen)
	}
}

// A missing blob fails the model call that would show it, with or without hooks. No fallback
// model is called, and no hook sees an incomplete request.
func TestBlobGone(t *testing.T) { // A29, A36
	for _, c := range []struct {
		name  string
		err   error
		kind  messages.ModelFailure
		hooks bool
	}{
		{"missing", messages.Refuse(messages.NotFound, "not here"), "blob_missing", false},
		{"damaged", messages.Refuse(messages.Damaged, "chunk 3 is not as it was"), "blob_damaged", false},
		{"missing, with hooks", messages.Refuse(messages.NotFound, "not here"), "blob_missing", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var runs, asked atomic.Int32
			var gone atomic.Bool
			gone.Store(true)
			model := scripted.New(scripted.Ask(call("c1", "large")), scripted.Say("done"))
			s := actorstest.New(t, nil)
			cfg := with(config(model, giving("large", many("x"), &runs)), func(d *actors.Definition) {
				d.Fallbacks = []string{"scripted/other"}
				if c.hooks {
					d.Hooks = []actors.Hook{{Name: "count", BeforeModel: func(context.Context, actors.HookInfo, providers.Request) (actors.Verdict, error) {
						asked.Add(1)
						return actors.Verdict{}, nil
					}}}
				}
			})
			cfg.Store.Blobs = &blobLog{Blobs: s.Store().Blobs, get: func(messages.Blob) error {
				if gone.Swap(!c.hooks && gone.Load()) { // with hooks the blob is back before the call itself reads it
					return c.err
				}
				return nil
			}}
			node := s.Start(cfg)
			node.Must(ada, say("u1", "go"))
			all := s.Until(ada, "turn.failed")
			ends(t, all)
			failed := actorstest.Of[messages.ModelFailed](all)
			if len(failed) != 1 || failed[0].Kind != c.kind || !strings.Contains(failed[0].Message, "tool.completed of call c1") ||
				count(all, "model.switched") != 0 || model.Calls() != 1 || c.hooks && asked.Load() != 1 {
				t.Errorf("got %d model calls, %d hook calls and %+v, want one failure that names the result of c1", model.Calls(), asked.Load(), failed)
			}
			gone.Store(false)
			node.Must(ada, messages.Resume{ID: "r1"})
			s.Until(ada, "turn.completed")
			if got := model.Requests()[1].Items[2].Output; got != many("x") || runs.Load() != 1 {
				t.Errorf("got %d bytes after %d runs, want the whole output after 1 run", len(got), runs.Load())
			}
		})
	}
}

// A blob store that cannot be read is a failure that is retried.
func TestBlobUnreadable(t *testing.T) { // A36, A50
	var runs, reads atomic.Int32
	model := scripted.New(scripted.Ask(call("c1", "large")), scripted.Say("done"))
	s := actorstest.New(t, nil)
	cfg := config(model, giving("large", many("x"), &runs))
	cfg.Store.Blobs = &blobLog{Blobs: s.Store().Blobs, get: func(messages.Blob) error {
		if reads.Add(1) == 1 {
			return errors.New("no connection")
		}
		return nil
	}}
	s.Start(cfg).Must(ada, say("u1", "go"))
	all := s.Until(ada, "turn.completed")
	if failed := actorstest.Of[messages.ModelFailed](all); len(failed) != 1 || failed[0].Kind != "network" || failed[0].RetryAt == nil {
		t.Errorf("got %+v, want one network failure that is retried", failed)
	}
}

// Blobs that models receive are cached: each one is read once.
func TestBlobsAreReadOnce(t *testing.T) { // A36
	var runs, reads atomic.Int32
	model := scripted.New(scripted.Ask(call("c1", "large")), scripted.Ask(call("c2", "large")), scripted.Say("done"), scripted.Say("done"))
	s := actorstest.New(t, nil)
	cfg := config(model, giving("large", many("x"), &runs))
	cfg.Store.Blobs = &blobLog{Blobs: s.Store().Blobs, get: func(messages.Blob) error { reads.Add(1); return nil }}
	node := s.Start(cfg)
	node.Must(ada, say("u1", "go"))
	s.Until(ada, "turn.completed")
	node.Must(ada, say("u2", "and?"))
	s.Until(ada, "turn.completed", 2)
	if reads.Load() != 1 || len(blobsOf(t, s, ada)) != 1 { // both results have the same bytes
		t.Errorf("got %d reads, want 1 of one blob", reads.Load())
	}
}

// The history of an agent holds references to large results, not their text.
func TestHistoryHoldsReferences(t *testing.T) { // A36
	var runs atomic.Int32
	model := scripted.New(scripted.Ask(call("c1", "large")), scripted.Say(many("y")))
	s := actorstest.New(t, nil)
	s.Start(config(model, giving("large", many("x"), &runs))).Must(ada, say("u1", many("z")))
	s.Until(ada, "turn.completed")
	var state turn.State
	for _, e := range s.Entries(ada) {
		if state.Apply(e.Frame); len(e.Bytes) > 8<<10 {
			t.Errorf("got a frame of %d bytes, want at most 8 KiB: %v", len(e.Bytes), e.Types())
		}
	}
	items := state.History.Items()
	for _, item := range items {
		if len(fmt.Sprint(item)) > 1<<10 {
			t.Errorf("got the item %.100v, want at most 1 KiB", item)
		}
	}
	if n := state.History.Size(); len(items) != 4 || n < 3*256<<10 {
		t.Errorf("got %d items of %d bytes, want 4 of at least 768 KiB", len(items), n)
	}
}
