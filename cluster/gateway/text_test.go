package gateway

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// stored is a text part, kept as a blob if it is long.
func (h *house) stored(text string) (messages.Part, *messages.Blob) {
	h.t.Helper()
	if len(text) < 10 {
		return messages.Part{Type: "text", Text: text}, nil
	}
	b, err := h.log.PutBlob(h.ctx, till, strings.NewReader(text))
	h.ok(err)
	return messages.Part{Type: "text", Blob: &b}, &b
}

// modelAsked is a caller whose input u1 began the turn t1, in which the model call m1 runs.
func (h *house) modelAsked() *caller {
	h.t.Helper()
	caller := h.prompt(`{"prompt":"hello","reprise":{"id":"u1"}}`, nil)
	in := h.next()
	n := h.wrote(till, messages.PhaseRunning, accepted("u1", messages.Started, "t1"), messages.TurnStarted{Turn: "t1", Inputs: []string{"u1"}}, asks("t1", "m1", "u1"))
	in.answers <- messages.Answer{N: n, Turn: "t1", Disposition: messages.Started}
	caller.hears("input.accepted turn.started model.requested")
	return caller
}

// What was streamed of an answer is not streamed again, also where the log keeps the answer as
// blobs; and what was lost on the way is.
func TestAnswerIsStreamedOnce(t *testing.T) {
	long := strings.Repeat("word ", 20)
	for name, c := range map[string]struct {
		deltas, parts []string
		output        string // of the turn; empty: the parts'
		want          []string
	}{
		"not streamed":             {nil, []string{"hello"}, "", []string{"hello"}},
		"not streamed, a blob":     {nil, []string{long}, "", []string{long}},
		"whole":                    {[]string{"hel", "lo"}, []string{"hello"}, "", []string{"hel", "lo"}},
		"whole, a blob":            {[]string{long[:7], long[7:]}, []string{long}, "", []string{long[:7], long[7:]}},
		"the rest":                 {[]string{"hel"}, []string{"hello"}, "", []string{"hel", "lo"}},
		"the rest of a blob":       {[]string{long[:7]}, []string{long}, "", []string{long[:7], long[7:]}},
		"the rest is in the other": {[]string{long[:7], long[7:], "\nhe"}, []string{long, "hello"}, "", []string{long[:7], long[7:], "\nhe", "llo"}},
		"a piece was lost":         {[]string{"lo"}, []string{"hello"}, "", []string{"lo", "<lost>", "hello"}},
		"a piece of a blob":        {[]string{long[7:]}, []string{long}, "", []string{long[7:], "<lost>", long}},
		"more than there is":       {[]string{"hello", "!"}, []string{"hello"}, "", []string{"hello", "!", "<lost>", "hello"}},
		"the output of a tool":     {nil, []string{"hello"}, "done", []string{"hello", "done"}},
		"the blob of a tool":       {nil, []string{"hello"}, long, []string{"hello", long}},
		"another blob":             {nil, []string{long}, long + "!", []string{long, long + "!"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, nil)
			caller := h.modelAsked()
			for _, piece := range c.deltas {
				h.delta("t1", "m1", piece)
			}
			said := messages.ModelCompleted{Turn: "t1", Call: "m1"}
			ended := messages.TurnCompleted{Turn: "t1", Inputs: []string{"u1"}, Output: strings.Join(c.parts, "\n")}
			var item messages.Item
			item.Type, item.Role = messages.ItemMessage, messages.RoleAssistant
			for _, text := range c.parts {
				part, b := h.stored(text)
				if item.Content = append(item.Content, part); b != nil {
					_, said.Blob = h.stored(ended.Output)
				}
			}
			said.Items = []messages.Item{item}
			if ended.Blob = said.Blob; c.output != "" {
				var part messages.Part
				part, ended.Blob = h.stored(c.output)
				ended.Output = part.Text
			} else if ended.Blob != nil {
				ended.Output = ""
			}
			h.wrote(till, messages.PhaseIdle, said, ended)
			if got := caller.texts(); strings.Join(got, "|") != strings.Join(c.want, "|") {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// The text of a model call that failed or is made again is void, and its reader learns that apart from
// the text.
func TestAnswerIsCut(t *testing.T) {
	soon := tillAt.Add(time.Second)
	for name, c := range map[string]struct {
		event messages.Event
		want  string
	}{
		"failed":    {messages.ModelFailed{Turn: "t1", Call: "m1", Attempt: 1, Kind: "network", Message: "gone"}, "hel|<failed>|hello|end"},
		"repeated":  {messages.ModelFailed{Turn: "t1", Call: "m1", Attempt: 1, Kind: "network", Message: "gone", RetryAt: &soon}, "hel|<repeated>|hello|end"},
		"restarted": {messages.ModelRestarted{Turn: "t1", Call: "m1"}, "hel|<repeated>|hello|end"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, nil)
			caller := h.modelAsked()
			h.delta("t1", "m1", "hel")
			h.wrote(till, messages.PhaseRunning, c.event, asks("t1", "m2", "u1"))
			h.delta("t1", "m2", "hello")
			h.wrote(till, messages.PhaseIdle, says("t1", "m2", "hello"), messages.TurnCompleted{Turn: "t1", Inputs: []string{"u1"}, Output: "hello"})
			if got := strings.Join(caller.ends(), "|"); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// A piece that comes when the whole text of its call was streamed, as from an owner on another node it
// may, is left out.
func TestLatePiece(t *testing.T) {
	h := newHouse(t, nil)
	caller := h.modelAsked()
	h.wrote(till, messages.PhaseRunning, says("t1", "m1", "let me see. "))
	h.delta("t1", "m1", "let me see. ")
	h.wrote(till, messages.PhaseRunning, asks("t1", "m2", "u1"))
	h.delta("t1", "m2", "hello")
	h.wrote(till, messages.PhaseIdle, says("t1", "m2", "hello"), messages.TurnCompleted{Turn: "t1", Inputs: []string{"u1"}, Output: "hello"})
	if got := strings.Join(caller.ends(), "|"); got != "let me see. |hello|end" {
		t.Error(got)
	}
}

// An answer of several items is streamed as it came, and not again at the turn's end, where its
// items are lines of one text.
func TestAnswerOfSeveralItems(t *testing.T) {
	h := newHouse(t, nil)
	caller := h.modelAsked()
	h.delta("t1", "m1", "Sure.")
	h.wrote(till, messages.PhaseIdle,
		messages.ModelCompleted{Turn: "t1", Call: "m1", Items: []messages.Item{
			messages.Text(messages.RoleAssistant, "Sure."), {Type: messages.ItemReasoning, Content: messages.TextContent("Hm.")},
			{Type: messages.ItemRefusal, Role: messages.RoleAssistant, Content: messages.TextContent("No.")},
		}},
		messages.TurnCompleted{Turn: "t1", Inputs: []string{"u1"}, Output: "Sure.\nNo."})
	if got := strings.Join(caller.texts(), "|"); got != "Sure.|No." {
		t.Errorf("got %q, want Sure.|No.", got)
	}
}

// texts is what the caller is shown up to the end of the stream.
func (c *caller) texts() []string {
	c.h.t.Helper()
	list := c.ends()
	return list[:len(list)-1]
}

// ends is what the caller is shown up to the end of the stream, notices without their text, cuts as
// <reason>, and how that ends.
func (c *caller) ends() (list []string) {
	c.h.t.Helper()
	for {
		msg, err := c.sub.NextMsgWithContext(c.h.ctx)
		c.h.ok(err)
		got := c.told(msg)
		if got == "end" || strings.HasPrefix(got, "error") {
			return append(list, got)
		}
		if strings.HasPrefix(got, "reprise.notice") {
			list = append(list, "notice")
		}
		if data, ok := strings.CutPrefix(got, "reprise.cut "); ok {
			var cut messages.Cut
			c.h.ok(json.Unmarshal([]byte(data), &cut))
			if cut.Call != "m1" {
				c.h.t.Errorf("%s is about no call that was streamed", got)
			}
			list = append(list, "<"+string(cut.Reason)+">")
		}
		if text, ok := strings.CutPrefix(got, "response "); ok {
			var s string
			c.h.ok(json.Unmarshal([]byte(text), &s))
			list = append(list, s)
		}
	}
}

// An answer of which a blob is lost is shown without it; one that cannot be read now ends with
// an error, after which its caller can ask again.
func TestAnswerCannotBeRead(t *testing.T) {
	long := strings.Repeat("word ", 20)
	for name, c := range map[string]struct {
		shown  string // as it came
		remove bool
		shut   bool
		want   string
	}{
		"lost":                {"", true, false, "notice|\nafter|end"},
		"lost, but was shown": {long + "\nafter", true, false, long + "\nafter|notice|end"},
		"lost, half shown":    {long[:7], true, false, long[:7] + "|notice|<lost>|notice|\nafter|end"},
		"not now":             {"", false, true, "error 500"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, nil)
			caller := h.modelAsked()
			if c.shown != "" {
				h.delta("t1", "m1", c.shown)
			}
			part, b := h.stored(long)
			if c.remove {
				h.ok(h.log.RemoveBlobs(h.ctx, till, eventlog.All, b.SHA256))
			}
			if c.shut { // all places are taken by others until the node shuts down
				for range cap(h.g.reading) {
					h.g.reading <- struct{}{}
				}
			}
			h.wrote(till, messages.PhaseIdle,
				messages.ModelCompleted{Turn: "t1", Call: "m1", Items: []messages.Item{{Type: messages.ItemMessage, Role: messages.RoleAssistant, Content: messages.Content{part, {Type: "text", Text: "after"}}}}, Blob: b},
				messages.TurnCompleted{Turn: "t1", Inputs: []string{"u1"}, Blob: b})
			if c.shut {
				h.g.Close()
			}
			if got := strings.Join(caller.ends(), "|"); !strings.HasPrefix(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
