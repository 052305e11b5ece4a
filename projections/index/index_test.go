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

var logStart = time.Date(2026, 1, 2, 3, 59, 0, 0, time.UTC)

// logWriter writes events of agents to a log in memory, of several shards.
type logWriter struct {
	rand   *rand.Rand
	shards [3][]Message
	frames map[messages.AgentID][]*messages.Frame
	clock  int
}

func newLogWriter(seed uint64) *logWriter {
	return &logWriter{rand: rand.New(rand.NewPCG(seed, 7)), frames: make(map[messages.AgentID][]*messages.Frame)}
}

func agentID(i int) messages.AgentID {
	return messages.AgentID{Tenant: []string{"default", "acme"}[i%2], Kind: []string{"support", "billing", "ops"}[i%3], Key: fmt.Sprintf("k%03d", i)}
}

// append appends a frame to an agent's log.
func (w *logWriter) append(a messages.AgentID, events ...messages.Event) {
	shard := &w.shards[int(a.Partition())%len(w.shards)]
	past := w.frames[a]
	f := &messages.Frame{First: 1, Events: events, Time: logStart.Add(time.Duration(w.clock) * time.Second)}
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

// appendTurn appends the events of one random turn of an agent.
func (w *logWriter) appendTurn(a messages.AgentID) {
	n := len(w.frames[a]) + 1
	turn, model, call := messages.TurnID(fmt.Sprintf("t%d", n)), messages.CallID(fmt.Sprintf("m%d", n)), messages.CallID(fmt.Sprintf("c%d", n))
	asked := messages.ModelRequested{Turn: turn, Step: 1, Attempt: 1, Call: model, Model: "demo/" + []string{"a", "b"}[w.rand.IntN(2)]}
	w.append(a, messages.InputAccepted{Input: string(turn), Content: messages.TextContent("Look for order 7, please")}, messages.TurnStarted{Turn: turn}, asked)
	usage := messages.Usage{Input: 10 + w.rand.IntN(90), Output: w.rand.IntN(50), Cached: 3, Reasoning: 1}
	w.appendCompaction(a, turn, usage)
	switch w.rand.IntN(6) {
	case 0:
		w.append(a, messages.ModelFailed{Turn: turn, Step: 1, Call: model, Kind: "timeout", Usage: usage, Cost: 7}, messages.TurnFailed{Turn: turn, Reason: "model"})
		return
	case 1:
		w.append(a, messages.TurnAborted{Turn: turn, By: "abort"}) // the answer is lost
		return
	}
	tool := []string{"look", "refund"}[w.rand.IntN(2)]
	arguments := fmt.Sprintf(`{"order":%d,"who":{"vip":%v}}`, w.rand.IntN(9), w.rand.IntN(2) == 0)
	requested := messages.ToolRequested{Turn: turn, Step: 1, Call: call, Tool: tool, Arguments: arguments}
	completed := messages.ModelCompleted{Turn: turn, Step: 1, Call: model, Model: asked.Model + "-1", Usage: usage, Cost: 1e9 + 3}
	if tool == "refund" {
		w.append(a, completed, requested, messages.ApprovalRequested{Turn: turn, Call: call, Tool: tool, Arguments: arguments, ArgsHash: messages.HashArguments(arguments)}, messages.TurnPaused{Turn: turn, Reason: "approval"})
		if w.rand.IntN(2) == 0 {
			return // the call waits
		}
		w.append(a, messages.ApprovalGranted{Turn: turn, Call: call, Tool: tool, By: "decision"}, messages.ToolStarted{Turn: turn, Call: call, Tool: tool, OnUnknown: messages.Pause, Attempt: 1})
	} else {
		w.append(a, completed, requested, messages.ToolStarted{Turn: turn, Call: call, Tool: tool, OnUnknown: messages.ReadOnly, Attempt: 1})
	}
	w.append(a, messages.ToolCompleted{Turn: turn, Call: call, Output: "ok"}, messages.TurnCompleted{Turn: turn})
}

// appendCompaction appends, in a third of its calls, the events of a compaction of the agent's
// history: failed, completed or lost.
func (w *logWriter) appendCompaction(a messages.AgentID, turn messages.TurnID, usage messages.Usage) {
	call := messages.CallID("s" + string(turn))
	waits := []messages.TurnID{"", turn}[w.rand.IntN(2)]
	switch w.rand.IntN(9) {
	case 0:
		w.append(a, messages.CompactionRequested{Turn: waits, Call: call, Model: "demo/s"})
		w.append(a, messages.CompactionFailed{Turn: waits, Call: call, Kind: "network", Usage: usage, Cost: 11})
	case 1:
		w.append(a, messages.CompactionRequested{Turn: waits, Call: call, Model: "demo/s"})
		w.append(a, messages.HistoryCompacted{Turn: waits, Call: call, Model: "demo/s", How: messages.CompactSummary, Usage: usage, Cost: 13})
	case 2:
		w.append(a, messages.CompactionRequested{Turn: waits, Call: call, Model: "demo/s"}) // lost
		w.append(a, messages.CompactionFailed{Turn: waits, Call: call, Kind: "restarted", Unknown: true, Tokens: 5})
	}
}

// appendTurns appends turns of randomly chosen agents.
func (w *logWriter) appendTurns(agents, turns int) {
	for range turns {
		w.appendTurn(agentID(w.rand.IntN(agents)))
	}
}

// apply adds the log to the store in batches of the given size.
func (w *logWriter) apply(t testing.TB, s *Store, size int) {
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
			if b.Len() == size {
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

// lines returns the lines of a query, read in pages of the given size; 0 is one page.
func lines(t testing.TB, page int, ask func(after string, limit int) func(func(Row, error) bool)) (all []string) {
	t.Helper()
	after := ""
	for {
		rows := 0
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
				rows, after = rows+1, row.Cursor
			}
		}
		if page == 0 || rows < page {
			return all
		}
	}
}

// answers returns all effects, approvals and usage of the store, and what it finds for some texts.
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
		for _, text := range []string{"order", "refund 7", "t1"} {
			all = append(all, lines(t, page, func(after string, limit int) func(func(Row, error) bool) {
				return s.Find(t.Context(), FindQuery{Tenant: tenant, Search: search(t, text), After: after, Limit: limit})
			})...)
		}
		for _, by := range By {
			all = append(all, lines(t, page, func(after string, limit int) func(func(Row, error) bool) {
				return s.Usage(t.Context(), UsageQuery{Tenant: tenant, By: by, After: after, Limit: limit})
			})...)
		}
	}
	return strings.Join(all, "\n")
}

// effects returns the effects of the projections of the tenant's agents, in order of time.
func (w *logWriter) effects(tenant string) (list []projections.Effect) {
	for a, frames := range w.frames {
		var e projections.Effects
		for _, f := range frames {
			projections.Fold(f, 0, &e)
		}
		if a.Tenant == tenant {
			calls := e.List(a)
			projections.MarkRepeats(calls)
			list = append(list, calls...)
		}
	}
	slices.SortFunc(list, func(a, b projections.Effect) int { return a.At.Compare(b.At) }) // all times differ
	return list
}

// The store returns the same effects, approvals and usage as the projections of each agent.
func TestStoreMatchesProjections(t *testing.T) { // A52, A87
	w := newLogWriter(1)
	w.appendTurns(40, 400)
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
			t.Errorf("%s: got %d effects, want %d, equal to those of the projections", tenant, len(got), len(want))
		}
		got = lines(t, 0, func(string, int) func(func(Row, error) bool) { return s.Approvals(t.Context(), Query{Tenant: tenant}) })
		slices.Sort(waiting)
		if slices.Sort(got); !reflect.DeepEqual(got, waiting) || len(waiting) == 0 {
			t.Errorf("%s: got %d approvals, want %d, equal to those of the projections", tenant, len(got), len(waiting))
		}
		checkUsage(t, w, s, tenant)
	}
}

// checkUsage compares the sums with those of the projections.
func checkUsage(t *testing.T, w *logWriter, s *Store, tenant string) {
	t.Helper()
	want := projections.UsageSum{Type: "total"}
	agents := make(map[string]projections.UsageSum)
	for a, frames := range w.frames {
		var u projections.Usage
		for _, f := range frames {
			projections.Fold(f, 0, &u)
		}
		if a.Tenant != tenant {
			continue
		}
		l := projections.UsageSum{Type: "agent", Agent: &a, Used: u.Total()}
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
		total := projections.UsageSum{Type: "total"}
		for row, err := range s.Usage(t.Context(), UsageQuery{Tenant: tenant, By: by}) {
			if err != nil {
				t.Fatal(err)
			}
			l := row.Line.(projections.UsageSum)
			if by == "agent" && l.Type == by {
				if !reflect.DeepEqual(l, agents[l.Agent.String()]) {
					t.Errorf("%s: got %+v, want %+v", l.Agent, l, agents[l.Agent.String()])
				}
				delete(agents, l.Agent.String())
			}
			if l.Type == "total" {
				if !reflect.DeepEqual(l, want) || !reflect.DeepEqual(l, total) {
					t.Errorf("total by %s: got %+v, want %+v of the projections, %+v of the lines", by, l, want, total)
				}
				continue
			}
			total.Calls, total.Lost, total.Failed = total.Calls+l.Calls, total.Lost+l.Lost, total.Failed+l.Failed
			total.Usage, total.Cost = total.Usage.Add(l.Usage), total.Cost.Plus(l.Cost)
		}
	}
	if len(agents) > 0 {
		t.Errorf("agents without a line: got %v, want none", slices.Collect(maps.Keys(agents)))
	}
}

// The answers do not depend on the sizes of batches and pages, on dropped batches, or on how often
// the file was closed and opened.
func TestAnyBatchesAnyPages(t *testing.T) { // A87
	w := newLogWriter(2)
	w.appendTurns(30, 250)
	s := open(t, file(t))
	w.apply(t, s, 100000)
	want := answers(t, s, 0)
	for _, page := range []int{1, 7, 1000} {
		if got := answers(t, s, page); got != want {
			t.Errorf("pages of %d: got other answers than with one page", page)
		}
	}
	path := file(t)
	for round := range 12 {
		s := open(t, path)
		b := s.Batch() // dropped without a commit
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
		t.Error("got other answers than from a file that was not closed and opened")
	}
}

func TestFilters(t *testing.T) {
	w := newLogWriter(3)
	w.appendTurns(30, 300)
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
			t.Errorf("invalid cursor: got error %v, want %s", err, messages.BadInput)
		}
	}
}

// A cursor is refused by other views than the one that returned it.
func TestCursorsOfOtherViews(t *testing.T) {
	w := newLogWriter(6)
	w.appendTurns(12, 200)
	s := open(t, file(t))
	w.apply(t, s, 60)
	views := map[string]func(after string) iter.Seq2[Row, error]{
		"find": func(after string) iter.Seq2[Row, error] {
			return s.Find(t.Context(), FindQuery{Tenant: "acme", Search: search(t, "order"), After: after})
		},
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
	for source, first := range views {
		next, stop := iter.Pull2(first(""))
		row, err, _ := next()
		if stop(); err != nil || row.Cursor == "" {
			t.Fatalf("%s: got %+v, error %v, want a cursor", source, row, err)
		}
		for view, rows := range views {
			var refused *messages.Error
			for _, err := range rows(row.Cursor) {
				errors.As(err, &refused)
			}
			if view == source && refused != nil || view != source && (refused == nil || refused.Code != messages.BadInput) {
				t.Errorf("%s with a cursor of %s: got %v, want a refusal: %t", view, source, refused, view != source)
			}
		}
	}
}

// A shard that is reset loses its rows, and has the same ones once it is read again.
func TestResetShard(t *testing.T) { // A87
	w := newLogWriter(4)
	w.appendTurns(30, 200)
	s := open(t, file(t))
	w.apply(t, s, 60)
	want := answers(t, s, 0)
	for shard := range w.shards {
		if err := s.Reset(t.Context(), shard); err != nil {
			t.Fatal(err)
		}
		if shard == 1 && answers(t, s, 0) == want {
			t.Error("got the answers of a shard after its reset, want others")
		}
		w.apply(t, s, 60)
		if got := answers(t, s, 0); got != want {
			t.Fatalf("shard %d read again: got other answers than before", shard)
		}
	}
	for shard := range w.shards {
		_ = s.Reset(t.Context(), shard)
	}
	var rows int
	if err := s.read.QueryRow(`SELECT (SELECT count(*) FROM agents) + (SELECT count(*) FROM effects) + (SELECT count(*) FROM usage) + (SELECT count(*) FROM hours) +
		(SELECT count(*) FROM items) + (SELECT count(*) FROM words WHERE words MATCH 'order')`).Scan(&rows); err != nil || rows != 0 {
		t.Errorf("rows after the reset of all shards: got %d, error %v, want 0", rows, err)
	}
}

// typeOnly is an event of the given type without data.
type typeOnly string

func (e typeOnly) EventType() string { return string(e) }

// A deleted agent has no rows, also if the frame of its delete cannot be read. An agent created
// again has those of its new events.
func TestDeletedAgentsLeaveNothing(t *testing.T) {
	for i, how := range []typeOnly{"agent.deleted", "agent.deleted"} {
		unreadable := i == 1
		w := newLogWriter(5)
		w.appendTurns(10, 80)
		s := open(t, file(t))
		victim := agentID(3)
		w.apply(t, s, 50)
		w.append(victim, how)
		if shard := &w.shards[int(victim.Partition())%len(w.shards)]; unreadable {
			(*shard)[len(*shard)-1].Frame = func() (*messages.Frame, error) { return nil, errors.New("of a newer version") }
		}
		if unreadable {
			w.appendTurn(victim) // created again, in the same batch
		}
		w.apply(t, s, 50)
		if text := answers(t, s, 0); strings.Contains(text, victim.Key) != unreadable {
			t.Errorf("deleted agent, unreadable %t: got %s, want it in the answers: %t", unreadable, text, unreadable)
		}
		var known bool
		if err := s.read.QueryRow(`SELECT count(*) > 0 FROM agents WHERE key = ?`, victim.Key).Scan(&known); err != nil || known != unreadable {
			t.Errorf("deleted agent, unreadable %t: got a row: %t, error %v, want one: %t", unreadable, known, err, unreadable)
		}
		w.frames[victim] = slices.DeleteFunc(w.frames[victim], func(f *messages.Frame) bool { return f.First <= deletedAt(w.frames[victim]) })
		for _, tenant := range []string{"default", "acme"} {
			checkUsage(t, w, s, tenant)
		}
	}
}

// deletedAt returns the number of the event that deleted the agent.
func deletedAt(frames []*messages.Frame) (n messages.EventNumber) {
	for _, f := range frames {
		if ends(f.Events[0].EventType()) {
			n = f.First
		}
	}
	return n
}

// No file of a store holds a deleted agent's calls, not even the write-ahead log. Data that a killed
// process left is erased when its files are opened.
func TestDeletedDataIsErased(t *testing.T) { // A108
	w, a := newLogWriter(8), agentID(3)
	const secret = "xyzzy-4711"
	w.append(a, messages.ToolRequested{Turn: "t", Call: "c", Tool: "look", Arguments: `{"who":"` + secret + `"}`})
	path, left := file(t), file(t)
	s := open(t, path)
	w.apply(t, s, 1)
	if fileContaining(t, path, secret) == "" {
		t.Fatal("file with the call: got none, want one")
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
	w.append(a, messages.AgentDeleted{})
	w.apply(t, s, 1)
	if found := fileContaining(t, path, secret); found != "" {
		t.Errorf("file with the deleted call: got %s, want none", found)
	}

	killed, err := sql.Open("sqlite", "file:"+(&url.URL{Path: left}).EscapedPath()+"?_pragma=secure_delete(1)")
	if err != nil {
		t.Fatal(err)
	}
	defer killed.Close() // after the store was opened and checked
	if _, err := killed.Exec(`DELETE FROM effects; DELETE FROM agents; INSERT INTO words (words) VALUES ('delete-all'); DELETE FROM items`); err != nil {
		t.Fatal(err)
	}
	open(t, left)
	if found := fileContaining(t, left, secret); found != "" {
		t.Errorf("file with the deleted call after opening: got %s, want none", found)
	}
}

// fileContaining returns the first file of the store that contains the text, or "".
func fileContaining(t *testing.T, path, text string) string {
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
	w, a := newLogWriter(9), agentID(1)
	for i := range 40 {
		w.append(a, messages.ToolRequested{Turn: "t", Call: messages.CallID(fmt.Sprint(i)), Tool: "write", Arguments: `"` + strings.Repeat("x", 512<<10) + `"`})
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
		t.Errorf("calls in a full batch: got %d, want 32", n)
	}
}

// Frames that cannot be read are logged and counted, and the others are indexed.
func TestUnreadableFramesAreCounted(t *testing.T) {
	w := newLogWriter(6)
	w.appendTurns(10, 50)
	bad := &w.shards[1][5]
	bad.Types, bad.Frame = []string{"tool.completed"}, func() (*messages.Frame, error) { return nil, errors.New("bad checksum") }
	w.shards[1][6].Foreign, w.shards[1][6].Agent, w.shards[1][6].Frame = true, messages.AgentID{}, nil
	headless := &w.shards[1][7+slices.IndexFunc(w.shards[1][7:], func(m Message) bool { return m.Agent != bad.Agent })] // only the first of each agent is logged
	headless.Foreign, headless.Types, headless.Frame = true, nil, func() (*messages.Frame, error) { return nil, errors.New("no such header") }
	var logged strings.Builder
	s, err := Open(t.Context(), file(t), slog.New(slog.NewTextHandler(&logged, nil)))
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
		if !strings.Contains(logged.String(), part) {
			t.Errorf("log: got %s, want %q", logged.String(), part)
		}
	}
	shards, err := s.Shards(t.Context())
	if err != nil || shards[1].Unreadable != 3 || shards[1].Seq != w.shards[1][len(w.shards[1])-1].Seq {
		t.Errorf("shard 1: got %+v, error %v, want 3 unreadable frames and the last position", shards[1], err)
	}
	if !strings.Contains(logged.String(), "repeats events") {
		t.Errorf("log: got %s, want the repeated frame", logged.String())
	}
	left := s.Unreadable("default", nil) + s.Unreadable("acme", nil)
	if left != 3 || s.Unreadable(bad.Agent.Tenant, nil) == 0 || s.Unreadable("nobody", nil) != 0 {
		t.Errorf("unreadable frames of the tenants: got %d, want 3", left)
	}
}

// Frames without a key are logged once for each agent. They are not counted once their agent is
// deleted.
func TestFramesWithoutAKey(t *testing.T) { // A108
	w := newLogWriter(6)
	w.appendTurns(10, 50)
	victim, other := agentID(3), agentID(4)
	withoutKey := func(a messages.AgentID, why error) (frames int) {
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
	lost, shredded := withoutKey(victim, messages.ErrNoKey), withoutKey(other, messages.ErrShredded)
	if lost < 2 || shredded < 2 {
		t.Fatalf("frames without a key: got %d and %d, want at least 2", lost, shredded)
	}
	var logged strings.Builder
	path := file(t)
	s, err := Open(t.Context(), path, slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	w.apply(t, s, 30)
	if warned := strings.Count(logged.String(), "level=WARN"); warned != 1 || !strings.Contains(logged.String(), victim.String()) {
		t.Errorf("warnings: got %d, want 1 for %s: %s", warned, victim, logged.String())
	}
	if got := s.Unreadable(victim.Tenant, nil); got != lost {
		t.Errorf("unreadable frames: got %d, want %d", got, lost)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	if got := s.Unreadable(victim.Tenant, nil); got != lost {
		t.Errorf("unreadable frames after reopening: got %d, want %d", got, lost)
	}
	w.append(victim, typeOnly("agent.deleted"))
	w.apply(t, s, 30)
	if got := s.Unreadable(victim.Tenant, nil); got != 0 {
		t.Errorf("unreadable frames of a deleted agent: got %d, want 0", got)
	}
}

// A file of another version, or a damaged one, is replaced by an empty one.
func TestInvalidFileIsRebuilt(t *testing.T) { // A87
	w := newLogWriter(7)
	w.appendTurns(20, 150)
	good := open(t, file(t))
	w.apply(t, good, 50)
	want := answers(t, good, 0)
	for name, corrupt := range map[string]func(t *testing.T, path string){
		"another version": func(t *testing.T, path string) {
			s := open(t, path)
			if _, err := s.write.Exec(`PRAGMA user_version = 99`); err != nil {
				t.Fatal(err)
			}
			_ = s.Close()
		},
		"not a database": func(t *testing.T, path string) { write(t, path, []byte("this is no database at all")) },
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
			corrupt(t, path)
			s = open(t, path)
			if at := s.Shard(0).Seq; at != 0 {
				t.Fatalf("position of shard 0: got %d, want 0", at)
			}
			w.apply(t, s, 50)
			if got := answers(t, s, 0); got != want {
				t.Error("rebuilt file: got other answers than from an undamaged one")
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

// A frame that fails with ErrLater leaves the batch unchanged, and is indexed when it is added again.
func TestFramesThatCannotBeReadNow(t *testing.T) { // A30, A87
	w := newLogWriter(6)
	w.appendTurns(10, 50)
	good := open(t, file(t))
	w.apply(t, good, 30)
	s := open(t, file(t))
	for shard, log := range w.shards {
		b := s.Batch()
		for i, m := range log {
			decode, unavailable := m.Frame, i%3 == 0 && slices.ContainsFunc(m.Types, indexed)
			m.Frame = func() (*messages.Frame, error) {
				if unavailable {
					return nil, fmt.Errorf("%w: no response", ErrLater)
				}
				return decode()
			}
			if before, err := b.Len(), b.Add(t.Context(), shard, m); unavailable && (!errors.Is(err, ErrLater) || b.Len() != before) || !unavailable && err != nil {
				t.Fatalf("message %d: got error %v, %d in the batch, before %d", m.Seq, err, b.Len(), before)
			}
			if !unavailable {
				continue
			}
			if unavailable = false; i%2 == 0 {
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
	if answers(t, s, 0) != answers(t, good, 0) || s.Unreadable("default", nil)+s.Unreadable("acme", nil) != 0 {
		t.Error("got other answers or unreadable frames, want those of a store that read all frames at once")
	}
}

// Damage to a file that is open is returned by the query that finds it, and Broken is closed.
func TestQueriesReportDamage(t *testing.T) { // A87
	w := newLogWriter(9)
	w.appendTurns(20, 300)
	ask := map[string]func(s *Store) error{
		"effects":   func(s *Store) error { return first(s.Effects(t.Context(), Query{Tenant: "default"})) },
		"approvals": func(s *Store) error { return first(s.Approvals(t.Context(), Query{Tenant: "default"})) },
		"find": func(s *Store) error {
			return first(s.Find(t.Context(), FindQuery{Tenant: "default", Search: search(t, "order")}))
		},
		"usage": func(s *Store) error { return first(s.Usage(t.Context(), UsageQuery{Tenant: "default", By: "agent"})) },
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
		for name, corrupt := range map[string]func(t *testing.T, s *Store){
			"random": func(t *testing.T, s *Store) {
				random := make([]byte, 1<<20)
				for i := range random {
					random[i] = byte(w.rand.Uint32())
				}
				write(t, s.path, random)
				write(t, s.path+"-wal", random)
			},
			"tables": func(t *testing.T, s *Store) {
				if _, err := s.write.Exec(`DROP TABLE effects; DROP TABLE shards; DROP TABLE usage; DROP TABLE items`); err != nil {
					t.Fatal(err)
				}
			},
			"values": func(t *testing.T, s *Store) {
				if _, err := s.write.Exec(`UPDATE effects SET line = 'no line'; UPDATE usage SET calls = 'many', input = 1.5; UPDATE shards SET seq = 'x'; UPDATE items SET at = 'noon'`); err != nil {
					t.Fatal(err)
				}
			},
		} {
			if view == "held" && name == "values" {
				continue // doctor compares these values with the log
			}
			t.Run(view+" "+name, func(t *testing.T) {
				s := open(t, file(t))
				w.apply(t, s, 100)
				if err := ask(s); err != nil {
					t.Fatal(err)
				}
				corrupt(t, s)
				s.read.SetMaxIdleConns(0) // drops the page caches
				if err := ask(s); !Damaged(err) {
					t.Fatalf("query: got error %v, want damage", err)
				}
				select {
				case <-s.Broken():
					if !Damaged(s.Damage()) {
						t.Errorf("Damage: got %v, want damage", s.Damage())
					}
				default:
					t.Error("Broken: got an open channel, want a closed one")
				}
			})
		}
	}
}

// A line of a call that is not the one that was stored is damage, also if it is JSON. The log says so before the
// query ends.
func TestChangedLineIsDamage(t *testing.T) { // A87
	w := newLogWriter(9)
	w.appendTurns(5, 30)
	for view, ask := range map[string]func(s *Store) iter.Seq2[Row, error]{
		"effects":   func(s *Store) iter.Seq2[Row, error] { return s.Effects(t.Context(), Query{Tenant: "default"}) },
		"approvals": func(s *Store) iter.Seq2[Row, error] { return s.Approvals(t.Context(), Query{Tenant: "default"}) },
		"find": func(s *Store) iter.Seq2[Row, error] {
			return s.Find(t.Context(), FindQuery{Tenant: "default", Search: search(t, "c3")})
		},
	} {
		s, log := open(t, file(t)), new(bytes.Buffer)
		s.logger = slog.New(slog.NewTextHandler(log, nil))
		w.apply(t, s, 100)
		if err := first(ask(s)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.write.Exec(`UPDATE effects SET line = replace(line, '"turn"', '"torn"')`); err != nil {
			t.Fatal(err)
		}
		if err := first(ask(s)); !Damaged(err) || !strings.Contains(log.String(), err.Error()) {
			t.Errorf("%s: got error %v, want damage; logged %q, want the error", view, err, log)
		}
		select {
		case <-s.Broken():
		default:
			t.Errorf("%s: Broken: got an open channel, want a closed one", view)
		}
	}
}

// first returns the first error of the rows.
func first(rows iter.Seq2[Row, error]) error {
	for _, err := range rows {
		if err != nil {
			return err
		}
	}
	return nil
}

// An error of an invalid or cancelled query is not reported as damage.
func TestQueryErrorsAreNoDamage(t *testing.T) {
	s := open(t, file(t))
	many := Query{Tenant: "default", EffectFilter: projections.EffectFilter{Where: make(map[string]string)}}
	for i := range 100 { // the most that the endpoints accept
		many.Where[fmt.Sprint("p", i)] = "x"
	}
	if err := errors.Join(first(s.Effects(t.Context(), many)), first(s.Approvals(t.Context(), many))); err != nil {
		t.Errorf("100 conditions: got error %v, want none", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range []error{
		first(s.Effects(t.Context(), Query{Tenant: "default", After: "x"})),
		first(s.Effects(ended, Query{Tenant: "default"})),
	} {
		if err == nil || Damaged(err) {
			t.Errorf("got error %v, want one that is no damage", err)
		}
	}
	select {
	case <-s.Broken():
		t.Errorf("Damage: got %v, want none", s.Damage())
	default:
	}
}

// While a store has a file open, a second Open and Remove fail with ErrHeld and do not change it.
func TestAFileHasOneStore(t *testing.T) { // A87
	w := newLogWriter(8)
	w.appendTurns(5, 30)
	path := file(t)
	s := open(t, path)
	w.apply(t, s, 10)
	if _, err := Open(t.Context(), path, slog.New(slog.DiscardHandler)); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "a folder of its own") {
		t.Errorf("second Open: got error %v, want %v", err, ErrHeld)
	}
	if err := Remove(path); !errors.Is(err, ErrHeld) {
		t.Errorf("Remove: got error %v, want %v", err, ErrHeld)
	}
	want := answers(t, s, 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s = open(t, path); answers(t, s, 0) != want {
		t.Error("reopened file: got other answers than before")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Remove(path); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); err != nil || len(left) > 0 {
		t.Errorf("files after Remove: got %v, error %v, want none", left, err)
	}
	if err := Remove(filepath.Join(path, "not", "there")); err != nil {
		t.Errorf("Remove of a missing file: got error %v, want none", err)
	}
}

// Sweep removes only folders of processes that were killed.
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
		t.Errorf("removed folders: got %d, want 1", n)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || fmt.Sprint(left) != fmt.Sprint([]string{filepath.Join(dir, "else"), filepath.Join(dir, "views-held"), filepath.Join(dir, "views-link"), filepath.Join(dir, "views-unknown")}) {
		t.Errorf("remaining folders: got %v, error %v, want else, views-held, views-link and views-unknown", left, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "else", "index.db")); err != nil {
		t.Errorf("file behind the link: got error %v, want it kept", err)
	}
}

func TestQueriesEndWithTheirContext(t *testing.T) {
	w := newLogWriter(9)
	w.appendTurns(5, 100)
	s := open(t, file(t))
	w.apply(t, s, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range s.Effects(ctx, Query{Tenant: "default"}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v, want %v", err, context.Canceled)
		}
		return
	}
	t.Errorf("got no error, want %v", context.Canceled)
}

// A commit whose context ends, at any moment of it, fails with the error of the context or succeeds.
func TestCommitsEndWithTheirContext(t *testing.T) {
	w := newLogWriter(10)
	w.appendTurns(50, 200)
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
			t.Fatalf("context ended after %d µs: got error %v, want %v", i*20, err, context.DeadlineExceeded)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// plan returns the steps by which SQLite runs a statement.
func plan(t *testing.T, s *Store, st statement) string {
	t.Helper()
	var steps []string
	err := each(t.Context(), s.read, func(r *sql.Rows) error {
		var id, parent, unused int
		var step string
		err := r.Scan(&id, &parent, &unused, &step)
		steps = append(steps, step)
		return err
	}, "EXPLAIN QUERY PLAN "+st.text, st.args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(steps, "; ")
}

// A page of effects is read from an index in order, without a scan or a sort of all effects.
func TestPagesAreReadInOrder(t *testing.T) {
	s := open(t, file(t))
	for _, q := range []Query{{}, {Kind: "k"}, {After: callKeyOf(position{}).cursor()},
		{EffectFilter: projections.EffectFilter{Tool: "x"}}, {EffectFilter: projections.EffectFilter{Outcome: projections.CallFailed, Since: logStart}},
		{EffectFilter: projections.EffectFilter{Outcome: projections.CallCompleted, Where: map[string]string{"a": "b"}}},
	} {
		q.Tenant, q.Limit = "default", 5
		after, err := readCallKey(q.After)
		if err != nil {
			t.Fatal(err)
		}
		if text := plan(t, s, q.effects(after)); !strings.Contains(text, "SEARCH e USING INDEX") || strings.Contains(text, "SCAN") || strings.Contains(text, "B-TREE") {
			t.Errorf("plan of %+v: got %s, want an index search without scan and sort", q, text)
		}
	}
}
