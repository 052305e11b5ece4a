package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/projections/index"
)

const (
	// indexShards is how many shards the frames come from.
	indexShards = 16
	// indexSync is the mode of a file that is a cache.
	indexSync = "cache"
)

// index measures the index of many agents: how fast it is built from frames
// that are decoded as those of a log, and how long a page of each takes.
func (l *lab) index(ctx context.Context) (err error) {
	l.say("index: build that of %d agents", l.Indexed)
	store, err := index.Open(ctx, filepath.Join(l.dir, "index.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() {
		if closed := store.Close(); err == nil {
			err = closed
		}
	}()
	agents, now := new(projections.Agents), time.Now().UTC()
	took, frames, err := l.build(ctx, store, agents, now)
	if err != nil {
		return err
	}
	if err := l.out.add(Row{Figure: "index built", Agents: l.Indexed, Sync: indexSync, Value: float64(frames) / took.Seconds(), Unit: "frames/s"}); err != nil {
		return err
	}
	l.say("index: ask for pages of each")
	return l.pages(ctx, store, agents, now)
}

// framesOf are the frames of agent i: a turn with one call of a tool. One in a
// hundred waits for approval.
func framesOf(i int, at time.Time) (a messages.AgentID, head eventlog.Summary, frames []*messages.Frame) {
	a = messages.AgentID{Tenant: messages.DefaultTenant, Kind: []string{"support", "billing", "sales", "ops"}[i%4], Key: fmt.Sprintf("customer-%06d", i*7919%1_000_000)}
	tool, call := []string{"refund", "lookup", "mail"}[i%3], messages.CallID(fmt.Sprintf("call_%d", i))
	arguments := fmt.Sprintf(`{"order":%d,"customer":{"name":"Ann %d","country":"DE"},"reason":"it came broken and late"}`, i%5000, i)
	first := []messages.Event{
		messages.AgentCreated{Agent: a.Full()}, messages.InputAccepted{Input: "u1", Disposition: messages.Started, Turn: "t3", Content: messages.TextContent(userInput)},
		messages.TurnStarted{Turn: "t3", Inputs: []string{"u1"}, MaxSteps: 20},
		messages.ModelRequested{Turn: "t3", Step: 1, Attempt: 1, Call: "m4", Model: modelName, Inputs: []string{"u1"}},
		messages.ModelCompleted{Turn: "t3", Step: 1, Call: "m4", Items: []messages.Item{{Type: messages.ItemCall, CallID: call, Name: tool, Arguments: arguments}}, Usage: messages.Usage{Input: 900, Output: 40, Cached: 512}, Cost: 1_250_000},
		messages.ToolRequested{Turn: "t3", Step: 1, Call: call, Tool: tool, Arguments: arguments},
	}
	frames = []*messages.Frame{{ID: "01JZX4Q0000000000000000000", Epoch: 1, First: 1, Time: at.Add(-time.Duration(i) * time.Second)}}
	if i%100 == 0 {
		frames[0].Events = append(first, messages.ApprovalRequested{Turn: "t3", Call: call, Tool: tool, Arguments: arguments, ArgsHash: messages.HashArguments(arguments)},
			messages.TurnPaused{Turn: "t3", Reason: "approval", Calls: []messages.CallID{call}})
		return a, eventlog.Summary{Phase: messages.PhasePaused, Turn: "t3", Waiting: 1}, frames
	}
	frames[0].Events = append(first, messages.ToolStarted{Turn: "t3", Call: call, Tool: tool, OnUnknown: messages.Pause, Key: a.Full() + "/t3/" + string(call), Attempt: 1})
	next := *frames[0]
	next.First = frames[0].Last() + 1
	next.Events = []messages.Event{messages.ToolCompleted{Turn: "t3", Call: call, Output: "done: receipt 4711"}, messages.TurnCompleted{Turn: "t3", Inputs: []string{"u1"}, Output: "It is on its way.", Steps: 1}}
	return a, eventlog.Summary{Phase: messages.PhaseIdle}, append(frames, &next)
}

// build fills the index with the frames, as a node that reads its log.
func (l *lab) build(ctx context.Context, store *index.Store, agents *projections.Agents, now time.Time) (took time.Duration, frames int, err error) {
	var at [indexShards]uint64
	for i := 0; i < l.Indexed; {
		type stored struct {
			shard int
			index.Message
		}
		var came []stored
		for ; i < l.Indexed && len(came) < 2000; i++ { // what the log has done is not counted
			a, summary, list := framesOf(i, now)
			shard := int(a.Partition()) % indexShards
			for _, f := range list {
				raw, err := messages.EncodeFrame(a, f)
				if err != nil {
					return 0, 0, err
				}
				at[shard]++
				m := index.Message{Agent: a, Seq: at[shard], Time: f.Time, Frame: func() (*messages.Frame, error) { return messages.DecodeFrame(a, raw) }}
				for _, ev := range f.Events {
					m.Types = append(m.Types, ev.EventType())
				}
				came = append(came, stored{shard, m})
				agents.Apply(projections.Agent{Agent: a, Phase: summary.Phase, Turn: summary.Turn, Waiting: summary.Waiting, Events: f.Last(), Epoch: 1, Updated: f.Time})
			}
		}
		begun := time.Now()
		b := store.Batch()
		for _, m := range came {
			if err := b.Add(ctx, m.shard, m.Message); err != nil {
				return 0, 0, err
			}
		}
		if err := b.Commit(ctx); err != nil {
			return 0, 0, err
		}
		took += time.Since(begun)
		frames += len(came)
	}
	return took, frames, nil
}

// indexPage is how many rows a page has, and indexTimes how often each is asked
// for: the slowest is told.
const indexPage, indexTimes = 1000, 5

// pages measures a page of each view.
func (l *lab) pages(ctx context.Context, store *index.Store, agents *projections.Agents, now time.Time) error {
	t, day := messages.DefaultTenant, now.Add(-24*time.Hour)
	listed := func(f projections.AgentFilter) func() (int, error) {
		f.Tenant, f.Limit = t, indexPage
		return func() (int, error) { return len(agents.List(f)), nil }
	}
	calls := func(f projections.EffectFilter, kind string) func() (int, error) {
		return func() (int, error) {
			return count(store.Effects(ctx, index.Query{Tenant: t, Kind: kind, EffectFilter: f, Limit: indexPage}))
		}
	}
	used := func(q index.UsageQuery) func() (int, error) {
		q.Tenant, q.Limit = t, indexPage
		return func() (int, error) { return count(store.Usage(ctx, q)) }
	}
	for _, v := range []struct {
		name string
		ask  func() (int, error)
	}{
		{"ls --kind --phase paused", listed(projections.AgentFilter{Kind: "support", Phase: "paused"})},
		{"ls --since 24h", listed(projections.AgentFilter{Since: day})},
		{"approvals", func() (int, error) { return count(store.Approvals(ctx, index.Query{Tenant: t, Limit: indexPage})) }},
		{"usage", used(index.UsageQuery{By: "model"})},
		{"usage --since 24h", used(index.UsageQuery{By: "kind", Since: day})},
		{"usage --by agent --since 24h", used(index.UsageQuery{By: "agent", Since: day})},
		{"effects --kind", calls(projections.EffectFilter{}, "billing")},
		{"effects --tool --where", calls(projections.EffectFilter{Tool: "refund", Where: map[string]string{"order": "7"}}, "")},
		{"effects --where nested, twice", calls(projections.EffectFilter{Where: map[string]string{"customer.country": "DE", "customer.name": "Ann 99999"}}, "")},
		{"effects --outcome failed", calls(projections.EffectFilter{Outcome: projections.CallFailed}, "")},
	} {
		var took []time.Duration
		for range indexTimes {
			begun := time.Now()
			if _, err := v.ask(); err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
			took = append(took, time.Since(begun))
		}
		if err := l.out.add(Row{Figure: v.name, Agents: l.Indexed, Sync: indexSync, Value: float64(slices.Max(took).Microseconds()) / 1000, Unit: "ms"}); err != nil {
			return err
		}
	}
	return nil
}

// count reads rows as a door does.
func count(rows iter.Seq2[index.Row, error]) (n int, err error) {
	for row, err := range rows {
		if err == nil {
			_, err = json.Marshal(row.Line)
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
