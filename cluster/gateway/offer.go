package gateway

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// queryData asks the caller something in the middle of a stream, as the agent
// protocol has it.
type queryData struct {
	ID           string `json:"id"`
	ReplySubject string `json:"reply_subject"`
	Prompt       string `json:"prompt"`
}

// queries are the questions of the streams that go on, by the subject that
// their answers come to. It cannot be guessed: who knows it was asked.
type queries struct {
	mu   sync.Mutex
	open map[string]*query
}

// query is a question about a call that came to wait for approval.
type query struct {
	offers   *offers
	subject  string            // of its answers
	approval messages.Approval // without arguments, which may be large
	// prompt is what is asked, empty when the call waits no more; asked is how many
	// times it was. Both belong to offers.mu.
	prompt string
	asked  int
}

// maxAsked is how many times a caller is asked about one call. After that
// somebody else must decide.
const maxAsked = 3

// put gives q a subject for its answers.
func (qs *queries) put(q *query) {
	q.subject = messages.Question(q.offers.agent, rand.Text())
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.open[q.subject] = q
}

// find gives the question that subject answers; nil if there is none.
func (qs *queries) find(subject string) *query {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.open[subject]
}

func (qs *queries) drop(q *query) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	delete(qs.open, q.subject)
}

// offers asks the caller of one stream about the calls of its turn that wait
// for approval. A nil *offers asks nothing.
type offers struct {
	g     *Gateway
	agent messages.AgentID
	to    *replying
	queue projections.Work
	// live says that the past has been told: what waits now is asked about.
	live bool

	mu     sync.Mutex
	closed bool
	// about holds what was asked, also about calls that are settled: whoever
	// answers late is told so.
	about map[askedAbout]*query
}

// askedAbout names a question.
type askedAbout struct {
	agent messages.AgentID
	turn  messages.TurnID
	call  messages.CallID
}

// offers are for a stream to a caller who may decide; nil if nobody who
// prompts here may.
func (g *Gateway) offers(a messages.AgentID, to *replying) *offers {
	if g.PromptDecides == nil {
		return nil
	}
	return &offers{g: g, agent: a, to: to, about: make(map[askedAbout]*query)}
}

// catchUp learns what waited already before event n, at which the caller's input steered
// the turn.
func (o *offers) catchUp(n messages.EventNumber) error {
	if o == nil || n <= 1 {
		return nil
	}
	return o.g.fold(o.agent, n-1, &o.queue)
}

// apply takes notice of a fact of the turn.
func (o *offers) apply(f fact) {
	if o != nil {
		o.queue.At(f.at, f.by)
		o.queue.Apply(f.n, f.ev)
	}
}

// begin says that the past has been told: from here on the caller is asked.
func (o *offers) begin() {
	if o != nil {
		o.live = true
	}
}

// ask asks about the calls that have come to wait.
func (o *offers) ask() {
	if o == nil || !o.live {
		return
	}
	pending := o.queue.Approvals(o.agent)
	o.mu.Lock()
	defer o.mu.Unlock()
	for is, q := range o.about {
		if q.prompt != "" && !slices.ContainsFunc(pending, func(p messages.Approval) bool { return askedAbout{p.Agent, p.Turn, p.Call} == is }) {
			q.prompt = ""
		}
	}
	for _, p := range pending {
		is := askedAbout{p.Agent, p.Turn, p.Call}
		if o.about[is] == nil && o.mayDecide(p) {
			q := &query{offers: o, approval: p, prompt: question(p, int(o.g.Conn.MaxPayload())/16)}
			q.approval.Arguments = ""
			o.g.queries.put(q)
			o.about[is] = q
			o.send(q, "")
		}
	}
}

// mayDecide says whether whoever prompts the agent may decide about a call: of a
// call below it only who may do so there, too.
func (o *offers) mayDecide(p messages.Approval) bool {
	return o.g.PromptDecides(o.agent.Kind, p.Tool) && (p.Agent == o.agent || o.g.PromptDecides(p.Agent.Kind, p.Tool))
}

// send asks q's question; o.mu is held. note goes before it.
func (o *offers) send(q *query, note string) {
	q.asked++
	p := q.approval
	o.to.say(chunk{messages.ChunkQuery, queryData{
		ID:           fmt.Sprintf("%s/%s/%d", p.Turn, p.Call, q.asked),
		ReplySubject: q.subject,
		Prompt:       note + q.prompt,
	}})
}

// notice tells the caller what came of an answer that had no effect; o.mu is
// held.
func (o *offers) notice(q *query, text string) {
	p := q.approval
	o.to.say(chunk{messages.ChunkNotice, fmt.Sprintf("About call %s of turn %s: %s", projections.Printable(string(p.Call), shortText), p.Turn, text)})
}

// unheeded tells the caller why an answer had no effect, and that it will have
// none.
func (o *offers) unheeded(q *query, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.notice(q, "your answer changed nothing: "+why)
	}
}

// again tells the caller why an answer could not be used and asks once more,
// unless it has been asked often enough or nothing is left to be decided.
func (o *offers) again(q *query, why *messages.Error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
	case q.prompt == "":
		o.notice(q, "your answer changed nothing, for the call waits no more: "+why.Message)
	case q.asked >= maxAsked:
		a := q.approval.Agent
		o.notice(q, fmt.Sprintf("your answer could not be used: %s. You are not asked again and the call still waits: "+
			"somebody must decide with `reprise approve` or `reprise deny` (`reprise approvals %s` lists it)", why.Message, a))
	default:
		o.send(q, "Your answer could not be used: "+why.Message+"\n")
	}
}

// close forgets what the caller was asked.
func (o *offers) close() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for _, q := range o.about {
		o.g.queries.drop(q)
	}
}

// shortText is the most bytes of a name or a reason that a question shows.
const shortText = 1024

// question is what a person is asked about a call. Arguments of more than most
// bytes are cut visibly; the decision is bound to all of them by their hash.
func question(p messages.Approval, most int) string {
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
