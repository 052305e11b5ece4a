package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/projections/index"
)

// readers reads the whole log whenever it is asked.
type readers struct {
	h      *house
	mu     sync.Mutex
	store  *index.Store
	lacks  []messages.Uncovered
	unread int // frames
	finds  int // frames that cannot be read, too, whenever it is asked
}

func (h *house) index() *readers {
	store, err := index.Open(h.ctx, filepath.Join(h.t.TempDir(), "index.db"), slog.New(slog.DiscardHandler))
	h.ok(err)
	h.t.Cleanup(func() { _ = store.Close() })
	h.views = &readers{h: h, store: store}
	return h.views
}

// Index reads what came.
func (r *readers) Index(ctx context.Context, of []messages.Partition, fresh bool) (*index.Store, []messages.Partition, []messages.Uncovered, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unread += r.finds
	for shard := range r.h.log.Shards() {
		b := r.store.Batch()
		for m, err := range r.h.log.ReadShard(ctx, shard, r.store.Shard(shard).Seq) {
			if err != nil {
				return nil, nil, nil, err
			}
			if m.Agent == (messages.AgentID{}) {
				break
			}
			if err := b.Add(ctx, shard, index.Message{Agent: m.Agent, Seq: m.Seq, ID: m.ID, Time: m.Time, Types: m.Types, Foreign: m.Foreign, Frame: m.Frame}); err != nil {
				return nil, nil, nil, err
			}
		}
		if b.Len() > 0 {
			if err := b.Commit(ctx); err != nil {
				return nil, nil, nil, err
			}
		}
	}
	return r.store, of, r.lacks, nil
}

// Unreadable is as the test wants it.
func (r *readers) Unreadable(string) int { return r.unread }

// Positions is of no use here.
func (r *readers) Positions(context.Context, []messages.Partition) ([]IndexPosition, error) {
	return []IndexPosition{{Partition: 0, Position: 3, End: 5, Behind: 2}}, nil
}

// tenant is the lines of a view of a tenant.
func (h *house) tenant(q messages.Query) (list []string) {
	h.t.Helper()
	for line, err := range h.client.QueryTenant(h.ctx, "default", q) {
		h.ok(err)
		list = append(list, string(line))
	}
	return list
}

// worked has an agent finish a turn with one call of a tool.
func (h *house) worked(a messages.AgentID, call, tool, arguments string) {
	h.t.Helper()
	turn := messages.TurnID("t-" + call)
	h.wrote(a, messages.PhaseIdle,
		messages.ModelRequested{Turn: turn, Step: 1, Call: messages.CallID("m-" + call), Model: "a/b"},
		messages.ModelCompleted{Turn: turn, Step: 1, Call: messages.CallID("m-" + call), Usage: messages.Usage{Input: 10}, Cost: 2},
		messages.ToolRequested{Turn: turn, Step: 1, Call: messages.CallID(call), Tool: tool, Arguments: arguments},
		messages.ToolStarted{Turn: turn, Call: messages.CallID(call), Tool: tool, OnUnknown: messages.Pause, Attempt: 1},
		messages.ToolCompleted{Turn: turn, Call: messages.CallID(call), Output: "ok"}, messages.TurnCompleted{Turn: turn})
}

func TestEffectsAndUsageOfATenant(t *testing.T) {
	h := newHouse(t, nil)
	for i := range 7 {
		h.worked(agent("default", "sales", fmt.Sprintf("s%d", i)), fmt.Sprintf("c%d", i), "refund", fmt.Sprintf(`{"order":%d,"who":{"vip":%v}}`, i%3, i%2 == 0))
	}
	h.worked(till, "c9", "look", `{}`)
	h.worked(agent("other", "sales", "x"), "c10", "refund", `{"order":1}`)
	called := func(q messages.Query) string {
		var calls []string
		for _, line := range h.tenant(q) {
			var e projections.Effect
			h.ok(json.Unmarshal([]byte(line), &e))
			calls = append(calls, string(e.ID))
		}
		return strings.Join(calls, " ")
	}
	for want, q := range map[string]messages.Query{
		"c0 c1 c2 c3 c4 c5 c6 c9": {},
		"c9":                      {Kind: "support"},
		"c1 c4":                   {Tool: "refund", Where: map[string]string{"order": "1"}},
		"c4":                      {Where: map[string]string{"order": "1", "who.vip": "true"}},
		"":                        {Outcome: "failed"},
	} {
		q.View = "effects"
		if got := called(q); got != want {
			t.Errorf("%+v: %s, want %s", q, got, want)
		}
	}
	if got := h.tenant(messages.Query{View: "usage"}); !slices.Equal(got, []string{
		`{"type":"model","model":"a/b","calls":8,"usage":{"input_tokens":80,"output_tokens":0},"cost_nanos":16}`,
		`{"type":"total","calls":8,"usage":{"input_tokens":80,"output_tokens":0},"cost_nanos":16}`}) {
		t.Errorf("usage %s", got)
	}
	if got := h.tenant(messages.Query{View: "usage", By: "agent", Kind: "support"}); len(got) != 2 || !strings.HasPrefix(got[0], `{"type":"agent","agent":"support/till","calls":1,`) {
		t.Errorf("usage by agent %s", got)
	}
	var positions []string
	for line, err := range h.client.QueryStore(h.ctx, messages.Query{View: "index"}) {
		h.ok(err)
		positions = append(positions, string(line))
	}
	if len(positions) != 1 || !strings.HasPrefix(positions[0], `{"node":"n1",`) {
		t.Errorf("views %s", positions)
	}
}

// Rows that come while pages are read neither hide others nor show them twice.
func TestPagesDoNotShift(t *testing.T) {
	h := newHouse(t, nil)
	name := func(i int) messages.AgentID { return agent("default", "sales", fmt.Sprintf("k%04d", i)) }
	const agents = defaultLimit + 200 // two pages
	for i := range agents {
		h.wrote(name(2*i+1), messages.PhasePaused, messages.ToolRequested{Turn: "t2", Call: "c", Tool: "refund", Arguments: `{}`}, gated("c", `{}`))
	}
	for _, view := range []string{"agents", "approvals", "effects"} {
		seen := make(map[string]int)
		for line, err := range h.client.QueryTenant(h.ctx, "default", messages.Query{View: view}) {
			h.ok(err)
			var row struct{ Agent messages.AgentID }
			h.ok(json.Unmarshal(line, &row))
			if seen[row.Agent.Key]++; len(seen) == 10 { // before what was seen
				h.wrote(agent("default", "sales", "a-"+view), messages.PhasePaused, messages.ToolRequested{Turn: "t2", Call: "c", Tool: "refund", Arguments: `{}`}, gated("c", `{}`))
				h.wrote(name(1), messages.PhaseIdle, messages.ApprovalGranted{Turn: "t2", Call: "c"}, messages.ToolStarted{Turn: "t2", Call: "c", Attempt: 1})
			}
		}
		for i := range agents {
			if n := seen[name(2*i+1).Key]; n != 1 && !(view == "approvals" && i == 0) {
				t.Fatalf("%s: %s was told %d times", view, name(2*i+1), n)
			}
		}
	}
}

// A page of large rows ends before a slow reader would have to hold all of them.
func TestPagesOfLargeRows(t *testing.T) {
	h := newHouse(t, nil)
	const calls, size = 40, 300 << 10
	for i := range calls {
		h.wrote(till, messages.PhaseRunning, messages.ToolRequested{Turn: "t", Call: messages.CallID(fmt.Sprint("c", i)), Tool: "write", Arguments: `{"text":"` + strings.Repeat("x", size) + `"}`})
	}
	sub, err := h.nc.SubscribeSync(h.nc.NewInbox())
	h.ok(err)
	h.ok(h.nc.PublishRequest(h.g.Subjects.TenantQuery("default"), sub.Subject, []byte(`{"view":"effects"}`)))
	page := 0
	for {
		m, err := sub.NextMsgWithContext(h.ctx)
		h.ok(err)
		if len(m.Data) == 0 {
			if m.Header.Get(messages.HeaderCursor) == "" {
				t.Errorf("no page follows one of %d bytes: %v", page, m.Header)
			}
			break
		}
		page += len(m.Data)
	}
	if page > pageSize+2*size {
		t.Errorf("a page has %d bytes", page)
	}
	if all := h.tenant(messages.Query{View: "effects"}); len(all) != calls {
		t.Errorf("%d calls on all pages, want %d", len(all), calls)
	}
}

// A view goes through a server that takes less than a message of ours.
func TestViewsOnASmallServer(t *testing.T) {
	h := newHouseOn(t, nil, embedded.Config{MaxPayload: 40 << 10})
	long := strings.Repeat("x", 100<<10)
	h.wrote(till, messages.PhaseIdle, messages.ToolRequested{Turn: "t", Call: "c", Tool: "write", Arguments: long})
	if all := h.tenant(messages.Query{View: "effects"}); len(all) != 1 || !strings.Contains(all[0], long) {
		t.Errorf("%d effects of the tenant", len(all))
	}
	if all := h.view("events"); len(all) != 1 || !strings.Contains(all[0], long) {
		t.Errorf("%d events", len(all))
	}
}

// paths is a filter of so many paths.
func paths(n int) map[string]string {
	where := make(map[string]string)
	for i := range n {
		where[fmt.Sprintf("p%d", i)] = "x"
	}
	return where
}

func TestFiltersOfATenantAreChecked(t *testing.T) {
	h := newHouse(t, nil)
	h.worked(till, "c1", "look", `{}`)
	day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for want, q := range map[string]messages.Query{
		`outcome "done": write requested, waiting`:                                               {View: "effects", Outcome: "done"},
		`phase "busy": write idle, running, paused or deleted`:                                   {View: "agents", Phase: "busy"},
		`last "aborted": write failed`:                                                           {View: "agents", Last: "aborted"},
		`by "week": write agent, kind, model, day or hour`:                                       {View: "usage", By: "week"},
		`view agents takes kind, phase, last, since, deleted or cursor: tool is not among them`:  {View: "agents", Tool: "x"},
		`view "index": a tenant has the views agents, approvals, usage, effects, find and dlq`:   {View: "index"}, // it covers all tenants
		`kind "a b" has ' ' at byte 1`:                                                           {View: "usage", Kind: "a b"},
		`since 2026-01-02T00:00:00Z is not before until 2026-01-02T00:00:00Z`:                    {View: "effects", Since: day, Until: day},
		`write one between the years 1970 and 2200`:                                              {View: "effects", Since: day.AddDate(900, 0, 0)},
		`where names no path`:                                                                    {View: "effects", Where: map[string]string{"": "x"}},
		`where names 101 paths: a view takes at most 100`:                                        {View: "effects", Where: paths(101)},
		`cursor "x": this view did not return it`:                                                {View: "agents", Cursor: "x"},
		`cursor "y": this view did not return it`:                                                {View: "approvals", Cursor: "y"},
		`cursor "other/a/b": this view did not return it`:                                        {View: "agents", Cursor: "other/a/b"},
		`view "nothing": a tenant has the views agents, approvals, usage, effects, find and dlq`: {View: "nothing"},
	} {
		for _, err := range h.client.QueryTenant(h.ctx, "default", q) {
			if e := messages.AsError(err); e == nil || e.Code != messages.BadInput && e.Code != messages.BadAddress || !strings.Contains(e.Message, want) {
				t.Errorf("%+v: %v, want %s", q, err, want)
			}
		}
	}
	for _, q := range []messages.Query{ // what a view would pass over
		{View: "effects", Kind: "x"}, {View: "history", Tool: "refund"}, {View: "show", Remembered: true}, {View: "turns", Follow: true}, {View: "state", Whole: true},
	} {
		for _, err := range h.client.Query(h.ctx, "support/till", q) {
			if e := messages.AsError(err); e == nil || e.Code != messages.BadInput || !strings.Contains(e.Message, "not among them") {
				t.Errorf("%+v: %v", q, err)
			}
		}
	}
}

func TestAViewSaysWhatItLacks(t *testing.T) {
	h := newHouse(t, nil)
	h.worked(till, "c1", "look", `{}`)
	lacks := []messages.Uncovered{{Partition: 3, Indexed: 4100, End: 9000}}
	h.views.lacks = lacks
	for view, want := range map[string]client.Lacks{"effects": {Uncovered: lacks, Unreadable: 7}, "usage": {Uncovered: lacks, Unreadable: 7}, "approvals": {Uncovered: lacks, Unreadable: 7}, "agents": {Unreadable: 2}} {
		h.views.unread, h.views.finds = 2, 5
		var said []client.Lacks
		for _, err := range h.client.QueryTenant(h.ctx, "default", messages.Query{View: view}, func(l client.Lacks) { said = append(said, l) }) {
			h.ok(err)
		}
		if !reflect.DeepEqual(said, []client.Lacks{want}) {
			t.Errorf("%s: said %+v", view, said)
		}
	}
}

// What every view of an agent said when event n was its newest is what it says
// as of event n.
func TestViewsAsOfEveryEvent(t *testing.T) { // A80
	h := newHouse(t, nil)
	expires := tillAt.Add(time.Hour)
	story := [][]messages.Event{
		{messages.AgentCreated{Agent: "default/support/till"}, accepted("u1", messages.Started, "t3"), messages.TurnStarted{Turn: "t3", Inputs: []string{"u1"}, MaxSteps: 9}, messages.ModelRequested{Turn: "t3", Step: 1, Attempt: 1, Call: "m4", Model: "a/b", Inputs: []string{"u1"}}},
		{messages.ModelFailed{Turn: "t3", Step: 1, Attempt: 1, Call: "m4", Kind: "timeout", Usage: messages.Usage{Input: 3}}, messages.ModelRequested{Turn: "t3", Step: 1, Attempt: 2, Call: "m6", Model: "a/b"}},
		{messages.ModelCompleted{Turn: "t3", Step: 1, Call: "m6", Usage: messages.Usage{Input: 20, Output: 2}, Cost: 5, Items: []messages.Item{{Type: messages.ItemCall, CallID: "a", Name: "refund", Arguments: "{}"}, {Type: messages.ItemCall, CallID: "b", Name: "look", Arguments: "{}"}}},
			messages.ToolRequested{Turn: "t3", Step: 1, Call: "a", Tool: "refund", Arguments: "{}"}, messages.ToolRequested{Turn: "t3", Step: 1, Call: "b", Tool: "look", Arguments: "{}"},
			messages.ApprovalRequested{Turn: "t3", Call: "a", Tool: "refund", Arguments: "{}", ArgsHash: messages.HashArguments("{}"), ExpiresAt: &expires}, messages.ToolStarted{Turn: "t3", Call: "b", Tool: "look", OnUnknown: messages.ReadOnly, Attempt: 1}},
		{messages.ToolFailed{Turn: "t3", Call: "b", Kind: "panic", Message: "it broke"}, messages.TurnPaused{Turn: "t3", Reason: "approval", Calls: []messages.CallID{"a"}}},
		{accepted("u2", messages.Queued, "")}, {accepted("u3", messages.Steered, "t3")},
		{messages.StatePatched{Patch: json.RawMessage(`{"a":{"b":1}}`)}},
		{messages.ApprovalGranted{Turn: "t3", Call: "a", Tool: "refund", By: "decision", Remember: true}, messages.TurnResumed{Turn: "t3"}, messages.ToolStarted{Turn: "t3", Call: "a", Tool: "refund", OnUnknown: messages.Pause, Attempt: 1}},
		{messages.ToolUnknown{Turn: "t3", Call: "a", Reason: "lost"}, messages.TurnPaused{Turn: "t3", Reason: "tool_unknown", Calls: []messages.CallID{"a"}}},
		{messages.ToolCompleted{Turn: "t3", Call: "a", Output: "paid", By: "decision"}, messages.ModelRequested{Turn: "t3", Step: 2, Attempt: 1, Call: "m25", Model: "a/b", Inputs: []string{"u3"}}},
		{messages.TurnAborted{Turn: "t3", Inputs: []string{"u1", "u3"}, By: "interrupt", Note: "stopped"}, messages.TurnStarted{Turn: "t27", Inputs: []string{"u2"}}},
		{messages.StatePatched{Patch: json.RawMessage(`{"a":{"b":null,"c":[1,2]}}`)}},
		{messages.TurnFailed{Turn: "t27", Inputs: []string{"u2"}, Reason: "model", Message: "no"}},
		{messages.AgentCleared{}}, {accepted("u4", messages.Started, "t31"), messages.TurnStarted{Turn: "t31", Inputs: []string{"u4"}}, messages.TurnCompleted{Turn: "t31", Inputs: []string{"u4"}, Output: "bye"}},
	}
	all := func(at messages.EventNumber) map[string]string {
		said := make(map[string]string)
		for _, q := range []messages.Query{{View: "history"}, {View: "state"}, {View: "turns"}, {View: "usage"}, {View: "approvals"}, {View: "approvals", Remembered: true}, {View: "effects"}, {View: "show"}, {View: "replay"}} {
			q.At = at
			var lines []string
			for line, err := range h.client.Query(h.ctx, "support/till", q) {
				h.ok(err)
				lines = append(lines, string(line))
			}
			said[fmt.Sprint(q.View, q.Remembered)] = strings.Join(lines, "\n")
		}
		return said
	}
	live := make(map[messages.EventNumber]map[string]string)
	last, events := messages.EventNumber(0), 0
	for _, frame := range story {
		for _, ev := range frame { // a frame each, so that each event is the newest once
			last = h.wrote(till, messages.PhaseRunning, ev)
			live[last] = all(0)
			events++
		}
	}
	changes := make(map[string]int)
	for n := messages.EventNumber(1); n <= last; n++ {
		for view, said := range all(n) {
			if said != live[n][view] {
				t.Errorf("%s as of event %d says\n%s\nit said\n%s", view, n, said, live[n][view])
			}
			if said != live[n-1][view] {
				changes[view]++
			}
		}
	}
	if len(live) != events || len(changes) != 9 || slices.Min(slices.Collect(maps.Values(changes))) < 2 {
		t.Errorf("%d events, changes %v", len(live), changes)
	}
	for _, view := range []string{"history", "state", "turns", "usage", "approvals", "effects", "show", "replay"} {
		for _, err := range h.client.Query(h.ctx, "support/till", messages.Query{View: view, At: last + 1}) {
			if err == nil && view == "replay" {
				continue // it has yielded what there is
			}
			if e := messages.AsError(err); e == nil || e.Code != messages.NotFound || !strings.Contains(e.Message, fmt.Sprintf("has %d events: there is no event %d", last, last+1)) {
				t.Errorf("%s as of what is not yet: %v", view, err)
			}
		}
	}
}
