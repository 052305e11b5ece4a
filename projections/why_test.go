package projections

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// storyOf makes frames: each argument is an event of the frame before it, or the cause of a new frame.
func storyOf(parts ...any) (frames []*messages.Frame) {
	n := messages.EventNumber(1)
	for _, p := range parts {
		if cause, ok := p.(messages.Cause); ok {
			frames = append(frames, &messages.Frame{First: n, Cause: cause, Time: testTime.Add(time.Duration(len(frames)) * time.Minute)})
			continue
		}
		f := frames[len(frames)-1]
		f.Events = append(f.Events, p.(messages.Event))
		n++
	}
	return frames
}

var effect = messages.Cause{Type: messages.CauseEffect}

func inputBy(id, person string) messages.Cause {
	return messages.Cause{Type: "input", ID: id, By: person, Endpoint: messages.EndpointPrompt}
}

func commandBy(command, id, person string) messages.Cause {
	return messages.Cause{Type: command, ID: id, By: person, Endpoint: messages.EndpointCtl, Authenticated: true}
}

func accepted(id, text string) messages.InputAccepted {
	return messages.InputAccepted{Input: id, Disposition: messages.Started, Content: messages.TextContent(text)}
}

// refundCall is what a model's answer asks for.
func refundCall(turn messages.TurnID, call messages.CallID, order string) messages.ToolRequested {
	return messages.ToolRequested{Turn: turn, Step: 1, Call: call, Tool: "refund", Arguments: `{"order":` + order + `}`}
}

func refundStarted(turn messages.TurnID, call messages.CallID, attempt int) messages.ToolStarted {
	return messages.ToolStarted{Turn: turn, Call: call, Tool: "refund", OnUnknown: messages.Pause, Key: "key-" + string(call), Attempt: attempt}
}

// oneTurn are the events of a turn up to an answer that asks for calls of refund.
func oneTurn(turn messages.TurnID, model messages.CallID, input string, calls ...messages.ToolRequested) (parts []any) {
	answer := messages.ModelCompleted{Turn: turn, Step: 1, Call: model}
	for _, c := range calls {
		answer.Items = append(answer.Items, messages.Item{Type: messages.ItemCall, CallID: c.Call, Name: c.Tool, Arguments: c.Arguments})
	}
	parts = append(parts,
		messages.TurnStarted{Turn: turn, Inputs: []string{input}, MaxSteps: 20},
		messages.ModelRequested{Turn: turn, Step: 1, Attempt: 1, Call: model, Model: "a/big", Inputs: []string{input}}, effect, answer)
	for _, c := range calls {
		parts = append(parts, c)
	}
	return parts
}

// whyStories are streams with a planted cause, and the events that are asked about.
var whyStories = []struct {
	name   string
	frames []*messages.Frame
	asked  []messages.EventNumber
}{
	{"unknown outcome, run again by decision", storyOf(slices.Concat(
		[]any{inputBy("u1", "bob"), accepted("u1", "Refund order 7")}, oneTurn("t2", "m3", "u1", refundCall("t2", "c1", "7")),
		[]any{refundStarted("t2", "c1", 1),
			messages.Cause{Type: messages.CauseTakeover}, messages.AgentActivated{Node: "n2", Host: "h2", Epoch: 2, Previous: 1},
			messages.ToolUnknown{Turn: "t2", Call: "c1", Reason: "its process was lost"}, messages.TurnPaused{Turn: "t2", Reason: "tool_unknown", Calls: []messages.CallID{"c1"}},
			commandBy("decide", "d1", "ann"), messages.TurnResumed{Turn: "t2"}, refundStarted("t2", "c1", 2),
			effect, messages.ToolCompleted{Turn: "t2", Call: "c1", Output: "paid"}})...),
		[]messages.EventNumber{5, 7, 9, 11}},
	{"unknown outcome, decided to have failed, asked again", storyOf(slices.Concat(
		[]any{inputBy("u1", "bob"), accepted("u1", "Refund order 7")}, oneTurn("t2", "m3", "u1", refundCall("t2", "c1", "7")),
		[]any{refundStarted("t2", "c1", 1), effect, messages.ToolUnknown{Turn: "t2", Call: "c1", Reason: "its process was lost"},
			commandBy("decide", "d1", "ann"), messages.ToolFailed{Turn: "t2", Call: "c1", Kind: messages.ToolFailureError, Message: "no such payment", By: messages.ByDecision},
			messages.ModelRequested{Turn: "t2", Step: 2, Attempt: 1, Call: "m9", Model: "a/big"},
			effect, messages.ModelCompleted{Turn: "t2", Step: 2, Call: "m9"}, refundCall("t2", "c2", " 7.0"), refundStarted("t2", "c2", 1),
			effect, messages.ToolCompleted{Turn: "t2", Call: "c2", Output: "paid"}})...),
		[]messages.EventNumber{11, 5}},
	{"input sent again under another id", storyOf(slices.Concat(
		[]any{inputBy("u1", "bob"), accepted("u1", "Refund order 7")}, oneTurn("t2", "m3", "u1", refundCall("t2", "c1", "7")),
		[]any{refundStarted("t2", "c1", 1), effect, messages.ToolCompleted{Turn: "t2", Call: "c1", Output: "paid"}, messages.TurnCompleted{Turn: "t2", Output: "done"},
			inputBy("u2", "bob"), accepted("u2", "Refund order 7")}, oneTurn("t10", "m11", "u2", refundCall("t10", "c1", "7")),
		[]any{refundStarted("t10", "c1", 1)})...),
		[]messages.EventNumber{13, 9, 5}},
	{"input sent again under another id, for which another call was made", storyOf(slices.Concat(
		[]any{inputBy("u1", "bob"), accepted("u1", "Refund order 7")}, oneTurn("t2", "m3", "u1", refundCall("t2", "c1", "7")),
		[]any{refundStarted("t2", "c1", 1), effect, messages.ToolCompleted{Turn: "t2", Call: "c1", Output: "paid"}, messages.TurnCompleted{Turn: "t2", Output: "done"},
			inputBy("u2", "bob"), accepted("u2", "Refund order 7")}, oneTurn("t10", "m11", "u2", refundCall("t10", "c1", "77")))...),
		[]messages.EventNumber{13}},
	{"asked twice in one answer", storyOf(slices.Concat(
		[]any{inputBy("u1", "bob"), accepted("u1", "Refund orders 7 and 7")}, oneTurn("t2", "m3", "u1", refundCall("t2", "c1", "7"), refundCall("t2", "c2", "7"), refundCall("t2", "c3", "8")),
		[]any{refundStarted("t2", "c1", 1), refundStarted("t2", "c2", 1), effect, messages.ToolCompleted{Turn: "t2", Call: "c1", Output: "paid"}})...),
		[]messages.EventNumber{6, 7}},
	{"a failed turn that was continued", storyOf(slices.Concat(
		[]any{inputBy("u1", "bob"), accepted("u1", "Refund order 7")}, oneTurn("t2", "m3", "u1", refundCall("t2", "c1", "7")),
		[]any{refundStarted("t2", "c1", 1), effect, messages.ToolCompleted{Turn: "t2", Call: "c1", Output: "paid"},
			messages.TurnFailed{Turn: "t2", Reason: "max_steps", Message: "1 step is used"},
			commandBy("resume", "r1", "ann"), messages.TurnStarted{Turn: "t9", Continues: "t2", Steps: 1, Reason: "go on"},
			messages.ModelRequested{Turn: "t9", Step: 2, Attempt: 1, Call: "m10", Model: "a/big"},
			effect, messages.ModelFailed{Turn: "t9", Step: 2, Attempt: 1, Call: "m10", Kind: "rate_limit", Message: "slow down"},
			messages.TimerSet{Turn: "t9", Timer: "retry:m10", For: ForRetry, At: testTime},
			effect, messages.TimerFired{Turn: "t9", Timer: "retry:m10"}, messages.ModelRequested{Turn: "t9", Step: 2, Attempt: 2, Call: "m14", Model: "a/big"},
			effect, messages.ModelCompleted{Turn: "t9", Step: 2, Call: "m14"}, refundCall("t9", "c1", "7"), refundStarted("t9", "c1", 1)})...),
		[]messages.EventNumber{16, 13, 8}},
	{"a turn that failed with its model call", storyOf(slices.Concat(
		[]any{inputBy("u1", "bob"), accepted("u1", "Refund order 7")}, oneTurn("t2", "m3", "u1", refundCall("t2", "c1", "7")),
		[]any{refundStarted("t2", "c1", 1), effect, messages.ToolCompleted{Turn: "t2", Call: "c1", Output: "paid"},
			messages.ModelRequested{Turn: "t2", Step: 2, Attempt: 1, Call: "m8", Model: "a/big"},
			effect, messages.ModelFailed{Turn: "t2", Step: 2, Attempt: 1, Call: "m8", Kind: "bad_request", Message: "no such model"},
			messages.TurnFailed{Turn: "t2", Reason: "model", Kind: "bad_request", Message: "no such model"}})...),
		[]messages.EventNumber{10}},
	{"a call that is the task of a child", storyOf(slices.Concat(
		[]any{inputBy("u1", "bob"), accepted("u1", "Have order 7 refunded")}, oneTurn("t2", "m3", "u1", messages.ToolRequested{Turn: "t2", Step: 1, Call: "c1", Tool: "shop", Arguments: `{"input":"Refund order 7"}`}),
		[]any{messages.ToolStarted{Turn: "t2", Call: "c1", Tool: "shop", Key: "key-c1", Attempt: 1}, messages.ChildSpawned{Turn: "t2", Call: "c1", Tool: "shop", Child: "default/shop/sub-1", Input: "task:1"},
			commandBy("approve", "a1", "ann"), messages.ChildDecided{Turn: "t2", Call: "c1", Agent: "default/shop/sub-1", Of: "t4", Waits: "c9", Command: "approve", ID: "a1"},
			commandBy("report", "r1", ""), messages.ChildSettled{Turn: "t2", Call: "c1", Agent: "default/shop/sub-1", Of: "t4", Waits: "c9", Command: "approve", ID: "a1", N: 10},
			commandBy("report", "r2", ""), messages.ChildSettled{Turn: "t2", Call: "c1", Agent: "default/shop/sub-1", Of: "t4", Waits: "c9", Command: "approve", ID: "a2", Refused: messages.Conflict, Message: "it was denied"},
			commandBy("report", "r3", ""), messages.ChildCompleted{Turn: "t2", Call: "c1", Child: "default/shop/sub-1", N: 17}, messages.ToolCompleted{Turn: "t2", Call: "c1", Output: "done"}})...),
		[]messages.EventNumber{5}},
	{"a child that did not complete", storyOf(slices.Concat(
		[]any{inputBy("u1", "bob"), accepted("u1", "Have order 7 refunded")}, oneTurn("t2", "m3", "u1", messages.ToolRequested{Turn: "t2", Step: 1, Call: "c1", Tool: "shop", Arguments: `{}`}),
		[]any{messages.ChildSpawned{Turn: "t2", Call: "c1", Tool: "shop", Child: "default/shop/sub-1", Input: "task:1"},
			commandBy("report", "r1", ""), messages.ChildFailed{Turn: "t2", Call: "c1", Child: "default/shop/sub-1", N: 9, Reason: "max_steps", Message: "1 step is used"}})...),
		[]messages.EventNumber{5}},
	{"timer with a cron line", storyOf(slices.Concat(
		[]any{inputBy("u1", "bob"), messages.TimerSet{Timer: "daily", For: ForInput, Cron: "0 9 * * *", At: testTime, Input: &messages.Input{ID: "u1"}}},
		[]any{effect, messages.TimerFired{Timer: "daily", Input: "timer:daily:1"}, messages.TimerSet{Timer: "daily", For: ForInput, Cron: "0 9 * * *", At: testTime}, accepted("timer:daily:1", "Refund"),
			effect, messages.TimerFired{Timer: "daily", Input: "timer:daily:3"}, messages.TimerSet{Timer: "daily", For: ForInput, Cron: "0 9 * * *", At: testTime}, accepted("timer:daily:3", "Refund")},
		oneTurn("t8", "m9", "timer:daily:3", refundCall("t8", "c1", "7")))...),
		[]messages.EventNumber{11, 5}},
	{"approved, with arguments that a hook has changed", storyOf(slices.Concat(
		[]any{inputBy("u1", "bob"), accepted("u1", "Refund order 7")}, oneTurn("t2", "m3", "u1", refundCall("t2", "c1", "7")),
		[]any{messages.HookDecided{Turn: "t2", Hook: "guard", Point: messages.PointBeforeTool, Call: "c1", Decision: string(HookRewrite), Arguments: `{"order":8}`, Reason: "mistyped"},
			messages.ApprovalRequested{Turn: "t2", Call: "c1", Tool: "refund", Arguments: `{"order":8}`, Reason: "over 50"}, messages.TurnPaused{Turn: "t2", Reason: "approval", Calls: []messages.CallID{"c1"}},
			inputBy("u9", "eve"), messages.InputAccepted{Input: "u9", Disposition: messages.Steered, Turn: "t2", Content: messages.TextContent("\x1b[2Jhurry")},
			commandBy("approve", "a1", "ann"), messages.ApprovalGranted{Turn: "t2", Call: "c1", Tool: "refund", By: messages.ByDecision, Reason: "ok"}, messages.TurnResumed{Turn: "t2"}, refundStarted("t2", "c1", 1),
			effect, messages.ToolCompleted{Turn: "t2", Call: "c1", Output: "paid"}, messages.ModelRequested{Turn: "t2", Step: 2, Attempt: 1, Call: "m14", Model: "a/big", Inputs: []string{"u9"}},
			effect, messages.ModelCompleted{Turn: "t2", Step: 2, Call: "m14", Items: []messages.Item{messages.Text("assistant", "Done.")}}, refundCall("t2", "c2", "8"), refundStarted("t2", "c2", 1)})...),
		[]messages.EventNumber{12, 16, 8, 14}},
	{"summaries before a model call", storyOf(slices.Concat(
		[]any{inputBy("u1", "bob"), accepted("u1", "Refund order 7")}, oneTurn("t2", "m3", "u1", refundCall("t2", "c1", "7")),
		[]any{refundStarted("t2", "c1", 1), effect, messages.ToolCompleted{Turn: "t2", Call: "c1", Output: "paid"}},
		summarized("t2", "s8"), summarized("t2", "s12"),
		[]any{messages.ModelRequested{Turn: "t2", Step: 2, Attempt: 1, Call: "m16", Model: "a/big"},
			effect, messages.ModelFailed{Turn: "t2", Step: 2, Attempt: 1, Call: "m16", Kind: "rate_limit", Message: "slow down"}},
		summarized("t2", "s18"),
		[]any{messages.ModelRequested{Turn: "t2", Step: 2, Attempt: 2, Call: "m22", Model: "a/big"},
			effect, messages.ModelCompleted{Turn: "t2", Step: 2, Call: "m22"}, refundCall("t2", "c2", "8")})...),
		[]messages.EventNumber{24, 15, 14}},
	{"summaries between turns", storyOf(slices.Concat(
		[]any{commandBy("compact", "k1", "ann")}, summarized("", "s1"), []any{commandBy("compact", "k2", "ann")}, summarized("", "s5"))...),
		[]messages.EventNumber{8, 7}},
	{"a fork", storyOf(
		inputBy("f1", "bob"), messages.AgentForked{Agent: "default/shop/main", Parent: "default/shop/first", At: 7, Reason: "another answer"},
		commandBy("use_tools", "t1", "bob"), messages.ToolsEnabled{},
		commandBy("fork", "f2", "bob"), messages.ForkRequested{Fork: "default/shop/third", At: 2, Begin: "b1"}, messages.ForkRequested{Fork: "default/shop/fourth", At: 2, Begin: "b2"},
		messages.Cause{Type: "fork_effect", ID: "e1"}, messages.ForkSettled{Fork: "default/shop/third", Begin: "b1", N: 3}, messages.ForkSettled{Fork: "default/shop/fourth", Begin: "b2", Refused: messages.Conflict, Message: "it exists"},
		commandBy("detach", "d1", "ann"), messages.ForkDetached{Frames: &messages.Blob{SHA256: "abc", Size: 12}, Last: 7, Digest: "def", Reason: "first is to be deleted"}),
		[]messages.EventNumber{1, 2, 3, 5, 6, 7}},
	{"an imported agent", storyOf(commandBy("import", "i1", "ann"), messages.AgentImported{Agent: "default/shop/main", Source: "default/shop/first", Last: 7, Digest: "def"}),
		[]messages.EventNumber{1}},
}

// summarized are the events of a summary whose first attempt fails.
func summarized(turn messages.TurnID, call messages.CallID) []any {
	return []any{messages.CompactionRequested{Turn: turn, Call: call, Upto: 6, Attempt: 1, Model: "a/small"},
		effect, messages.CompactionFailed{Turn: turn, Call: call, Attempt: 1, Kind: "rate_limit", Message: "slow down"},
		messages.CompactionRequested{Turn: turn, Call: call + "b", Upto: 6, Attempt: 2, Model: "a/small"},
		effect, messages.HistoryCompacted{Turn: turn, Call: call + "b", Upto: 6, Dropped: 5, Kept: 1, How: messages.CompactSummary, Text: "Bob wants his money back."}}
}

// The chain of causes and the findings are those of testdata/why.txt.
func TestWhy(t *testing.T) {
	var b strings.Builder
	for _, s := range whyStories {
		for _, n := range s.asked {
			c := &Causes{N: n}
			for _, f := range s.frames {
				Fold(f, 0, c)
			}
			w := c.Of(testAgent)
			w.End()
			fmt.Fprintf(&b, "== %s: event %d\n%s\n", s.name, n, whyText(w))
		}
	}
	wantGolden(t, "testdata/why.txt", b.String())
}

var testAgent = messages.AgentID{Tenant: messages.DefaultTenant, Kind: "shop", Key: "main"}

func wantGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("%s: error %v, or a difference (run with -update and review it)\ngot\n%swant\n%s", path, err, got, want)
	}
}

// whyText is one line for each cause and finding.
func whyText(w *Why) string {
	var b strings.Builder
	for _, c := range w.Chain {
		fmt.Fprintf(&b, "%-9s %s %d  %s", c.Relation, c.Agent, c.N, Printable(c.Text, 0))
		if c.Command != "" {
			fmt.Fprintf(&b, " [%s %s %s by %s]", c.Command, c.ID, c.Endpoint, personName(c.Person))
		}
		if c.More > 0 {
			fmt.Fprintf(&b, " and %d more", c.More)
		}
		b.WriteString("\n")
	}
	for _, f := range w.Findings {
		fmt.Fprintf(&b, "%s: %s\n", f.Kind, Printable(f.Text, 0))
	}
	return b.String()
}

// familyStory is a parent whose answer asks two children to do the same, one of which waits for an
// approval that the parent forwards.
func familyStory() (parent *Causes, chain func() *Why) {
	ask := func(call messages.CallID) messages.ToolRequested {
		return messages.ToolRequested{Turn: "t2", Step: 1, Call: call, Tool: "helper", Arguments: `{"input":"refund ` + string(call) + `"}`}
	}
	spawned := func(call messages.CallID) messages.ChildSpawned {
		return messages.ChildSpawned{Turn: "t2", Call: call, Tool: "helper", Child: "default/helper/" + string(call), Input: "task:" + string(call)}
	}
	frames := storyOf(slices.Concat(
		[]any{inputBy("u1", "bob"), accepted("u1", "Refund order 7")}, oneTurn("t2", "m3", "u1", ask("c1"), ask("c2")),
		[]any{spawned("c1"), spawned("c2"), commandBy("approve", "a1", "ann"),
			messages.ChildDecided{Turn: "t2", Call: "c2", Agent: "default/helper/c2", Command: "approve", ID: "f1"}})...)
	fold := func(c *Causes, frames []*messages.Frame) *Causes {
		for _, f := range frames {
			Fold(f, 0, c)
		}
		return c
	}
	child := func(call messages.CallID) []*messages.Frame {
		in := accepted("task:"+string(call), "refund "+string(call))
		in.Parent = &messages.Parent{Caller: messages.Caller{Agent: testAgent.Full(), Turn: "t2", Call: call}}
		return storyOf(slices.Concat(
			[]any{messages.Cause{Type: "task", ID: in.Input, Endpoint: messages.EndpointPeer}, in}, oneTurn("t2", "m3", in.Input, refundCall("t2", "x1", "7")),
			[]any{messages.ApprovalRequested{Turn: "t2", Call: "x1", Tool: "refund", Arguments: `{"order":7}`},
				messages.Cause{Type: "approve", ID: "f1", By: "ann", Endpoint: messages.EndpointPeer}, messages.ApprovalGranted{Turn: "t2", Call: "x1", Tool: "refund", By: messages.ByDecision},
				refundStarted("t2", "x1", 1), effect, messages.ToolCompleted{Turn: "t2", Call: "x1", Output: "paid"}})...)
	}
	address := func(key string) messages.AgentID {
		return messages.AgentID{Tenant: messages.DefaultTenant, Kind: "helper", Key: key}
	}
	w := fold(&Causes{N: 8}, child("c2")).Of(address("c2"))
	parent = fold(w.Above(), frames)
	return parent, func() *Why {
		w.AddParent(testAgent, parent)
		for _, a := range w.Family(200) {
			w.AddSibling(a, fold(new(Causes), child(messages.CallID(a.Key))))
		}
		w.End()
		return w
	}
}

// The chain of a child continues in its parent, with the decision that the parent forwarded, and names the
// sibling that made the same call.
func TestWhyOfAChild(t *testing.T) {
	_, chain := familyStory()
	wantGolden(t, "testdata/why-child.txt", whyText(chain()))
}

// Of a parent that was deleted the chain names that its log is gone.
func TestWhyOfADeletedParent(t *testing.T) {
	parent, chain := familyStory()
	Fold(&messages.Frame{First: 20, Events: []messages.Event{messages.AgentDeleted{}}}, 0, parent)
	w := chain()
	last := w.Chain[len(w.Chain)-1]
	if last.Relation != CauseMissing || last.Agent != testAgent || !strings.Contains(last.Text, "deleted") || w.Siblings != 0 {
		t.Errorf("got %d siblings and %+v, want none and that the parent is missing", w.Siblings, last)
	}
}

// A chain is bounded however much there is, and counts what it leaves out.
func TestWhyIsBounded(t *testing.T) {
	parts := []any{inputBy("u0", "bob"), accepted("u0", "begin")}
	started := messages.TurnStarted{Turn: "t400", MaxSteps: 20}
	for i := range 100 {
		id := fmt.Sprint("v", i)
		parts = append(parts, accepted(id, id))
		started.Inputs = append(started.Inputs, id)
	}
	parts = append(parts, started, messages.ModelRequested{Turn: "t400", Step: 1, Call: "m0"}, effect, messages.ModelCompleted{Turn: "t400", Step: 1, Call: "m0", Items: []messages.Item{messages.Text("assistant", strings.Repeat("é", 1e5))}})
	for i := range 300 {
		call := messages.CallID(fmt.Sprint("c", i))
		parts = append(parts, refundCall("t400", call, "7"), refundStarted("t400", call, 1), messages.ToolCompleted{Turn: "t400", Call: call, Output: strings.Repeat("x", 1e5)})
	}
	parts = append(parts, messages.ModelRequested{Turn: "t400", Step: 2, Call: "m1"}, effect, messages.ModelCompleted{Turn: "t400", Step: 2, Call: "m1"}, refundCall("t400", "last", "7"))
	for range 100 {
		parts = append(parts, messages.ToolUnknown{Turn: "t400", Call: "last"})
	}
	frames := storyOf(parts...)
	c := &Causes{N: frames[len(frames)-1].Last()}
	for _, f := range frames {
		Fold(f, 0, c)
	}
	w := c.Of(testAgent)
	w.End()
	more := make(map[Relation]int)
	for _, l := range w.Chain {
		more[l.Relation] += l.More
		if len(l.Text) > maxCauseText+len("…") {
			t.Errorf("event %d has %d bytes of text", l.N, len(l.Text))
		}
	}
	if len(w.Chain) > 5*maxLines || more[CauseInput] != 100-maxLines || more[CauseSaw] != 300-maxLines || more[CauseRepeats] != 300-maxEqual || more[CauseBefore] != 101-maxLines {
		t.Errorf("got %d lines, left out %v", len(w.Chain), more)
	}
}

// Of any story, each event has a chain that leads back: no line is about an event that does not exist, and
// none is there twice.
func TestWhyOfAnyStory(t *testing.T) {
	const length = 120
	for seed := range uint64(40) {
		list := frames(randomStory(seed, length))
		for n := messages.EventNumber(1); n <= length; n += 3 {
			c := &Causes{N: n}
			for _, f := range list {
				Fold(f, 0, c)
			}
			w := c.Of(testAgent)
			w.End()
			seen := make(map[string]int)
			for _, l := range w.Chain {
				if seen[fmt.Sprint(l.N, l.Relation)]++; l.N == 0 || l.N > length || seen[fmt.Sprint(l.N, l.Relation)] > 1 || l.Agent != testAgent {
					t.Fatalf("seed %d, event %d: line %+v", seed, n, l)
				}
			}
			if seen[fmt.Sprint(n, CauseEvent)] != 1 {
				t.Fatalf("seed %d: event %d is not in its own chain:\n%s", seed, n, whyText(w))
			}
		}
	}
}

// In a life of 10,000 events a call is found to repeat one of the first turn, and the other way round.
func TestWhyOfALongLife(t *testing.T) {
	const turns = 1250
	var parts []any
	for i := range turns {
		in, turn := fmt.Sprint("u", i), messages.TurnID(fmt.Sprint("t", i))
		parts = append(parts, inputBy(in, "bob"), accepted(in, "order "+in))
		parts = append(parts, oneTurn(turn, "m1", in, refundCall(turn, "c1", fmt.Sprint(i%(turns-1))))...)
		parts = append(parts, refundStarted(turn, "c1", 1), effect, messages.ToolCompleted{Turn: turn, Call: "c1", Output: "paid"},
			effect, messages.TurnCompleted{Turn: turn, Output: "done", Inputs: []string{in}})
	}
	list := storyOf(parts...)
	const first, last = 5, 8*(turns-1) + 5
	for asked, found := range map[messages.EventNumber]messages.EventNumber{first: last, last: first} {
		c := &Causes{N: asked}
		for _, f := range list {
			Fold(f, 0, c)
		}
		w := c.Of(testAgent)
		w.End()
		if end := w.Chain[len(w.Chain)-1]; len(w.Findings) != 1 || w.Findings[0].Kind != "repeats" || end.N != found || len(w.Chain) != 8 {
			t.Errorf("event %d:\n%s", asked, whyText(w))
		}
	}
}
