package gateway

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// queryData is the agent protocol's question to a caller in the middle of a stream.
type queryData struct {
	ID           string `json:"id"`
	ReplySubject string `json:"reply_subject"`
	Prompt       string `json:"prompt"`
}

// question is about a call that came to wait for approval.
type question struct {
	of       *questions
	subject  string            // of its answers
	approval messages.Approval // without arguments, which may be large
	// prompt is what is asked, empty when the call waits no more; asked is how many
	// times it was. Both belong to of.mu.
	prompt string
	asked  int
}

// maxAsked is how many times a caller is asked about one call. After that its stream ends, and
// the decision is left to others.
const maxAsked = 3

// questions asks the caller of one stream about the calls of its turn that wait
// for approval. A nil *questions asks nothing.
type questions struct {
	g     *Gateway
	agent messages.AgentID
	reply *reply
	work  projections.Work
	// giveUp ends the stream with an error. Nil until the past was streamed: nothing is asked before.
	giveUp context.CancelCauseFunc

	mu     sync.Mutex
	closed bool
	// about are the questions that were asked, also about calls that are decided: an answer
	// that comes late has a reply.
	about map[callPlace]*question
}

// callPlace names a call.
type callPlace struct {
	agent messages.AgentID
	turn  messages.TurnID
	call  messages.CallID
}

func placeOf(p messages.Approval) callPlace { return callPlace{p.Agent, p.Turn, p.Call} }

// questionsTo returns the questions of a stream; nil if no one who prompts here may decide.
func (g *Gateway) questionsTo(to *reply, a messages.AgentID) *questions {
	if g.PromptDecides == nil {
		return nil
	}
	return &questions{g: g, agent: a, reply: to, about: make(map[callPlace]*question)}
}

// catchUp applies what was before event n, at which the caller's input steered the turn.
func (qs *questions) catchUp(n messages.EventNumber) error {
	if qs == nil || n <= 1 {
		return nil
	}
	return qs.g.fold(qs.agent, n-1, &qs.work)
}

// apply applies an event of the turn.
func (qs *questions) apply(f fact) {
	if qs != nil {
		qs.work.At(f.at, f.by)
		qs.work.Apply(f.n, f.ev)
	}
}

// begin lets ask ask. It returns the context of the stream, whose cause is a *messages.Error when the caller
// has given no answer that can be used.
func (qs *questions) begin(ctx context.Context) context.Context {
	if qs != nil {
		ctx, qs.giveUp = context.WithCancelCause(ctx)
	}
	return ctx
}

// ask asks about the calls that have come to wait.
func (qs *questions) ask() {
	if qs == nil || qs.giveUp == nil {
		return
	}
	pending := qs.work.Approvals(qs.agent)
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for place, q := range qs.about {
		if q.prompt != "" && !slices.ContainsFunc(pending, func(p messages.Approval) bool { return placeOf(p) == place }) {
			q.prompt = ""
		}
	}
	for _, p := range pending {
		if place := placeOf(p); qs.about[place] == nil && qs.mayDecide(p) {
			q := &question{of: qs, approval: p, prompt: questionText(p, int(qs.g.Conn.MaxPayload())/16)}
			q.approval.Arguments = ""
			q.subject = messages.Question(qs.agent, rand.Text())
			qs.g.questions.Store(q.subject, q)
			qs.about[place] = q
			qs.send(q, "")
		}
	}
}

// mayDecide reports whether the callers of the agent may decide about a call: of a
// call of an agent below, only those who may do so there, too.
func (qs *questions) mayDecide(p messages.Approval) bool {
	return qs.g.PromptDecides(qs.agent.Kind, p.Tool) && (p.Agent == qs.agent || qs.g.PromptDecides(p.Agent.Kind, p.Tool))
}

// send asks q with a note before it; qs.mu is held.
func (qs *questions) send(q *question, note string) {
	q.asked++
	p := q.approval
	qs.reply.chunk(messages.ChunkQuery, queryData{
		ID:           fmt.Sprintf("%s/%s/%d", p.Turn, p.Call, q.asked),
		ReplySubject: q.subject,
		Prompt:       note + q.prompt,
	})
}

// notice sends what came of an answer that had no effect; qs.mu is held.
func (qs *questions) notice(q *question, text string) {
	p := q.approval
	qs.reply.chunk(messages.ChunkNotice, fmt.Sprintf("About call %s of turn %s: %s", projections.Printable(string(p.Call), shortText), p.Turn, text))
}

// noEffect reports why an answer had no effect and will have none.
func (qs *questions) noEffect(q *question, why string) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if !qs.closed {
		qs.notice(q, "your answer changed nothing: "+why)
	}
}

// again reports why an answer could not be used and asks once more, unless nothing is left to be decided. A
// caller that was asked often enough would wait for what never comes: its stream ends.
func (qs *questions) again(q *question, why *messages.Error) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	switch {
	case qs.closed:
	case q.prompt == "":
		qs.notice(q, "your answer changed nothing, because the call no longer waits: "+why.Message)
	case q.asked >= maxAsked:
		p := q.approval
		qs.giveUp(messages.Refuse(why.Code, "your answers about call %s of turn %s could not be used: %s. The call still waits: "+
			"decide it with `reprise approve` or `reprise deny` (`reprise approvals %s` lists it)", projections.Printable(string(p.Call), shortText), p.Turn, why.Message, p.Agent))
	default:
		qs.send(q, "Your answer could not be used: "+why.Message+"\n")
	}
}

// close drops the questions. It may be called again.
func (qs *questions) close() {
	if qs == nil {
		return
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.closed = true
	if qs.giveUp != nil {
		qs.giveUp(nil)
	}
	for _, q := range qs.about {
		qs.g.questions.Delete(q.subject)
	}
}

// shortText is the most bytes of a name or a reason that a question shows.
const shortText = 1024

// questionText returns what a person is asked about a call. Arguments of more than most
// bytes are cut visibly; the decision is bound to all of them by their hash.
func questionText(p messages.Approval, most int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Agent %s asks to run the tool %s with the arguments\n%s\n", p.Agent, projections.Printable(p.Tool, shortText), projections.Printable(p.Arguments, most))
	if p.Reason != "" {
		fmt.Fprintf(&b, "Why it asks: %s\n", projections.Printable(p.Reason, shortText))
	}
	if p.Flagged != "" {
		fmt.Fprintf(&b, "Take care: call %s of this turn had the same tool and the same arguments.\n", projections.Printable(string(p.Flagged), shortText))
	}
	if !p.ExpiresAt.IsZero() {
		fmt.Fprintf(&b, "Without an answer by %s it is denied.\n", p.ExpiresAt.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	b.WriteString("Answer " + messages.AnswerHelp + ".")
	return b.String()
}

// answered delivers a caller's answer to a question as a command of the
// agent. Each answer has an id of its own that cannot be guessed and used
// before it: what a second answer does is decided by the agent. An answer to a
// stream that has ended is dropped.
func (g *Gateway) answered(r *nats.Msg) {
	found, ok := g.questions.Load(r.Subject)
	if !ok {
		return
	}
	q, _ := found.(*question)
	v, err := messages.ParseDecision(string(r.Data))
	if err != nil {
		q.of.again(q, messages.AsError(err))
		return
	}
	delivered := make(chan func(context.Context) (messages.Answer, error), 1)
	if !g.begin(func() { g.decided(q, <-delivered) }) {
		q.of.again(q, g.full()) // before it is delivered: what came of it would not be reported
		return
	}
	c := messages.WithID(v.Command(q.approval), "query:"+rand.Text())
	// The agent that was prompted passes on what is about a call below it.
	delivered <- g.Deliver(&actors.Deliver{Agent: q.of.agent, Command: c, Cause: messages.Cause{Type: c.CommandType(), ID: messages.IDOf(c), Endpoint: messages.EndpointPrompt}.From(personOf(r)), Trace: messages.TraceOf(r.Header.Get)})
}

// decided waits for what became of an answer. The facts of the turn show the effect that it
// had. Another decision was first if it conflicts with what was, or if its call is gone;
// after any other refusal the caller is asked again.
func (g *Gateway) decided(q *question, wait func(context.Context) (messages.Answer, error)) {
	answer, err := wait(g.ctx)
	if err == nil && answer.Err != nil {
		err = answer.Err
	}
	if g.ctx.Err() != nil {
		return // the stream ends with an error of its own
	}
	if err == nil {
		if answer.Noop != "" {
			q.of.noEffect(q, answer.Noop)
		}
		return
	}
	switch why := messages.AsError(err); why.Code {
	case messages.Conflict, messages.NotFound:
		q.of.noEffect(q, why.Message)
	default:
		q.of.again(q, why)
	}
}
