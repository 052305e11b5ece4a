package actors_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/tool"
)

// pace is the timing of a story.
type pace struct {
	expiry time.Duration // of an approval that is never decided
	limit  time.Duration // of the whole story
	rest   time.Duration // until protoactor's throttle of dead letter logs ends
}

var (
	slowly  = pace{20 * time.Second, time.Hour, 2 * time.Second} // of the fake clock
	quickly = pace{100 * time.Millisecond, 5 * time.Minute, 0}
)

// tale is the story of an agent and its children. What people, models and tools do in it
// depends on the log and the ledger alone, so that it can be played through any crash.
type tale struct {
	t         *testing.T
	pace      pace
	stage     *actorstest.Stage
	snapshots *faultySnapshots // nil: the log stores snapshots itself
	agent     messages.AgentID

	mu      sync.Mutex
	runs    map[string]int // of calls, by name and by attempt
	view    *view
	below   []*view // of its children, in the order of their creation
	scenes  []scene
	before  []string // the outline as of the clear
	refused string   // the input that was refused because the agent was busy
	life    int      // number of the live process, from 0
}

// scene is the next command of a person, and the state of the agent, or of a child, at which
// it is sent.
type scene struct {
	when  func(*turn.State) bool
	do    messages.Command
	below bool
}

func newTale(t *testing.T, store *eventlog.Store, key string, p pace) *tale {
	a := actorstest.Agent("test", key)
	var kept *faultySnapshots
	if store == nil {
		kept = newFaultySnapshots(rand.New(rand.NewPCG(uint64(len(key)), uint64(key[len(key)-1]))))
		store = &eventlog.Store{Snapshots: kept}
	}
	return &tale{t: t, pace: p, stage: actorstest.New(t, store), snapshots: kept, agent: a, runs: make(map[string]int), view: newView(a), scenes: scenes()}
}

func idle(s *turn.State) bool { return s.Turn == nil }

// at returns a condition: a call of the tool has the status.
func at(status projections.Outcome, name string) func(*turn.State) bool {
	return func(s *turn.State) bool {
		return s.Turn != nil && slices.ContainsFunc(s.Turn.Calls, func(c projections.CallState) bool { return c.Tool == name && c.Outcome == status })
	}
}

// pausedFor returns a condition: the turn is paused for the reason.
func pausedFor(reason string) func(*turn.State) bool {
	return func(s *turn.State) bool { return s.Turn != nil && s.Turn.Paused() == reason }
}

// awaits reports whether a call below waits for a person.
func awaits(s *turn.State) bool { return s.Turn != nil && len(s.Waiting()) > 0 }

// under returns an input with a policy.
func under(p messages.Policy, id, text string) messages.Input {
	in := say(id, text)
	in.Policy = p
	return in
}

// scenes returns the commands of the story. [tale.generate] answers each input.
func scenes() []scene {
	no, steps := "no money", say("u9", "steps")
	steps.Options.MaxSteps = 2
	return []scene{
		{when: idle, do: say("u1", "sum")}, // parallel tools, and an input that steers the turn
		{when: at(projections.CallRunning, "until"), do: under(messages.PolicySteer, "j1", "and hurry")},
		{when: idle, do: say("u2", "work")}, // tools of every OnUnknown, one of which needs approval; a queue
		{when: pausedFor("approval"), do: say("u3", "again")},
		{when: pausedFor("approval"), do: say("u4", "never")},
		{when: pausedFor("approval"), do: messages.Cancel{ID: "w4", Input: "u4"}},
		{when: pausedFor("approval"), do: under(messages.PolicyReject, "u5", "at once")}, // refused
		{when: pausedFor("approval"), do: messages.Approve{ID: "a2", Call: "p2", ArgsHash: messages.HashArguments(`{"n":2}`), Remember: true}},
		{when: idle, do: say("u6", "refund")}, // u3 has used the remembered approval, and another approval has expired
		{when: pausedFor("approval"), do: messages.Deny{ID: "d6", Call: "r6", Text: &no}},
		{when: idle, do: messages.Forget{ID: "f6", Tool: "pay"}},
		{when: idle, do: say("u7", "twice")}, // a repeated effect needs approval
		{when: pausedFor("approval"), do: messages.Approve{ID: "a7", Call: "x8"}},
		{when: idle, do: say("u8", "retry")}, // attempts, then another model
		{when: idle, do: steps},              // a limit, which a person raises
		{when: pausedFor("max_steps"), do: messages.Resume{ID: "r9", LimitOverrides: messages.LimitOverrides{MaxSteps: 3}}},
		{when: idle, do: say("u10", "short")},    // a hook that asks for more
		{when: idle, do: say("u17", "delegate")}, // a child whose call needs approval, beside a tool
		{when: awaits, do: messages.Approve{ID: "a17", Call: "g1"}},
		{when: idle, do: say("u18", "delegate once more")}, // a child that is stopped
		{when: at(projections.CallRunning, "ever"), do: messages.Interrupt{ID: "i18", Reason: "no need"}, below: true},
		{when: idle, do: messages.SetState{ID: "s1", Patch: json.RawMessage(`{"plan":"free"}`)}},
		{when: idle, do: say("u11", "wait")}, // steering and stopping
		{when: at(projections.CallRunning, "ever"), do: under(messages.PolicyInterrupt, "u12", "wait once more")},
		{when: at(projections.CallRunning, "ever"), do: messages.Interrupt{ID: "i12", Reason: "enough"}},
		{when: idle, do: say("u13", "wait")},
		{when: at(projections.CallRunning, "ever"), do: messages.Abort{ID: "a13"}},
		{when: idle, do: say("u14", "wait")},
		{when: at(projections.CallRunning, "ever"), do: say("u15", "queued")},
		{when: at(projections.CallRunning, "ever"), do: under(messages.PolicySteer, "j14", "steered")},
		{when: at(projections.CallRunning, "ever"), do: messages.Clear{ID: "c14"}},
		{when: idle, do: say("u16", "hello")},
	}
}

// look folds the new entries of the logs and calls see with the view of the agent.
func (s *tale) look(see func(*view)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.stage.Entries(s.agent)[s.view.folded:] {
		if slices.ContainsFunc(e.Frame.Events, func(ev messages.Event) bool { return ev.EventType() == "agent.cleared" }) {
			s.before = outlineOf(&s.view.state)
		}
		s.view.add(e)
		for _, spawned := range actorstest.Of[messages.ChildSpawned](e.Frame.Events) {
			child, err := messages.ParseAgentID(spawned.Child)
			if err != nil {
				s.t.Error(err)
			}
			s.below = append(s.below, newView(child))
		}
	}
	for _, v := range s.below {
		v.foldAll(s.stage.Entries(v.agent))
	}
	see(s.view)
}

// of returns the view of an agent of the story. The caller holds mu.
func (s *tale) of(a messages.AgentID) *view {
	for _, v := range s.below {
		if v.agent == a {
			return v
		}
	}
	return s.view
}

// all returns the views of all agents of the story.
func (s *tale) all() []*view { return append([]*view{s.view}, s.below...) }

// applied reports whether a command is in the log.
func (s *tale) applied(id string) (ok bool) {
	s.look(func(v *view) { _, ok = v.processed[id] })
	return ok
}

// next returns the next command of a person, or nil if there is none yet. done reports whether
// the story has ended.
func (s *tale) next() (c messages.Command, done bool) {
	s.look(func(v *view) { c, done = s.nextAs(v) })
	return c, done
}

func (s *tale) nextAs(v *view) (c messages.Command, done bool) {
	state := &v.state
	if state.Turn != nil {
		for _, call := range state.Turn.Calls {
			if call.Outcome == projections.CallUnknown {
				return s.decide(state.Turn.ID, call), false
			}
		}
	}
	for len(s.scenes) > 0 {
		id := messages.IDOf(s.scenes[0].do)
		if _, over := v.processed[id]; !over && id != s.refused {
			break
		}
		s.scenes = s.scenes[1:]
	}
	switch {
	case len(s.scenes) == 0:
		return nil, state.Turn == nil
	case s.scenes[0].below:
		if slices.ContainsFunc(s.below, func(v *view) bool { return s.scenes[0].when(&v.state) }) {
			return s.scenes[0].do, false
		}
	case s.scenes[0].when(state):
		return s.scenes[0].do, false
	}
	return nil, false
}

// decide returns the outcome of a call from the ledger. The caller holds mu.
func (s *tale) decide(t messages.TurnID, c projections.CallState) messages.Command {
	if c.Tool != "mail" && c.Tool != "wire" {
		s.t.Errorf("got a decision on %s, want decisions only for tools with OnUnknown Pause", c.ID)
	}
	d := messages.Decide{ID: fmt.Sprint("decide-", t, c.ID, c.Attempt), Call: c.ID, Outcome: messages.OutcomeRetry}
	if s.runs[c.Tool+" "+c.Key] > 0 {
		d.Outcome, d.Result = messages.OutcomeCompleted, "did "+string(c.ID)
	}
	return d
}

func (s *tale) config() actors.Config {
	cfg := actors.Config{
		Providers: providers.Set{"a": providers.Func(s.generate), "b": providers.Func(s.generate)},
		Prices:    map[string]messages.Price{"a/m": {Input: 1, Output: 2}},

		SnapshotEvery: 1,
	}
	cfg.Definitions = []actors.Definition{{
		Kind: "test", Model: "a/m", Fallbacks: []string{"b/n"}, Tools: s.tools(), MaxAttempts: 2, Parallel: 2, PauseAtLimit: true,
		TurnLimits: messages.Limits{MaxTokens: 1_000_000, MaxDuration: time.Hour.Milliseconds()},
		Hooks:      []actors.Hook{{Name: "critic", BeforeTool: s.beforeTool, TurnEnd: s.turnEnd}},
	}, {
		Kind: "helper", Model: "a/m", Tools: s.toolsBelow(), MaxAttempts: 2,
	}}
	return cfg
}

// tool returns a tool of the live process.
func (s *tale) tool(name string, onUnknown tool.OnUnknown) *tool.Typed[amount] {
	life := s.life
	return tool.New(name, "does "+name, onUnknown, func(ctx context.Context, _ amount) (string, error) { return s.use(ctx, name, life) })
}

func (s *tale) toolsBelow() []tool.Tool {
	return []tool.Tool{s.tool("stamp", tool.Rerun).ApproveAlways(), s.tool("ever", tool.ReadOnly)}
}

func (s *tale) tools() []tool.Tool {
	of := s.tool
	return []tool.Tool{
		actors.AsTool("helper", "asks a helper"),
		of("add", tool.ReadOnly), of("until", tool.ReadOnly), of("ever", tool.ReadOnly), of("mail", tool.Pause),
		of("pay", tool.Rerun).ApproveAlways(), of("refund", tool.Rerun).ApproveAlways().ApprovalTimeout(s.pace.expiry),
		of("slowrefund", tool.Rerun).ApproveAlways(), of("wire", tool.Pause).ApproveRepeats(),
		of("ship", tool.Reconcile).ReconcileWith(func(ctx context.Context, key string) (string, tool.Found, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.runs["ship "+key] > 0 {
				return "did " + string(tool.CallOf(ctx).ID), tool.Done, nil
			}
			return "", tool.NotDone, nil
		}),
	}
}

// endProcess ends the live process: an effect that has not happened yet never does.
func (s *tale) endProcess() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life++
}

// use runs any tool for the process with the given number. It enters the effect in the ledger
// first.
func (s *tale) use(ctx context.Context, name string, life int) (string, error) {
	c := tool.CallOf(ctx)
	s.look(func(*view) {
		if life != s.life {
			return
		}
		if !s.of(c.Agent).started[attemptOf(c.Key, c.Attempt)] {
			s.t.Errorf("%s: got a start before its intent was in the log", c.Key)
		}
		s.runs[name+" "+c.Key]++
		s.runs[attemptOf(c.Key, c.Attempt)]++
	})
	for name == "ever" || name == "until" {
		more := s.stage.More()
		if name == "until" && s.applied("j1") {
			break
		}
		select {
		case <-more:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return "did " + string(c.ID), nil
}

func (s *tale) beforeTool(_ context.Context, _ actors.HookInfo, c actors.HookedCall) (actors.Verdict, error) {
	if c.Tool == "add" {
		return actors.Verdict{Do: actors.Rewrite, Arguments: json.RawMessage(`{"n":7}`), Reason: "seven it is"}, nil
	}
	return actors.Verdict{}, nil
}

func (s *tale) turnEnd(_ context.Context, _ actors.HookInfo, end actors.HookedEnd) (actors.Verdict, error) {
	if end.Output == "short" {
		return actors.Verdict{Do: actors.Continue, Text: "say more"}, nil
	}
	return actors.Verdict{}, nil
}

// steps are the calls that models make after an input, step by step, before they answer.
var steps = map[string][][]messages.Item{
	"sum":    {{wants("s1", "add", 1), wants("s2", "until", 1), wants("s3", "add", 2)}},
	"work":   {{wants("m2", "mail", 1), wants("p2", "pay", 2), wants("h2", "ship", 3)}},
	"again":  {{wants("p3", "pay", 2), wants("r3", "refund", 1)}},
	"refund": {{wants("r6", "slowrefund", 1)}},
	"twice":  {{wants("x7", "wire", 1)}, {wants("x8", "wire", 1), wants("m8", "mail", 4)}},
	"steps":  {{wants("a1", "add", 1)}, {wants("a2", "add", 2)}},

	"delegate": {{task("h17", "stamp it"), wants("k17", "add", 5)}}, "stamp it": {{wants("g1", "stamp", 1)}},
	"delegate once more": {{task("h18", "wait")}},

	"wait": {{wants("e1", "ever", 1)}}, "wait once more": {{wants("e1", "ever", 1)}},
}

func wants(id, name string, n int) messages.Item {
	return messages.Item{Type: messages.ItemCall, CallID: messages.CallID(id), Name: name, Arguments: fmt.Sprintf(`{"n":%d}`, n)}
}

// task is a call of the helper agent.
func task(id, input string) messages.Item {
	return messages.Item{Type: messages.ItemCall, CallID: messages.CallID(id), Name: "helper", Arguments: fmt.Sprintf(`{"input":%q}`, input)}
}

// generate answers for every model. The answer depends on the request alone.
func (s *tale) generate(_ context.Context, r providers.Request, _ func(providers.Delta)) (providers.Response, error) {
	s.look(func(*view) {
		v := s.of(r.Agent)
		if v.shown[r.Call] != strings.Join(brief(r), "\n") {
			s.t.Errorf("model call %s: got %q, want %q as in the log", r.Call, brief(r), v.shown[r.Call])
		}
	})
	input, asked, last := "", 0, ""
	for _, item := range r.Items {
		switch {
		case item.Role == messages.RoleUser && !strings.HasPrefix(item.Content.Text(), "and "):
			input, asked = item.Content.Text(), 0
		case item.Type == messages.ItemCall && asked < len(steps[input]) && item.CallID == steps[input][asked][0].CallID:
			asked++ // the first call of the next step
		}
		last = cmp.Or(item.Content.Text(), item.Output)
	}
	resp := providers.Response{Usage: messages.Usage{Input: 10, Output: 5}}
	switch {
	case input == "retry" && r.Model == "m":
		return resp, &providers.Error{Kind: providers.Overloaded, Temporary: true}
	case asked < len(steps[input]):
		resp.Items = steps[input][asked]
	case last == "short":
		resp.Items = []messages.Item{messages.Text(messages.RoleAssistant, "short")}
	default:
		resp.Items = []messages.Item{messages.Text(messages.RoleAssistant, input+" is done after "+last)}
	}
	return resp, nil
}

// lived is the outline of the story: the items that the model sees before the clear and after
// it, and the end of each input.
const lived = `
state {"plan":"free"}
remembered []
message user sum
function_call   s1 add {"n":1}
function_call   s2 until {"n":1}
function_call   s3 add {"n":2}
function_call_output   s1   did s1
function_call_output   s2   did s2
function_call_output   s3   did s3
message user and hurry
message assistant sum is done after and hurry
message user work
function_call   m2 mail {"n":1}
function_call   p2 pay {"n":2}
function_call   h2 ship {"n":3}
function_call_output   m2   did m2
function_call_output   p2   did p2
function_call_output   h2   did h2
message assistant work is done after did h2
message user again
function_call   p3 pay {"n":2}
function_call   r3 refund {"n":1}
function_call_output   p3   did p3
function_call_output   r3   This call was not approved in time; it was not run.
message assistant again is done after This call was not approved in time; it was not run.
message user refund
function_call   r6 slowrefund {"n":1}
function_call_output   r6   no money
message assistant refund is done after no money
message user twice
function_call   x7 wire {"n":1}
function_call_output   x7   did x7
function_call   x8 wire {"n":1}
function_call   m8 mail {"n":4}
function_call_output   x8   did x8
function_call_output   m8   did m8
message assistant twice is done after did m8
message user retry
message assistant retry is done after retry
message user steps
function_call   a1 add {"n":1}
function_call_output   a1   did a1
function_call   a2 add {"n":2}
function_call_output   a2   did a2
message assistant steps is done after did a2
message user short
message assistant short
message developer say more
message assistant short is done after say more
message user delegate
function_call   h17 helper {"input":"stamp it"}
function_call   k17 add {"n":5}
function_call_output   h17   stamp it is done after did g1
function_call_output   k17   did k17
message assistant delegate is done after did k17
aborted message user delegate once more
aborted function_call   h18 helper {"input":"wait"}
aborted function_call_output   h18   stopped while it ran: it may or may not have had its effect
aborted message developer The user interrupted the turn above before it was finished. Reason: no need
aborted message user wait
aborted function_call   e1 ever {"n":1}
aborted function_call_output   e1   stopped while it ran: it may or may not have had its effect
aborted message developer The user interrupted the turn above before it was finished.
aborted message user wait once more
aborted function_call   e1 ever {"n":1}
aborted function_call_output   e1   stopped while it ran: it may or may not have had its effect
aborted message developer The user interrupted the turn above before it was finished. Reason: enough
aborted message user wait
aborted function_call   e1 ever {"n":1}
aborted function_call_output   e1   stopped while it ran: it may or may not have had its effect
message user wait
function_call   e1 ever {"n":1}
clear
state {}
remembered []
message user hello
message assistant hello is done after hello
completed [u1 j1] sum is done after and hurry, 2 steps
cancelled u4
completed [u2] work is done after did h2, 2 steps
completed [u3] again is done after This call was not approved in time; it was not run., 2 steps
completed [u6] refund is done after no money, 2 steps
completed [u7] twice is done after did m8, 3 steps
completed [u8] retry is done after retry, 1 steps
completed [u9] steps is done after did a2, 3 steps
completed [u10] short is done after say more, 2 steps
completed [u17] delegate is done after did k17, 2 steps
aborted [u18] interrupt, 1 steps
aborted [u11] input, 1 steps
aborted [u12] interrupt, 1 steps
aborted [u13] abort, 1 steps
aborted [u14 j14] clear, 1 steps
dropped u15
completed [u16] hello is done after hello, 1 steps
child 1
state {}
remembered []
message user stamp it
function_call   g1 stamp {"n":1}
function_call_output   g1   did g1
message assistant stamp it is done after did g1
completed its task: stamp it is done after did g1, 2 steps
child 2
state {}
remembered []
aborted message user wait
aborted function_call   e1 ever {"n":1}
aborted function_call_output   e1   stopped while it ran: it may or may not have had its effect
aborted its task: cancel_child, 1 steps`

// outline returns what must be the same through any crash.
func (s *tale) outline() []string {
	lines := append(slices.Clone(s.before), "clear")
	lines = append(append(lines, outlineOf(&s.view.state)...), s.ends(s.agent)...)
	for i, v := range s.below {
		lines = append(append(append(lines, fmt.Sprint("child ", i+1)), outlineOf(&v.state)...), s.ends(v.agent)...)
	}
	return lines
}

// outlineOf returns the items of an agent's history.
func outlineOf(s *turn.State) []string {
	lines := []string{"state " + string(s.Data.JSON()), fmt.Sprint("remembered ", remembered(s))}
	for _, item := range s.History.View() {
		lines = append(lines, strings.TrimSpace(fmt.Sprintln(item.Status, item.Type, item.Role, item.Content.Text(), item.CallID, item.Name, item.Arguments, item.Output)))
	}
	return lines
}

// ends returns an agent's inputs and how each ended, in the order of their ends.
func (s *tale) ends(a messages.AgentID) (lines []string) {
	of := func(inputs []string) string {
		if len(inputs) == 1 && strings.HasPrefix(inputs[0], "task:") {
			return "its task:" // its id contains event numbers
		}
		return fmt.Sprint(inputs)
	}
	for _, ev := range s.stage.Events(a) {
		switch ev := ev.(type) {
		case messages.TurnCompleted:
			lines = append(lines, fmt.Sprintf("completed %s %s, %d steps", of(ev.Inputs), ev.Output, ev.Steps))
		case messages.TurnFailed:
			lines = append(lines, fmt.Sprintf("failed %s %s, %d steps", of(ev.Inputs), ev.Reason, ev.Steps))
		case messages.TurnAborted:
			lines = append(lines, fmt.Sprintf("aborted %s %s, %d steps", of(ev.Inputs), ev.By, ev.Steps))
		case messages.InputCancelled:
			lines = append(lines, "cancelled "+ev.Input)
		case messages.InputDropped:
			lines = append(lines, "dropped "+ev.Input)
		}
	}
	return lines
}

// openNATS opens a store on a NATS server of its own.
func openNATS(t *testing.T) *eventlog.Store {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	server, err := embedded.Start(embedded.Config{Dir: t.TempDir(), DontListen: true, Sync: embedded.SyncRelaxed, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Shutdown() })
	nc, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	cfg := natslog.Config{Logger: quiet}
	cfg.Conns = append(cfg.Conns, nc)
	log, err := natslog.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	store := log.Store()
	return &store
}
