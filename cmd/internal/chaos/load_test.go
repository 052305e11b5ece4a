//go:build unix

package chaos

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/providertest"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// The shape of the load. maxOpen is how many inputs may be under way before the
// publishers wait for turns to end.
const (
	publishers  = 7
	perCommands = 4 // inputs acknowledged for each command that is sent
	agents      = 12
	cleared     = 3 // of them, those that are cleared now and then
	maxOpen     = 48
)

var (
	tenants = []string{"default", "blue", "green"}
	kinds   = []string{"worker", "clerk"}
)

func (w *world) agent(n int) string {
	return fmt.Sprintf("%s/%s/g%d-%d", tenants[n%len(tenants)], kinds[n%len(kinds)], w.generation.Load(), n)
}

// isCleared reports whether the agent is one of those that are cleared, which takes
// back what is to come later.
func (w *world) isCleared(agent string) bool {
	for n := range cleared {
		if agent == w.agent(n) {
			return true
		}
	}
	return false
}

// plan is the tools that an input wants, step by step; those of one step are
// called at once. An agent as a tool has its own plan behind a colon, as in
// ask:rerun&gated,read_only; deep has that of the agent that its agent asks.
type plan [][]string

func (p plan) String() string {
	steps := make([]string, len(p))
	for i, step := range p {
		steps[i] = strings.Join(step, "+")
	}
	return strings.Join(steps, " ")
}

// text is what the input says.
func (p plan) text(id string) string { return strings.TrimSpace("do " + id + ": " + p.String()) }

// output is what its turn says in the end, if every call returns its result.
func (p plan) output(id string) string {
	words := []string{"done " + id + ":"}
	for position, word := range slices.Concat(p...) {
		words = append(words, retold(id, result(word, id, position)))
	}
	return strings.Join(words, " ")
}

// result is what the call of a word returns.
func result(word, id string, position int) string {
	if _, task, ok := below(word, id, position); ok {
		return readTask(task)
	}
	return entry{Tool: word, Input: id, Position: position}.result()
}

// readTask is the answer to a text, if all goes well.
func readTask(text string) string {
	id, p := readPlan(text)
	return p.output(id)
}

// The tools that are agents: one of helper, which has programs alone, and one of
// middle, which asks a helper.
const (
	ask  = "ask"
	deep = "deep"
)

// below is what a word wants of another agent, if it is one of an agent.
func below(word, id string, position int) (tool, text string, ok bool) {
	tool, rest, ok := strings.Cut(word, ":")
	if tool == deep {
		rest = ask + ":" + rest
	} else {
		rest = strings.NewReplacer(",", " ", "&", "+").Replace(rest)
	}
	return tool, fmt.Sprintf("do %s.%d: %s", id, position, rest), ok
}

// isBelow reports whether an id in a text is of an agent's task, not of a publisher.
func isBelow(id string) bool { return strings.Contains(id, ".") }

// retold is how an agent repeats the result of a call: one that works for another repeats it
// whole, the others name what is large and what an agent has said.
func retold(id, result string) string {
	if isBelow(id) || len(result) < 1000 && !strings.HasPrefix(result, "done ") {
		return result
	}
	return "sha256:" + string(digest(result))
}

func digest(text string) messages.Digest {
	return messages.Digest(fmt.Sprintf("%x", sha256.Sum256([]byte(text))))
}

func readPlan(text string) (id string, p plan) {
	words := strings.Fields(text)
	if len(words) < 2 || words[0] != "do" {
		return "", nil
	}
	for _, step := range words[2:] {
		p = append(p, strings.Split(step, "+"))
	}
	return strings.TrimSuffix(words[1], ":"), p
}

func drawPlan(r *rand.Rand) plan {
	p := make(plan, r.IntN(3))
	for i := range p {
		for range 1 + r.IntN(2) {
			p[i] = append(p[i], drawWord(r))
		}
	}
	return p
}

func drawWord(r *rand.Rand) string {
	switch r.IntN(16) {
	case 0:
		return large
	case 1, 2:
		return ask + ":" + drawBelow(r)
	case 3:
		return deep + ":" + drawBelow(r)
	}
	return tools[2*r.IntN(9)/4]
}

// drawBelow is a plan for a helper.
func drawBelow(r *rand.Rand) string {
	return []string{"rerun", "read_only", gated, "rerun&" + gated, gated + ",reconcile", "pause", large, large + "&rerun", "read_only,rerun"}[r.IntN(9)]
}

// answer is the model: stateless, so that it does not matter which of its
// answers were lost with the node that asked.
func (w *world) answer(r *providertest.Request) providertest.Answer {
	w.asked.Add(1)
	w.system.met(onModel)
	if r.Number%43 == 0 {
		return providertest.Failure(http.StatusInternalServerError, "try again")
	}
	history := r.Chat().Messages
	id, p, begun := "", plan(nil), 0
	for i, m := range history {
		if m.Role == "user" {
			id, p = readPlan(m.Text())
			begun = i + 1
		}
	}
	step, position, results := 0, 0, []string{"done " + id + ":"}
	for _, m := range history[begun:] {
		if len(m.ToolCalls) > 0 {
			step, position = step+1, position+len(m.ToolCalls)
		} else if m.Role == "tool" {
			results = append(results, retold(id, m.Text()))
		}
	}
	answer := scripted.Say(strings.Join(results, " "))
	if step < len(p) {
		answer = scripted.Ask()
		for i, tool := range p[step] {
			answer.Calls = append(answer.Calls, ordered(tool, id, position+i))
		}
	}
	answer.Usage = messages.Usage{Input: 10, Output: 3}
	return providertest.Answer{Step: answer}
}

// ordered is the call of a word.
func ordered(word, id string, position int) scripted.Call {
	if tool, text, ok := below(word, id, position); ok {
		return scripted.Call{Name: tool, Arguments: fmt.Sprintf(`{"input":%q}`, text)}
	}
	return scripted.Call{Name: word, Arguments: fmt.Sprintf(`{"input":%q,"position":%d}`, id, position)}
}

// publisher sends one thing after the other, each only when the one before it
// was acknowledged or refused.
type publisher struct {
	w      *world
	name   string
	number int
	prompt bool // through the prompt endpoint, not by publishing
	random *rand.Rand
	past   []*sent // acknowledged, and fit to be sent again
}

// startLoad starts the publishers and the person.
func (w *world) startLoad() {
	w.turnTo(0)
	for i := range publishers {
		p := &publisher{w: w, name: fmt.Sprintf("p%d", i), prompt: i%3 == 0, random: rand.New(rand.NewPCG(*seed, uint64(i+1)))}
		w.publishing.Go(func() { p.run(p.input, 1) })
	}
	c := &publisher{w: w, name: "c", random: rand.New(rand.NewPCG(*seed, publishers+1))}
	w.publishing.Go(func() { c.run(c.command, perCommands) })
	for i := range mortals {
		m := newMortal(w, i)
		w.mortals = append(w.mortals, m)
		w.publishing.Go(m.run)
	}
	for i := range forkers {
		f := newForker(w, i)
		w.publishing.Go(func() { f.publisher.run(f.step, perForks) })
	}
	w.running.Go(func() { w.decide(false) })
	w.running.Go(func() { w.decide(true) })
}

// turnTo turns the load to the agents of a generation, whose events are read.
func (w *world) turnTo(generation int64) {
	w.generation.Store(generation)
	for n := range agents {
		agent := w.agent(n)
		w.running.Go(func() { w.follow(w.ctx, agent) })
	}
}

// run sends until the load is to end, at most one thing for so many inputs that
// were acknowledged.
func (p *publisher) run(one func(), every int) {
	b, next := p.w.book, 0
	for b.Until(p.w.ctx, p.w.stopping, func() bool { return len(b.open) < maxOpen && (every == 1 || b.acks >= next) }) {
		next = b.acked() + every
		select {
		case <-p.w.stopping:
			return
		default:
			one()
		}
	}
}

func (b *book) acked() int {
	b.Lock()
	defer b.Unlock()
	return b.acks
}

// enter writes what is about to be sent into the book.
func (p *publisher) enter(command string) *sent {
	p.number++
	n := p.random.IntN(agents)
	if command == "clear" {
		n = p.random.IntN(cleared)
	}
	s := &sent{ID: fmt.Sprintf("%s-%d", p.name, p.number), Publisher: p.name, Number: p.number, Command: command, Agent: p.w.agent(n)}
	p.w.book.Write(func() { p.w.book.sent[s.ID] = s })
	return s
}

// input sends a new input, or one more time one that was acknowledged before.
func (p *publisher) input() {
	if len(p.past) > 0 && p.random.IntN(12) == 0 {
		p.again()
		return
	}
	s := p.enter("input")
	p.w.book.Write(func() {
		s.Plan, s.Policy = drawPlan(p.random), p.policy()
		if p.random.IntN(10) == 0 && !p.w.isCleared(s.Agent) {
			s.Policy, s.Delay, s.At = messages.PolicyQueue, time.Second+time.Duration(p.random.IntN(2000))*time.Millisecond, time.Now()
		}
	})
	life, err := p.w.insist(func(d *endpoint) error { return p.send(d, s, p.prompt) })
	p.settle(s, life, err)
	if err == nil && s.Policy != messages.PolicyReject && s.Delay == 0 {
		p.past = append(p.past, s)
	}
}

func (p *publisher) policy() messages.Policy {
	switch n := p.random.IntN(100); {
	case n < 12:
		return messages.PolicySteer
	case n < 17:
		return messages.PolicyInterrupt
	case n < 25:
		return messages.PolicyReject
	}
	return messages.PolicyQueue
}

// again sends an old input once more under its id, through either endpoint if it has
// ended: order is kept within an endpoint, and one that still waits behind the one would
// overtake others through the other.
func (p *publisher) again() {
	s := p.past[p.random.IntN(len(p.past))]
	prompt := p.random.IntN(2) == 0
	p.w.book.Lock()
	if !p.w.book.ended[s.ID] {
		prompt = p.prompt
	}
	p.w.book.Unlock()
	if _, err := p.w.insist(func(d *endpoint) error { return p.send(d, s, prompt) }); err != nil {
		p.w.fault("%s, sent again, was refused: %v", s.ID, err)
	}
	p.w.book.Write(func() { p.w.book.again++ })
}

// settle writes down how it went.
func (p *publisher) settle(s *sent, life int, err error) {
	var refused *messages.Error
	p.w.book.Write(func() {
		switch {
		case err == nil:
			s.Life = life
		case errors.As(err, &refused):
			s.Refused = refused.Code
		}
		if err == nil && s.Command == "input" {
			p.w.book.acks++
			if s.owed() && !p.w.book.ended[s.ID] {
				p.w.book.open[s.ID] = s
			}
		}
	})
	if err == nil && s.Command == "input" {
		p.w.system.met(onAck)
	}
}

// send sends an input to a node and returns when it is acknowledged.
func (p *publisher) send(d *endpoint, s *sent, prompt bool) error {
	in := messages.Input{ID: s.ID, Policy: s.Policy, Content: messages.TextContent(s.Plan.text(cmp.Or(s.Said, s.ID)))}
	if s.Delay > 0 {
		in.In = messages.Span(s.Delay)
	}
	if !prompt || s.Delay > 0 {
		_, err := d.client.Send(d.ctx, s.Agent, in)
		return err
	}
	toEnd := p.random.IntN(3) == 0
	for e, err := range d.client.AskFacts(d.ctx, s.Agent, in) {
		if err != nil {
			return err
		}
		if e.N == 0 {
			continue
		}
		p.w.see(s.Agent, e)
		if !toEnd || e.Terminal() {
			return nil
		}
	}
	return errors.New("the stream ended without the turn's end")
}

// commands are drawn from evenly.
var commands = []string{
	"set_state", "set_state", "set_state", "set_state", "set_state", "set_state", "set_state", "set_state",
	"interrupt", "interrupt", "interrupt", "abort", "abort", "abort", "cancel", "cancel", "cancel",
	"resume", "resume", "resume", "forget", "forget", "clear",
	"delete", "delete", "delete",
}

// command sends a command that is no input.
func (p *publisher) command() {
	kind := commands[p.random.IntN(len(commands))]
	if kind == "delete" && p.w.book.newChild() == "" {
		return
	}
	s := p.enter(kind)
	var c messages.Command
	switch kind {
	case "set_state":
		patch, _ := json.Marshal(map[string]int{s.ID: s.Number}) // always encodes
		c = messages.SetState{ID: s.ID, Patch: patch, Reason: s.ID}
	case "interrupt":
		c = messages.Interrupt{ID: s.ID, Reason: s.ID}
	case "abort":
		c = messages.Abort{ID: s.ID, Reason: s.ID}
	case "delete":
		p.w.book.Write(func() { s.Agent = p.w.book.child })
		c = messages.Delete{ID: s.ID, Reason: s.ID}
	case "clear":
		c = messages.Clear{ID: s.ID, Reason: s.ID}
	case "forget":
		c = messages.Forget{ID: s.ID, Tool: gated, Reason: s.ID}
	case "resume": // of a turn that failed; else it may set a limit that is never reached
		c = messages.Resume{ID: s.ID, LimitOverrides: messages.LimitOverrides{MaxSteps: 1000 * p.random.IntN(2)}, Reason: s.ID}
	default:
		c = messages.Cancel{ID: s.ID, Input: p.w.book.anyOpen(s.Agent), Reason: s.ID}
	}
	life, err := p.w.insist(func(d *endpoint) error {
		_, err := d.client.Do(d.ctx, s.Agent, c)
		return err
	})
	p.settle(s, life, err)
}

// newChild is the agent that a call brought to life last.
func (b *book) newChild() string {
	b.Lock()
	defer b.Unlock()
	return b.child
}

// anyOpen is an input of the agent that has not ended, or one that never was.
func (b *book) anyOpen(agent string) string {
	b.Lock()
	defer b.Unlock()
	for _, s := range b.open {
		if s.Agent == agent && s.Delay == 0 {
			return s.ID
		}
	}
	return "none"
}

// fault reports what must not be.
func (w *world) fault(format string, args ...any) {
	if w.ctx.Err() == nil {
		w.t.Errorf("seed %d: "+format, append([]any{*seed}, args...)...)
	}
}

// follow reads an agent's events as they come, through one endpoint after the other.
func (w *world) follow(ctx context.Context, agent string) {
	for next := messages.EventNumber(1); ctx.Err() == nil; {
		d, err := w.system.open(ctx)
		if err != nil {
			return
		}
		for line, err := range d.client.Query(d.ctx, agent, messages.Query{View: "events", From: next, Follow: true}) {
			var e client.Event
			if err != nil || ctx.Err() != nil || json.Unmarshal(line, &e) != nil {
				break
			}
			if e.N != next {
				w.fault("a reader of %s was shown event %d after event %d", agent, e.N, next-1)
			}
			next = e.N + 1
			w.see(agent, e)
			w.system.met(onFact)
			if strings.HasPrefix(e.Type, "child.") {
				w.system.met(onChild)
			}
		}
		select {
		case <-d.ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
		d.close()
	}
}
