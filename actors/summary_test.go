package actors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// summarizes returns a model that echoes its input, and answers a request for a summary with
// summary.
func summarizes(summary func(r providers.Request) scripted.Step) *scripted.Model {
	return scripted.Func(func(r providers.Request) scripted.Step {
		if r.Instructions == actors.SummaryInstructions {
			return summary(r)
		}
		return scripted.Say("heard " + r.Items[len(r.Items)-1].Content.Text())
	})
}

func compacts(cfg actors.Config, c actors.Compaction) actors.Config {
	return with(cfg, func(d *actors.Definition) { d.Compact = c })
}

// seen returns the items that a model would be given after these events.
func seen(all []messages.Event) string {
	var h projections.History
	for i, ev := range all {
		h.Apply(messages.EventNumber(i+1), ev)
	}
	return strings.Join(brief(providers.Request{Items: h.Items()}), "; ")
}

// A model call that would be too large waits for a summary, which another model makes. The
// history before it can still be read as it was.
func TestSummaryBeforeALargeCall(t *testing.T) { // A80, A86
	model := summarizes(func(providers.Request) scripted.Step {
		return scripted.Step{Text: "they talk about one and two", Usage: messages.Usage{Input: 40, Output: 7}}
	})
	s := actorstest.New(t, nil)
	cfg := with(config(model), func(d *actors.Definition) {
		d.Settings = providers.Settings{Verbosity: "low", HostedTools: []json.RawMessage{json.RawMessage(`{"type":"web_search"}`)}}
	})
	node := s.Start(compacts(cfg, actors.Compaction{AtTokens: 20, Keep: 1, Model: "scripted/small"}))
	for i, text := range []string{"one", "two", "three, which is a longer text than those that were said before it"} {
		node.Must(ada, say(fmt.Sprint("u", i), text))
		s.Until(ada, "turn.completed", i+1)
	}
	all := s.Events(ada)
	ends(t, all)
	requests := model.Requests()
	if got := requests[2].Settings; got.HostedTools != nil || got.Verbosity != "low" {
		t.Errorf("got settings %+v of the summary, want no hosted tools and verbosity low", got)
	}
	wantItems(t, requests[2], "user This is the conversation to shorten.\n\nuser: one\n\nassistant: heard one\n\nuser: two\n\nassistant: heard two\n")
	if requests[2].Model != "small" || len(requests) != 4 {
		t.Errorf("got %d requests, the third to model %q, want 4 and small", len(requests), requests[2].Model)
	}
	wantItems(t, requests[3], "developer they talk about one and two", "user three, which is a longer text than those that were said before it")
	done := actorstest.Of[messages.HistoryCompacted](all)
	if len(done) != 1 || done[0].Dropped != 4 || done[0].How != messages.CompactSummary || done[0].Usage.Input != 40 {
		t.Errorf("got %+v, want one summary of 4 items", done)
	}
	if was := seen(all[:done[0].Upto+1]); !strings.HasPrefix(was, "user one; assistant heard one; user two; assistant heard two") {
		t.Errorf("before the summary: got history %s, want all of it", was)
	}
}

// An input runs while a summary is made that a person asked for. If another compaction is
// applied meanwhile, the summary is made again.
func TestSummaryAndCompetingFacts(t *testing.T) { // A86
	gate := scripted.NewGate()
	var made atomic.Int32
	model := summarizes(func(providers.Request) scripted.Step {
		if made.Add(1) == 1 {
			return scripted.Held(gate, scripted.Say("the first"))
		}
		return scripted.Say("the second")
	})
	s := actorstest.New(t, nil)
	node := s.Start(config(model))
	talk := func(n int) {
		node.Must(ada, say(fmt.Sprint("u", n), fmt.Sprint(n)))
		s.Until(ada, "turn.completed", n)
	}
	for n := range 4 {
		talk(n + 1)
	}
	node.Must(ada, messages.Compact{ID: "k1", Keep: 2, Reason: "tidy up"})
	<-gate.Reached()
	talk(5)
	wantCode(t, node.Do(ada, messages.Compact{ID: "k2", Keep: 2}), messages.Busy)
	node.Must(ada, messages.Compact{ID: "k3", Keep: 6, How: messages.CompactWindow})
	gate.Release()
	all := s.Until(ada, "history.compacted", 2)
	failed := actorstest.Of[messages.CompactionFailed](all)
	if len(failed) != 1 || failed[0].Kind != "changed" || made.Load() != 2 {
		t.Errorf("got failures %+v after %d summaries, want one of kind changed after 2", failed, made.Load())
	}
	if now := seen(all); now != "developer the second; user 5; assistant heard 5" {
		t.Errorf("got history %s, want the second summary", now)
	}
	if texts := actorstest.Of[messages.InputAccepted](all); len(texts) != 5 {
		t.Errorf("got %d inputs, want 5", len(texts))
	}
}

// A summary that fails is retried with growing pauses if its error is temporary or it has no
// text. In the end a line that items were left out takes its place.
func TestSummaryThatFails(t *testing.T) { // A86, A102
	passing := &providers.Error{Kind: providers.Network, Message: "gone", Temporary: true}
	for name, tc := range map[string]struct {
		step  func() scripted.Step
		tries int
	}{
		"passing":   {func() scripted.Step { return scripted.Fail(passing) }, 3},
		"permanent": {func() scripted.Step { return scripted.Fail(errors.New("no such model")) }, 1},
		"no text":   {func() scripted.Step { return scripted.Say(" ") }, 3},
		"cut off":   {func() scripted.Step { return scripted.Step{Text: "the number is", Finish: messages.FinishLength} }, 1},
		"filtered":  {func() scripted.Step { return scripted.Step{Text: "the", Finish: messages.FinishFilter} }, 1},
		"declined":  {func() scripted.Step { return scripted.Step{Text: "well", Refusal: "I cannot"} }, 1},
		"a panic":   {func() scripted.Step { panic("a model that fails") }, 1},
		"third try": {nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				model := summarizes(func(providers.Request) scripted.Step {
					if tries++; tc.step == nil {
						return [...]scripted.Step{scripted.Fail(passing), scripted.Fail(passing), scripted.Say("at last")}[tries-1]
					}
					return tc.step()
				})
				s := actorstest.New(t, nil)
				node := s.Start(config(model))
				defer end(node)
				for n := range 2 {
					node.Must(ada, say(fmt.Sprint("u", n), "hello"))
					s.Until(ada, "turn.completed", n+1)
				}
				began := time.Now()
				node.Must(ada, messages.Compact{ID: "k", Keep: 2})
				all := s.Until(ada, "history.compacted")
				want := "developer Earlier parts of this conversation, 2 items, are left out here."
				if tc.step == nil {
					want = "developer at last"
				}
				if !strings.HasPrefix(seen(all), want) || tries != tc.tries || tc.tries > 1 && time.Since(began) < 700*time.Millisecond {
					t.Errorf("got history %s after %d tries and %s, want %s after %d", seen(all), tries, time.Since(began), want, tc.tries)
				}
			})
		})
	}
}

// A summary without a report of its usage, or one that broke off, is charged its estimate.
func TestSummaryOfUnknownUsage(t *testing.T) { // A52, A86
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		model := summarizes(func(providers.Request) scripted.Step {
			if tries++; tries == 1 {
				return scripted.Step{Text: "they ta", Err: &providers.Error{Kind: providers.Network, Message: "gone", Temporary: true}}
			}
			return scripted.Say("they talk")
		})
		s := actorstest.New(t, nil)
		node := s.Start(with(config(model), func(d *actors.Definition) { d.AgentLimits.MaxTokens = 10_000 }))
		defer end(node)
		for n := range 2 {
			node.Must(ada, say(fmt.Sprint("u", n), "hello"))
			s.Until(ada, "turn.completed", n+1)
		}
		node.Must(ada, messages.Compact{ID: "k", Keep: 2})
		all := s.Until(ada, "history.compacted")
		failed, done := actorstest.Of[messages.CompactionFailed](all), actorstest.Of[messages.HistoryCompacted](all)
		if len(failed) != 1 || !failed[0].Unknown || failed[0].Tokens == 0 || !done[0].Unknown || done[0].Tokens != failed[0].Tokens {
			t.Errorf("got failed %+v, done %+v, want the same unknown usage in both", failed, done)
		}
	})
}

// A summary of a summary is made from all of it.
func TestSummaryOfALongSummary(t *testing.T) { // A86
	long := strings.Repeat("what was said ", 1500) + "at last"
	model := summarizes(func(providers.Request) scripted.Step { return scripted.Say(long) })
	s := actorstest.New(t, nil)
	node := s.Start(config(model))
	for n := range 3 {
		node.Must(ada, say(fmt.Sprint("u", n), "hello"))
		s.Until(ada, "turn.completed", n+1)
		if n > 0 {
			node.Must(ada, messages.Compact{ID: fmt.Sprint("k", n), Keep: 2})
			s.Until(ada, "history.compacted", n)
		}
	}
	requests := model.Requests()
	if got := requests[len(requests)-1].Items[0].Content.Text(); !strings.Contains(got, "note: "+long+"\n") {
		t.Errorf("got a request of %d bytes, want the first summary of %d in it", len(got), len(long))
	}
}

// A text that is stored as a blob is summarized from its beginning and end.
func TestSummaryOfABlob(t *testing.T) { // A36, A86
	model := summarizes(func(providers.Request) scripted.Step { return scripted.Say("it is long") })
	s := actorstest.New(t, nil)
	node := s.Start(config(model))
	node.Must(ada, say("u1", "in the beginning "+many("x")+" and in the end"))
	s.Until(ada, "turn.completed")
	node.Must(ada, say("u2", "and now?"))
	s.Until(ada, "turn.completed", 2)
	node.Must(ada, messages.Compact{ID: "k", Keep: 2})
	s.Until(ada, "history.compacted")
	requests := model.Requests()
	got := requests[len(requests)-1].Items[0].Content.Text()
	if !strings.Contains(got, "user: in the beginning") || !strings.Contains(got, " and in the end\n") || len(got) > 2*projections.MaxSummarized+300 {
		t.Errorf("got %d bytes that end with %q, want the beginning and the end", len(got), got[max(0, len(got)-300):])
	}
}

// A summary is made of texts. Images are not read for it, so that a missing one does not
// prevent it.
func TestSummaryWithoutImages(t *testing.T) { // A36, A86
	model := summarizes(func(providers.Request) scripted.Step { return scripted.Say("they look at a picture") })
	s := actorstest.New(t, nil)
	cfg, gone := config(model), false
	cfg.Store.Blobs = &blobLog{Blobs: s.Store().Blobs, get: func(messages.Blob) error {
		if gone {
			return messages.Refuse(messages.NotFound, "it is not here")
		}
		return nil
	}}
	node := s.Start(cfg)
	node.Must(ada, messages.Input{ID: "u1", Content: messages.Content{
		{Type: "text", Text: "what is this?"}, {Type: "image_url", ImageURL: "data:image/png;base64," + many("iVBOR")},
	}})
	s.Until(ada, "turn.completed")
	node.Must(ada, say("u2", "and now?"))
	s.Until(ada, "turn.completed", 2)
	node.Stop()
	gone = true
	s.Start(cfg).Must(ada, messages.Compact{ID: "k", Keep: 2})
	all := s.Until(ada, "history.compacted")
	if done := actorstest.Of[messages.HistoryCompacted](all); len(blobsOf(t, s, ada)) != 1 || done[0].Text != "they look at a picture" {
		t.Errorf("got %+v, want a summary, and one blob", done)
	}
	requests := model.Requests()
	wantItems(t, requests[len(requests)-1], "user This is the conversation to shorten.\n\nuser: what is this?\n\nassistant: heard what is this?\n")
}

// An interrupt of a turn that waits for a summary cancels the summary. A summary that is lost
// in a crash is made again.
func TestSummaryStopsAndRestarts(t *testing.T) { // A22, A86
	begun, stopped := make(chan struct{}), make(chan struct{})
	hang := true
	model := providerFunc(func(ctx context.Context, r providers.Request) (providers.Response, error) {
		if r.Instructions != actors.SummaryInstructions {
			return providers.Response{Items: []messages.Item{messages.Text(messages.RoleAssistant, "yes")}}, nil
		}
		if hang {
			begun <- struct{}{}
			<-ctx.Done()
			stopped <- struct{}{}
			return providers.Response{}, ctx.Err()
		}
		return providers.Response{Items: []messages.Item{messages.Text(messages.RoleAssistant, "in short")}}, nil
	})
	cfg := compacts(config(model), actors.Compaction{AtTokens: 10, Keep: 1})
	s := actorstest.New(t, nil)
	node := s.Start(cfg)
	node.Must(ada, say("u1", "a text that is long enough to be a large part of it all"))
	s.Until(ada, "turn.completed")
	node.Must(ada, say("u2", "and another one"))
	s.Until(ada, "compaction.requested")
	<-begun
	node.Must(ada, messages.Interrupt{ID: "i"})
	<-stopped
	node.Must(ada, say("u3", "and a third one"))
	s.Until(ada, "compaction.requested", 2)
	<-begun
	go node.Crash()
	<-stopped
	hang = false
	node = s.Start(cfg)
	node.Activate(ada)
	all := s.Until(ada, "turn.completed", 2)
	ends(t, all)
	failed := actorstest.Of[messages.CompactionFailed](all)
	if len(failed) != 2 || failed[0].Kind != "interrupted" || failed[1].Kind != "restarted" {
		t.Errorf("got failures %+v, want interrupted and restarted", failed)
	}
	if now := seen(all); !strings.HasPrefix(now, "developer in short; user and a third one; assistant yes") {
		t.Errorf("got history %s, want the summary first", now)
	}
}

// providerFunc is a provider without deltas.
type providerFunc func(ctx context.Context, r providers.Request) (providers.Response, error)

// Generate calls f.
func (f providerFunc) Generate(ctx context.Context, r providers.Request, _ func(providers.Delta)) (providers.Response, error) {
	return f(ctx, r)
}

// The history of a turn of many steps stays within its limit.
func TestLongTurnIsCompacted(t *testing.T) { // A86
	largest, steps := 0, 0
	model := scripted.Func(func(r providers.Request) scripted.Step {
		size := 0
		for _, item := range r.Items {
			size += len(item.Content.Text()) + len(item.Output) + len(item.Arguments)
		}
		largest = max(largest, size)
		if r.Items[len(r.Items)-1].Type != messages.ItemCallOutput && steps > 0 || r.Items[0].Content.Text() != "count" && r.Items[1].Content.Text() != "count" {
			t.Errorf("got items %v, want the input first and a result last", brief(r))
		}
		if steps++; steps == 60 {
			return scripted.Say("done")
		}
		return scripted.Ask(call(fmt.Sprint("c", steps), "tell"))
	})
	tell := toolOf("tell", tool.ReadOnly, func(context.Context) (string, error) { return strings.Repeat("x", 100), nil })
	s := actorstest.New(t, nil)
	node := s.Start(with(compacts(config(model, tell), actors.Compaction{AtTokens: 300, Keep: 4, How: messages.CompactWindow}),
		func(d *actors.Definition) { d.MaxSteps = 100 }))
	node.Must(ada, say("u1", "count"))
	all := s.Until(ada, "turn.completed")
	if n := count(all, "history.compacted"); largest > 1300 || n < 5 || n > 30 {
		t.Errorf("got at most %d bytes and %d compactions, want 1300 and 5 to 30", largest, n)
	}
}

func TestCompactionIsChecked(t *testing.T) { // A102
	for want, c := range map[string]actors.Compaction{
		"must not be negative":    {AtTokens: -1},
		"write summary or window": {How: "zip"},
		"compact":                 {Model: "nobody/x"},
	} {
		d := actors.Definition{Kind: "k", Model: "scripted/m", Compact: c}
		if err := d.Validate(providers.Set{"scripted": scripted.New()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got error %v, want %q", c, err, want)
		}
	}
}
