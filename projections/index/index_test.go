package index

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

var begun = time.Date(2026, 1, 2, 3, 59, 0, 0, time.UTC)

// world is a log in memory, of several shards.
type world struct {
	rand   *rand.Rand
	shards [3][]Message
	frames map[messages.AgentID][]*messages.Frame
	clock  int
}

func newWorld(seed uint64) *world {
	return &world{rand: rand.New(rand.NewPCG(seed, 7)), frames: make(map[messages.AgentID][]*messages.Frame)}
}

func agentID(i int) messages.AgentID {
	return messages.AgentID{Tenant: []string{"default", "acme"}[i%2], Kind: []string{"support", "billing", "ops"}[i%3], Key: fmt.Sprintf("k%03d", i)}
}

// say appends a frame to an agent's log.
func (w *world) say(a messages.AgentID, events ...messages.Event) {
	shard := &w.shards[int(a.Partition())%len(w.shards)]
	past := w.frames[a]
	f := &messages.Frame{First: 1, Events: events, Time: begun.Add(time.Duration(w.clock) * time.Second)}
	w.clock++
	if len(past) > 0 {
		f.First = past[len(past)-1].Last() + 1
	}
	w.frames[a] = append(past, f)
	m := Message{Agent: a, Seq: uint64(1 + 2*len(*shard)), Time: f.Time, Frame: func() (*messages.Frame, error) { return f, nil }}
	for _, ev := range events {
		m.Types = append(m.Types, ev.EventType())
	}
	*shard = append(*shard, m)
}

// turn has an agent live through one turn of some kind.
func (w *world) turn(a messages.AgentID) {
	n := len(w.frames[a]) + 1
	turn, model, call := messages.TurnID(fmt.Sprintf("t%d", n)), messages.CallID(fmt.Sprintf("m%d", n)), messages.CallID(fmt.Sprintf("c%d", n))
	asked := messages.ModelRequested{Turn: turn, Step: 1, Attempt: 1, Call: model, Model: "demo/" + []string{"a", "b"}[w.rand.IntN(2)]}
	w.say(a, messages.InputAccepted{Input: string(turn)}, messages.TurnStarted{Turn: turn}, asked)
	usage := messages.Usage{Input: 10 + w.rand.IntN(90), Output: w.rand.IntN(50), Cached: 3, Reasoning: 1}
	w.summary(a, turn, usage)
	switch w.rand.IntN(6) {
	case 0:
		w.say(a, messages.ModelFailed{Turn: turn, Step: 1, Call: model, Kind: "timeout", Usage: usage, Cost: 7}, messages.TurnFailed{Turn: turn, Reason: "model"})
		return
	case 1:
		w.say(a, messages.TurnAborted{Turn: turn, By: "abort"}) // its answer is lost
		return
	}
	tool := []string{"look", "refund"}[w.rand.IntN(2)]
	arguments := fmt.Sprintf(`{"order":%d,"who":{"vip":%v}}`, w.rand.IntN(9), w.rand.IntN(2) == 0)
	requested := messages.ToolRequested{Turn: turn, Step: 1, Call: call, Tool: tool, Arguments: arguments}
	completed := messages.ModelCompleted{Turn: turn, Step: 1, Call: model, Model: asked.Model + "-1", Usage: usage, Cost: 1e9 + 3}
	if tool == "refund" {
		w.say(a, completed, requested, messages.ApprovalRequested{Turn: turn, Call: call, Tool: tool, Arguments: arguments, ArgsHash: messages.HashArguments(arguments)}, messages.TurnPaused{Turn: turn, Reason: "approval"})
		if w.rand.IntN(2) == 0 {
			return // it waits
		}
		w.say(a, messages.ApprovalGranted{Turn: turn, Call: call, Tool: tool, By: "decision"}, messages.ToolStarted{Turn: turn, Call: call, Tool: tool, OnUnknown: messages.Pause, Attempt: 1})
	} else {
		w.say(a, completed, requested, messages.ToolStarted{Turn: turn, Call: call, Tool: tool, OnUnknown: messages.ReadOnly, Attempt: 1})
	}
	w.say(a, messages.ToolCompleted{Turn: turn, Call: call, Output: "ok"}, messages.TurnCompleted{Turn: turn})
}

// summary has the agent's history compacted now and then, or not: a summary uses
// what it uses.
func (w *world) summary(a messages.AgentID, turn messages.TurnID, usage messages.Usage) {
	call := messages.CallID("s" + string(turn))
	waits := []messages.TurnID{"", turn}[w.rand.IntN(2)]
	switch w.rand.IntN(9) {
	case 0:
		w.say(a, messages.CompactionRequested{Turn: waits, Call: call, Model: "demo/s"})
		w.say(a, messages.CompactionFailed{Turn: waits, Call: call, Kind: "network", Usage: usage, Cost: 11})
	case 1:
		w.say(a, messages.CompactionRequested{Turn: waits, Call: call, Model: "demo/s"})
		w.say(a, messages.HistoryCompacted{Turn: waits, Call: call, Model: "demo/s", How: messages.CompactSummary, Usage: usage, Cost: 13})
	case 2:
		w.say(a, messages.CompactionRequested{Turn: waits, Call: call, Model: "demo/s"}) // it is lost
		w.say(a, messages.CompactionFailed{Turn: waits, Call: call, Kind: "restarted", Unknown: true, Tokens: 5})
	}
}

// live has many agents live through many turns, in one another's way.
func (w *world) live(agents, turns int) {
	for range turns {
		w.turn(agentID(w.rand.IntN(agents)))
	}
}

func (w *world) apply(t testing.TB, s *Store, most int) {
	t.Helper()
	for shard, log := range w.shards {
		b := s.Batch()
		for _, m := range log {
			if m.Seq <= s.Shard(shard).Seq {
				continue
			}
			if err := b.Add(t.Context(), shard, m); err != nil {
				t.Fatal(err)
			}
			if b.Len() == most {
				if err := b.Commit(t.Context()); err != nil {
					t.Fatal(err)
				}
				b = s.Batch()
			}
		}
		if b.Len() > 0 {
			if err := b.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func open(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func file(t testing.TB) string { return filepath.Join(t.TempDir(), "50% of #1?.db") }

// lines is an answer, read in pages of a size.
func lines(t testing.TB, page int, ask func(after string, limit int) func(func(Row, error) bool)) (all []string) {
	t.Helper()
	after := ""
	for {
		given := 0
		for row, err := range ask(after, page) {
			if err != nil {
				t.Fatal(err)
			}
			b, err := json.Marshal(row.Line)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(b))
			if row.Cursor != "" {
				given, after = given+1, row.Cursor
			}
		}
		if page == 0 || given < page {
			return all
		}
	}
}

// answers is everything the file says.
func answers(t testing.TB, s *Store, page int) string {
	t.Helper()
	var all []string
	for _, tenant := range []string{"default", "acme"} {
		all = append(all, lines(t, page, func(after string, limit int) func(func(Row, error) bool) {
			return s.Effects(t.Context(), Query{Tenant: tenant, After: after, Limit: limit})
		})...)
		all = append(all, lines(t, page, func(after string, limit int) func(func(Row, error) bool) {
			return s.Approvals(t.Context(), Query{Tenant: tenant, After: after, Limit: limit})
		})...)
		for _, by := range By {
			all = append(all, lines(t, page, func(after string, limit int) func(func(Row, error) bool) {
				return s.Usage(t.Context(), UsageQuery{Tenant: tenant, By: by, After: after, Limit: limit})
			})...)
		}
	}
	return strings.Join(all, "\n")
}

// effects are what the folds of each agent say, as the file must.
func (w *world) effects(tenant string) (list []projections.Effect) {
	for a, frames := range w.frames {
		var e projections.Effects
		for _, f := range frames {
			projections.Fold(f, 0, &e)
		}
		if a.Tenant == tenant {
			list = append(list, e.List(a)...)
		}
	}
	slices.SortFunc(list, func(a, b projections.Effect) int { return a.At.Compare(b.At) }) // no two at the same time
	return list
}

func TestStoreSaysWhatTheFoldsSay(t *testing.T) { // A52, A87
	w := newWorld(1)
	w.live(40, 400)
	s := open(t, file(t))
	w.apply(t, s, 7)
	for _, tenant := range []string{"default", "acme"} {
		var want, waiting []string
		for _, e := range w.effects(tenant) {
			b, _ := json.Marshal(e)
			want = append(want, string(b))
			if approval, waits := e.AsApproval(); waits {
				b, _ := json.Marshal(approval)
				waiting = append(waiting, string(b))
			}
		}
		got := lines(t, 0, func(string, int) func(func(Row, error) bool) { return s.Effects(t.Context(), Query{Tenant: tenant}) })
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d effects, the folds have %d", tenant, len(got), len(want))
		}
		got = lines(t, 0, func(string, int) func(func(Row, error) bool) { return s.Approvals(t.Context(), Query{Tenant: tenant}) })
		slices.Sort(waiting)
		if slices.Sort(got); !reflect.DeepEqual(got, waiting) || len(waiting) == 0 {
			t.Errorf("%s: %d approvals, the folds have %d", tenant, len(got), len(waiting))
		}
		sameUsage(t, w, s, tenant)
	}
}

// sameUsage compares the sums with those of the folds.
func sameUsage(t *testing.T, w *world, s *Store, tenant string) {
	t.Helper()
	want := UsageLine{Type: "total"}
	agents := make(map[string]UsageLine)
	for a, frames := range w.frames {
		var u projections.Usage
		for _, f := range frames {
			projections.Fold(f, 0, &u)
		}
		if a.Tenant != tenant {
			continue
		}
		l := UsageLine{Type: "agent", Agent: &a, Used: u.Total()}
		for _, c := range u.Calls() {
			want.Used = want.With(c)
			if c.Failed != "" {
				l.Failed++
				want.Failed++
			}
		}
		if l.Calls > 0 {
			agents[a.String()] = l
		}
	}
	for _, by := range By {
		total := UsageLine{Type: "total"}
		for row, err := range s.Usage(t.Context(), UsageQuery{Tenant: tenant, By: by}) {
			if err != nil {
				t.Fatal(err)
			}
			l := row.Line.(UsageLine)
			if by == "agent" && l.Type == by {
				if !reflect.DeepEqual(l, agents[l.Agent.String()]) {
					t.Errorf("%s: got %+v, want %+v", l.Agent, l, agents[l.Agent.String()])
				}
				delete(agents, l.Agent.String())
			}
			if l.Type == "total" {
				if !reflect.DeepEqual(l, want) || !reflect.DeepEqual(l, total) {
					t.Errorf("by %s: total %+v, of the folds %+v, of the lines %+v", by, l, want, total)
				}
				continue
			}
			total.Calls, total.Lost, total.Failed = total.Calls+l.Calls, total.Lost+l.Lost, total.Failed+l.Failed
			total.Usage, total.Cost = total.Usage.Add(l.Usage), total.Cost.Plus(l.Cost)
		}
	}
	if len(agents) > 0 {
		t.Errorf("without a line: %v", slices.Collect(maps.Keys(agents)))
	}
}

// Whatever the batches, however often the file is closed and a batch given up,
// and however it is asked, the answers are the same.
func TestAnyBatchesAnyPages(t *testing.T) { // A87
	w := newWorld(2)
	w.live(30, 250)
	s := open(t, file(t))
	w.apply(t, s, 100000)
	want := answers(t, s, 0)
	for _, page := range []int{1, 7, 1000} {
		if got := answers(t, s, page); got != want {
			t.Errorf("pages of %d: other answers", page)
		}
	}
	path := file(t)
	for round := range 12 {
		s := open(t, path)
		b := s.Batch() // is given up
		for shard, log := range w.shards {
			for _, m := range log {
				if m.Seq > s.Shard(shard).Seq && b.Len() < 50 {
					_ = b.Add(t.Context(), shard, m)
				}
			}
		}
		b = s.Batch()
		for shard, log := range w.shards {
			for _, m := range log {
				if m.Seq > s.Shard(shard).Seq && (b.Len() < 40+round || round == 11) {
					if err := b.Add(t.Context(), shard, m); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if err := b.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
	}
	if got := answers(t, open(t, path), 0); got != want {
		t.Error("a file that was closed and opened has other answers")
	}
}

func TestFilters(t *testing.T) {
	w := newWorld(3)
	w.live(30, 300)
	s := open(t, file(t))
	w.apply(t, s, 50)
	all := w.effects("acme")
	middle := all[len(all)/2].At
	for _, f := range []projections.EffectFilter{
		{Tool: "refund"}, {Outcome: projections.CallWaiting}, {Outcome: projections.CallCompleted}, {Since: middle}, {Until: middle},
		{Where: map[string]string{"order": "7"}}, {Tool: "refund", Where: map[string]string{"order": "7", "who.vip": "true"}, Outcome: projections.CallWaiting},
		{Tool: "none"},
	} {
		for _, kind := range []string{"", "billing"} {
			var want, got []messages.EventNumber
			for _, e := range all {
				if f.Admits(&e) && (kind == "" || e.Agent.Kind == kind) {
					want = append(want, e.N)
				}
			}
			for row, err := range s.Effects(t.Context(), Query{Tenant: "acme", Kind: kind, EffectFilter: f}) {
				if err != nil {
					t.Fatal(err)
				}
				var e projections.Effect
				if err := json.Unmarshal(row.Line.(json.RawMessage), &e); err != nil {
					t.Fatal(err)
				}
				got = append(got, e.N)
			}
			if !reflect.DeepEqual(got, want) || (len(want) == 0) != (f.Tool == "none") {
				t.Errorf("kind %q, %+v: got %v, want %v", kind, f, got, want)
			}
		}
	}
	for _, err := range s.Effects(t.Context(), Query{Tenant: "acme", After: "nonsense"}) {
		if messages.AsError(err).Code != messages.BadInput {
			t.Errorf("a cursor that is none: %v", err)
		}
	}
}

// A cursor is of the view that has given it: another would begin at some place.
func TestCursorsOfOtherViews(t *testing.T) {
	w := newWorld(6)
	w.live(12, 200)
	s := open(t, file(t))
	w.apply(t, s, 60)
	views := map[string]func(after string) iter.Seq2[Row, error]{
		"effects": func(after string) iter.Seq2[Row, error] {
			return s.Effects(t.Context(), Query{Tenant: "acme", After: after})
		},
		"approvals": func(after string) iter.Seq2[Row, error] {
			return s.Approvals(t.Context(), Query{Tenant: "acme", After: after})
		},
	}
	for _, by := range By {
		views["usage by "+by] = func(after string) iter.Seq2[Row, error] {
			return s.Usage(t.Context(), UsageQuery{Tenant: "acme", By: by, After: after})
		}
	}
	for given, first := range views {
		next, stop := iter.Pull2(first(""))
		row, err, _ := next()
		if stop(); err != nil || row.Cursor == "" {
			t.Fatalf("%s: %+v, %v", given, row, err)
		}
		for view, rows := range views {
			var refused *messages.Error
			for _, err := range rows(row.Cursor) {
				errors.As(err, &refused)
			}
			if view == given && refused != nil || view != given && (refused == nil || refused.Code != messages.BadInput) {
				t.Errorf("%s with a cursor of %s: %v", view, given, refused)
			}
		}
	}
}

func TestAReadShardStartsAgain(t *testing.T) { // A87
	w := newWorld(4)
	w.live(30, 200)
	s := open(t, file(t))
	w.apply(t, s, 60)
	want := answers(t, s, 0)
	for shard := range w.shards {
		if err := s.Reset(t.Context(), shard); err != nil {
			t.Fatal(err)
		}
		if shard == 1 && answers(t, s, 0) == want {
			t.Error("a shard that was forgotten is still told of")
		}
		w.apply(t, s, 60)
		if got := answers(t, s, 0); got != want {
			t.Fatalf("shard %d: other answers", shard)
		}
	}
	for shard := range w.shards {
		_ = s.Reset(t.Context(), shard)
	}
	var rows int
	if err := s.read.QueryRow(`SELECT (SELECT count(*) FROM agents) + (SELECT count(*) FROM effects) + (SELECT count(*) FROM usage) + (SELECT count(*) FROM hours)`).Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows are left: %v", rows, err)
	}
}

// gone is the event of an agent that was deleted, as far as its type goes.
type gone string

func (g gone) EventType() string { return string(g) }

func TestDeletedAgentsLeaveNothing(t *testing.T) {
	for i, how := range []gone{"agent.deleted", "agent.deleted"} {
		unreadable := i == 1
		w := newWorld(5)
		w.live(10, 80)
		s := open(t, file(t))
		victim := agentID(3)
		w.apply(t, s, 50)
		w.say(victim, how)
		if shard := &w.shards[int(victim.Partition())%len(w.shards)]; unreadable {
			(*shard)[len(*shard)-1].Frame = func() (*messages.Frame, error) { return nil, errors.New("of a newer version") }
		}
		if unreadable {
			w.turn(victim) // it begins anew, in the same batch
		}
		w.apply(t, s, 50)
		if text := answers(t, s, 0); strings.Contains(text, victim.Key) != unreadable {
			t.Errorf("of a deleted agent (unreadable %v): %s", unreadable, text)
		}
		var known bool
		if err := s.read.QueryRow(`SELECT count(*) > 0 FROM agents WHERE key = ?`, victim.Key).Scan(&known); err != nil || known != unreadable {
			t.Errorf("a deleted agent (unreadable %v) is known by its name: %v, %v", unreadable, known, err)
		}
		w.frames[victim] = slices.DeleteFunc(w.frames[victim], func(f *messages.Frame) bool { return f.First <= deletedAt(w.frames[victim]) })
		for _, tenant := range []string{"default", "acme"} {
			sameUsage(t, w, s, tenant)
		}
	}
}

func deletedAt(frames []*messages.Frame) (n messages.EventNumber) {
	for _, f := range frames {
		if ends(f.Events[0].EventType()) {
			n = f.First
		}
	}
	return n
}

// Nothing of a deleted agent's calls can be found in the files, not even in what
// SQLite has yet to write back, and not by whoever opens what a killed process left.
func TestNothingOfTheDeletedStays(t *testing.T) { // A108
	w, a := newWorld(8), agentID(3)
	const secret = "xyzzy-4711"
	w.say(a, messages.ToolRequested{Turn: "t", Call: "c", Tool: "look", Arguments: `{"who":"` + secret + `"}`})
	path, left := file(t), file(t)
	s := open(t, path)
	w.apply(t, s, 1)
	if held(t, path, secret) == "" {
		t.Fatal("the call is in no file")
	}
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + suffix)
		if err == nil {
			err = os.WriteFile(left+suffix, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.say(a, messages.AgentDeleted{})
	w.apply(t, s, 1)
	if found := held(t, path, secret); found != "" {
		t.Errorf("%s still has it", found)
	}

	killed, err := sql.Open("sqlite", "file:"+(&url.URL{Path: left}).EscapedPath()+"?_pragma=secure_delete(1)")
	if err != nil {
		t.Fatal(err)
	}
	defer killed.Close() // after the other has looked
	if _, err := killed.Exec(`DELETE FROM effects; DELETE FROM agents`); err != nil {
		t.Fatal(err)
	}
	open(t, left)
	if found := held(t, left, secret); found != "" {
		t.Errorf("opened again, %s still has it", found)
	}
}

// held is the first file of the store that holds the text; empty if none does.
func held(t *testing.T, path, text string) string {
	t.Helper()
	files, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(text)) {
			return name
		}
	}
	return ""
}

// A batch of large calls is committed before it takes much memory.
func TestLargeCallsFillABatch(t *testing.T) {
	w, a := newWorld(9), agentID(1)
	for i := range 40 {
		w.say(a, messages.ToolRequested{Turn: "t", Call: messages.CallID(fmt.Sprint(i)), Tool: "write", Arguments: `"` + strings.Repeat("x", 512<<10) + `"`})
	}
	b, shard := open(t, file(t)).Batch(), int(a.Partition())%len(w.shards)
	for _, m := range w.shards[shard] {
		if b.Full(2000) {
			break
		}
		if err := b.Add(t.Context(), shard, m); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.Len(); n != 32 {
		t.Errorf("it is full after %d calls", n)
	}
}

func TestUnreadableFramesAreCounted(t *testing.T) {
	w := newWorld(6)
	w.live(10, 50)
	bad := &w.shards[1][5]
	bad.Types, bad.Frame = []string{"tool.completed"}, func() (*messages.Frame, error) { return nil, errors.New("bad checksum") }
	w.shards[1][6].Foreign, w.shards[1][6].Agent, w.shards[1][6].Frame = true, messages.AgentID{}, nil
	headless := &w.shards[1][7+slices.IndexFunc(w.shards[1][7:], func(m Message) bool { return m.Agent != bad.Agent })] // the first of each agent is warned of
	headless.Foreign, headless.Types, headless.Frame = true, nil, func() (*messages.Frame, error) { return nil, errors.New("no such header") }
	var said strings.Builder
	s, err := Open(t.Context(), file(t), slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	again := w.shards[1][slices.IndexFunc(w.shards[1], func(m Message) bool { // repeats what was applied
		return m.Frame != nil && m.Agent != bad.Agent && m.Agent != headless.Agent
	})]
	again.Seq = w.shards[1][len(w.shards[1])-1].Seq + 1
	again.Types = []string{"model.requested"}
	w.shards[1] = append(w.shards[1], again)
	w.apply(t, s, 30)
	for _, part := range []string{bad.Agent.String(), "bad checksum", "shard=1", fmt.Sprintf("sequence=%d", bad.Seq), "no such header", fmt.Sprintf("sequence=%d", headless.Seq)} {
		if !strings.Contains(said.String(), part) {
			t.Errorf("%q is not said: %s", part, said.String())
		}
	}
	shards, err := s.Shards(t.Context())
	if err != nil || shards[1].Unreadable != 3 || shards[1].Seq != w.shards[1][len(w.shards[1])-1].Seq {
		t.Errorf("shard 1 is %+v, %v", shards[1], err)
	}
	if !strings.Contains(said.String(), "repeats events") {
		t.Errorf("a repeated frame is not reported: %s", said.String())
	}
	left := s.Unreadable("default") + s.Unreadable("acme")
	if left != 3 || s.Unreadable(bad.Agent.Tenant) == 0 || s.Unreadable("nobody") != 0 {
		t.Errorf("of the tenants %d are told", left)
	}
}

// Frames without a key are told of once for each agent, and once their agent is
// deleted they are missed no more.
func TestFramesWithoutAKey(t *testing.T) { // A108
	w := newWorld(6)
	w.live(10, 50)
	victim, other := agentID(3), agentID(4)
	unkeyed := func(a messages.AgentID, why error) (frames int) {
		for _, shard := range w.shards {
			for i := range shard {
				if shard[i].Agent == a && slices.ContainsFunc(shard[i].Types, indexed) {
					shard[i].Frame = func() (*messages.Frame, error) { return nil, why }
					frames++
				}
			}
		}
		return frames
	}
	lost, shredded := unkeyed(victim, messages.ErrNoKey), unkeyed(other, messages.ErrShredded)
	if lost < 2 || shredded < 2 {
		t.Fatalf("the world has too few frames: %d and %d", lost, shredded)
	}
	var said strings.Builder
	path := file(t)
	s, err := Open(t.Context(), path, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	w.apply(t, s, 30)
	if warned := strings.Count(said.String(), "level=WARN"); warned != 1 || !strings.Contains(said.String(), victim.String()) {
		t.Errorf("%d warnings: %s", warned, said.String())
	}
	if got := s.Unreadable(victim.Tenant); got != lost {
		t.Errorf("%d frames are missed, want %d", got, lost)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	if got := s.Unreadable(victim.Tenant); got != lost {
		t.Errorf("opened again: %d frames are missed, want %d", got, lost)
	}
	w.say(victim, gone("agent.deleted"))
	w.apply(t, s, 30)
	if got := s.Unreadable(victim.Tenant); got != 0 {
		t.Errorf("of a deleted agent %d frames are missed", got)
	}
}

func TestAFileThatIsNotOursIsBuiltAgain(t *testing.T) { // A87
	w := newWorld(7)
	w.live(20, 150)
	good := open(t, file(t))
	w.apply(t, good, 50)
	want := answers(t, good, 0)
	for name, harm := range map[string]func(t *testing.T, path string){
		"another version": func(t *testing.T, path string) {
			s := open(t, path)
			if _, err := s.write.Exec(`PRAGMA user_version = 99`); err != nil {
				t.Fatal(err)
			}
			_ = s.Close()
		},
		"no database": func(t *testing.T, path string) { write(t, path, []byte("this is no database at all")) },
		"cut short": func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, b[:len(b)/2])
		},
		"holes": func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := 4096; i < len(b); i += 4096 {
				clear(b[i : i+64])
			}
			write(t, path, b)
		},
		"deleted": func(t *testing.T, path string) {
			if err := Remove(path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			s := open(t, path)
			w.apply(t, s, 50)
			_ = s.Close()
			harm(t, path)
			s = open(t, path)
			if at := s.Shard(0).Seq; at != 0 {
				t.Fatalf("shard 0 is at %d", at)
			}
			w.apply(t, s, 50)
			if got := answers(t, s, 0); got != want {
				t.Error("other answers")
			}
		})
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A frame that cannot be read now leaves the batch as it was, and is taken in when
// it is added again.
func TestFramesThatCannotBeReadNow(t *testing.T) { // A30, A87
	w := newWorld(6)
	w.live(10, 50)
	good := open(t, file(t))
	w.apply(t, good, 30)
	s := open(t, file(t))
	for shard, log := range w.shards {
		b := s.Batch()
		for i, m := range log {
			decode, away := m.Frame, i%3 == 0 && slices.ContainsFunc(m.Types, indexed)
			m.Frame = func() (*messages.Frame, error) {
				if away {
					return nil, fmt.Errorf("%w: nobody answers", ErrLater)
				}
				return decode()
			}
			if before, err := b.Len(), b.Add(t.Context(), shard, m); away && (!errors.Is(err, ErrLater) || b.Len() != before) || !away && err != nil {
				t.Fatalf("message %d: %v, %d in the batch, before %d", m.Seq, err, b.Len(), before)
			}
			if !away {
				continue
			}
			if away = false; i%2 == 0 {
				if err := b.Commit(t.Context()); err != nil {
					t.Fatal(err)
				}
				b = s.Batch()
			}
			if err := b.Add(t.Context(), shard, m); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if answers(t, s, 0) != answers(t, good, 0) || s.Unreadable("default")+s.Unreadable("acme") != 0 {
		t.Error("frames that could not be read at first are missing")
	}
}

// What harms a file while it is open is noticed by who asks: whoever keeps it is told.
func TestQueriesTellOfDamage(t *testing.T) { // A87
	w := newWorld(9)
	w.live(20, 300)
	ask := map[string]func(s *Store) error{
		"effects":   func(s *Store) error { return first(s.Effects(t.Context(), Query{Tenant: "default"})) },
		"approvals": func(s *Store) error { return first(s.Approvals(t.Context(), Query{Tenant: "default"})) },
		"usage":     func(s *Store) error { return first(s.Usage(t.Context(), UsageQuery{Tenant: "default", By: "agent"})) },
		"shards": func(s *Store) error {
			_, err := s.Shards(t.Context())
			return err
		},
		"held": func(s *Store) error {
			_, err := s.Indexed(t.Context(), agentID(2))
			return err
		},
	}
	for view, ask := range ask {
		for name, harm := range map[string]func(t *testing.T, s *Store){
			"random": func(t *testing.T, s *Store) {
				random := make([]byte, 1<<20)
				for i := range random {
					random[i] = byte(w.rand.Uint32())
				}
				write(t, s.path, random)
				write(t, s.path+"-wal", random)
			},
			"tables": func(t *testing.T, s *Store) {
				if _, err := s.write.Exec(`DROP TABLE effects; DROP TABLE shards; DROP TABLE usage`); err != nil {
					t.Fatal(err)
				}
			},
			"values": func(t *testing.T, s *Store) {
				if _, err := s.write.Exec(`UPDATE effects SET line = 'no line'; UPDATE usage SET calls = 'many', input = 1.5; UPDATE shards SET seq = 'x'`); err != nil {
					t.Fatal(err)
				}
			},
		} {
			if view == "held" && name == "values" {
				continue // doctor compares what is held with the log
			}
			t.Run(view+" "+name, func(t *testing.T) {
				s := open(t, file(t))
				w.apply(t, s, 100)
				if err := ask(s); err != nil {
					t.Fatal(err)
				}
				harm(t, s)
				s.read.SetMaxIdleConns(0) // what they remember is gone
				if err := ask(s); !Damaged(err) {
					t.Fatalf("who asks hears %v", err)
				}
				select {
				case <-s.Broken():
					if !Damaged(s.Damage()) {
						t.Errorf("it is told as %v", s.Damage())
					}
				default:
					t.Error("nobody is told")
				}
			})
		}
	}
}

// first is the error of some rows.
func first(rows iter.Seq2[Row, error]) error {
	for _, err := range rows {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestAQueryThatIsWrongIsNoDamage(t *testing.T) {
	s := open(t, file(t))
	many := Query{Tenant: "default", EffectFilter: projections.EffectFilter{Where: make(map[string]string)}}
	for i := range 100 { // the doors take no more
		many.Where[fmt.Sprint("p", i)] = "x"
	}
	if err := errors.Join(first(s.Effects(t.Context(), many)), first(s.Approvals(t.Context(), many))); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range []error{
		first(s.Effects(t.Context(), Query{Tenant: "default", After: "x"})),
		first(s.Effects(ended, Query{Tenant: "default"})),
	} {
		if err == nil || Damaged(err) {
			t.Errorf("got %v", err)
		}
	}
	select {
	case <-s.Broken():
		t.Errorf("it is told as %v", s.Damage())
	default:
	}
}

// A file has one Store: another one is refused and leaves it alone, and so does
// who would remove it.
func TestAFileHasOneStore(t *testing.T) { // A87
	w := newWorld(8)
	w.live(5, 30)
	path := file(t)
	s := open(t, path)
	w.apply(t, s, 10)
	if _, err := Open(t.Context(), path, slog.New(slog.DiscardHandler)); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "a folder of its own") {
		t.Errorf("the second hears %v", err)
	}
	if err := Remove(path); !errors.Is(err, ErrHeld) {
		t.Errorf("who removes it hears %v", err)
	}
	want := answers(t, s, 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s = open(t, path); answers(t, s, 0) != want {
		t.Error("the next one finds other views")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Remove(path); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if err := Remove(filepath.Join(path, "not", "there")); err != nil {
		t.Error(err)
	}
}

// Only folders of processes that were killed are swept away.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	folder := func(name string) string {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name, "index.db")
	}
	open(t, folder("views-held"))
	killed := open(t, folder("views-killed"))
	if err := killed.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, folder("views-unknown"), nil)
	if err := open(t, folder("else")).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "else"), filepath.Join(dir, "views-link")); err != nil {
		t.Fatal(err)
	}
	if n := Sweep(filepath.Join(dir, "views-*"), "index.db"); n != 1 {
		t.Errorf("%d are removed", n)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || fmt.Sprint(left) != fmt.Sprint([]string{filepath.Join(dir, "else"), filepath.Join(dir, "views-held"), filepath.Join(dir, "views-link"), filepath.Join(dir, "views-unknown")}) {
		t.Errorf("left are %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "else", "index.db")); err != nil {
		t.Error(err)
	}
}

func TestQueriesEndWithTheirContext(t *testing.T) {
	w := newWorld(9)
	w.live(5, 100)
	s := open(t, file(t))
	w.apply(t, s, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range s.Effects(ctx, Query{Tenant: "default"}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		return
	}
	t.Error("no error")
}

// Wherever a commit is when its context ends, that is what is told.
func TestCommitsEndWithTheirContext(t *testing.T) {
	w := newWorld(10)
	w.live(50, 200)
	for i := range 300 {
		s := open(t, "")
		b := s.Batch()
		for _, m := range w.shards[0] {
			if err := b.Add(t.Context(), 0, m); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*20*time.Microsecond)
		err := b.Commit(ctx)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("it ended after %d µs: %v", i*20, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A page of effects costs what is on it, not what there is.
func TestPagesAreReadInOrder(t *testing.T) {
	s := open(t, file(t))
	for _, q := range []Query{{}, {Kind: "k"}, {After: cursor(ofEffects, position{})},
		{EffectFilter: projections.EffectFilter{Tool: "x"}}, {EffectFilter: projections.EffectFilter{Outcome: projections.CallFailed, Since: begun}},
		{EffectFilter: projections.EffectFilter{Outcome: projections.CallCompleted, Where: map[string]string{"a": "b"}}},
	} {
		q.Tenant, q.Limit = "default", 5
		st, err := q.effects()
		if err != nil {
			t.Fatal(err)
		}
		rows, err := s.read.Query("EXPLAIN QUERY PLAN "+st.text, st.args...)
		if err != nil {
			t.Fatal(err)
		}
		var plan []string
		for rows.Next() {
			var id, parent, unused int
			var step string
			if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, step)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(plan, "; "); !strings.Contains(text, "SEARCH e USING INDEX") || strings.Contains(text, "SCAN") || strings.Contains(text, "B-TREE FOR ORDER BY") {
			t.Errorf("%+v: %s", q, text)
		}
	}
}
