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

// family is three kinds of agents, each the tool of the one above, and a tool
// that wants approval at the bottom.
type family struct {
	mu   sync.Mutex
	paid map[string]int // by idempotency key
	// gate holds the leaf's model, if it is not nil.
	gate *scripted.Gate
	fail bool // of the leaf's model
}

var root = actorstest.Agent("root", "r")

// answer is what a model says: it asks whom it has, once, and tells the result.
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
		SnapshotEvery: 1, // what is owed to others must be in them
		Providers:     providers.Set{"scripted": scripted.Func(f.answer)},
		Definitions: []actors.Definition{
			kind("root", actors.AsTool("middle", "asks middle")),
			kind("middle", actors.AsTool("leaf", "asks leaf")),
			kind("leaf", toolOf("pay", tool.Rerun, f.pay).ApproveAlways()),
		},
	}
}

// below is the only child of an agent so far.
func below(t *testing.T, s *actorstest.Stage, a messages.AgentID) messages.AgentID {
	t.Helper()
	spawned := actorstest.Of[messages.ChildSpawned](s.Until(a, "child.spawned"))
	child, err := messages.ParseAgentID(spawned[0].Child)
	if err != nil || len(spawned) != 1 {
		t.Fatalf("%v %v", spawned, err)
	}
	return child
}

// TestApprovedTwoLevelsDown has a call wait two levels down, decides it at the
// root, and finds that all levels complete, linked both ways, each with its own
// events, and what was used counted once.
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
		t.Fatalf("the root sees %+v", w)
	}
	if all := s.Entries(root); all[len(all)-1].Summary.Waiting != 1 || all[len(all)-1].Summary.Open {
		t.Errorf("the root's newest head is %+v", all[len(all)-1].Summary)
	}
	for _, a := range []messages.AgentID{middle, leaf} { // else that it has ended may be all that it tells
		s.Until(a, "child.reported")
	}
	node.Must(root, messages.Approve{ID: "a1", Call: "c1", Turn: w[0].Turn, ArgsHash: w[0].ArgsHash, Reason: "fine"})
	done := actorstest.Of[messages.TurnCompleted](s.Until(root, "turn.completed"))[0]
	if done.Output != "root: middle: leaf: paid" {
		t.Errorf("the root answers %q", done.Output)
	}
	if want := (messages.Usage{Input: 60, Output: 6}); done.Usage != want {
		t.Errorf("the root's turn used %+v, want %+v", done.Usage, want)
	}
	settled := actorstest.Of[messages.ChildSettled](s.Until(root, "child.settled"))
	if granted := slices.Index(s.Types(leaf), "approval.granted") + 1; len(settled) != 1 || settled[0].Refused != "" || settled[0].Waits != "c1" || settled[0].N != messages.EventNumber(granted) {
		t.Errorf("the root is told %+v of event %d", settled, granted)
	}
	for _, link := range []struct{ parent, child messages.AgentID }{{root, middle}, {middle, leaf}} {
		accepted := actorstest.Of[messages.InputAccepted](s.Events(link.child))
		if p := accepted[0].Parent; p == nil || p.Agent != link.parent.Full() || p.Call != "c1" || len(accepted) != 1 {
			t.Errorf("the task of %s names %+v", link.child, p)
		}
		ends(t, s.Events(link.child))
		s.Await(link.child, func(all []messages.Event) bool { // that it waits, perhaps that it goes on, that it has ended
			told := actorstest.Of[messages.ChildReported](all)
			return told[0].What == messages.ReportWaiting && told[len(told)-1].What == messages.ReportCompleted
		})
	}
	if len(f.paid) != 1 || len(s.Agents()) != 3 {
		t.Errorf("paid %v, agents %v", f.paid, s.Agents())
	}
	s.Rest()
}

// TestDeniedTwoLevelsDown denies at the root: no child stays behind.
func TestDeniedTwoLevelsDown(t *testing.T) { // A45
	f := new(family)
	s := actorstest.New(t, nil)
	node := s.Start(f.config())
	node.Must(root, say("u1", "pay it"))
	s.Until(root, "turn.paused")
	text := "too dear"
	node.Must(root, messages.Deny{ID: "d1", Call: "c1", Turn: actorstest.Of[messages.ChildWaiting](s.Events(root))[0].Waiting[0].Turn, Text: &text})
	if done := actorstest.Of[messages.TurnCompleted](s.Until(root, "turn.completed"))[0]; done.Output != "root: middle: leaf: too dear" {
		t.Errorf("the root answers %q", done.Output)
	}
	middle := below(t, s, root)
	for _, a := range []messages.AgentID{root, middle, below(t, s, middle)} {
		if all := s.Entries(a); all[len(all)-1].Summary.Phase != "idle" {
			t.Errorf("%s is %s", a, all[len(all)-1].Summary.Phase)
		}
	}
	if len(f.paid) != 0 {
		t.Errorf("paid %v", f.paid)
	}
}

// hushed is a log that takes nothing of one agent while it is shut.
type hushed struct {
	eventlog.Log
	mu   sync.Mutex
	of   messages.AgentID
	open chan struct{} // nil: it takes everything
}

func (l *hushed) shut(a messages.AgentID) (open func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of, l.open = a, make(chan struct{})
	return sync.OnceFunc(func() { close(l.open) })
}

func (l *hushed) Append(ctx context.Context, e eventlog.Entry) (eventlog.Tail, error) {
	l.mu.Lock()
	of, open := l.of, l.open
	l.mu.Unlock()
	if open != nil && e.Agent == of {
		select {
		case <-open:
		case <-ctx.Done():
			return eventlog.Tail{}, ctx.Err()
		}
	}
	return l.Log.Append(ctx, e)
}

// TestContradictedBelow denies a call at the leaf, and approves it at the root
// before the root can know: the root's log tells that its decision had no effect.
func TestContradictedBelow(t *testing.T) { // A45
	f := new(family)
	s := actorstest.New(t, nil)
	log := &hushed{Log: s.Log()}
	cfg := f.config()
	cfg.Log = log
	node := s.Start(cfg)
	node.Must(root, say("u1", "pay it"))
	s.Until(root, "turn.paused")
	middle := below(t, s, root)
	leaf := below(t, s, middle)
	open := log.shut(middle)
	defer open()
	text := "too dear"
	node.Must(leaf, messages.Deny{ID: "d1", Call: "c1", Text: &text})
	if answer := node.Must(root, messages.Approve{ID: "a1", Call: "c1"}); answer.PassedTo != leaf.Full() {
		t.Errorf("the root answers %+v", answer)
	}
	all := s.Until(root, "child.settled")
	decided, settled := actorstest.Of[messages.ChildDecided](all)[0], actorstest.Of[messages.ChildSettled](all)[0]
	if settled.Refused == "" || settled.Message == "" || settled.N != 0 || settled.ID != decided.ID || settled.Agent != leaf.Full() || settled.Command != "approve" {
		t.Errorf("the root is told %+v of %+v", settled, decided)
	}
	open()
	if done := actorstest.Of[messages.TurnCompleted](s.Until(root, "turn.completed"))[0]; done.Output != "root: middle: leaf: too dear" {
		t.Errorf("the root answers %q", done.Output)
	}
	s.Rest()
	if n := count(s.Events(root), "child.settled"); n != 1 || len(f.paid) != 0 {
		t.Errorf("told %d times, paid %v", n, f.paid)
	}
}

// TestWhatWaitsBelowIsBounded has more calls wait below than an agent lists: it
// says that there are more, and when each expires.
func TestWhatWaitsBelowIsBounded(t *testing.T) { // A45
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
	told := actorstest.Of[messages.ChildWaiting](s.Until(root, "turn.paused"))
	last := told[len(told)-1]
	leaf := below(t, s, below(t, s, root))
	asked := actorstest.Of[messages.ApprovalRequested](s.Events(leaf))
	if len(last.Waiting) != messages.MaxWaits || !last.More || len(asked) != calls {
		t.Fatalf("%d of %d are listed, more %v", len(last.Waiting), len(asked), last.More)
	}
	var q projections.Work
	for i, ev := range s.Events(root) {
		q.Apply(messages.EventNumber(i+1), ev)
	}
	if !q.More() {
		t.Error("nothing says that more wait")
	}
	for i, p := range q.Approvals(root) {
		if p.Agent != leaf || asked[i].ExpiresAt == nil || !p.ExpiresAt.Equal(*asked[i].ExpiresAt) {
			t.Errorf("%+v is shown for %+v", p, asked[i])
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
			t.Errorf("%s had no effect: %s", ev.Waits, ev.Message)
		}
	}
}

// TestInterruptStopsChildren interrupts the root while the leaf's model thinks:
// every level ends, and the root hears so.
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
			t.Errorf("%s was aborted by %s", a, by[0].By)
		}
	}
	if stopped[0].How != "aborted" || stopped[0].Usage.Input != 10 {
		t.Errorf("the root hears %+v", stopped[0])
	}
}

// TestChildFailureIsAToolError has the leaf's model fail: the levels above go on.
func TestChildFailureIsAToolError(t *testing.T) { // A70
	f := &family{fail: true}
	s := actorstest.New(t, nil)
	s.Start(f.config()).Must(root, say("u1", "pay it"))
	done := actorstest.Of[messages.TurnCompleted](s.Until(root, "turn.completed"))[0]
	if !strings.HasPrefix(done.Output, "root: middle: agent default/leaf/") || !strings.Contains(done.Output, "(bad_answer): no more") {
		t.Errorf("the root answers %q", done.Output)
	}
	failed := actorstest.Of[messages.ToolFailed](s.Events(below(t, s, root)))
	if len(failed) != 1 || failed[0].Kind != "child" {
		t.Errorf("the middle's call failed as %+v", failed)
	}
}

// TestAgentsThatAskOneAnother end at the limit of depth, with an answer.
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
		t.Errorf("%d agents, %q", len(s.Agents()), done.Output)
	}
}

// TestAnAnswerThatIsLost has the parent's store lose the report of a child that
// has ended: the task that comes again has it reported once more.
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
	before := len(s.Letters())
	for i, again := range []messages.Command{task, messages.CancelChild{ID: "r1", Input: "t1", Parent: task.Parent}} {
		node.Must(leaf, again)
		for late := time.After(time.Minute); len(s.Letters()) < before+i+1; {
			select {
			case <-late:
				t.Fatalf("nothing is reported again after a second %s", again.CommandType())
			case <-time.After(time.Millisecond):
			}
		}
		letters := s.Letters()
		first, last := letters[0].Command.(messages.Report), letters[len(letters)-1].Command.(messages.Report)
		if first.ID != last.ID || last.What != messages.ReportFailed || last.Message != first.Message || last.Used != first.Used {
			t.Errorf("first %+v\nthen %+v", first, last)
		}
	}
}

// TestArgumentsOfAChild holds that arguments are looked at before a child is
// asked, and that a schema of one's own is passed on as it is.
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
		t.Errorf("failed: %+v", failed)
	}
	if got := <-asked; got != `{"n":2}` || len(asked) != 0 {
		t.Errorf("the child is told %q", got)
	}
}

// TestDefinitionsWithChildren refuses what cannot work.
func TestDefinitionsWithChildren(t *testing.T) {
	def := actors.Definition{Kind: "test", Model: "scripted/m", Tools: []tool.Tool{actors.AsTool("gone", "asks nobody")}}
	cfg := actors.Config{Log: actorstest.New(t, nil).Log(), Providers: providers.Set{"scripted": echo()}, Definitions: []actors.Definition{def}}
	if _, err := actors.NewRuntime(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), `kind "gone", which is not defined`) {
		t.Errorf("a kind that is not there: %v", err)
	}
	cfg.Definitions = append(cfg.Definitions, actors.Definition{Kind: "gone", Model: "scripted/m"})
	if _, err := actors.NewRuntime(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), "Config.Send") {
		t.Errorf("nothing can be sent: %v", err)
	}
}

// TestEveryBoundaryOfAFamily plays a call that waits two levels down and is
// approved at the root, with a crash at every frame of all three agents. The call
// ends once at every level, and nothing is paid twice.
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

// play plays the story through a crash, and gives how many frames there were.
func (f *family) play(t *testing.T, b bomb) int {
	s := actorstest.New(t, nil)
	log := &mined{Log: s.Log(), bomb: b, boom: make(chan struct{})}
	cfg := f.config()
	cfg.Log = log
	node := s.Start(cfg)
	boom := log.boom
	commands := []messages.Command{say("u1", "pay it"), messages.Approve{ID: "a1", Call: "c1", Reason: "fine"}}
	for limit, told := time.After(time.Hour), false; !told; {
		more := s.More()
		all := s.Events(root)
		var quiet <-chan time.Time
		if len(s.Owing()) == 0 && count(all, "turn.completed") == 1 && count(all, "child.settled") == 1 {
			if b.at == 0 || b.how == losesAck || boom == nil {
				break
			}
			quiet = time.After(10 * time.Minute) // what ends at once shares frames: there may be fewer this time
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
				t.Fatalf("crash %s frame %d: refused: %v", b.how, b.at, a.Err)
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
			told = true
		case <-limit:
			for _, a := range s.Agents() {
				t.Logf("%s: %v", a, s.Types(a))
			}
			t.Fatalf("crash %s frame %d: the story does not go on", b.how, b.at)
		}
	}
	node.Stop()
	<-time.After(10 * time.Second)
	return f.check(t, s, b)
}

func (f *family) check(t *testing.T, s *actorstest.Stage, b bomb) int {
	frames := 0
	if agents := s.Agents(); len(agents) != 3 {
		t.Errorf("crash %s frame %d: agents %v", b.how, b.at, agents)
	}
	for _, a := range s.Agents() {
		all := s.Events(a)
		ends(t, all)
		frames += len(s.Frames(a))
		want := []string{"root: middle: leaf: paid", "middle: leaf: paid", "leaf: paid"}[slices.Index([]string{"root", "middle", "leaf"}, a.Kind)]
		if done := actorstest.Of[messages.TurnCompleted](all); len(done) != 1 || done[0].Output != want {
			t.Errorf("crash %s frame %d: %s answers %+v", b.how, b.at, a, done)
		}
		if n := count(all, "tool.completed"); n != 1 {
			t.Errorf("crash %s frame %d: %s has %d results", b.how, b.at, a, n)
		}
		if n := count(all, "approval.granted"); n > 1 || count(all, "child.decided") > 1 || count(all, "child.settled") != count(all, "child.decided") {
			t.Errorf("crash %s frame %d: %s is decided %d times", b.how, b.at, a, n)
		}
	}
	if len(f.paid) != 1 {
		t.Errorf("crash %s frame %d: paid %v", b.how, b.at, f.paid)
	}
	return frames
}

// TestLargeAnswerOfAChild has a child answer with more than a frame holds: the
// parent has it whole, as its own.
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
		t.Errorf("the parent answers %q", done.Output)
	}
	if got := actorstest.Of[messages.ToolCompleted](all)[0]; got.Blob == nil || got.Blob.Size != int64(len(long)) || got.Output != "" {
		t.Errorf("the result is %+v", got)
	}
}

// An answer that takes longer to store than an input may comes all the same.
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
			Log: &shelf{Log: s.Log(), put: func(ctx context.Context, store func() (messages.Blob, error)) (messages.Blob, error) {
				select {
				case <-time.After(15 * time.Second):
					return store()
				case <-ctx.Done():
					return messages.Blob{}, ctx.Err()
				}
			}},
		})
		defer end(node)
		node.Must(ada, say("u1", "go"))
		ends(t, s.Until(ada, "turn.completed"))
	})
}

// Where the log takes small frames only, less is told of what waits below, and all
// of it is still decided at the root.
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
		told := actorstest.Of[messages.ChildWaiting](all)
		return len(told) > 0 && len(told[len(told)-1].Waiting) == leaves
	})
	for i := range leaves {
		node.Must(root, messages.Approve{ID: fmt.Sprint("a", i), Call: messages.CallID(fmt.Sprint("p", i))})
	}
	ends(t, s.Until(root, "turn.completed"))
}

// A task is taken back when its end is long past: its child knows it by
// its processed ids alone. It is not taken for one that has yet to come, and how it has ended
// is told again.
func TestRecallOfAnOldTask(t *testing.T) { // A8, A70, A71
	s := actorstest.New(t, nil)
	cfg := config(echo())
	cfg.SnapshotEvery = 1
	told := make(chan messages.Report, 100)
	cfg.Send = func(_ context.Context, _ messages.AgentID, c messages.Command) error {
		told <- c.(messages.Report)
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
		<-told
		node.Must(ada, messages.CancelChild{ID: messages.CancelID(messages.TaskID(c)), Input: "t1", Parent: parent})
		s.Until(ada, "command.noop", i+1)
		if n := count(s.Events(ada), "input.recalled"); n != 0 {
			t.Fatalf("it was taken for one that has yet to come: %v", s.Types(ada))
		}
	}
	if r := <-told; r.What != messages.ReportCompleted {
		t.Errorf("told is %+v", r)
	}
	node.Must(ada, messages.CancelChild{ID: "r3", Input: "t2", Parent: parent})
	s.Until(ada, "input.recalled")
}

// A child is deleted before its parent has made its large answer its own. The call
// says so, and not that a backup could help.
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
		t.Fatalf("the child reports %+v", report)
	}
	node.Must(ada, report)
	done := actorstest.Of[messages.TurnCompleted](s.Until(ada, "turn.completed"))[0]
	if !strings.Contains(done.Output, "agent "+child.String()+" was deleted") || strings.Contains(done.Output, "backup") {
		t.Errorf("the parent says %s", done.Output)
	}
}
