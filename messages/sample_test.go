package messages

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

var (
	testAgent = AgentID{"default", "assistant", "a1"}
	testTime  = time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)
)

// samples returns one event of every type with all fields set. It includes new events and fields
// without a change here.
func samples() map[string]Event {
	events := make(map[string]Event)
	for _, zero := range Events() {
		v := reflect.New(reflect.TypeOf(zero)).Elem()
		fill(v, zero.EventType())
		events[zero.EventType()] = v.Interface().(Event)
	}
	return events
}

// fill sets every field in v to a value that is not zero.
func fill(v reflect.Value, name string) {
	switch v.Interface().(type) {
	case json.RawMessage:
		v.SetBytes([]byte(`{"a":[1,2.50,null],"ü":"\u003c"}`))
		return
	case time.Time:
		v.Set(reflect.ValueOf(testTime))
		return
	case Content:
		v.Set(reflect.ValueOf(Content{{Type: "text", Text: "hello ✓"}, {Type: "image_url", ImageURL: "https://x.test/y.png", Detail: "low"}}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(name)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(len(name)) * 1000)
	case reflect.Uint64:
		v.SetUint(1<<63 + uint64(len(name)))
	case reflect.Float64:
		v.SetFloat(float64(len(name)) + 0.25)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), fmt.Sprint(name, i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), v.Type().Field(i).Name)
		}
	default:
		panic("fill does not support " + v.Kind().String() + ": add a case")
	}
}

func sampleFrame(events ...Event) *Frame {
	return &Frame{
		ID: "01JGK3Z6E0000000000000000B", Epoch: 7, First: 41,
		Prev: "01JGK3Z6E0000000000000000A", PrevDigest: DigestOf([]byte("the frame before")),
		Time:  testTime,
		Cause: Cause{Type: "input", ID: "u1", By: "alice", Endpoint: "prompt", Authenticated: true, Account: "acme", Reason: "asked"},
		Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", KeyID: "k1",
		Events: events,
	}
}

// ordinaryTurn returns the four frames of a turn with one tool call.
func ordinaryTurn() []*Frame {
	first := sampleFrame(
		InputAccepted{Input: "u1", Disposition: Started, Turn: "t2", Content: TextContent("What is 17 times 19?")},
		TurnStarted{Turn: "t2", Inputs: []string{"u1"}, Definition: string(DigestOf([]byte("def"))), MaxSteps: 20},
		ModelRequested{Turn: "t2", Step: 1, Attempt: 1, Call: "m3", Model: "demo/echo", Definition: "d", Instructions: "i", Request: "r", Inputs: []string{"u1"}})
	second := sampleFrame(
		ModelCompleted{Turn: "t2", Step: 1, Call: "m3", Items: []Item{{Type: ItemCall, CallID: "c1", Name: "calculator", Arguments: `{"expression":"17*19"}`}}, Finish: "tool_calls", Usage: Usage{Input: 57, Output: 18}},
		ToolRequested{Turn: "t2", Step: 1, Call: "c1", Tool: "calculator", Arguments: `{"expression":"17*19"}`},
		ToolStarted{Turn: "t2", Call: "c1", Tool: "calculator", OnUnknown: ReadOnly, Key: "default/assistant/a1/t2/c1", Attempt: 1})
	third := sampleFrame(
		ToolCompleted{Turn: "t2", Call: "c1", Output: "323"},
		ModelRequested{Turn: "t2", Step: 2, Attempt: 1, Call: "m8", Model: "demo/echo", Definition: "d", Instructions: "i", Request: "r"})
	fourth := sampleFrame(
		ModelCompleted{Turn: "t2", Step: 2, Call: "m8", Items: []Item{Text(RoleAssistant, "17 times 19 is 323.")}, Finish: "stop", Usage: Usage{Input: 90, Output: 9}},
		TurnCompleted{Turn: "t2", Inputs: []string{"u1"}, Output: "17 times 19 is 323.", Steps: 2, Usage: Usage{Input: 147, Output: 27}})
	return []*Frame{first, second, third, fourth}
}
