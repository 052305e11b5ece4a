package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/cmd/internal/bench"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/projections/index"
)

const (
	// indexShards is how many shards the frames come from, and indexBatch how many agents'
	// are written at once.
	indexShards, indexBatch = 16, 2000
	// indexPage is how many rows a page has, and indexTimes how often each is asked for.
	indexPage, indexTimes = 1000, 5
)

// index measures the index of many agents on a file of its own: how fast it is built from
// frames that are decoded as those of a log, where writing those frames is not counted, and
// how long a page of each view takes, the slowest of five, as its rows would be sent.
func (w *work) index(l *bench.Lab, ctx context.Context) (err error) {
	l.Say("index: build that of %d agents", w.indexed)
	store, err := index.Open(ctx, filepath.Join(l.Folder, "index.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	row := func(figure string, value float64, unit string) bench.Row {
		return bench.Row{Figure: figure, Agents: w.indexed, Sync: "cache", Value: value, Unit: unit}
	}
	rate, err := w.build(ctx, store)
	if err != nil {
		return err
	}
	if err := l.Add(row("index built", rate, "frames/s")); err != nil {
		return err
	}
	tenant, day := messages.DefaultTenant, time.Now().Add(-24*time.Hour)
	calls := func(f projections.EffectFilter, kind string) func() iter.Seq2[index.Row, error] {
		return func() iter.Seq2[index.Row, error] {
			return store.Effects(ctx, index.Query{Tenant: tenant, Kind: kind, EffectFilter: f, Limit: indexPage})
		}
	}
	used := func(by string, since time.Time) func() iter.Seq2[index.Row, error] {
		return func() iter.Seq2[index.Row, error] {
			return store.Usage(ctx, index.UsageQuery{Tenant: tenant, Limit: indexPage, By: by, Since: since})
		}
	}
	for _, v := range []struct {
		name string
		page func() iter.Seq2[index.Row, error]
	}{
		{"approvals", func() iter.Seq2[index.Row, error] {
			return store.Approvals(ctx, index.Query{Tenant: tenant, Limit: indexPage})
		}},
		{"usage", used("model", time.Time{})},
		{"usage --by agent --since 24h", used("agent", day)},
		{"effects --kind", calls(projections.EffectFilter{}, "billing")},
		{"effects --tool --where", calls(projections.EffectFilter{Tool: "refund", Where: map[string]string{"order": "7"}}, "")},
		{"effects --where nested, twice", calls(projections.EffectFilter{Where: map[string]string{"customer.country": "DE", "customer.name": "Ann 99999"}}, "")},
		{"effects --outcome failed", calls(projections.EffectFilter{Outcome: projections.CallFailed}, "")},
	} {
		var took []time.Duration
		for range indexTimes {
			begun := time.Now()
			for row, err := range v.page() {
				if err == nil {
					_, err = json.Marshal(row.Line)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", v.name, err)
				}
			}
			took = append(took, time.Since(begun))
		}
		if err := l.Add(row(v.name, bench.Milliseconds(slices.Max(took)), "ms")); err != nil {
			return err
		}
	}
	return nil
}

// build fills the index with the frames of agents, as a node that reads its log, and returns
// how many it takes in a second.
func (w *work) build(ctx context.Context, store *index.Store) (rate float64, err error) {
	var at [indexShards]uint64
	var took time.Duration
	now, frames := time.Now().UTC(), 0
	for from := 0; from < w.indexed; from += indexBatch {
		came, shards := []index.Message{}, []int{}
		for i := from; i < min(w.indexed, from+indexBatch); i++ {
			a, list := framesOf(i, now)
			shard := int(a.Partition()) % indexShards
			for _, f := range list {
				raw, err := messages.EncodeFrame(a, f)
				if err != nil {
					return 0, err
				}
				at[shard]++
				m := index.Message{Agent: a, Seq: at[shard], Time: f.Time, Frame: func() (*messages.Frame, error) { return messages.DecodeFrame(a, raw) }}
				for _, ev := range f.Events {
					m.Types = append(m.Types, ev.EventType())
				}
				came, shards = append(came, m), append(shards, shard)
			}
		}
		begun := time.Now()
		b := store.Batch()
		for i, m := range came {
			if err := b.Add(ctx, shards[i], m); err != nil {
				return 0, err
			}
		}
		if err := b.Commit(ctx); err != nil {
			return 0, err
		}
		took += time.Since(begun)
		frames += len(came)
	}
	return float64(frames) / took.Seconds(), nil
}

// framesOf are the frames of agent i: a turn with one call of a tool. One in a
// hundred waits for approval.
func framesOf(i int, at time.Time) (a messages.AgentID, frames []*messages.Frame) {
	a = messages.AgentID{Tenant: messages.DefaultTenant, Kind: kinds[i%4], Key: fmt.Sprintf("customer-%06d", i*7919%1_000_000)}
	tool, call := []string{"refund", "lookup", "mail"}[i%3], messages.CallID(fmt.Sprintf("call_%d", i))
	arguments := fmt.Sprintf(`{"order":%d,"customer":{"name":"Ann %d","country":"DE"},"reason":"it came broken and late"}`, i%5000, i)
	first := &messages.Frame{ID: "01JZX4Q0000000000000000000", Epoch: 1, First: 1, Time: at.Add(-time.Duration(i) * time.Second), Events: []messages.Event{
		messages.AgentCreated{Agent: a.Full()}, messages.InputAccepted{Input: "u1", Disposition: messages.Started, Turn: "t3", Content: messages.TextContent(bench.UserInput)},
		messages.TurnStarted{Turn: "t3", Inputs: []string{"u1"}, MaxSteps: 20},
		messages.ModelRequested{Turn: "t3", Step: 1, Attempt: 1, Call: "m4", Model: bench.ModelName, Inputs: []string{"u1"}},
		messages.ModelCompleted{Turn: "t3", Step: 1, Call: "m4", Items: []messages.Item{{Type: messages.ItemCall, CallID: call, Name: tool, Arguments: arguments}}, Usage: messages.Usage{Input: 900, Output: 40, Cached: 512}, Cost: 1_250_000},
		messages.ToolRequested{Turn: "t3", Step: 1, Call: call, Tool: tool, Arguments: arguments},
	}}
	if i%100 == 0 {
		first.Events = append(first.Events, messages.ApprovalRequested{Turn: "t3", Call: call, Tool: tool, Arguments: arguments, ArgsHash: messages.HashArguments(arguments)},
			messages.TurnPaused{Turn: "t3", Reason: "approval", Calls: []messages.CallID{call}})
		return a, []*messages.Frame{first}
	}
	first.Events = append(first.Events, messages.ToolStarted{Turn: "t3", Call: call, Tool: tool, OnUnknown: messages.Pause, Key: a.Full() + "/t3/" + string(call), Attempt: 1})
	next := *first
	next.First = first.Last() + 1
	next.Events = []messages.Event{messages.ToolCompleted{Turn: "t3", Call: call, Output: "done: receipt 4711"}, messages.TurnCompleted{Turn: "t3", Inputs: []string{"u1"}, Output: "It is on its way.", Steps: 1}}
	return a, []*messages.Frame{first, &next}
}
