package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

func gated(call messages.CallID, arguments string) messages.ApprovalRequested {
	return messages.ApprovalRequested{Turn: "t2", Call: call, Tool: "refund", Arguments: arguments, ArgsHash: messages.HashArguments(arguments), Reason: "it is over 50"}
}

// requested is the event before gated, as the model asked for the call.
func requested(call messages.CallID, arguments string) messages.ToolRequested {
	return messages.ToolRequested{Turn: "t2", Call: call, Tool: "refund", Arguments: arguments}
}

// paused is a turn of input u1 that waits for the approval of calls a and b,
// and its caller.
func (h *house) paused() *caller {
	h.t.Helper()
	c := h.prompt(`{"prompt":"hello","reprise":{"id":"u1"}}`, nil)
	d := h.next()
	n := h.wrote(till, messages.PhaseRunning, accepted("u1", messages.Started, "t2"), messages.TurnStarted{Turn: "t2", Inputs: []string{"u1"}})
	d.answers <- messages.Answer{N: n}
	c.hears("input.accepted turn.started")
	h.wrote(till, messages.PhasePaused, requested("a", `{"cents":9900}`), requested("b", `{"cents":1}`), messages.ToolFlagged{Turn: "t2", Call: "b", Tool: "refund", Of: "a"},
		gated("a", `{"cents":9900}`), gated("b", `{"cents":1}`),
		messages.TurnPaused{Turn: "t2", Reason: "approval", Calls: []messages.CallID{"a", "b"}})
	c.hears("tool.requested tool.requested tool.flagged approval.requested approval.requested turn.paused")
	return c
}

// forgotten holds that no question is kept of a stream that has ended.
func (h *house) forgotten() {
	h.t.Helper()
	h.g.questions.Range(func(subject, _ any) bool {
		h.t.Errorf("the question of %v is kept", subject)
		return true
	})
}

// The caller who may decide is asked about each call, and its answer becomes
// the command that a person would have given.
func TestQueriesAreAnswered(t *testing.T) { // A100
	h := newHouse(t, anybody)
	c := h.paused()
	c.hears("query t2/a/1", "query t2/b/1")
	for _, part := range []string{"support/till", "refund", `{"cents":9900}`, "over 50", "always"} {
		if !strings.Contains(c.queries[0].Prompt, part) {
			t.Errorf("the question does not say %q:\n%s", part, c.queries[0].Prompt)
		}
	}
	if !strings.Contains(c.queries[1].Prompt, "call a of this turn") || strings.Contains(c.queries[0].Prompt, "Take care") {
		t.Errorf("the repeated call is asked about so:\n%s", c.queries[1].Prompt)
	}
	c.answers(1, "no: give a voucher")
	text := "give a voucher"
	denied, decided := h.next(), messages.Deny{Turn: "t2", Call: "b", ArgsHash: messages.HashArguments(`{"cents":1}`), Text: &text}
	decided.ID = messages.IDOf(denied.Command)
	sameCommand(t, denied.Command, decided)
	if denied.Cause.Endpoint != "prompt" || denied.Agent != till || denied.Cause.ID == "" {
		t.Errorf("it was delivered as %+v", denied.Deliver)
	}
	denied.answers <- messages.Answer{N: 7}
	h.wrote(till, messages.PhasePaused, messages.ApprovalDenied{Turn: "t2", Call: "b", Tool: "refund"}, messages.ToolDenied{Turn: "t2", Call: "b", Message: text})
	c.hears("approval.denied tool.denied") // and no further query: a was asked about
	c.answers(0, "always")
	granted := h.next()
	sameCommand(t, granted.Command, messages.Approve{ID: messages.IDOf(granted.Command), Turn: "t2", Call: "a", ArgsHash: messages.HashArguments(`{"cents":9900}`), Remember: true})
	if messages.IDOf(granted.Command) == messages.IDOf(denied.Command) {
		t.Error("two calls are decided under one id")
	}
	granted.answers <- messages.Answer{N: 9}
	h.wrote(till, messages.PhaseIdle, messages.ApprovalGranted{Turn: "t2", Call: "a", Tool: "refund"}, messages.TurnCompleted{Turn: "t2", Inputs: []string{"u1"}})
	c.hears("approval.granted turn.completed", "end")
	h.forgotten()
}

func sameCommand(t *testing.T, got, want messages.Command) {
	t.Helper()
	g, _ := json.Marshal(got)
	w, _ := json.Marshal(want)
	if string(g) != string(w) || got.CommandType() != want.CommandType() {
		t.Errorf("delivered %s %s, want %s %s", got.CommandType(), g, want.CommandType(), w)
	}
}

// Two who are asked the same decide each for themselves: the same answer once more changes
// nothing, a contradicting one is refused, and its caller gets an error, also when the call is
// long settled.
func TestTwoAnswersHaveOneEffect(t *testing.T) {
	h := newHouse(t, anybody)
	first := h.paused()
	first.hears("query t2/a/1", "query t2/b/1")
	second := h.prompt(`{"prompt":"hello","reprise":{"id":"u1"}}`, nats.Header{messages.HeaderAfter: {"8"}})
	again := h.next()
	again.answers <- messages.Answer{N: 1, Duplicate: true}
	second.hears("query t2/a/1", "query t2/b/1") // asked again, though it has seen all events
	if first.queries[0].ReplySubject == second.queries[0].ReplySubject {
		t.Fatal("two callers answer on one subject")
	}
	first.answers(0, "yes")
	yes := h.next()
	second.answers(0, "no")
	no := h.next()
	if yes.Command.CommandType() != "approve" || no.Command.CommandType() != "deny" || messages.IDOf(yes.Command) == messages.IDOf(no.Command) {
		t.Errorf("decided by %+v and %+v", yes.Command, no.Command)
	}
	yes.answers <- messages.Answer{N: 7}
	h.wrote(till, messages.PhasePaused, messages.ApprovalGranted{Turn: "t2", Call: "a", Tool: "refund"})
	first.hears("approval.granted")
	second.hears("approval.granted")
	no.answers <- messages.Answer{Err: messages.Refuse(messages.Conflict, "call \"a\" was granted before")}
	second.hears(`reprise.notice "About call a of turn t2: your answer changed nothing: call \"a\" was granted before"`)
	third := h.prompt(`{"prompt":"hello","reprise":{"id":"u1"}}`, nil)
	again = h.next()
	again.answers <- messages.Answer{N: 1, Duplicate: true}
	third.hears("input.accepted turn.started", "tool.requested tool.requested tool.flagged approval.requested approval.requested turn.paused", "approval.granted", "query t2/b/1") // not a any more
	h.wrote(till, messages.PhasePaused, messages.ApprovalDenied{Turn: "t2", Call: "b", Tool: "refund", By: "timeout"})                                                             // elsewhere
	h.wrote(till, messages.PhasePaused, requested("c", ""), messages.ApprovalRequested{Turn: "t2", Call: "c", Tool: "refund"})
	for _, c := range []*caller{first, second} {
		c.hears("approval.denied", "tool.requested approval.requested", "query t2/c/1")
	}
	for _, late := range []struct {
		answer, command string
		becomes         messages.Answer
	}{
		{"yes", "approve", messages.Answer{N: 9, Noop: "call \"a\" was granted before"}},
		{"no", "deny", messages.Answer{Err: messages.Refuse(messages.NotFound, "no call \"a\" is waiting for approval")}},
	} {
		first.answers(0, late.answer)
		d := h.next()
		if d.Command.CommandType() != late.command || messages.IDOf(d.Command) == messages.IDOf(yes.Command) {
			t.Errorf("delivered %+v", d.Command)
		}
		d.answers <- late.becomes
		why := late.becomes.Noop
		if late.becomes.Err != nil {
			why = late.becomes.Err.Message
		}
		first.hears(fmt.Sprintf("reprise.notice %q", "About call a of turn t2: your answer changed nothing: "+why))
	}
	first.answers(0, "perhaps")
	first.hears(fmt.Sprintf("reprise.notice %q", `About call a of turn t2: your answer changed nothing, because the call no longer waits: "perhaps" is no answer: write `+messages.AnswerHelp))
}

// The id of a decision does not follow from what it is about: a publisher of inputs
// could use up an id that can be known before.
func TestVerdictsCannotBeForestalled(t *testing.T) {
	ids := make(map[string]bool)
	for range 2 {
		h := newHouse(t, anybody)
		c := h.paused()
		c.hears("query t2/a/1", "query t2/b/1")
		for range 2 {
			c.answers(0, "yes")
			d := h.next()
			d.answers <- messages.Answer{N: 7}
			ids[messages.IDOf(d.Command)] = true
			if messages.IDOf(d.Command) != d.Cause.ID || len(d.Cause.ID) > messages.MaxID {
				t.Errorf("delivered as %+v", d.Cause)
			}
		}
	}
	if len(ids) != 4 {
		t.Errorf("four answers have the ids %v", ids)
	}
}

// What cannot be used is asked about again, but not forever: after that the stream ends with an
// error that names who must decide.
func TestUnusableAnswersAreAskedAgain(t *testing.T) { // A102
	h := newHouse(t, anybody)
	c := h.paused()
	c.hears("query t2/a/1", "query t2/b/1")
	asked := func(why string) {
		t.Helper()
		if got := c.queries[len(c.queries)-1].Prompt; !strings.HasPrefix(got, "Your answer could not be used: "+why) || !strings.Contains(got, "\nAgent support/till") {
			t.Errorf("asked again:\n%s", got)
		}
	}
	c.answers(0, "perhaps")
	c.hears("query t2/a/2")
	asked(`"perhaps" is no answer: write yes or no;`)
	c.answers(2, "no: "+strings.Repeat("a", messages.MaxDenial+1))
	c.hears("query t2/a/3")
	asked("the text of the denial has 8193 bytes: the limit is 8192")
	c.answers(3, "\xff")
	const decide = ". The call still waits: decide it with `reprise approve` or `reprise deny` (`reprise approvals support/till` lists it)"
	c.hears("error 400 your answers about call a of turn t2 could not be used: the answer is no text: it holds bytes that are no UTF-8"+decide, "end")
	h.forgotten()
	h = newHouse(t, anybody)
	c = h.paused()
	c.hears("query t2/a/1", "query t2/b/1")
	for i, code := range []messages.Code{messages.Unavailable, messages.TooLarge, messages.Internal} { // no one else has decided
		c.answers(1, "yes")
		d := h.next()
		if d.Command.(messages.Approve).Call != "b" {
			t.Errorf("delivered %+v", d.Command)
		}
		d.answers <- messages.Answer{Err: messages.Refuse(code, "the log is away")}
		if i == 2 {
			c.hears("error 500 your answers about call b of turn t2 could not be used: the log is away"+decide, "end")
			break
		}
		c.hears(fmt.Sprintf("query t2/b/%d", i+2))
		asked("the log is away")
	}
	h.forgotten()
}

// A node that serves as many streams as it may takes no answer, and says so.
func TestAnswersToAFullNode(t *testing.T) {
	h := newHouse(t, anybody)
	c := h.paused()
	c.hears("query t2/a/1", "query t2/b/1")
	streams := func(n int) {
		h.g.mu.Lock()
		defer h.g.mu.Unlock()
		h.g.streams += n
	}
	streams(maxStreams)
	c.answers(0, "yes")
	c.hears("query t2/a/2")
	if got := c.queries[2].Prompt; !strings.HasPrefix(got, "Your answer could not be used: this node serves") {
		t.Errorf("asked again:\n%s", got)
	}
	streams(-maxStreams)
	c.answers(2, "no")
	if d := h.next(); d.Command.CommandType() != "deny" { // the yes was not delivered
		t.Errorf("delivered %+v", d.Command)
	}
}

// A caller that steers a turn that waits already is asked as well.
func TestSteeredCallersAreAsked(t *testing.T) {
	h := newHouse(t, anybody)
	first := h.paused()
	first.hears("query t2/a/1", "query t2/b/1")
	h.wrote(till, messages.PhasePaused, messages.ApprovalGranted{Turn: "t2", Call: "b", Tool: "refund"})
	c := h.prompt(`{"prompt":"hello","reprise":{"id":"u2","policy":"steer"}}`, nil)
	d := h.next()
	d.answers <- messages.Answer{N: h.wrote(till, messages.PhasePaused, accepted("u2", messages.Steered, "t2")), Disposition: messages.Steered}
	c.hears("input.accepted", "query t2/a/1") // not b
}

// When a stream ends before its turn does, what its caller was asked is over.
func TestQueriesEndWithTheirStream(t *testing.T) {
	h := newHouse(t, anybody)
	c := h.paused()
	c.hears("query t2/a/1", "query t2/b/1")
	found, _ := h.g.questions.Load(c.queries[0].ReplySubject)
	q, _ := found.(*question)
	h.g.Close()
	c.hears(`error 500 this node is shutting down; the turn continues: ask again with id "u1"`, "end")
	q.of.again(q, errShut)
	q.of.noEffect(q, "it is late")
	h.forgotten()
	h.ok(h.g.Conn.Flush())
	h.ok(h.nc.Flush())
	if n, _, err := c.sub.Pending(); n != 0 || err != nil {
		t.Errorf("%d messages came behind the end, %v", n, err)
	}
}

// Those who may prompt may not therefore decide: they are not asked unless the node
// says so, and the stream continues when someone else has decided.
func TestWhoMayPromptMayNotThereforeDecide(t *testing.T) {
	for name, decides := range map[string]func(kind, tool string) bool{
		"no one":     nil,
		"other kind": func(kind, tool string) bool { return kind != "support" || tool != "refund" },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, decides)
			c := h.paused()
			h.wrote(till, messages.PhaseIdle, messages.ApprovalGranted{Turn: "t2", Call: "a", Tool: "refund"}, messages.ApprovalGranted{Turn: "t2", Call: "b", Tool: "refund"},
				messages.TurnCompleted{Turn: "t2", Inputs: []string{"u1"}})
			c.hears("approval.granted approval.granted turn.completed", "end")
		})
	}
}

// Our own client yields the question as an event and takes the answer.
func TestTheClientAnswersQueries(t *testing.T) {
	h := newHouse(t, anybody)
	said := make(chan string, 1)
	go func() {
		var types []string
		for ev, err := range h.client.AskFacts(h.ctx, "support/till", messages.Input{ID: "u1", Content: messages.TextContent("hello")}) {
			if ev.Question != nil {
				err = h.client.Answer(h.ctx, *ev.Question, "yes")
			}
			if err != nil || ev.Question != nil && !strings.Contains(ev.Text, "refund") {
				t.Errorf("heard %+v, %v", ev, err)
			}
			types = append(types, ev.Type)
		}
		said <- strings.Join(types, " ")
	}()
	d := h.next()
	n := h.wrote(till, messages.PhaseRunning, accepted("u1", messages.Started, "t2"), messages.TurnStarted{Turn: "t2", Inputs: []string{"u1"}}, requested("a", "{}"), gated("a", "{}"))
	d.answers <- messages.Answer{N: n}
	for d = h.next(); d.Command.CommandType() == "input"; d = h.next() { // asked again: no word came in time
		d.answers <- messages.Answer{N: n, Duplicate: true}
	}
	if d.Command.CommandType() != "approve" {
		t.Errorf("delivered %+v", d.Command)
	}
	d.answers <- messages.Answer{N: 4}
	h.wrote(till, messages.PhaseIdle, messages.ApprovalGranted{Turn: "t2", Call: "a"}, messages.TurnCompleted{Turn: "t2", Inputs: []string{"u1"}, Output: "paid"})
	if got := <-said; got != "input.accepted turn.started tool.requested approval.requested query approval.granted delta turn.completed" {
		t.Errorf("the client said %s", got)
	}
}

func TestQuestionsFitAMessage(t *testing.T) { // A102
	p := messages.Approval{Agent: till, Tool: strings.Repeat("\xff", 300), Arguments: strings.Repeat("\x01", 400<<10), Reason: strings.Repeat("\u200b", 9000), Flagged: messages.CallID(strings.Repeat("\u202e", 9000))}
	const payload = 1 << 20
	b, err := json.Marshal(chunk{"query", queryData{Prompt: questionText(p, payload/16)}})
	if err != nil || len(b) > payload/2 || !strings.Contains(string(b), "more bytes") {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
