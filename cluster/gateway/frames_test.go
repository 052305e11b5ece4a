package gateway

import (
	"reflect"
	"testing"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// framesOf returns the lines of the view frames of till.
func (h *house) framesOf(q messages.Query) (frames []*messages.Frame, definitions []messages.FrameLine) {
	h.t.Helper()
	for line, err := range h.client.Frames(h.ctx, "support/till", client.Only(q)) {
		h.ok(err)
		if line.Definition != "" {
			definitions = append(definitions, line)
			continue
		}
		f, err := messages.DecodeFrame(till, line.Frame)
		h.ok(err)
		if f.First != line.First {
			h.t.Errorf("the line of frame %s is about event %d, it begins with %d", f.ID, line.First, f.First)
		}
		frames = append(frames, f)
	}
	return frames, definitions
}

// A page that is asked for once the agent was deleted is refused, and a new life begins with the
// tombstone.
func TestFramesOfADeletedAgent(t *testing.T) {
	h := newHouse(t, nil)
	h.wrote(till, messages.PhaseIdle, messages.AgentCreated{Agent: till.Full()}, messages.AgentCleared{})
	h.wrote(till, messages.PhaseIdle, messages.AgentCleared{})
	tombstone := h.wrote(till, messages.PhaseIdle, messages.AgentDeleted{})
	head, err := h.log.Head(h.ctx, till)
	h.ok(err)
	h.ok(h.log.Purge(h.ctx, till, head.Seq))
	for _, q := range []messages.Query{{From: 3, At: 3}, {From: 3, At: 4}, {From: 2}, {At: 3}} {
		var failed error
		for _, failed = range h.client.Frames(h.ctx, "support/till", client.Only(q)) {
		}
		if failed == nil || messages.AsError(failed).Code != messages.NotFound {
			t.Errorf("%+v: got %v, want not_found", q, failed)
		}
	}
	if frames, _ := h.framesOf(messages.Query{}); len(frames) != 1 || frames[0].First != tombstone {
		t.Errorf("got %+v, want the tombstone", frames)
	}
}

// Frames come whole, in order and page by page, with the definitions that they name, and the log is
// read once.
func TestFrames(t *testing.T) {
	h := newHouse(t, nil)
	hash, err := h.log.PutDefinition(h.ctx, []byte(`{"kind":"support"}`))
	h.ok(err)
	h.wrote(till, messages.PhaseIdle, messages.AgentCreated{Agent: till.Full()}, messages.AgentConfigured{Definition: string(hash)}, messages.AgentConfigured{Definition: "gone"}, messages.AgentConfigured{Definition: string(hash)})
	written := h.lived() + 1
	var want []*messages.Frame
	for rec, err := range h.log.Read(h.ctx, till, eventlog.Range{}) {
		h.ok(err)
		want = append(want, rec.Frame)
	}
	h.frames.Store(0)
	got, definitions := h.framesOf(messages.Query{})
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %d frames, want the %d of the log", len(got), len(want))
	}
	if read := int(h.frames.Load()); read > written+written/2 {
		t.Errorf("%d frames were read, %d are written", read, written)
	}
	if len(definitions) != 1 || definitions[0].Definition != hash || string(definitions[0].Data) != `{"kind":"support"}` || definitions[0].First != 1 {
		t.Errorf("got definitions %+v", definitions)
	}
	for name, c := range map[string]struct {
		messages.Query
		first, last int // of want
	}{
		"at the end of a frame": {messages.Query{At: 4}, 0, 1},
		"at an event inside":    {messages.Query{At: 6}, 0, 2},
		"from inside":           {messages.Query{From: 6, At: 8}, 1, 3},
		"from the last":         {messages.Query{From: want[len(want)-1].Last()}, len(want) - 1, len(want)},
		"behind the last":       {messages.Query{From: want[len(want)-1].Last() + 1}, 0, 0},
	} {
		if got, _ := h.framesOf(c.Query); len(got) != c.last-c.first || len(got) > 0 && !reflect.DeepEqual(got, want[c.first:c.last]) {
			t.Errorf("%s: got %d frames, want those from %d to %d", name, len(got), c.first, c.last)
		}
	}
	for name, c := range map[string]struct {
		agent string
		messages.Query
	}{
		"no agent":          {"support/none", messages.Query{}},
		"at past the end":   {"support/till", messages.Query{At: 1 << 20}},
		"from past the end": {"support/till", messages.Query{From: 1 << 20}},
	} {
		var failed error
		for _, failed = range h.client.Frames(h.ctx, c.agent, client.Only(c.Query)) {
		}
		if failed == nil || messages.AsError(failed).Code != messages.NotFound {
			t.Errorf("%s: got %v, want not_found", name, failed)
		}
	}
	var failed error
	for _, failed = range h.client.Frames(h.ctx, "support/till", client.Only(messages.Query{Turn: "t6"})) {
	}
	if failed == nil || messages.AsError(failed).Code != messages.BadInput {
		t.Errorf("frames of a turn: got %v, want bad_input", failed)
	}
}

// A reader of frames does not learn the subjects at which callers wait for answers.
func TestFramesWithoutReplies(t *testing.T) {
	h := newHouse(t, nil)
	cause := messages.Cause{Type: "input", ID: "u1", Endpoint: messages.EndpointPrompt, Stream: &messages.Stream{Node: "n1", Reply: "_INBOX.secret"}}
	h.wroteBecause(cause, till, messages.PhaseIdle, messages.AgentCreated{Agent: till.Full()})
	frames, _ := h.framesOf(messages.Query{})
	if len(frames) != 1 || frames[0].Cause.Stream != nil || frames[0].Cause.ID != "u1" {
		t.Errorf("got %+v", frames)
	}
}
