package projections

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

var tracedAgent = messages.AgentID{Tenant: "acme", Kind: "support", Key: "7"}

const (
	callerTrace  = messages.TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	steererTrace = messages.TraceContext("00-1af7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01")
)

// tracedFrames returns the frames, a second apart, of an agent whose first turn waited for another
// one's end, retried its model, lost a tool with its process, waited for a person, and was steered.
func tracedFrames() []*messages.Frame {
	tokens := messages.Usage{Input: 20, Output: 2}
	frame := func(trace messages.TraceContext, events ...messages.Event) *messages.Frame {
		return &messages.Frame{Trace: trace, Events: events}
	}
	list := []*messages.Frame{
		frame("", messages.AgentCreated{}, input("u0", "before"), messages.TurnStarted{Turn: "t3", Inputs: []string{"u0"}}, messages.ModelRequested{Turn: "t3", Step: 1, Attempt: 1, Call: "m4", Model: "demo/small"}),
		frame(callerTrace, messages.InputAccepted{Input: "u1", Disposition: messages.Queued, Content: messages.TextContent("a secret question")}),
		frame("", messages.ModelCompleted{Turn: "t3", Step: 1, Call: "m4", Finish: "stop", Usage: tokens}, messages.TurnCompleted{Turn: "t3", Inputs: []string{"u0"}, Output: "done"},
			messages.TurnStarted{Turn: "t8", Inputs: []string{"u1"}, Trace: callerTrace}, messages.ModelRequested{Turn: "t8", Step: 1, Attempt: 1, Call: "m9", Model: "demo/small"}),
		frame("", messages.ModelFailed{Turn: "t8", Step: 1, Call: "m9", Kind: "overloaded", Message: "a secret failure", Usage: tokens}, messages.ModelRequested{Turn: "t8", Step: 1, Attempt: 2, Call: "m11", Model: "demo/small"}),
		frame("", messages.ModelCompleted{Turn: "t8", Step: 1, Call: "m11", Finish: "tool_calls", Model: "small-2", Usage: tokens, Items: []messages.Item{messages.Text(messages.RoleAssistant, "a secret thought")}},
			messages.ToolRequested{Turn: "t8", Step: 1, Call: "c1", Tool: "refund", Arguments: `{"secret":1}`},
			messages.ApprovalRequested{Turn: "t8", Call: "c1", Tool: "refund", Arguments: `{"secret":1}`}, messages.TurnPaused{Turn: "t8", Reason: "approval", Calls: []messages.CallID{"c1"}}),
		frame(steererTrace, messages.InputAccepted{Input: "u2", Disposition: messages.Steered, Turn: "t8", Content: messages.TextContent("a secret remark")}),
		frame("", messages.ApprovalGranted{Turn: "t8", Call: "c1", Tool: "refund", By: messages.ByDecision}, messages.TurnResumed{Turn: "t8"}, messages.ToolStarted{Turn: "t8", Call: "c1", Tool: "refund", Key: "k1", Attempt: 1}),
		frame("", messages.AgentActivated{Epoch: 2}, messages.ToolStarted{Turn: "t8", Call: "c1", Tool: "refund", Key: "k1", Attempt: 2}),
		frame("", messages.ToolCompleted{Turn: "t8", Call: "c1", Output: "a secret result"}, messages.ModelRequested{Turn: "t8", Step: 2, Attempt: 1, Call: "m23", Model: "demo/small", Inputs: []string{"u2"}}),
		frame("", messages.ModelCompleted{Turn: "t8", Step: 2, Call: "m23", Finish: "stop", Usage: tokens}, messages.TurnFailed{Turn: "t8", Inputs: []string{"u1", "u2"}, Reason: "hook", Message: "a secret reason"}),
	}
	next := messages.EventNumber(1)
	for i, f := range list {
		f.First, f.Time = next, second(i)
		next += messages.EventNumber(len(f.Events))
	}
	return list
}

// spansOf folds frames.
func spansOf(frames []*messages.Frame, content bool) []Span {
	s := Spans{Agent: tracedAgent, Content: content}
	for _, f := range frames {
		Fold(f, 0, &s)
	}
	return s.Take()
}

// ofTurnSpans returns the spans of one turn.
func ofTurnSpans(spans []Span, turn messages.TurnID) []Span {
	return slices.DeleteFunc(slices.Clone(spans), func(s Span) bool { return s.Turn != turn })
}

// line is a span in one line.
func (s Span) line() string {
	text := fmt.Sprintf("%s %s %v..%v", s.Kind, s.Name, s.Start.Sub(testTime), s.End.Sub(testTime))
	for _, a := range s.Attributes {
		switch {
		case a.Number != nil:
			text += fmt.Sprintf(" %s=%d", a.Key, *a.Number)
		case a.Texts != nil:
			text += fmt.Sprintf(" %s=%q", a.Key, a.Texts)
		default:
			text += fmt.Sprintf(" %s=%s", a.Key, a.Text)
		}
	}
	return text
}

func TestSpans(t *testing.T) {
	spans := ofTurnSpans(spansOf(tracedFrames(), false), "t8")
	want := []string{
		"internal invoke_agent support 2s..9s gen_ai.operation.name=invoke_agent gen_ai.agent.name=support gen_ai.conversation.id=acme/support/7 gen_ai.provider.name=demo gen_ai.request.model=small gen_ai.usage.input_tokens=60 gen_ai.usage.output_tokens=6 reprise.turn.id=t8 reprise.turn.phase=failed error.type=hook",
		"client chat small 2s..3s gen_ai.operation.name=chat gen_ai.provider.name=demo gen_ai.request.model=small gen_ai.usage.input_tokens=20 gen_ai.usage.output_tokens=2 reprise.step=1 error.type=overloaded",
		"client chat small 3s..4s gen_ai.operation.name=chat gen_ai.provider.name=demo gen_ai.request.model=small gen_ai.response.model=small-2 gen_ai.response.finish_reasons=[\"tool_calls\"] gen_ai.usage.input_tokens=20 gen_ai.usage.output_tokens=2 reprise.step=1",
		"internal wait approval 4s..6s reprise.wait.reason=approval",
		"internal execute_tool refund 6s..7s gen_ai.operation.name=execute_tool gen_ai.tool.name=refund gen_ai.tool.call.id=c1 gen_ai.tool.type=function reprise.step=1 reprise.attempt=1 reprise.idempotency_key=k1 error.type=lost",
		"internal execute_tool refund 7s..8s gen_ai.operation.name=execute_tool gen_ai.tool.name=refund gen_ai.tool.call.id=c1 gen_ai.tool.type=function reprise.step=1 reprise.attempt=2 reprise.idempotency_key=k1",
		"client chat small 8s..9s gen_ai.operation.name=chat gen_ai.provider.name=demo gen_ai.request.model=small gen_ai.response.finish_reasons=[\"stop\"] gen_ai.usage.input_tokens=20 gen_ai.usage.output_tokens=2 reprise.step=2",
	}
	var got []string
	ids := make(map[string]bool)
	for i, s := range spans {
		got = append(got, s.line())
		ids[s.SpanID] = true
		if parent := spans[0].SpanID; i > 0 && s.Parent != parent {
			t.Errorf("%s is below %s, not %s", s.Name, s.Parent, parent)
		}
		if s.TraceID != callerTrace.Span().TraceID().String() {
			t.Errorf("%s is of trace %s, not its caller's", s.Name, s.TraceID)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	root := spans[0]
	if len(ids) != len(spans) || root.Parent != "b7ad6b7169203331" {
		t.Errorf("%d ids for %d spans; the first is below %q", len(ids), len(spans), root.Parent)
	}
	if link := (SpanLink{TraceID: "1af7651916cd43dd8448eb211c80319c", SpanID: "c7ad6b7169203331"}); !slices.Equal(root.Links, []SpanLink{link}) {
		t.Errorf("the links are %v, want that of the input that steered the turn", root.Links)
	}
	var moments []string
	for _, e := range root.Events {
		moments = append(moments, fmt.Sprint(e.Name, " ", e.At.Sub(testTime)))
	}
	if want := []string{"reprise.approval.requested 4s", "reprise.approval.granted 6s", "reprise.agent.activated 7s"}; !slices.Equal(moments, want) {
		t.Errorf("the events are %q, want %q", moments, want)
	}
}

// TestSpansOfPart holds that the events of a turn yield the same spans as all events: what a node
// sends when a turn ends is what its log yields for it at any later time.
func TestSpansOfPart(t *testing.T) {
	frames := tracedFrames()
	whole := spansOf(frames, false)
	for turn, from := range map[messages.TurnID]int{"t3": 0, "t8": 2} {
		want := ofTurnSpans(whole, turn)
		if got := ofTurnSpans(spansOf(frames[from:], false), turn); len(want) == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("turn %s: got\n%+v\nwant\n%+v", turn, got, want)
		}
		if want[0].Turn != turn || want[0].SpanID != (&Turn{ID: turn}).Span(tracedAgent).Span().SpanID().String() {
			t.Errorf("turn %s: its span is not the first", turn)
		}
	}
	for from, want := range map[int]bool{0: false, 2: true} {
		s := Spans{Agent: tracedAgent}
		for _, f := range frames[from:] {
			Fold(f, 0, &s)
		}
		if s.Lacks() != want {
			t.Errorf("from frame %d on: Lacks is %v", from, !want)
		}
	}
}

// TestSpansOwnTrace holds that a turn without a trace context has a trace of its own, which differs
// for another agent, turn or first input, and whose ids follow from the log.
func TestSpansOwnTrace(t *testing.T) {
	traces := make(map[string]bool)
	other := tracedAgent
	other.Key = "8"
	for _, s := range []messages.TraceContext{
		(&Turn{ID: "t3", Inputs: []string{"u0"}}).Span(tracedAgent), (&Turn{ID: "t4", Inputs: []string{"u0"}}).Span(tracedAgent),
		(&Turn{ID: "t3", Inputs: []string{"u1"}}).Span(tracedAgent), (&Turn{ID: "t3", Inputs: []string{"u0"}}).Span(other),
	} {
		traces[s.Span().TraceID().String()] = true
		if !s.Span().IsValid() || !s.Span().IsSampled() {
			t.Errorf("%q is no trace context that is sampled", s)
		}
	}
	if len(traces) != 4 {
		t.Errorf("four turns have %d traces", len(traces))
	}
	root := ofTurnSpans(spansOf(tracedFrames(), false), "t3")[0]
	if again := (&Turn{ID: "t3", Inputs: []string{"u0"}}).Span(tracedAgent).Span(); root.Parent != "" || root.TraceID != again.TraceID().String() {
		t.Errorf("the span %+v is below another, or of another trace than %s", root, again.TraceID())
	}
}

// TestSpansContent holds that a span has nothing that a user, model or tool wrote unless that is
// asked for.
func TestSpansContent(t *testing.T) {
	for content, want := range map[bool]int{false: 0, true: 7} {
		text, err := json.Marshal(spansOf(tracedFrames(), content))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, secret := range []string{"a secret question", "a secret failure", "a secret thought", `{\"secret\":1}`, "a secret remark", "a secret result", "a secret reason"} {
			if strings.Contains(string(text), secret) {
				n++
			}
		}
		if n != want {
			t.Errorf("content %v: %d texts are in %s", content, n, text)
		}
	}
}

// TestSpansOpen holds that a turn that runs has spans, which have no end where what they show has
// none, and that the end of the agent drops them.
func TestSpansOpen(t *testing.T) {
	s := Spans{Agent: tracedAgent}
	for _, f := range tracedFrames()[:8] {
		Fold(f, 0, &s)
	}
	var open []string
	for _, span := range s.Open() {
		if span.End.IsZero() {
			open = append(open, span.Name)
		}
	}
	if want := []string{"invoke_agent support", "execute_tool refund"}; !slices.Equal(open, want) {
		t.Errorf("open are %q, want %q", open, want)
	}
	s.Apply(100, messages.AgentDeleted{})
	if left := s.Open(); len(left) > 0 {
		t.Errorf("a deleted agent has open spans: %v", left)
	}
}
