package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// turn shows one turn as it happens.
type turn struct {
	app    *app
	client *client.Client
	agent  string
	// person is asked what the turn wants to know; nil: there is none.
	person asker
	// seen is the turn's id once it is known.
	seen messages.TurnID
	// queued reports whether the input is accepted and has no turn yet.
	queued bool
	// open reports whether the last line of text has no end yet.
	open bool
	// aborted reports whether the turn was.
	aborted bool
	// limit is what is known of the turn's limits.
	limit limit
	// stream has what the agent says; ahead was taken from it before its time.
	stream <-chan heard
	ahead  []heard
	// known are the calls that wait for approval as the stream has them, by their
	// place, settled those that do no more, and asked those that the person here
	// was asked about.
	known          map[string]projections.Waiting
	settled, asked map[string]bool
	// offered are the agent's questions to its caller that are open.
	offered []client.Question
	// rests is the turn that is paused, as far as the stream has it.
	rests messages.TurnID
	// blind reports whether it cannot be known what the agent is doing.
	blind bool
	// working is what is shown beside the answer.
	working *working
}

// follow sends the input and shows its turn until it ends or waits for a person.
func (t *turn) follow(ctx context.Context, in messages.Input) error {
	ctx, give := context.WithCancelCause(ctx)
	defer give(nil)
	go func() {
		if err := t.somebody(ctx); err != nil {
			give(err)
		}
	}()
	t.working = newWorking(t.app.progress())
	defer t.working.line.end()
	defer t.listen(ctx, in)()
	var failed error
	for failed == nil {
		h, more := t.next()
		if !more {
			break
		}
		if failed = h.err; failed == nil {
			failed = t.event(ctx, h.ev)
		}
	}
	if cause := context.Cause(ctx); failed != nil && errors.As(cause, new(*messages.Error)) {
		failed = cause
	}
	t.newLine()
	return failed
}

// somebody makes sure that a node is there: an ask would wait for one forever. A user who may
// only prompt gets no answer, and asks all the same.
func (t *turn) somebody(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, telling)
	defer cancel()
	for _, err := range t.client.Agents(ctx, messages.DefaultTenant, client.Only(messages.Query{Limit: 1})) {
		var refused *messages.Error
		if errors.As(err, &refused) && refused.Code == messages.Unavailable && strings.Contains(refused.Message, "no Reprise node") {
			return err
		}
		break
	}
	return nil
}

func (t *turn) event(ctx context.Context, ev client.Event) error {
	// While the input waits for its turn, the pauses of those before it come.
	others := messages.Is(ev.Type, messages.HoldsTurn) && ev.Turn != t.seen
	if ev.Turn != "" && !others {
		t.seen = ev.Turn
	}
	if err := t.show(ev); err != nil {
		return err
	}
	switch ev.Type {
	case messages.InputAccepted{}.EventType():
		how := raw[messages.InputAccepted](ev.Data).Disposition
		if t.queued = how == messages.Queued; how != messages.Started {
			return t.behind(ctx, how)
		}
	case messages.InputRequeued{}.EventType():
		t.seen, t.queued = "", true
	case messages.InputCancelled{}.EventType():
		return t.gone("cancelled", raw[messages.InputCancelled](ev.Data).Reason)
	case messages.InputDropped{}.EventType():
		e := raw[messages.InputDropped](ev.Data)
		return t.gone("dropped by "+e.By, e.Reason)
	case messages.TurnStarted{}.EventType():
		e := raw[messages.TurnStarted](ev.Data)
		t.limit = limit{limits: e.Limits.Override(messages.Limits{MaxSteps: e.MaxSteps})}
	case messages.BudgetExhausted{}.EventType():
		if t.limit.scope = raw[messages.BudgetExhausted](ev.Data).Scope; t.limit.scope == messages.ScopeAgent {
			t.limit.limits = messages.Limits{}
		}
	case messages.TurnPaused{}.EventType():
		e := raw[messages.TurnPaused](ev.Data)
		if others {
			return t.stuckBehind(ctx, e, messages.Queued)
		}
		return t.stuck(ctx, e, fmt.Sprintf("turn %s waits", e.Turn))
	case messages.TurnCompleted{}.EventType():
		if finish := raw[messages.TurnCompleted](ev.Data).Finish; finish != "" && !t.app.json() {
			t.endLine()
			t.app.note("· %s", cmp.Or(unfinished[finish], "the answer ended with "+safe(finish)))
		}
	case messages.TurnFailed{}.EventType():
		return t.failed(raw[messages.TurnFailed](ev.Data))
	case messages.TurnAborted{}.EventType():
		e := raw[messages.TurnAborted](ev.Data)
		t.aborted = true
		if e.Reason == e.By { // such as clear: it says no more
			e.Reason = ""
		}
		return fail("`"+t.app.started+" history "+t.agent+"` shows how far it got", "turn %s was aborted by %s%s", e.Turn, e.By, because(e.Reason))
	}
	return nil
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func (t *turn) show(ev client.Event) error {
	switch {
	case ev.Type == "query": // answered where the turn pauses, see settleHere
	case ev.Type == "notice" && !t.app.json(): // shown when it came
	case t.app.json():
		return t.app.object(askLine(ev))
	case ev.Terminal():
		t.end(ev)
	case ev.Type == "delta":
		text := safe(ev.Text)
		t.open = !strings.HasSuffix(text, "\n")
		t.app.printf("%s", text)
	case ev.Type == "cut": // what was printed cannot be taken back: the text begins on a new line
		t.newLine()
		t.app.note("· %s", safe(ev.Text))
	case ev.Child != "": // what another agent says is not the answer
	case ev.Type == "reasoning":
		if t.app.verbose {
			_, _ = fmt.Fprint(t.app.err, t.app.dim(t.app.err, safe(ev.Text)))
		}
	case t.app.verbose:
		t.remark(ev)
	case isTerminal(t.app.err):
		if text := t.working.heard(ev); text != "" {
			t.endLine()
			t.app.note("%s", text)
		}
	}
	return nil
}

// remark prints an event on standard error.
func (t *turn) remark(ev client.Event) {
	t.working.heard(ev)
	t.endLine()
	t.app.note("%s", eventText(ev.Type, ev.Step, ev.Data))
}

// end prints the last event of the turn and what it used.
func (t *turn) end(ev client.Event) {
	if t.app.verbose {
		t.remark(ev)
	}
	if used := t.working.used(ev.Usage); used != "" && (t.app.verbose || isTerminal(t.app.err)) {
		t.endLine()
		t.app.note("%s", used)
	}
}

// endLine ends a line of the answer before a remark is shown below it.
func (t *turn) endLine() {
	if isTerminal(t.app.out) {
		t.newLine()
	}
}

// newLine ends a line of the answer that is open.
func (t *turn) newLine() {
	if t.open {
		t.app.printf("\n")
		t.open = false
	}
}

// unfinished is what a person reads of an answer that did not end by itself, but for words of a
// provider.
var unfinished = map[string]string{
	messages.FinishLength:  "the answer is cut off at the limit of tokens (length)",
	messages.FinishFilter:  "the answer is cut off by the server's filter (content_filter)",
	messages.FinishRefusal: "the model declined (refusal)",
	messages.FinishEmpty:   "the answer is empty (empty)",
}

func eventText(kind string, step int, data json.RawMessage) string {
	if step > 0 {
		kind = fmt.Sprintf("%s (step %d)", kind, step)
	}
	return projections.Printable("· "+kind+" "+summary(data, "turn", "step"), 160)
}

// askLine is the line of JSON that ask writes for an event.
func askLine(ev client.Event) any {
	if ev.N == 0 {
		return struct {
			Type  string          `json:"type"`
			Text  string          `json:"text"`
			Child string          `json:"child,omitempty"`
			Call  messages.CallID `json:"call,omitempty"`
		}{ev.Type, ev.Text, ev.Child, ev.ChildCall}
	}
	fact := projections.EventJSON{N: ev.N, Seq: ev.Seq, Frame: ev.Frame, Type: ev.Type, Turn: ev.Turn, Step: ev.Step, At: ev.At, Person: ev.Person, Data: ev.Data}
	if !ev.Terminal() {
		return fact
	}
	return struct {
		projections.EventJSON
		Output string          `json:"output"`
		Usage  *messages.Usage `json:"usage"`
	}{fact, ev.Output, ev.Usage}
}

// behind says so if the input waits with or behind a turn that waits for a
// person.
func (t *turn) behind(ctx context.Context, disposition messages.Disposition) error {
	s, ok := t.status(ctx)
	switch {
	case !ok:
		return nil // the answer still comes
	case s.Phase != messages.PhasePaused:
		if t.app.verbose || isTerminal(t.app.err) {
			t.app.note("· %s: %s is busy with turn %s", disposition, t.agent, s.Turn)
		}
		return nil
	}
	t.rests = s.Turn
	e := messages.TurnPaused{Turn: s.Turn, Reason: s.Paused, Message: s.Message}
	return t.stuckBehind(ctx, e, disposition)
}

// stuckBehind is stuck for another turn than the input's own, or for one that
// the input steered.
func (t *turn) stuckBehind(ctx context.Context, e messages.TurnPaused, disposition messages.Disposition) error {
	if disposition == messages.Steered {
		return t.stuck(ctx, e, fmt.Sprintf("the input steered turn %s, which waits", e.Turn))
	}
	person := t.person // is not asked about another one's turn
	t.person = nil
	defer func() { t.person = person }()
	return t.stuck(ctx, e, fmt.Sprintf("the input is queued behind turn %s, which waits", e.Turn))
}

// stuck settles what a paused turn waits for, as far as that can be done here, and returns what is
// left, after some words of its own.
func (t *turn) stuck(ctx context.Context, e messages.TurnPaused, who string) error {
	s, waits, err := t.settleHere(ctx, e)
	if !waits || err != nil {
		return err
	}
	what, do := t.app.standing(t.agent, s, t.limit)
	return &failure{code: exitWaits, what: fmt.Sprintf("%s for a person (%s)%s", who, s.Paused, because(what)), do: do}
}

// failed returns why the turn failed and how to continue.
func (t *turn) failed(e messages.TurnFailed) error {
	more := fmt.Sprintf("`%s resume %s%s` continues at the failed step", t.app.started, t.agent, t.limit.raise(e.Reason))
	if e.Withheld != 0 {
		more += ", with all of it; the next input continues without what was refused"
	}
	return fail(more, "turn %s failed (%s): %s", e.Turn, e.Why(), e.Message)
}

// gone returns why the input has no turn and will have none.
func (t *turn) gone(how, reason string) error {
	return fail("send it again, under another id, if it is still needed", "the input was %s%s", how, because(reason))
}

func (t *turn) followIt() string {
	return fmt.Sprintf("`%s events %s --follow` shows what follows", t.app.started, t.agent)
}
