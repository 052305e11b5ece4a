package actors_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/eventlog/prefix"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

var zoe = actorstest.Agent("test", "zoe")

// forked forks ada as an agent at an event and waits until that has begun.
func forked(t *testing.T, s *actorstest.Stage, n *actorstest.Node, as messages.AgentID, at messages.EventNumber) {
	t.Helper()
	before := count(s.Events(ada), "fork.settled")
	n.Must(ada, messages.Fork{ID: "fork-" + as.Key, Fork: as.Full(), At: at})
	settled := actorstest.Of[messages.ForkSettled](s.Until(ada, "fork.settled", before+1))
	if last := settled[before]; last.Refused != "" || last.Fork != as.Full() {
		t.Fatalf("the fork was refused: %+v", last)
	}
}

// wholeLog returns the texts of an agent's inputs and answers, those of its prefix first.
func wholeLog(t *testing.T, store eventlog.Store, a messages.AgentID) string {
	t.Helper()
	var h projections.History
	for rec, err := range prefix.New(store).Read(t.Context(), a, eventlog.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		projections.Fold(rec.Frame, 0, &h)
	}
	var texts []string
	for _, item := range h.Items() {
		texts = append(texts, item.Content.Text())
	}
	return strings.Join(texts, ", ")
}

// A fork has another model, instructions and tools than its kind if it is made so, also in its next
// activation and in a fork of its own.
func TestForkWithChanges(t *testing.T) { // A81
	gate := scripted.NewGate()
	heard := func(r providers.Request) scripted.Step {
		names := ""
		for _, tool := range r.Tools {
			names += " " + tool.Name
		}
		answer := scripted.Say(r.Model + ": " + r.Instructions + ":" + names)
		if r.Items[len(r.Items)-1].Content.Text() == "wait" {
			return scripted.Held(gate, answer)
		}
		return answer
	}
	cfg := config(scripted.Func(heard), toolOf("look", tool.ReadOnly, nil), toolOf("pay", tool.Pause, nil))
	cfg.Providers["other"] = scripted.Func(heard)
	s := actorstest.New(t, nil)
	node := s.Start(cfg)
	node.Must(ada, say("u1", "one"))
	s.Until(ada, "turn.completed")
	for name, set := range map[string]messages.ForkChanges{
		"no provider is named": {Model: "none/m"},
		"has no tool":          {Tools: []string{"look", "fly"}},
	} {
		answer := node.Do(ada, messages.Fork{ID: name, Fork: zoe.Full(), Set: set})
		if wantCode(t, answer, messages.BadInput); answer.Err != nil && !strings.Contains(answer.Err.Message, "the fork cannot be made with these changes") {
			t.Errorf("%s: got %v", name, answer.Err)
		}
	}
	brief, model := "Be long.", "other/n"
	node.Must(ada, messages.Fork{ID: "f1", Fork: zoe.Full(), Set: messages.ForkChanges{Model: model, Instructions: &brief, Tools: []string{"look"}}})
	s.Until(ada, "fork.settled")
	node.Must(zoe, say("u2", "two"))
	s.Until(zoe, "turn.completed")
	yan := actorstest.Agent("test", "yan")
	node.Must(zoe, messages.Fork{ID: "f2", Fork: yan.Full(), Set: messages.ForkChanges{Tools: []string{"pay"}}})
	s.Until(zoe, "fork.settled")
	node.Must(zoe, say("u3", "wait"))
	<-gate.Reached()
	node.Crash()
	gate.Release()
	node = s.Start(cfg)
	for _, a := range []messages.AgentID{ada, yan} {
		node.Must(a, say("u3", "three"))
	}
	node.Activate(zoe) // in the middle of a turn
	for a, want := range map[messages.AgentID]string{
		ada: "m: Be brief.: look pay", zoe: "n: Be long.: look", yan: "n: Be long.: pay",
	} {
		n := 1
		if a != yan {
			n = 2
		}
		done := actorstest.Of[messages.TurnCompleted](s.Until(a, "turn.completed", n))
		if got := done[len(done)-1].Output; got != want {
			t.Errorf("%s: got %q, want %q", a, got, want)
		}
	}
}

// Both continue after a fork, and neither sees what the other did later. Nothing of the prefix is stored
// for the fork, and a clear takes it back to that.
func TestForkOfARestingAgent(t *testing.T) { // A81
	for _, every := range []int{1, -1} { // with snapshots and without
		s := actorstest.New(t, nil)
		cfg := config(echo())
		cfg.SnapshotEvery = every
		node := s.Start(cfg)
		node.Must(ada, say("u1", "one"))
		s.Until(ada, "turn.completed")
		node.Must(ada, say("u2", "two"))
		all := s.Until(ada, "turn.completed", 2)
		at := messages.EventNumber(slices.IndexFunc(all, func(ev messages.Event) bool { return ev.EventType() == "turn.completed" }) + 1)
		forked(t, s, node, zoe, at)
		node.Must(ada, say("u3", "three"))
		node.Must(zoe, say("u2", "other"))
		s.Until(ada, "turn.completed", 3)
		s.Until(zoe, "turn.completed")

		node.Stop()
		node = s.Start(cfg)
		node.Must(zoe, say("u4", "four"))
		s.Until(zoe, "turn.completed", 2)
		for a, want := range map[messages.AgentID]string{
			ada: "one, heard one, two, heard two, three, heard three",
			zoe: "one, heard one, other, heard other, four, heard four",
		} {
			if got := wholeLog(t, s.Store(), a); got != want {
				t.Errorf("%s: got %s, want %s", a, got, want)
			}
		}
		if first := s.Frames(zoe)[0]; first.First != at+1 || first.Events[0].EventType() != "agent.forked" {
			t.Errorf("the fork's own log begins with event %d, %s", first.First, first.Events[0].EventType())
		}
		node.Must(zoe, messages.Clear{ID: "c1"})
		node.Must(zoe, say("u5", "five"))
		s.Until(zoe, "turn.completed", 3)
		if got, want := wholeLog(t, s.Store(), zoe), "one, heard one, five, heard five"; got != want {
			t.Errorf("cleared: got %s, want %s", got, want)
		}
	}
}

// tooled is a model that asks for a tool with each input and answers with the result, and the tool.
type tooled struct {
	calls []string
	gate  *scripted.Gate
}

func (f *tooled) config() actors.Config {
	model := scripted.Func(func(r providers.Request) scripted.Step {
		last := r.Items[len(r.Items)-1]
		if last.Type == messages.ItemCallOutput {
			return scripted.Say("got " + last.Output)
		}
		return scripted.Ask(scripted.Call{ID: "c1", Name: "pay", Arguments: last.Content.Text()})
	})
	type amount struct {
		N int `json:"n"`
	}
	pay := tool.New("pay", "pays", tool.Pause, func(ctx context.Context, a amount) (string, error) {
		f.calls = append(f.calls, tool.Key(ctx))
		if f.gate != nil {
			if err := f.gate.Wait(ctx); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("paid %d, call %d", a.N, len(f.calls)), nil
	})
	return config(model, pay)
}

// A fork's calls have the results that its parent had; others wait for a person, until tools are used.
func TestForkIsDry(t *testing.T) { // A81
	f := new(tooled)
	s := actorstest.New(t, nil)
	node := s.Start(f.config())
	node.Must(ada, say("u1", `{"n":1}`))
	all := s.Until(ada, "turn.completed")
	node.Must(ada, say("u2", `{"n":2}`))
	s.Until(ada, "turn.completed", 2)
	node.Must(ada, say("u3", `{"n": 2}`))
	s.Until(ada, "turn.completed", 3)
	forked(t, s, node, zoe, messages.EventNumber(len(all)))

	for i, want := range []string{"got paid 2, call 2", "got paid 2, call 3"} { // the n-th has the n-th result
		node.Must(zoe, say(fmt.Sprint("z", i), `{ "n": 2.0 }`))
		done := actorstest.Of[messages.TurnCompleted](s.Until(zoe, "turn.completed", i+1))
		if got := done[i].Output; got != want {
			t.Errorf("call %d: got %q, want %q", i, got, want)
		}
	}
	node.Must(zoe, say("z3", `{"n":2}`)) // there is no third
	s.Until(zoe, "turn.paused")
	unknown := actorstest.Of[messages.ToolUnknown](s.Events(zoe))
	if len(unknown) != 1 || !strings.Contains(unknown[0].Reason, "no recorded result") {
		t.Fatalf("a call that has no result on record: got %+v", unknown)
	}
	node.Must(zoe, messages.Decide{ID: "d1", Call: "c1", Outcome: messages.OutcomeCompleted, Result: "paid by hand"})
	s.Until(zoe, "turn.completed", 3)
	if len(f.calls) != 3 {
		t.Errorf("the tool was called for a dry fork: %q", f.calls)
	}
	node.Must(zoe, messages.UseTools{ID: "t1"})
	node.Must(zoe, say("z4", `{"n":7}`))
	done := actorstest.Of[messages.TurnCompleted](s.Until(zoe, "turn.completed", 4))
	if want := "got paid 7, call 4"; done[3].Output != want || !strings.HasPrefix(f.calls[3], zoe.Full()) {
		t.Errorf("with tools: got %q under key %q, want %q", done[3].Output, f.calls[3], want)
	}
}

// Calls are compared by the arguments that they run with, after hooks: the result that a tool gave for
// those is that of a call which has them in the fork, whatever the model had asked for.
func TestForkIsDryBehindHooks(t *testing.T) { // A81
	f := new(tooled)
	most := 5
	hook := actors.Hook{Name: "bounds", BeforeTool: func(_ context.Context, _ actors.HookInfo, c actors.HookedCall) (actors.Verdict, error) {
		return actors.Verdict{Do: actors.Rewrite, Arguments: fmt.Appendf(nil, `{"n":%d}`, most)}, nil
	}}
	cfg := with(f.config(), func(d *actors.Definition) { d.Hooks = []actors.Hook{hook} })
	s := actorstest.New(t, nil)
	node := s.Start(cfg)
	node.Must(ada, say("u1", `{"n":8}`))
	at := messages.EventNumber(len(s.Until(ada, "turn.completed")))
	node.Must(ada, say("u2", `{"n":7}`))
	s.Until(ada, "turn.completed", 2)
	forked(t, s, node, zoe, at)
	node.Must(zoe, say("z1", `{"n":6}`))
	done := actorstest.Of[messages.TurnCompleted](s.Until(zoe, "turn.completed"))
	if want := "got paid 5, call 2"; done[0].Output != want {
		t.Errorf("got %q, want %q", done[0].Output, want)
	}
	most = 6
	node.Must(zoe, say("z2", `{"n":7}`)) // as the parent was asked, but another call now
	s.Until(zoe, "tool.unknown")
}

// A fork inside of a turn waits for a person, and its parent's call is not made again.
func TestForkInsideATurn(t *testing.T) { // A81
	f := &tooled{gate: scripted.NewGate()}
	s := actorstest.New(t, nil)
	node := s.Start(f.config())
	node.Must(ada, say("u1", `{"n":1}`))
	s.Until(ada, "tool.started")
	node.Must(ada, say("u2", `{"n":2}`))
	forked(t, s, node, zoe, 0)
	paused := actorstest.Of[messages.TurnPaused](s.Until(zoe, "turn.paused"))
	if paused[0].Reason != projections.PausedFork {
		t.Errorf("got pause %+v", paused[0])
	}
	f.gate.Release()
	s.Until(ada, "turn.completed", 2)

	// What ran has what became of it in the parent.
	node.Must(zoe, messages.Resume{ID: "r1"})
	s.Until(zoe, "turn.paused", 2)
	node.Must(zoe, messages.Decide{ID: "d1", Call: "c1", Outcome: messages.OutcomeRetry})
	done := actorstest.Of[messages.TurnCompleted](s.Until(zoe, "turn.completed"))
	if want := "got paid 1, call 1"; done[0].Output != want {
		t.Errorf("got %q, want %q", done[0].Output, want)
	}
	if got := s.Types(zoe); slices.Contains(got, "input.accepted") || len(f.calls) != 2 {
		t.Errorf("the fork did the parent's work: events %v, calls %q", got, f.calls)
	}
}

// readsFrom is a log that notes from which events on an agent is read.
type readsFrom struct {
	eventlog.Log
	agent messages.AgentID
	mu    sync.Mutex
	from  []messages.EventNumber
}

func (l *readsFrom) Read(ctx context.Context, a messages.AgentID, r eventlog.Range) iter.Seq2[eventlog.Recorded, error] {
	if a == l.agent {
		l.mu.Lock()
		l.from = append(l.from, r.Event())
		l.mu.Unlock()
	}
	return l.Log.Read(ctx, a, r)
}

// A dry call of the parent's does not read what the parent did before that call's turn.
func TestDryCallReadsItsTurn(t *testing.T) { // A81
	f := new(tooled)
	s := actorstest.New(t, nil)
	log := &readsFrom{Log: s.Store(), agent: ada}
	cfg := f.config()
	cfg.Store.Log = log
	node := s.Start(cfg)
	for n := range 2 {
		node.Must(ada, say(fmt.Sprint("u", n), fmt.Sprintf(`{"n":%d}`, n)))
		s.Until(ada, "turn.completed", n+1)
	}
	types := s.Types(ada)
	begun := len(types) - 1
	for types[begun] != "tool.started" {
		begun--
	}
	forked(t, s, node, zoe, messages.EventNumber(begun+1))
	s.Until(zoe, "turn.paused")
	log.from = nil
	node.Must(zoe, messages.Resume{ID: "r1"})
	s.Until(zoe, "turn.paused", 2)
	node.Must(zoe, messages.Decide{ID: "d1", Call: "c1", Outcome: messages.OutcomeRetry})
	done := actorstest.Of[messages.TurnCompleted](s.Until(zoe, "turn.completed"))
	if want := "got paid 1, call 2"; done[0].Output != want {
		t.Errorf("got %q, want %q", done[0].Output, want)
	}
	if want := []messages.EventNumber{done[0].Turn.Start()}; !slices.Equal(log.from, want) {
		t.Errorf("the parent was read from events %v on, want %v", log.from, want)
	}
}

// A fork ends the turn of an input that its parent was sent, and answers no one who waits at the
// parent for that.
func TestForkAnswersNoOneOfItsParent(t *testing.T) { // A81
	f := &tooled{gate: scripted.NewGate()}
	s := actorstest.New(t, nil)
	cfg := f.config()
	node := s.Start(cfg)
	in := say("u1", `{"n":1}`)
	in.Reply = "answers.ann"
	node.Must(ada, in)
	s.Until(ada, "tool.started")
	later := say("u2", `{"n":2}`)
	later.Reply, later.Schedule = "answers.ann", messages.Schedule{In: messages.Span(time.Hour)}
	node.Must(ada, later)
	forked(t, s, node, zoe, 0)
	f.gate.Release()
	s.Until(ada, "turn.completed")
	node.Stop() // the next owner reads all of it from the log

	observer := newObserver()
	cfg.Observer = observer
	cfg.SnapshotEvery = -1
	node = s.Start(cfg)
	node.Activate(zoe)
	node.Must(zoe, messages.Resume{ID: "r1"})
	node.Must(zoe, messages.Decide{ID: "d1", Call: "c1", Outcome: messages.OutcomeCompleted, Result: "paid"})
	s.Until(zoe, "turn.completed")
	node.Stop()
	observer.mu.Lock()
	defer observer.mu.Unlock()
	for _, r := range observer.replies {
		if r.Agent == zoe {
			t.Errorf("the fork owes %s to %s", r.Event.EventType(), r.Subject)
		}
	}
}

// A fork is refused onto an agent that exists, or did, and behind the end; nothing is recorded of it.
func TestForkRefused(t *testing.T) { // A81
	s := actorstest.New(t, nil)
	node := s.Start(config(echo()))
	node.Must(ada, say("u1", "one"))
	node.Must(bob, say("u1", "one"))
	s.Until(ada, "turn.completed")
	s.Until(bob, "turn.completed")
	gone := actorstest.Agent("test", "gone")
	node.Must(gone, say("u1", "one"))
	s.Until(gone, "turn.completed")
	node.Must(gone, messages.Delete{ID: "d1"})
	elsewhere := messages.AgentID{Tenant: "other", Kind: "test", Key: "x"}
	node.Must(elsewhere, say("u1", "one"))
	s.Until(elsewhere, "turn.completed")
	s.Rest()
	before := s.Types(ada)
	for name, tc := range map[string]struct {
		c    messages.Fork
		code messages.Code
	}{
		"an agent that exists":  {messages.Fork{Fork: bob.Full()}, messages.Conflict},
		"one that was deleted":  {messages.Fork{Fork: gone.Full()}, messages.Conflict},
		"the agent itself":      {messages.Fork{Fork: ada.Full()}, messages.Conflict},
		"behind the end":        {messages.Fork{Fork: zoe.Full(), At: 99}, messages.NotFound},
		"a kind that is no one": {messages.Fork{Fork: "default/none/x"}, messages.UnknownKind},
		"of another tenant":     {messages.Fork{Fork: elsewhere.Full()}, messages.BadInput},
		"no address":            {messages.Fork{Fork: "x"}, messages.BadAddress},
	} {
		tc.c.ID = name
		if answer := node.Do(ada, tc.c); answer.Err == nil || answer.Err.Code != tc.code {
			t.Errorf("%s: got %+v, want %s", name, answer, tc.code)
		}
	}
	if got := s.Types(ada); len(got) != len(before) {
		t.Errorf("events %v were recorded", got[len(before):])
	}
	// The fork's owner decides: an agent may have come meanwhile.
	c := messages.BeginFork{ID: "fork:x", Parent: ada.Full(), At: 3}
	for a, code := range map[messages.AgentID]messages.Code{bob: messages.Conflict, gone: messages.Conflict} {
		if answer := node.Do(a, c); answer.Err == nil || answer.Err.Code != code {
			t.Errorf("%s: got %+v, want %s", a, answer, code)
		}
	}
	c.At = 99
	wantCode(t, node.Do(zoe, c), messages.NotFound)
	// Event 4 is turn.started, of the same frame as model.requested.
	for at, want := range map[messages.EventNumber]string{
		4: "events 4 to 5 of turn t4 of agent " + c.Parent + " were recorded in one step: fork it at 3, before them, or at 5, behind them",
		6: "events 6 to 7 of turn t4 of agent " + c.Parent + " were recorded in one step: fork it at 5, before them, or at 7, behind them",
	} {
		c.At = at
		if answer := node.Do(zoe, c); answer.Err == nil || answer.Err.Code != messages.Conflict || answer.Err.Message != want {
			t.Errorf("at %d, inside of a step: got %+v, want %s", at, answer, want)
		}
	}
	c.Parent = gone.Full()
	c.At = 2
	wantCode(t, node.Do(zoe, c), messages.NotFound)
	if got := s.Types(zoe); len(got) > 0 {
		t.Errorf("a fork that was refused has events %v", got)
	}
}

// The parent of a fork may have had a life before, whose events are gone: the fork begins where its
// parent does, and not within that life.
func TestForkOfALaterLife(t *testing.T) {
	for _, every := range []int{1, -1} { // with snapshots and without
		s := actorstest.New(t, nil)
		cfg := config(echo())
		cfg.SnapshotEvery = every
		node := s.Start(cfg)
		node.Must(ada, say("u1", "one"))
		s.Until(ada, "turn.completed")
		deleted := node.Must(ada, messages.Delete{ID: "d1"}).N
		node.Must(ada, say("u2", "two"))
		s.Until(ada, "turn.completed", 2) // of both lives
		for _, at := range []messages.EventNumber{1, deleted - 1, deleted} {
			answer := node.Do(zoe, messages.BeginFork{ID: fmt.Sprint("fork:", at), Parent: ada.Full(), At: at})
			if wantCode(t, answer, messages.NotFound); answer.Err != nil && !strings.Contains(answer.Err.Message, "of agent "+ada.String()+" is not stored (any more)") {
				t.Errorf("at %d: got %v", at, answer.Err)
			}
		}
		forked(t, s, node, zoe, 0)
		node.Stop()
		node = s.Start(cfg)
		node.Must(zoe, say("u3", "three"))
		s.Until(zoe, "turn.completed")
		if got, want := wholeLog(t, s.Store(), zoe), "two, heard two, three, heard three"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A fork of a fork is refused, and nothing recorded, where its log could not be read. One that was
// detached can be forked: it begins with a copy of its own.
func TestForkOfTooManyForks(t *testing.T) {
	s := actorstest.New(t, nil)
	cfg := config(echo())
	cfg.SnapshotEvery = -1
	node := s.Start(cfg)
	node.Must(ada, say("u1", "one"))
	s.Until(ada, "turn.completed")
	parent := ada
	for i := range messages.MaxPrefixes {
		fork := actorstest.Agent("test", fmt.Sprint("fork", i))
		node.Must(parent, messages.Fork{ID: "f", Fork: fork.Full()})
		s.Until(parent, "fork.settled")
		parent = fork
	}
	wantCode(t, node.Do(parent, messages.Fork{ID: "f", Fork: zoe.Full()}), messages.Conflict)
	node.Stop()
	node = s.Start(cfg)
	node.Must(parent, say("u2", "two"))
	s.Until(parent, "turn.completed")
	node.Must(parent, messages.Detach{ID: "d"})
	node.Must(parent, messages.Fork{ID: "f", Fork: zoe.Full()})
	if settled := actorstest.Of[messages.ForkSettled](s.Until(parent, "fork.settled")); settled[0].Refused != "" {
		t.Errorf("the fork was refused: %+v", settled[0])
	}
	for _, id := range []messages.AgentID{parent, zoe} {
		if got, want := wholeLog(t, s.Store(), id), "one, heard one, two, heard two"; got != want {
			t.Errorf("%s: got %s, want %s", id, got, want)
		}
	}
}

// A fork that begins after its parent has been informed of a refusal is on record there all the same:
// the parent is not deleted before it.
func TestForkBegunAfterARefusal(t *testing.T) {
	s := actorstest.New(t, nil)
	node := s.Start(config(echo()))
	node.Must(ada, say("u1", "one"))
	at := messages.EventNumber(len(s.Until(ada, "turn.completed")))
	begin := messages.BeginFork{ID: "fork:x", Parent: ada.Full(), At: at}
	node.Must(zoe, begin)
	s.Until(zoe, "agent.forked")
	effect := messages.ForkEffect{ID: "report:x", Fork: zoe.Full(), Begin: begin.ID, N: at + 1}
	node.Do(ada, effect)
	effect.ID = "report:y"
	node.Do(ada, effect)
	effect.ID, effect.Fork, effect.N = "report:z", bob.Full(), at+100
	node.Do(ada, effect)
	if settled := actorstest.Of[messages.ForkSettled](s.Events(ada)); len(settled) != 1 || settled[0].Fork != zoe.Full() || settled[0].N != at+1 {
		t.Errorf("got %+v, want that %s has begun, once", settled, zoe)
	}
	wantCode(t, node.Do(ada, messages.Delete{ID: "d1"}), messages.Conflict)
	node.Must(zoe, messages.Delete{ID: "d2"})
	node.Must(ada, messages.Delete{ID: "d1"})
}

// A fork is made though the nodes of both stop at every moment of it, and once.
func TestForkThroughCrashes(t *testing.T) { // A81
	for crash := range 3 {
		s := actorstest.New(t, nil)
		node := s.Start(config(echo()))
		node.Must(ada, say("u1", "one"))
		s.Until(ada, "turn.completed")
		node.Must(ada, messages.Fork{ID: "f1", Fork: zoe.Full()})
		switch crash {
		case 1:
			s.Until(zoe, "agent.forked")
		case 2:
			s.Until(ada, "fork.settled")
		}
		node.Crash()
		node = s.Start(config(echo()))
		for _, a := range s.Owing() {
			node.Activate(a)
		}
		s.Until(ada, "fork.settled")
		again := node.Must(ada, messages.Fork{ID: "f1", Fork: zoe.Full()})
		if !again.Duplicate {
			t.Errorf("crash %d: the same fork again: got %+v", crash, again)
		}
		node.Must(zoe, say("u2", "two"))
		s.Until(zoe, "turn.completed")
		if got, want := wholeLog(t, s.Store(), zoe), "one, heard one, two, heard two"; got != want {
			t.Errorf("crash %d: got %s, want %s", crash, got, want)
		}
		if n := count(s.Events(zoe), "agent.forked"); n != 1 {
			t.Errorf("crash %d: it was forked %d times", crash, n)
		}
	}
}

// A parent is not deleted while a fork begins with its events, and is once the fork is gone.
func TestDeleteOfAParent(t *testing.T) {
	s := actorstest.New(t, nil)
	node := s.Start(config(echo()))
	node.Must(ada, say("u1", "one"))
	s.Until(ada, "turn.completed")
	forked(t, s, node, zoe, 0)
	wantCode(t, node.Do(ada, messages.Delete{ID: "d1"}), messages.Conflict)
	node.Must(zoe, messages.Delete{ID: "d2"})
	node.Must(zoe, say("u3", "another life")) // which is no fork
	s.Until(zoe, "turn.completed")
	node.Must(ada, messages.Delete{ID: "d1"})
	wantNothing(t, s.Store(), ada)
	if got, want := wholeLog(t, s.Store(), zoe), "another life, heard another life"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// To fork an agent stores as much for 100,000 events as for 100.
func TestForkStoresNothingOfItsPrefix(t *testing.T) {
	stored := func(events int) (bytes int) {
		store := memlog.NewStore()
		s := actorstest.New(t, &store)
		for n := 0; n < events; n += 500 {
			frame := make([]messages.Event, min(500, events-n))
			for i := range frame {
				frame[i] = messages.StatePatched{Patch: []byte(`{"a":1}`)}
			}
			if n == 0 {
				frame[0] = messages.AgentCreated{Agent: ada.Full()}
			}
			s.Given(ada, frame...)
		}
		cfg := config(echo())
		cfg.SnapshotEvery = -1
		forked(t, s, s.Start(cfg), zoe, messages.EventNumber(events))
		for _, e := range s.Entries(zoe) {
			bytes += len(e.Bytes)
		}
		return bytes
	}
	if few, many := stored(100), stored(20_000); many > few+16 {
		t.Errorf("a fork takes %d bytes at event 100 and %d at event 20,000", few, many)
	}
}

// A child is not forked with its parent. A call of it that ran gets what became of it in the parent, or the
// answer of a fork of the child.
func TestForkOfAParentWithAChild(t *testing.T) { // A70, A81
	f := &family{gate: scripted.NewGate()}
	s := actorstest.New(t, nil)
	node := s.Start(f.config())
	node.Must(root, say("u1", "pay it"))
	<-f.gate.Reached()
	middle := below(t, s, root)
	other, answered, later := actorstest.Agent("middle", "other"), actorstest.Agent("root", "answered"), actorstest.Agent("root", "later")
	fork := func(of, as messages.AgentID) {
		t.Helper()
		node.Must(of, messages.Fork{ID: "fork-" + as.Key, Fork: as.Full(), At: messages.EventNumber(len(s.Events(of)))})
		s.Until(as, "turn.paused")
		node.Must(as, messages.Resume{ID: "r1"})
	}
	decide := func(a messages.AgentID, outcome messages.Outcome, result string) string {
		t.Helper()
		node.Must(a, messages.Decide{ID: "d1", Call: "c1", Outcome: outcome, Result: result})
		return actorstest.Of[messages.TurnCompleted](s.Until(a, "turn.completed"))[0].Output
	}
	fork(middle, other)
	fork(root, answered)
	answer := decide(other, messages.OutcomeCompleted, "the leaf says no")
	if got, want := decide(answered, messages.OutcomeCompleted, answer), "root: middle: the leaf says no"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	fork(root, later)
	f.gate.Release()
	waiting := actorstest.Of[messages.ChildWaiting](s.Until(root, "child.waiting"))[0].Waiting[0]
	node.Must(root, messages.Approve{ID: "a1", Call: waiting.Call})
	s.Until(root, "turn.completed")
	if got, want := decide(later, messages.OutcomeRetry, ""), "root: middle: leaf: paid"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, a := range []messages.AgentID{other, answered, later} {
		if count(s.Events(a), "child.spawned") != 0 {
			t.Errorf("%s has a child: %v", a, s.Types(a))
		}
	}
	if len(f.paid) != 1 {
		t.Errorf("got the payments %v, want one", f.paid)
	}
}
