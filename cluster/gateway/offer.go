package gateway

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/reprise-dev/reprise/actors"
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

// queries are the questions whose answers are awaited, by the subject that the
// answer comes to. Each subject takes one answer and cannot be guessed: who
// knows it was asked.
type queries struct {
	prefix string

	mu   sync.Mutex
	open map[string]*query
}

type query struct {
	offers   *offers
	approval messages.Approval
	// asked is how many times the caller was asked already.
	asked int
}

// maxAsked is how many times a caller is asked about one call. After that
// somebody else must decide.
const maxAsked = 3

// put makes a subject for the answer to q.
func (qs *queries) put(q *query) (subject string) {
	subject = qs.prefix + rand.Text()
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.open[subject] = q
	return subject
}

// take gives the question that subject answers and forgets it; nil if there is
// none.
func (qs *queries) take(subject string) *query {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.open[subject]
	delete(qs.open, subject)
	return q
}

// offers asks the caller of one stream about the calls of its turn that wait
// for approval. A nil *offers asks nothing.
type offers struct {
	g     *Gateway
	agent messages.AgentID
	to    string
	queue projections.Queue
	// live says that the past has been told: what waits now is asked about.
	live bool

	mu     sync.Mutex
	closed bool
	// waits holds the answer's subject of each call that was asked about; empty
	// where nobody is asked any more.
	waits map[askedAbout]string
}

// askedAbout names a question: a call may wait more than once.
type askedAbout struct {
	turn messages.TurnID
	call messages.CallID
	n    messages.EventNumber
}

func about(p messages.Approval) askedAbout { return askedAbout{p.Turn, p.Call, p.N} }

// offers are for a stream to a caller who may decide; nil if nobody who
// prompts here may.
func (g *Gateway) offers(a messages.AgentID, to string) *offers {
	if g.PromptDecides == nil {
		return nil
	}
	return &offers{g: g, agent: a, to: to, waits: make(map[askedAbout]string)}
}

// catchUp learns what waited already before event n, at which the caller joined
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
		o.queue.At(f.at)
		o.queue.Apply(f.n, f.ev)
	}
}

// begin says that the past has been told: from here on the caller is asked.
func (o *offers) begin() {
	if o != nil {
		o.live = true
	}
}

// ask asks about the calls that have come to wait and forgets those that wait
// no more.
func (o *offers) ask() {
	if o == nil || !o.live {
		return
	}
	pending := o.queue.Approvals(o.agent)
	o.mu.Lock()
	defer o.mu.Unlock()
	for was, subject := range o.waits {
		if !slices.ContainsFunc(pending, func(p messages.Approval) bool { return about(p) == was }) {
			o.g.queries.take(subject)
			delete(o.waits, was)
		}
	}
	for _, p := range pending {
		if _, known := o.waits[about(p)]; !known && o.g.PromptDecides(o.agent.Kind, p.Tool) {
			o.send(&query{offers: o, approval: p}, "")
		}
	}
}

// send asks q's question; o.mu is held. note goes before it.
func (o *offers) send(q *query, note string) {
	q.asked++
	p := q.approval
	subject := o.g.queries.put(q)
	o.waits[about(p)] = subject
	o.g.reply(o.to, chunk{"query", queryData{
		ID:           fmt.Sprintf("%s/%s/%d", p.Turn, p.Call, q.asked),
		ReplySubject: subject,
		Prompt:       note + question(p, int(o.g.Conn.MaxPayload())/16),
	}})
}

// again asks q's question once more, unless it has been asked often enough or
// needs no answer any more.
func (o *offers) again(q *query, note string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, waits := o.waits[about(q.approval)]
	if o.closed || !waits {
		return
	}
	if o.waits[about(q.approval)] = ""; q.asked < maxAsked {
		o.send(q, note)
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
	for _, subject := range o.waits {
		o.g.queries.take(subject)
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
	b.WriteString(howToAnswer)
	return b.String()
}

// answered takes a caller's answer to a query and makes it a command of the
// agent's. An answer to what is no longer asked means nothing.
func (g *Gateway) answered(r request) {
	q := g.queries.take(r.Subject)
	if q == nil {
		return
	}
	v, ok := parseVerdict(r.Data)
	if !ok {
		q.offers.again(q, "That was no answer that can be understood.\n")
		return
	}
	c := v.command(q.approval)
	wait := g.Deliver(&actors.Deliver{Agent: q.approval.Agent, Command: c, Cause: messages.Cause{Type: c.CommandType(), ID: c.CommandID(), Door: "prompt"}})
	g.begin(func() { g.heeded(q, wait) })
}

// heeded waits for what became of an answer. A refusal that may pass is told by
// asking again; any other means that somebody else has decided.
func (g *Gateway) heeded(q *query, wait func(context.Context) (messages.Answer, error)) {
	answer, err := wait(g.ctx)
	if err == nil && answer.Err != nil {
		err = answer.Err
	}
	switch {
	case err == nil || g.ctx.Err() != nil:
	case messages.AsError(err).Temporary():
		q.offers.again(q, "The answer could not be stored: "+messages.AsError(err).Message+"\n")
	default:
		g.Logger.Info("an answer to a query came too late", "agent", q.approval.Agent.String(), "call", string(q.approval.Call), "error", err)
	}
}
