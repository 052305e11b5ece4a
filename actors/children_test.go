package actors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// family is a root, a middle and a leaf agent. Each is a tool of the one above, and the leaf
// has a tool that needs approval.
type family struct {
	mu   sync.Mutex
	paid map[string]int // by idempotency key
	// gate blocks the model of the leaf if it is not nil.
	gate *scripted.Gate
	fail bool // the model of the leaf fails
}

var root = actorstest.Agent("root", "r")

// answer is one step of every model: it calls the agent or the tool below once and answers
// with the result.
func (f *family) answer(r providers.Request) scripted.Step {
	last := r.Items[len(r.Items)-1]
	if last.Type == messages.ItemCallOutput {
		step := scripted.Say(r.Agent.Kind + ": " + last.Output)
		step.Usage = messages.Usage{Input: 10, Output: 1}
		return step
	}
	var step scripted.Step
	switch below := map[string]string{"root": "middle", "middle": "leaf"}[r.Agent.Kind]; {
	case below != "":
		arguments, _ := json.Marshal(map[string]string{"input": r.Agent.Kind + " asks: " + last.Content.Text()})
		step = scripted.Ask(scripted.Call{ID: "c1", Name: below, Arguments: string(arguments)})
	case f.fail:
		step = scripted.Fail(errors.New("no more"))
	default:
		step = scripted.Ask(scripted.Call{ID: "c1", Name: "pay", Arguments: "{}"})
		if f.gate != nil {
			step = scripted.Held(f.gate, step)
		}
	}
	step.Usage = messages.Usage{Input: 10, Output: 1}
	return step
}

func (f *family) pay(ctx context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.paid == nil {
		f.paid = make(map[string]int)
	}
	f.paid[tool.Key(ctx)]++
	return "paid", nil
}

func (f *family) config() actors.Config {
	kind := func(name string, tools ...tool.Tool) actors.Definition {
		return actors.Definition{Kind: name, Model: "scripted/m", Tools: tools}
	}
	return actors.Config{
		SnapshotEvery: 1, // snapshots must contain undelivered outbox messages
		Providers:     providers.Set{"scripted": scripted.Func(f.answer)},
		Definitions: []actors.Definition{
			kind("root", actors.AsTool("middle", "asks middle")),
			kind("middle", actors.AsTool("leaf", "asks leaf")),
			kind("leaf", toolOf("pay", tool.Rerun, f.pay).ApproveAlways()),
		},
	}
}

// below returns the child of an agent, which has exactly one.
func below(t *testing.T, s *actorstest.Stage, a messages.AgentID) messages.AgentID {
	t.Helper()
	spawned := actorstest.Of[messages.ChildSpawned](s.Until(a, "child.spawned"))
	child, err := messages.ParseAgentID(spawned[0].Child)
	if err != nil || len(spawned) != 1 {
		t.Fatalf("got the children %v, want one: %v", spawned, err)
	}
	return child
}

// TestApprovedTwoLevelsDown approves a call two levels down at the root. All levels complete,
// each is linked to its parent and its child, each log has only its own events, and usage is
// counted once.
func TestApprovedTwoLevelsDown(t *testing.T) { // A45, A70, A52
	f := new(family)
	s := actorstest.New(t, nil)
	node := s.Start(f.config())
	node.Must(root, say("u1", "pay it"))
	paused := actorstest.Of[messages.ChildWaiting](s.Until(root, "turn.paused"))
	middle := below(t, s, root)
	leaf := below(t, s, middle)
	w := paused[len(paused)-1].Waiting
	if len(w) != 1 || w[0].Agent != leaf.Full() || w[0].Tool != "pay" || w[0].Kind != messages.WaitApproval || w[0].ArgsHash != messages.HashArguments("{}") {
		t.Fatalf("the root: got waiting calls %+v, want the call of pay at the leaf", w)
	}
	if all := s.Entries(root); all[len(all)-1].Summary.Waiting != 1 || all[len(all)-1].Summary.Open {
		t.Errorf("the root's newest head: got %+v, want one call that waits and nothing open", all[len(all)-1].Summary)
	}
	for _, a := range []messages.AgentID{middle, leaf} { // otherwise the child may report only its end
		s.Until(a, "child.reported")
	}
	node.Must(root, messages.Approve{ID: "a1", Call: "c1", Turn: w[0].Turn, ArgsHash: w[0].ArgsHash, Reason: "fine"})
	done := actorstest.Of[messages.TurnCompleted](s.Until(root, "turn.completed"))[0]
	if done.Output != "root: middle: leaf: paid" {
		t.Errorf("the root: got output %q, want the payment", done.Output)
	}
	if want := (messages.Usage{Input: 60, Output: 6}); done.Usage != want {
		t.Errorf("the root's turn: got usage %+v, want %+v", done.Usage, want)
	}
	settled := actorstest.Of[messages.ChildSettled](s.Until(root, "child.settled"))
	if granted := slices.Index(s.Types(leaf), "approval.granted") + 1; len(settled) != 1 || settled[0].Refused != "" || settled[0].Waits != "c1" || settled[0].N != messages.EventNumber(granted) {
		t.Errorf("the root: got child.settled %+v, want one of event %d", settled, granted)
	}
	for _, link := range []struct{ parent, child messages.AgentID }{{root, middle}, {middle, leaf}} {
		accepted := actorstest.Of[messages.InputAccepted](s.Events(link.child))
		if p := accepted[0].Parent; p == nil || p.Agent != link.parent.Full() || p.Call != "c1" || len(accepted) != 1 {
			t.Errorf("the task of %s: got parent %+v, want the call c1 of %s", link.child, p, link.parent)
		}
		ends(t, s.Events(link.child))
		s.Await(link.child, func(all []messages.Event) bool { // the child reports that it waits, perhaps that it resumed, and its end
			reports := actorstest.Of[messages.ChildReported](all)
			return reports[0].What == messages.ReportWaiting && reports[len(reports)-1].What == messages.ReportCompleted
		})
	}
	if len(f.paid) != 1 || len(s.Agents()) != 3 {
		t.Errorf("got payments %v by agents %v, want one payment and 3 agents", f.paid, s.Agents())
	}
	s.Rest()
}

// TestDeniedTwoLevelsDown denies a call at the root. Every child ends.
func TestDeniedTwoLevelsDown(t *testing.T) { // A45
	f := new(family)
	s := actorstest.New(t, nil)
	node := s.Start(f.config())
	node.Must(root, say("u1", "pay it"))
	s.Until(root, "turn.paused")
	text := "too dear"
	node.Must(root, messages.Deny{ID: "d1", Call: "c1", Turn: actorstest.Of[messages.ChildWaiting](s.Events(root))[0].Waiting[0].Turn, Text: &text})
	if done := actorstest.Of[messages.TurnCompleted](s.Until(root, "turn.completed"))[0]; done.Output != "root: middle: leaf: too dear" {
		t.Errorf("the root: got output %q, want the reason of the denial", done.Output)
	}
	middle := below(t, s, root)
	for _, a := range []messages.AgentID{root, middle, below(t, s, middle)} {
		if all := s.Entries(a); all[len(all)-1].Summary.Phase != "idle" {
			t.Errorf("%s: got phase %s, want idle", a, all[len(all)-1].Summary.Phase)
		}
	}
	if len(f.paid) != 0 {
		t.Errorf("got payments %v, want none", f.paid)
	}
}

// blockedAgent is a log in which the appends of one agent block while it is shut.
type blockedAgent struct {
	eventlog.Log
	mu   sync.Mutex
	of   messages.AgentID
	open chan struct{} // nil: no appends block
}

func (l *blockedAgent) shut(a messages.AgentID) (open func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of, l.open = a, make(chan struct{})
	return sync.OnceFunc(func() { close(l.open) })
}

func (l *blockedAgent) Append(ctx context.Context, e eventlog.Entry) (eventlog.Position, error) {
	l.mu.Lock()
	of, open := l.of, l.open
	l.mu.Unlock()
	if open != nil && e.Agent == of {
		select {
		case <-open:
		case <-ctx.Done():
			return eventlog.Position{}, ctx.Err()
		}
	}
	return l.Log.Append(ctx, e)
}

// TestContradictedBelow denies a call at the leaf and approves it at the root before the
// denial arrives there. The log of the root records that its decision had no effect.
func TestContradictedBelow(t *testing.T) { // A45
	f := new(family)
	s := actorstest.New(t, nil)
	log := &blockedAgent{Log: s.Store().Log}
	cfg := f.config()
	cfg.Store.Log = log
	node := s.Start(cfg)
	node.Must(root, say("u1", "pay it"))
	s.Until(root, "turn.paused")
	middle := below(t, s, root)
	leaf := below(t, s, middle)
	open := log.shut(middle)
	defer open()
	text := "too dear"
	node.Must(leaf, messages.Deny{ID: "d1", Call: "c1", Text: &text})
	if answer := node.Must(root, messages.Approve{ID: "a1", Call: "c1"}); answer.ForwardedTo != leaf.Full() {
		t.Errorf("the approve at the root: got %+v, want it passed to the leaf", answer)
	}
	all := s.Until(root, "child.settled")
	decided, settled := actorstest.Of[messages.ChildDecided](all)[0], actorstest.Of[messages.ChildSettled](all)[0]
	if settled.Refused == "" || settled.Message == "" || settled.N != 0 || settled.ID != decided.ID || settled.Agent != leaf.Full() || settled.Command != "approve" {
		t.Errorf("the root: got child.settled %+v, want a refusal of %+v", settled, decided)
	}
	open()
	if done := actorstest.Of[messages.TurnCompleted](s.Until(root, "turn.completed"))[0]; done.Output != "root: middle: leaf: too dear" {
		t.Errorf("the root: got output %q, want the reason of the denial", done.Output)
	}
	s.Rest()
	if n := count(s.Events(root), "child.settled"); n != 1 || len(f.paid) != 0 {
		t.Errorf("got %d child.settled and payments %v, want 1 and none", n, f.paid)
	}
}

// TestWaitingCallsAreBounded has more calls wait below than an agent lists. The list is
// marked as incomplete and has the expiry of each call in it.
func TestWaitingCallsAreBounded(t *testing.T) { // A45
	const calls = messages.MaxWaits + 8
	f := new(family)
	cfg := f.config()
	cfg.Definitions[2].ApprovalTimeout = time.Hour
	cfg.Providers = providers.Set{"scripted": scripted.Func(func(r providers.Request) scripted.Step {
		if r.Agent.Kind != "leaf" || r.Items[len(r.Items)-1].Type == messages.ItemCallOutput {
			return f.answer(r)
		}
		var list []scripted.Call
		for i := range calls {
			list = append(list, scripted.Call{ID: messages.CallID(fmt.Sprint("p", i)), Name: "pay", Arguments: "{}"})
		}
		return scripted.Ask(list...)
	})}
	s := actorstest.New(t, nil)
	node := s.Start(cfg)
	node.Must(root, say("u1", "pay it"))
	waiting := actorstest.Of[messages.ChildWaiting](s.Until(root, "turn.paused"))
	last := waiting[len(waiting)-1]
	leaf := below(t, s, below(t, s, root))
	asked := actorstest.Of[messages.ApprovalRequested](s.Events(leaf))
	if len(last.Waiting) != messages.MaxWaits || !last.More || len(asked) != calls {
		t.Fatalf("got %d of %d calls listed, more %v; want a full list and more", len(last.Waiting), len(asked), last.More)
	}
	var q projections.Work
	for i, ev := range s.Events(root) {
		q.Apply(messages.EventNumber(i+1), ev)
	}
	if !q.More() {
		t.Error("got a complete list, want one that is marked as incomplete")
	}
	for i, p := range q.Approvals(root) {
		if p.Agent != leaf || asked[i].ExpiresAt == nil || !p.ExpiresAt.Equal(*asked[i].ExpiresAt) {
			t.Errorf("got %+v for %+v, want the same agent and expiry", p, asked[i])
		}
	}
	for i := range calls {
		id := messages.CallID(fmt.Sprint("p", i))
		s.Await(root, func(all []messages.Event) bool {
			list := actorstest.Of[messages.ChildWaiting](all)
			return slices.ContainsFunc(list, func(ev messages.ChildWaiting) bool {
				return slices.ContainsFunc(ev.Waiting, func(w messages.Wait) bool { return w.Call == id })
			})
		})
		node.Must(root, messages.Deny{ID: fmt.Sprint("d", i), Call: id})
	}
	ends(t, s.Until(root, "turn.completed"))
	all := s.Await(root, func(all []messages.Event) bool { return count(all, "child.settled") == calls })
	for _, ev := range actorstest.Of[messages.ChildSettled](all) {
		if ev.Refused != "" {
			t.Errorf("the decision on %s: got refusal %q, want none", ev.Waits, ev.Message)
		}
	}
}

// TestInterruptStopsChildren interrupts the root during the model call of the leaf. Every
// level ends, and each reports to its parent.
func TestInterruptStopsChildren(t *testing.T) { // A70
	f := &family{gate: scripted.NewGate()}
	defer f.gate.Release()
	s := actorstest.New(t, nil)
	node := s.Start(f.config())
	node.Must(root, say("u1", "pay it"))
	<-f.gate.Reached()
	node.Must(root, messages.Interrupt{ID: "i1", Reason: "enough"})
	stopped := actorstest.Of[messages.ChildStopped](s.Until(root, "child.stopped"))
	middle := below(t, s, root)
	leaf := below(t, s, middle)
	s.Until(middle, "child.stopped")
	for _, a := range []messages.AgentID{middle, leaf} {
		if by := actorstest.Of[messages.TurnAborted](s.Until(a, "turn.aborted")); by[0].By != "cancel_child" {
			t.Errorf("%s: got an abort by %s, want cancel_child", a, by[0].By)
		}
	}
	if stopped[0].How != "aborted" || stopped[0].Usage.Input != 10 {
		t.Errorf("the root: got %+v, want an aborted child with 10 input tokens", stopped[0])
	}
}

// TestChildFailureIsAToolError has the model of the leaf fail. The levels above continue.
func TestChildFailureIsAToolError(t *testing.T) { // A70
	f := &family{fail: true}
	s := actorstest.New(t, nil)
	s.Start(f.config()).Must(root, say("u1", "pay it"))
	done := actorstest.Of[messages.TurnCompleted](s.Until(root, "turn.completed"))[0]
	if !strings.HasPrefix(done.Output, "root: middle: agent default/leaf/") || !strings.Contains(done.Output, "(bad_answer): no more") {
		t.Errorf("the root: got output %q, want the failure of the leaf", done.Output)
	}
	failed := actorstest.Of[messages.ToolFailed](s.Events(below(t, s, root)))
	if len(failed) != 1 || failed[0].Kind != "child" {
		t.Errorf("the middle: got failures %+v, want one of kind child", failed)
	}
}

// TestAgentsThatAskOneAnother has two agents call each other. The calls end at the limit of
// depth, and the root answers.
func TestAgentsThatAskOneAnother(t *testing.T) { // A74
	f := func(r providers.Request) scripted.Step {
		if last := r.Items[len(r.Items)-1]; last.Type == messages.ItemCallOutput {
			return scripted.Say("I was told: " + last.Output)
		}
		return scripted.Ask(scripted.Call{ID: "c1", Name: map[string]string{"ping": "pong", "pong": "ping"}[r.Agent.Kind], Arguments: `{"input":"you do it"}`})
	}
	kind := func(name, asks string) actors.Definition {
		return actors.Definition{Kind: name, Model: "scripted/m", Tools: []tool.Tool{actors.AsTool(asks, "asks "+asks)}}
	}
	s := actorstest.New(t, nil)
	a := actorstest.Agent("ping", "p")
	s.Start(actors.Config{Providers: providers.Set{"scripted": scripted.Func(f)}, Definitions: []actors.Definition{kind("ping", "pong"), kind("pong", "ping")}}).
		Must(a, say("u1", "hello"))
	done := actorstest.Of[messages.TurnCompleted](s.Until(a, "turn.completed"))[0]
	if !strings.HasSuffix(done.Output, "do it without asking another") || len(s.Agents()) != messages.MaxCallers+1 {
		t.Errorf("got %d agents and output %q, want %d and the limit of depth", len(s.Agents()), done.Output, messages.MaxCallers+1)
	}
}

// TestAnAnswerThatIsLost loses the report of a child that has ended. When its task or a cancel
// is delivered again, the child sends the report again.
func TestAnAnswerThatIsLost(t *testing.T) { // A71, A8
	f := new(family)
	s := actorstest.New(t, nil)
	leaf := actorstest.Agent("leaf", "l")
	cfg := f.config()
	task := messages.Task{ID: "t1", Content: messages.TextContent("pay it"), Parent: messages.Parent{Caller: messages.Caller{Agent: root.Full(), Turn: "t1", Call: "c1"}}}
	f.fail = true
	node := s.Start(cfg)
	node.Must(leaf, task)
	s.Until(leaf, "child.reported")
	before := len(s.Messages())
	for i, again := range []messages.Command{task, messages.CancelChild{ID: "r1", Input: "t1", Parent: task.Parent}} {
		node.Must(leaf, again)
		for late := time.After(time.Minute); len(s.Messages()) < before+i+1; {
			select {
			case <-late:
				t.Fatalf("got no report after a second %s", again.CommandType())
			case <-time.After(time.Millisecond):
			}
		}
		outbox := s.Messages()
		first, last := outbox[0].Command.(messages.Report), outbox[len(outbox)-1].Command.(messages.Report)
		if first.ID != last.ID || last.What != messages.ReportFailed || last.Message != first.Message || last.Used != first.Used {
			t.Errorf("got the reports %+v\nand %+v, want the same", first, last)
		}
	}
}

// TestArgumentsOfAChild holds that arguments are validated before a child is called, and that
// arguments of a custom schema reach the child unchanged.
func TestArgumentsOfAChild(t *testing.T) {
	asked := make(chan string, 10)
	model := func(r providers.Request) scripted.Step {
		last := r.Items[len(r.Items)-1]
		switch {
		case r.Agent.Kind == "helper":
			asked <- last.Content.Text()
			return scripted.Say("ok")
		case last.Type == messages.ItemCallOutput:
			return scripted.Say("done")
		}
		return scripted.Ask(scripted.Call{ID: "c1", Name: "helper", Arguments: `{"text":"x"}`}, scripted.Call{ID: "c2", Name: "order", Arguments: `{"n":2}`})
	}
	order := actors.AsTool("helper", "orders").Named("order").Parameters(json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`))
	s := actorstest.New(t, nil)
	s.Start(actors.Config{Providers: providers.Set{"scripted": scripted.Func(model)}, Definitions: []actors.Definition{
		{Kind: "test", Model: "scripted/m", Tools: []tool.Tool{actors.AsTool("helper", "helps"), order}},
		{Kind: "helper", Model: "scripted/m"},
	}}).Must(ada, say("u1", "go"))
	all := s.Until(ada, "turn.completed")
	if failed := actorstest.Of[messages.ToolFailed](all); len(failed) != 1 || failed[0].Kind != "bad_arguments" || failed[0].Call != "c1" {
		t.Errorf("got failures %+v, want bad_arguments of c1", failed)
	}
	if got := <-asked; got != `{"n":2}` || len(asked) != 0 {
		t.Errorf("the child: got input %q, want {\"n\":2} once", got)
	}
}

// TestDefinitionsWithChildren holds that definitions that cannot work are rejected.
func TestDefinitionsWithChildren(t *testing.T) {
	def := actors.Definition{Kind: "test", Model: "scripted/m", Tools: []tool.Tool{actors.AsTool("gone", "asks nobody")}}
	cfg := actors.Config{Store: actorstest.New(t, nil).Store(), Providers: providers.Set{"scripted": echo()}, Definitions: []actors.Definition{def}}
	if _, err := actors.NewRuntime(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), `kind "gone", which is not defined`) {
		t.Errorf("an undefined kind: got error %v, want one that names it", err)
	}
	cfg.Definitions = append(cfg.Definitions, actors.Definition{Kind: "gone", Model: "scripted/m"})
	if _, err := actors.NewRuntime(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), "Config.Send") {
		t.Errorf("without Send: got error %v, want one that names Config.Send", err)
	}
}

// TestEveryBoundaryOfAFamily plays a call that waits two levels down and is approved at the
// root, with a crash at every frame of the three agents. The call ends once at every level,
// and nothing is paid twice.
func TestEveryBoundaryOfAFamily(t *testing.T) { // A24, A45, A71
	frames := 0
	synctest.Test(t, func(t *testing.T) { frames = new(family).play(t, bomb{}) })
	for part := range 4 {
		t.Run(fmt.Sprint("part", part), func(t *testing.T) {
			t.Parallel()
			for at := part + 1; at <= frames && !t.Failed(); at += 4 {
				for _, b := range bombs(at) {
					synctest.Test(t, func(t *testing.T) { new(family).play(t, b) })
				}
			}
		})
	}
	t.Logf("%d frames", frames)
}

// play plays the story with a fault and returns the number of frames.
func (f *family) play(t *testing.T, b bomb) int {
	s := actorstest.New(t, nil)
	log := &mined{Log: s.Store().Log, bomb: b, boom: make(chan struct{})}
	cfg := f.config()
	cfg.Store.Log = log
	node := s.Start(cfg)
	boom := log.boom
	commands := []messages.Command{say("u1", "pay it"), messages.Approve{ID: "a1", Call: "c1", Reason: "fine"}}
	for limit, over := time.After(time.Hour), false; !over; {
		more := s.More()
		all := s.Events(root)
		var quiet <-chan time.Time
		if len(s.Owing()) == 0 && count(all, "turn.completed") == 1 && count(all, "child.settled") == 1 {
			if b.at == 0 || b.how == losesAck || boom == nil {
				break
			}
			quiet = time.After(10 * time.Minute) // effects that end at the same time share frames: there may be fewer now
		}
		var answer chan messages.Answer
		if len(commands) == 2 || len(commands) == 1 && count(all, "child.waiting") > 0 {
			answer = make(chan messages.Answer, 1)
			c := commands[0]
			if approve, ok := c.(messages.Approve); ok {
				approve.Turn = actorstest.Of[messages.ChildWaiting](all)[0].Waiting[0].Turn
				c = approve
			}
			wait := node.Ask(root, c)
			go func() { answer <- wait() }()
		}
		select {
		case a := <-answer:
			if a.Err == nil {
				commands = commands[1:]
			} else if a.Err.Code != messages.Unavailable {
				t.Fatalf("crash %s frame %d: got refusal %v, want none", b.how, b.at, a.Err)
			}
		case <-boom:
			boom = nil
			node.Crash()
			node = s.Start(f.config())
			for _, a := range s.Owing() {
				node.Activate(a)
			}
		case <-more:
		case <-quiet:
			over = true
		case <-limit:
			for _, a := range s.Agents() {
				t.Logf("%s: %v", a, s.Types(a))
			}
			t.Fatalf("crash %s frame %d: got no end of the story", b.how, b.at)
		}
	}
	node.Stop()
	<-time.After(10 * time.Second)
	return f.check(t, s, b)
}

func (f *family) check(t *testing.T, s *actorstest.Stage, b bomb) int {
	frames := 0
	if agents := s.Agents(); len(agents) != 3 {
		t.Errorf("crash %s frame %d: got agents %v, want 3", b.how, b.at, agents)
	}
	for _, a := range s.Agents() {
		all := s.Events(a)
		ends(t, all)
		frames += len(s.Frames(a))
		want := []string{"root: middle: leaf: paid", "middle: leaf: paid", "leaf: paid"}[slices.Index([]string{"root", "middle", "leaf"}, a.Kind)]
		if done := actorstest.Of[messages.TurnCompleted](all); len(done) != 1 || done[0].Output != want {
			t.Errorf("crash %s frame %d: %s: got %+v, want one completed turn with output %q", b.how, b.at, a, done, want)
		}
		if n := count(all, "tool.completed"); n != 1 {
			t.Errorf("crash %s frame %d: %s: got %d results, want 1", b.how, b.at, a, n)
		}
		if n := count(all, "approval.granted"); n > 1 || count(all, "child.decided") > 1 || count(all, "child.settled") != count(all, "child.decided") {
			t.Errorf("crash %s frame %d: %s: got %d granted approvals, want at most one decision, settled", b.how, b.at, a, n)
		}
	}
	if len(f.paid) != 1 {
		t.Errorf("crash %s frame %d: got payments %v, want 1", b.how, b.at, f.paid)
	}
	return frames
}

// TestLargeAnswerOfAChild has a child answer with more than a frame holds. The parent stores
// the whole answer as a blob of its own.
func TestLargeAnswerOfAChild(t *testing.T) { // A36, A70
	long := many("a long answer ")
	model := func(r providers.Request) scripted.Step {
		last := r.Items[len(r.Items)-1]
		switch {
		case r.Agent.Kind == "helper":
			return scripted.Say(long)
		case last.Type == messages.ItemCallOutput:
			return scripted.Say(fmt.Sprintf("it said %d bytes", len(last.Output)))
		}
		return scripted.Ask(scripted.Call{ID: "c1", Name: "helper", Arguments: `{"input":"say much"}`})
	}
	s := actorstest.New(t, nil)
	node := s.Start(actors.Config{Providers: providers.Set{"scripted": scripted.Func(model)}, Definitions: []actors.Definition{
		{Kind: "test", Model: "scripted/m", Tools: []tool.Tool{actors.AsTool("helper", "helps")}},
		{Kind: "helper", Model: "scripted/m"},
	}})
	node.Must(ada, say("u1", "go"))
	all := s.Until(ada, "turn.completed")
	if done := actorstest.Of[messages.TurnCompleted](all)[0]; done.Output != fmt.Sprintf("it said %d bytes", len(long)) {
		t.Errorf("the parent: got output %q, want the length of the answer of the child", done.Output)
	}
	if got := actorstest.Of[messages.ToolCompleted](all)[0]; got.Blob == nil || got.Blob.Size != int64(len(long)) || got.Output != "" {
		t.Errorf("got the result %+v, want one with its output in a blob", got)
	}
}

// The time to store the answer of a child may exceed the limit for storing an input.
func TestLargeAnswerOfAChildStoredSlowly(t *testing.T) { // A36, A70
	synctest.Test(t, func(t *testing.T) {
		model := scripted.Func(func(r providers.Request) scripted.Step {
			switch last := r.Items[len(r.Items)-1]; {
			case r.Agent.Kind == "helper":
				return scripted.Say(strings.Repeat("x", 8<<20))
			case last.Type == messages.ItemCallOutput:
				return scripted.Say("done")
			}
			return scripted.Ask(scripted.Call{ID: "c1", Name: "helper", Arguments: `{"input":"say much"}`})
		})
		s := actorstest.New(t, nil)
		node := s.Start(actors.Config{
			Providers: providers.Set{"scripted": model},
			Definitions: []actors.Definition{
				{Kind: "test", Model: "scripted/m", Tools: []tool.Tool{actors.AsTool("helper", "helps")}},
				{Kind: "helper", Model: "scripted/m"},
			},
			Store: eventlog.Store{Blobs: &blobLog{Blobs: s.Store().Blobs, put: func(ctx context.Context, store func() (messages.Blob, error)) (messages.Blob, error) {
				select {
				case <-time.After(15 * time.Second):
					return store()
				case <-ctx.Done():
					return messages.Blob{}, ctx.Err()
				}
			}}},
		})
		defer end(node)
		node.Must(ada, say("u1", "go"))
		ends(t, s.Until(ada, "turn.completed"))
	})
}

// When frames are small, the report of waiting calls is shortened, and all of them can still
// be decided at the root.
func TestManyWaitBelowWithSmallFrames(t *testing.T) { // A45
	const leaves = 10
	long := strings.Repeat("x", 1800)
	model := scripted.Func(func(r providers.Request) scripted.Step {
		if r.Items[len(r.Items)-1].Type == messages.ItemCallOutput {
			return scripted.Say("done")
		}
		var calls []scripted.Call
		switch r.Agent.Kind {
		case "root":
			calls = append(calls, scripted.Call{ID: "m", Name: "middle", Arguments: `{"input":"pay"}`})
		case "middle":
			for i := range leaves {
				calls = append(calls, scripted.Call{ID: messages.CallID(fmt.Sprint("l", i)), Name: "leaf", Arguments: fmt.Sprintf(`{"input":"%d"}`, i)})
			}
		case "leaf":
			calls = append(calls, scripted.Call{ID: messages.CallID("p" + r.Items[0].Content.Text()), Name: "pay", Arguments: `{"why":"` + long + `"}`})
		}
		return scripted.Ask(calls...)
	})
	pay := tool.New("pay", "Pay", tool.Pause, func(context.Context, struct {
		Why string `json:"why"`
	}) (string, error) {
		return "paid", nil
	})
	s := actorstest.New(t, nil)
	node := s.Start(actors.Config{
		MaxFrame: 24 << 10, Providers: providers.Set{"scripted": model},
		Definitions: []actors.Definition{
			{Kind: "root", Model: "scripted/m", Tools: []tool.Tool{actors.AsTool("middle", "asks middle")}},
			{Kind: "middle", Model: "scripted/m", Tools: []tool.Tool{actors.AsTool("leaf", "asks leaf")}},
			{Kind: "leaf", Model: "scripted/m", Tools: []tool.Tool{pay.ApproveAlways()}},
		},
	})
	node.Must(root, say("u1", "go"))
	s.Await(root, func(all []messages.Event) bool {
		waiting := actorstest.Of[messages.ChildWaiting](all)
		return len(waiting) > 0 && len(waiting[len(waiting)-1].Waiting) == leaves
	})
	for i := range leaves {
		node.Must(root, messages.Approve{ID: fmt.Sprint("a", i), Call: messages.CallID(fmt.Sprint("p", i))})
	}
	ends(t, s.Until(root, "turn.completed"))
}

// A parent cancels a task that ended long ago, which the child has only in its processed ids.
// The task is not treated as one that has not arrived, and the child reports its end again.
func TestRecallOfAnOldTask(t *testing.T) { // A8, A70, A71
	s := actorstest.New(t, nil)
	cfg := config(echo())
	cfg.SnapshotEvery = 1
	reports := make(chan messages.Report, 100)
	cfg.Send = func(_ context.Context, _ messages.AgentID, c messages.Command) error {
		reports <- c.(messages.Report)
		return nil
	}
	node := s.Start(cfg)
	parent := messages.Parent{Caller: messages.Caller{Agent: bob.Full(), Turn: "t1", Call: "c1"}}
	node.Must(ada, messages.Task{ID: "t1", Content: messages.TextContent("do it"), Parent: parent})
	s.Until(ada, "child.reported")
	for i, c := range []messages.Caller{{Turn: "t1", Call: "c1"}, {Turn: "t1", Call: "c2"}} {
		for n := range manyIDs {
			node.Must(ada, patch(i*manyIDs+n))
		}
		if i == 1 {
			node.Stop()
			node = s.Start(cfg)
		}
		<-reports
		node.Must(ada, messages.CancelChild{ID: messages.CancelID(messages.TaskID(c)), Input: "t1", Parent: parent})
		s.Until(ada, "command.noop", i+1)
		if n := count(s.Events(ada), "input.recalled"); n != 0 {
			t.Fatalf("got %d input.recalled for a task that has ended, want 0: %v", n, s.Types(ada))
		}
	}
	if r := <-reports; r.What != messages.ReportCompleted {
		t.Errorf("got the report %+v, want completed", r)
	}
	node.Must(ada, messages.CancelChild{ID: "r3", Input: "t2", Parent: parent})
	s.Until(ada, "input.recalled")
}

// A child is deleted before its parent has copied its large answer. The error of the call
// names the deletion and does not recommend a backup.
func TestAnswerOfADeletedChild(t *testing.T) { // A36, A70, A108
	s := actorstest.New(t, nil)
	reports, ready := make(chan messages.Report, 100), make(chan *actorstest.Node, 1)
	cfg := config(scripted.Func(func(r providers.Request) scripted.Step {
		switch last := r.Items[len(r.Items)-1]; {
		case r.Agent.Kind == "helper":
			return scripted.Say(many("a large answer "))
		case last.Type == messages.ItemCallOutput:
			return scripted.Say("so: " + last.Output)
		}
		return scripted.Ask(scripted.Call{ID: "c1", Name: "helper", Arguments: `{"input":"do it"}`})
	}), actors.AsTool("helper", "helps"))
	cfg.Definitions = append(cfg.Definitions, actors.Definition{Kind: "helper", Model: "scripted/m"})
	cfg.Send = func(_ context.Context, to messages.AgentID, c messages.Command) error {
		if r, ok := c.(messages.Report); ok {
			reports <- r
			return nil
		}
		node := <-ready
		ready <- node
		return node.Do(to, c).Err
	}
	node := s.Start(cfg)
	ready <- node
	node.Must(ada, say("u1", "hello"))
	report := <-reports
	child := below(t, s, ada)
	s.Until(child, "child.reported")
	node.Must(child, messages.Delete{ID: "d1"})
	if report.Blob == nil {
		t.Fatalf("got the report %+v, want one with a blob", report)
	}
	node.Must(ada, report)
	done := actorstest.Of[messages.TurnCompleted](s.Until(ada, "turn.completed"))[0]
	if !strings.Contains(done.Output, "agent "+child.String()+" was deleted") || strings.Contains(done.Output, "backup") {
		t.Errorf("the parent: got output %s, want the deletion of the child", done.Output)
	}
}
