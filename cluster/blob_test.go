package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

// lines is a text of n bytes in which no two lines are the same, with characters of
// several bytes in it.
func lines(of string, n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%s ✓ line %d\n", of, i)
	}
	return strings.ToValidUTF8(b.String()[:n], "?")
}

// excerptOf is what the documentation says that a model is shown of a large text.
func excerptOf(text string, most int) string {
	head := strings.ToValidUTF8(text[:most-most/4], "")
	tail := strings.ToValidUTF8(text[len(text)-most/4:], "")
	return fmt.Sprintf("%s\n[%d bytes are left out here; the whole, %d bytes, is kept under sha256 %s]\n%s",
		head, len(text)-len(head)-len(tail), len(text), messages.DigestOf([]byte(text)), tail)
}

type none struct{}

func giving(name, text string) tool.Tool {
	return tool.New(name, "gives a large text", tool.ReadOnly, func(context.Context, none) (string, error) { return text, nil })
}

func calling(names ...string) scripted.Step {
	var calls []scripted.Call
	for i, name := range names {
		calls = append(calls, scripted.Call{ID: messages.CallID(fmt.Sprint("c", i+1)), Name: name, Arguments: "{}"})
	}
	return scripted.Ask(calls...)
}

// history reads an agent's history.
func (w *world) history(c *client.Client, agent string) (items []projections.HistoryItem) {
	w.t.Helper()
	for line, err := range c.Query(w.ctx, agent, messages.Query{View: "history"}) {
		w.ok(err)
		var item projections.HistoryItem
		w.ok(json.Unmarshal(line, &item))
		items = append(items, item)
	}
	return items
}

// stored are the messages of the streams whose name begins so.
func (w *world) stored(prefix string) (list []*jetstream.RawStreamMsg) {
	w.t.Helper()
	names := w.js.StreamNames(w.ctx)
	for name := range names.Name() {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		stream, err := w.js.Stream(w.ctx, name)
		w.ok(err)
		info, err := stream.Info(w.ctx)
		w.ok(err)
		for seq := max(info.State.FirstSeq, 1); seq <= info.State.LastSeq; seq++ {
			raw, err := stream.GetMsg(w.ctx, seq)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue
			}
			w.ok(err)
			list = append(list, raw)
		}
	}
	w.ok(names.Err())
	return list
}

// smallFrames holds that whatever was large is beside the log.
func (w *world) smallFrames() {
	w.t.Helper()
	for _, m := range w.stored("REPRISE_LOG") {
		if len(m.Data) > eventlog.MaxFrame {
			w.t.Errorf("a frame on %s has %d bytes", m.Subject, len(m.Data))
		}
	}
}

// A function and a program return 10 MiB each: no limit of the bus is met, the
// model is shown what the documentation says, and nothing is lost.
func TestLargeResults(t *testing.T) { // A36
	embeddedtest.Long(t, "processes")
	const size = 10 << 20
	text := lines("a", size)
	program, err := toolbox.Command(toolbox.CommandConfig{
		Name: "program", Description: "writes much", OnUnknown: tool.ReadOnly, Command: []string{"/bin/sh", "-c", "yes abcdefghijklmno | head -c 10485759; echo x"},
	})
	if err != nil {
		t.Fatal(err)
	}
	printed := strings.Repeat("abcdefghijklmno\n", size/16)[:size-1] + "x"
	for name, most := range map[string]int{"an excerpt": 0, "whole": 2 * size} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).patient()
			model := scripted.New(calling("function", "program"), scripted.Say("done"))
			cfg := agents(model, func(d *actors.Definition) {
				d.Tools, d.ShowAtMost = []tool.Tool{giving("function", text), program}, most
			})
			n := w.node(cfg)
			if got := w.say(n.Client(), "assistant/a", "u1", "go"); got.end.Output != "done" {
				t.Errorf("%+v", got.end)
			}
			items := model.Requests()[1].Items
			shown := []string{items[len(items)-2].Output, items[len(items)-1].Output}
			for i, want := range []string{text, printed} {
				if most == 0 {
					want = excerptOf(want, projections.DefaultShow)
				}
				if shown[i] != want {
					t.Errorf("call %d: the model was shown %d bytes, want %d", i, len(shown[i]), len(want))
				}
			}
			w.smallFrames()
			w.ok(n.Close())
			w.bounce(func() {})
			n = w.node(cfg) // which knows nothing but what is stored
			var results []string
			for _, item := range w.history(n.Client(), "assistant/a") {
				if item.Type == messages.ItemCallOutput {
					results = append(results, item.Output)
				}
			}
			if len(results) != 2 || results[0] != text || results[1] != printed {
				t.Errorf("%d results", len(results))
			}
		})
	}
}

// patient gives a test that moves much data five minutes, enough on a busy machine.
func (w *world) patient() *world {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	w.t.Cleanup(cancel)
	w.ctx = ctx
	return w
}

// A payload of more than one page of bytes comes whole to the caller that asked for it and
// to a reader, by its hash or the beginning of that.
func TestBlobPages(t *testing.T) { // A36
	text := lines("b", 9<<20)
	w := newWorld(t).patient()
	n := w.node(agents(scripted.New(calling("function")), func(d *actors.Definition) {
		d.Tools, d.StopOn = []tool.Tool{giving("function", text)}, []string{"function"}
	}))
	c := n.Client()
	got := w.say(c, "assistant/a", "u1", "go")
	if got.end.Output != text || got.text != text {
		t.Errorf("the answer has %d bytes, %d of them were streamed", len(got.end.Output), len(got.text))
	}
	named := w.blobOf(got.end)
	if want := (messages.Blob{SHA256: messages.DigestOf([]byte(text)), Size: int64(len(text))}); named != want {
		t.Errorf("the fact says %.100s, want %v", got.end.Data, want)
	}
	for _, hash := range []messages.Digest{named.SHA256, named.SHA256[:12]} {
		var b bytes.Buffer
		if blob, err := c.Blob(w.ctx, "assistant/a", hash, &b); err != nil || blob != named || b.String() != text {
			t.Errorf("%s: %d bytes, %v, %v", hash, b.Len(), blob, err)
		}
	}
}

// blobOf is the blob that a fact of an ask names in place of its output.
func (w *world) blobOf(e client.Event) messages.Blob {
	w.t.Helper()
	var named struct {
		Output string
		Blob   messages.Blob
	}
	w.ok(json.Unmarshal(e.Data, &named))
	if named.Output != "" {
		w.t.Errorf("it holds %d bytes", len(named.Output))
	}
	return named.Blob
}

// The views that show what is kept beside the log, and what they say of a wrong
// question.
func TestBlobViews(t *testing.T) { // A36
	text := lines("b", 400<<10)
	w := newWorld(t).patient()
	n := w.node(agents(scripted.New(calling("function")), func(d *actors.Definition) {
		d.Tools, d.StopOn = []tool.Tool{giving("function", text)}, []string{"function"}
	}))
	c := n.Client()
	named := w.blobOf(w.say(c, "assistant/a", "u1", "go").end)
	for _, q := range []messages.Query{{View: "events"}, {View: "events", Whole: true}} {
		outputs := 0
		for line, err := range c.Query(w.ctx, "assistant/a", q) {
			w.ok(err)
			var e struct{ Data struct{ Output string } }
			w.ok(json.Unmarshal(line, &e))
			if e.Data.Output == text {
				outputs++
			}
		}
		if want := map[bool]int{true: 2}[q.Whole]; outputs != want { // tool.completed and turn.completed
			t.Errorf("%+v gives the text %d times, want %d", q, outputs, want)
		}
	}
	for line, err := range c.Query(w.ctx, "assistant/a", messages.Query{View: "replay"}) {
		w.ok(err)
		if len(line) > 4<<10 {
			t.Errorf("replay that is not to be whole gives %d bytes", len(line))
		}
	}
	told := false
	for line, err := range c.Query(w.ctx, "assistant/a", messages.Query{View: "replay", Whole: true}) {
		w.ok(err)
		var change struct {
			projections.Change
			Text string
		}
		w.ok(json.Unmarshal(line, &change))
		told = told || len(change.History) == 1 && change.History[0] == "+ result c1: "+text
		if len(change.Text) > 4<<10 || strings.Contains(change.Text, "blob:") {
			t.Errorf("the text of event %d is %.300s", change.N, change.Text)
		}
	}
	if !told {
		t.Error("replay does not tell the result")
	}
	var refused *messages.Error
	if _, err := c.Blob(w.ctx, "assistant/a", "feed", &bytes.Buffer{}); !errors.As(err, &refused) || refused.Code != messages.NotFound || !strings.Contains(err.Error(), "feed") {
		t.Errorf("an unknown hash: %v", err)
	}
	for _, q := range []messages.Query{{View: "blob"}, {View: "blob", Blob: named, From: 1 << 40}} {
		for _, err := range c.Query(w.ctx, "assistant/a", q) {
			if !errors.As(err, &refused) || refused.Code != messages.BadInput {
				t.Errorf("%+v: %v", q, err)
			}
		}
	}
}

// A payload was removed: the turn that would show it fails and reports what is missing and where,
// others continue, and once it is put back the turn is resumed.
func TestBlobRemoved(t *testing.T) { // A29, A36
	text := lines("c", 300<<10)
	w := newWorld(t).patient()
	cfg := agents(scripted.Func(func(r messagesRequest) scripted.Step {
		if last := r.Items[len(r.Items)-1]; last.Role == messages.RoleUser && last.Content.Text() == "go" {
			return calling("function")
		}
		return scripted.Say("done")
	}), func(d *actors.Definition) { d.Tools = []tool.Tool{giving("function", text)} })
	n := w.node(cfg)
	w.say(n.Client(), "assistant/a", "u1", "go")
	w.ok(n.Close())

	chunks := w.stored("REPRISE_BLOB")
	if len(chunks) == 0 {
		t.Fatal("nothing is stored")
	}
	stream, err := w.js.StreamNameBySubject(w.ctx, chunks[0].Subject)
	w.ok(err)
	blobs, err := w.js.Stream(w.ctx, stream)
	w.ok(err)
	w.ok(blobs.Purge(w.ctx))

	n = w.node(cfg)
	c := n.Client()
	got, err := w.ask(c, "assistant/a", input("u2", "and?"))
	hash := string(messages.DigestOf([]byte(text)))
	var failed struct{ Kind, Message string }
	for _, e := range got.events {
		if e.Type == "model.failed" {
			w.ok(json.Unmarshal(e.Data, &failed))
		}
	}
	done := w.until(c, "assistant/a", ofType("tool.completed")).N
	for _, want := range []string{hash, fmt.Sprintf("event %d (tool.completed of call c1) of assistant/a", done), "backup", "resume"} {
		if failed.Kind != "blob_missing" || !strings.Contains(failed.Message, want) {
			t.Errorf("it failed as %+v, which does not say %q", failed, want)
		}
	}
	if err == nil || got.end.Type != "turn.failed" {
		t.Errorf("%+v, %v", got.end, err)
	}
	for _, item := range w.history(c, "assistant/a") {
		if lost := item.Type == messages.ItemCallOutput; lost != strings.Contains(item.Missing, hash) || lost && item.Blob == nil {
			t.Errorf("%+v", item)
		}
	}
	if other := w.say(c, "assistant/b", "u1", "hello"); other.end.Output != "done" {
		t.Errorf("another agent: %+v", other.end)
	}
	for _, m := range chunks {
		_, err := w.js.PublishMsg(w.ctx, &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data})
		w.ok(err)
	}
	_, err = c.Do(w.ctx, "assistant/a", messages.Resume{})
	w.ok(err)
	w.until(c, "assistant/a", func(e event) bool { return e.Type == "turn.completed" && e.N > got.end.N })
}

// A blob of an encrypted store is asked for by the hash of what it holds, though
// it is stored under another.
func TestEncryptedBlob(t *testing.T) { // A36, A108
	texts := []string{lines("sealed", 600<<10), lines("and another", 600<<10)}
	w := newWorld(t).patient()
	n := w.node(agents(scripted.Func(func(r messagesRequest) scripted.Step {
		if last := r.Items[len(r.Items)-1]; last.Role == messages.RoleUser {
			return calling("first", "second", "again")
		}
		return scripted.Say("done")
	}), func(d *actors.Definition) {
		d.Tools = []tool.Tool{giving("first", texts[0]), giving("second", texts[1]), giving("again", texts[0])}
	}), under(key(1)))
	c := n.Client()
	w.say(c, "assistant/a", "u1", "go")
	for _, text := range texts {
		hash := messages.DigestOf([]byte(text))
		for _, asked := range []messages.Digest{hash, hash[:20]} {
			var got bytes.Buffer
			if b, err := c.Blob(w.ctx, "assistant/a", asked, &got); err != nil || got.String() != text || b.SHA256 != hash {
				t.Errorf("blob %s: %d bytes of %+v, %v", asked, got.Len(), b, err)
			}
		}
	}
	if _, err := c.Blob(w.ctx, "assistant/a", "00ff00ff00ff", new(bytes.Buffer)); codeOf(err) != messages.NotFound {
		t.Errorf("a blob that is none: %v", err)
	}
}

// Many large results in one step: the newest are shown as far as a request has room.
func TestManyLargeResults(t *testing.T) { // A36
	const calls, long = 40, 32
	w := newWorld(t).patient()
	var tools []tool.Tool
	var names []string
	for i := range calls {
		name := fmt.Sprint("tool", i)
		names, tools = append(names, name), append(tools, giving(name, lines(name, 1<<20)))
	}
	model := scripted.New(calling(names...), scripted.Say("done"))
	n := w.node(agents(model, func(d *actors.Definition) { d.Tools, d.Parallel = tools, calls }))
	w.say(n.Client(), "assistant/a", "u1", "go")
	items := model.Requests()[1].Items
	for i, item := range items[len(items)-calls:] {
		want := lines(names[i], 1<<20)
		if i < calls-long {
			want = excerptOf(want, 4<<10)
		}
		if item.Output != want {
			t.Errorf("call %d: the model was shown %d bytes", i, len(item.Output))
		}
	}
	w.smallFrames()
}

// A model says more than fits into a frame, and what only it can read.
func TestLargeAnswer(t *testing.T) { // A36
	text := lines("d", 2<<20)
	raw, _ := json.Marshal(map[string]string{"encrypted": lines("e", 3<<20)})
	w := newWorld(t).patient()
	answer := scripted.Step{Items: []messages.Item{messages.Text(messages.RoleAssistant, text), {Type: "mystery", Raw: raw, Provider: "test"}}}
	model := scripted.New(answer, scripted.Say("done"))
	cfg := agents(model, nil)
	n := w.node(cfg)
	got := w.say(n.Client(), "assistant/a", "u1", "go")
	if got.end.Output != text || got.text != text {
		t.Errorf("the answer has %d bytes, %d were streamed", len(got.end.Output), len(got.text))
	}
	w.ok(n.Close())
	n = w.node(cfg)
	w.say(n.Client(), "assistant/a", "u2", "and?")
	items := model.Requests()[1].Items
	if shown := items[1].Content.Text(); shown != excerptOf(text, projections.DefaultShow) || !bytes.Equal(items[2].Raw, raw) {
		t.Errorf("the model was shown %d bytes of its text and %d of what it alone can read", len(shown), len(items[2].Raw))
	}
	history := w.history(n.Client(), "assistant/a")
	if history[1].Content.Text() != text || !bytes.Equal(history[2].Raw, raw) {
		t.Errorf("the history has %d and %d bytes", len(history[1].Content.Text()), len(history[2].Raw))
	}
	w.smallFrames()
}

// What NATS lets through is taken by every endpoint; what it does not, the client says.
func TestLargeInputs(t *testing.T) { // A36, A102
	w := newWorld(t).patient()
	n := w.node()
	c := n.Client()
	text := lines("f", 900<<10)
	if got := w.say(c, "assistant/a", "u1", text); got.end.Output != "you said "+text {
		t.Errorf("the answer has %d bytes", len(got.end.Output))
	}
	_, err := w.js.Publish(w.ctx, "reprise.in.default.assistant.b", []byte(text))
	w.ok(err)
	w.ok(w.nc.Flush())
	id, err := c.Send(w.ctx, "assistant/b", input("u2", text))
	w.ok(err)
	again, err := c.Send(w.ctx, "assistant/b", input(id, text)) // as a sender does that got no answer
	w.ok(err)
	w.until(c, "assistant/b", func(e event) bool { return e.Type == "turn.completed" && strings.Contains(string(e.Data), again) })
	said := 0
	for _, item := range w.history(c, "assistant/b") {
		if item.Role == messages.RoleUser && item.Content.Text() == text {
			said++
		}
	}
	if said != 2 {
		t.Errorf("%d inputs", said)
	}
	large := input("u3", lines("g", 1<<20))
	_, asking := w.ask(c, "assistant/a", large)
	_, sending := c.Send(w.ctx, "assistant/a", large)
	for _, err := range []error{asking, sending} {
		var refused *messages.Error
		if !errors.As(err, &refused) || refused.Code != messages.TooLarge || !strings.Contains(err.Error(), "1048576") || !strings.Contains(err.Error(), "max_payload") {
			t.Errorf("%v", err)
		}
	}
	w.smallFrames()
}

// A turn of many steps is like any other.
func TestManySteps(t *testing.T) {
	const steps = 500
	w := newWorld(t).patient()
	n := w.node(agents(scripted.Func(func(r messagesRequest) scripted.Step {
		if len(r.Items) == 1+2*(steps-1) {
			return scripted.Say("done")
		}
		return scripted.Ask(scripted.Call{ID: messages.CallID(fmt.Sprint("c", len(r.Items))), Name: "function", Arguments: "{}"})
	}), func(d *actors.Definition) { d.Tools, d.MaxSteps = []tool.Tool{giving("function", "ok")}, steps }))
	if got := w.say(n.Client(), "assistant/a", "u1", "go"); got.end.Output != "done" {
		t.Errorf("%+v", got.end)
	}
}

// A prompt that no envelope fits around any more is taken by its agent's node; another node
// refuses it and reports why it cannot be sent on.
func TestPromptAsLargeAsNATSTakes(t *testing.T) { // A36, A102
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t).patient()
	short := scripted.Func(func(messagesRequest) scripted.Step { return scripted.Say("done") })
	w.node(agents(short, nil))
	w.node(agents(short, nil))
	body := strings.Repeat("x", int(w.nc.MaxPayload())-20)
	taken, told := 0, 0
	for i := 0; i < 500 && (taken == 0 || told == 0); i++ { // whose endpoint it comes to is chance
		switch got := w.request(fmt.Sprintf("agents.prompt.assistant.default.a%d", i), body); {
		case got.code == "":
			taken++
		case got.code == "400" && strings.Contains(got.reason, "max_payload"):
			told++
		case !strings.Contains(got.reason, "changing hands") && !strings.Contains(got.reason, "has changed"): // as it does when a node comes
			t.Fatalf("%+v", got)
		}
	}
	if taken == 0 || told == 0 {
		t.Errorf("%d were taken, %d refused", taken, told)
	}
}
