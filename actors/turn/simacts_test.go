package turn_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// acts are what can happen in a life, and how often.
var acts = [...]struct {
	weight int
	do     func(*sim)
}{
	{90, (*sim).work},
	{12, (*sim).batch},
	{26, func(s *sim) { s.decide(s.input()) }},
	{6, func(s *sim) {
		s.decide(messages.Interrupt{ID: s.id(), Turn: s.anyTurn(), Reason: s.one("", "stop it")})
	}},
	{4, func(s *sim) { s.decide(messages.Abort{ID: s.id(), Turn: s.anyTurn(), Reason: s.one("", "enough")}) }},
	{2, func(s *sim) { s.decide(messages.Clear{ID: s.id(), Reason: s.one("", "again")}) }},
	{2, (*sim).delete},
	{5, func(s *sim) { s.decide(messages.Cancel{ID: s.id(), Input: s.anyInput()}) }},
	{2, func(s *sim) { s.decide(messages.Cancel{ID: s.id(), All: true}) }},
	{6, func(s *sim) { s.decide(s.later()) }},
	{3, func(s *sim) { s.decide(messages.Cancel{ID: s.id(), Timer: s.anyTimer()}) }},
	{6, func(s *sim) { s.decide(s.compact()) }},
	{10, func(s *sim) { s.decide(s.resume()) }},
	{10, func(s *sim) { s.decide(s.approve()) }},
	{6, func(s *sim) { s.decide(s.deny()) }},
	{2, func(s *sim) { s.decide(messages.Forget{ID: s.id(), Tool: s.one("add", "pay", "ship", "mail")}) }},
	{8, func(s *sim) { s.decide(s.settles()) }},
	{24, (*sim).childReports},
	{5, func(s *sim) { s.decide(s.task()) }},
	{3, func(s *sim) { s.decide(s.recall()) }},
	{3, func(s *sim) { s.decide(messages.SetState{ID: s.id(), Patch: s.patch()}) }},
	{8, (*sim).crash},
	{10, (*sim).late},
	{4, (*sim).redefine},
	{6, (*sim).time},
}

var allWeights = func() (sum int) {
	for _, a := range acts {
		sum += a.weight
	}
	return sum
}()

// step does one thing.
func (s *sim) step() {
	s.env.Jitter = s.r.Float64()
	n := s.r.IntN(allWeights)
	for _, a := range acts {
		if n -= a.weight; n < 0 {
			a.do(s)
			return
		}
	}
}

// work answers one effect.
func (s *sim) work() {
	if effects := s.live.Effects(); len(effects) > 0 {
		e := effects[s.r.IntN(len(effects))]
		if e.Do == turn.Wait && !s.chance(4) {
			e = effects[0]
		}
		if e.Do == turn.AskHooks && s.chance(6) { // the log does not record that they were asked
			s.crash()
			return
		}
		s.outcome(e, s.comesInTime(e))
	}
}

// comesInTime is what comes of an effect, not before its time.
func (s *sim) comesInTime(e turn.Effect) any {
	if e.Do == turn.Wait && s.env.Now.Before(e.Until) {
		s.env.Now = e.Until
		if s.chance(3) {
			s.env.Now = e.Until.Add(time.Duration(s.r.IntN(5000)) * time.Millisecond)
		}
	}
	return s.comes(e)
}

// batch answers several effects, and all that follows goes into one frame. What comes as a
// command has a frame of its own.
func (s *sim) batch() {
	effects := s.live.Effects()
	s.r.Shuffle(len(effects), func(i, j int) { effects[i], effects[j] = effects[j], effects[i] })
	first, whole, came := s.live.Last+1, []messages.Event(nil), len(s.given)
	for _, e := range effects[:min(len(effects), 3)] {
		s.given = append(s.given, given{e, s.comesInTime(e)})
	}
	for _, g := range s.given[came:] {
		if _, command := g.outcome.(messages.Command); !command && s.reaches(g.of) {
			events, _ := s.feed(g.outcome)
			whole = append(whole, events...)
		}
	}
	s.write(first, messages.Cause{Type: "effect"}, whole)
}

func (s *sim) outcome(e turn.Effect, o any) {
	s.given = append(s.given, given{e, o})
	s.decide(o)
}

// reaches reports whether the shell hands on what came of an effect. It drops what
// the machine could take for what came of another one: what a tool knows of a
// lost call, for one, does not name the attempt.
func (s *sim) reaches(e turn.Effect) bool {
	for _, now := range s.live.Effects() {
		if now == e {
			return true
		}
		if now.Do == e.Do && now.Call == e.Call && now.ID == e.ID && (now.Attempt == e.Attempt || e.Do == turn.Reconcile) && now.Timer == e.Timer && now.Point == e.Point {
			return false
		}
	}
	return true
}

// late delivers an outcome once more, or one of an effect that was given up.
func (s *sim) late() {
	var g given
	switch {
	case len(s.given) > 0 && s.chance(2):
		g = s.given[s.recent(len(s.given))]
	case len(s.seen) > 0:
		g.of = s.seen[s.recent(len(s.seen))]
		g.outcome = s.comes(g.of)
	default:
		return
	}
	if !s.reaches(g.of) {
		return
	}
	// The effect of a decision may be reported after its child was cancelled, too.
	m := s.live.Outbox.Message(g.of.ID)
	awaited := m != nil && m.Decision != nil
	for _, e := range s.live.Effects() {
		awaited = awaited || e == g.of
	}
	before := len(s.log)
	if s.decide(g.outcome); !awaited && !s.blind && slices.ContainsFunc(s.log[before:], changes) {
		s.fail("the outcome of an effect that was not awaited changed something\n%+v", g)
	}
}

// changes reports whether a frame does more than use up the id of a command.
func changes(f *messages.Frame) bool {
	_, noop := f.Events[0].(messages.CommandNoop)
	return !noop
}

// recent is an index, usually one of the last.
func (s *sim) recent(length int) int {
	if s.chance(4) {
		return s.r.IntN(length)
	}
	return length - 1 - s.r.IntN(min(length, 6))
}

// redefine changes the definition.
func (s *sim) redefine() {
	if s.plain&withChange == 0 {
		s.define()
	}
}

// time passes, or a clock is set back.
func (s *sim) time() {
	switch n := time.Duration(s.r.IntN(1000)); s.r.IntN(6) {
	case 0:
		s.env.Now = s.env.Now.Add(n * time.Minute)
	case 1:
		s.env.Now = s.env.Now.Add(-n * 50 * time.Millisecond)
	default:
		s.env.Now = s.env.Now.Add(n * 10 * time.Millisecond)
	}
}

// id is a new id, or one that was used before.
func (s *sim) id() string {
	if len(s.ids) > 0 && s.chance(8) {
		return s.ids[s.r.IntN(len(s.ids))]
	}
	s.ids = append(s.ids, fmt.Sprint("id", len(s.ids)))
	return s.ids[len(s.ids)-1]
}

func (s *sim) input() messages.Input {
	in := messages.Input{
		ID: s.id(), Content: messages.TextContent(s.one("", "hello", "again and again")),
		Policy:  messages.Policy(s.one("", "queue", "steer", "steer", "interrupt", "reject")),
		Options: messages.InputOptions{MaxSteps: max(0, s.r.IntN(8)-3)},
	}
	if s.has(withToolChoice, 5) {
		in.Options.ToolChoice = s.one("auto", "required", "none", "add", "mail", "nosuch")
	}
	if s.chance(10) {
		deadline := s.env.Now.Add(time.Duration(s.r.IntN(3)-1) * time.Second)
		in.Deadline = &deadline
	}
	return in
}

// anyTurn is usually none, else the newest or one that never was.
func (s *sim) anyTurn() messages.TurnID {
	switch t := s.live.Turn; {
	case !s.chance(4):
		return ""
	case s.chance(3):
		return "t1"
	case t != nil && !s.chance(3):
		return t.ID
	case s.live.Ended != nil:
		return s.live.Ended.ID
	}
	return ""
}

// anyInput is usually one that waits.
func (s *sim) anyInput() string {
	var ids []string
	for _, q := range s.live.Inputs.Queued {
		ids = append(ids, q.ID)
	}
	if t := s.live.Turn; t != nil {
		ids = append(ids, s.live.TurnInputs()...)
	}
	if len(ids) == 0 || s.chance(8) {
		return "id0"
	}
	return s.one(ids...)
}

// anyCall is usually one of the newest step.
func (s *sim) anyCall(wanted projections.Outcome) (messages.CallID, string) {
	t := s.live.Turn
	if t == nil || len(t.Calls) == 0 || s.chance(16) {
		return "c1", "{}"
	}
	c := t.Calls[s.r.IntN(len(t.Calls))]
	for i := range t.Calls {
		if t.Calls[i].Outcome == wanted && !s.chance(4) {
			c = t.Calls[i]
		}
	}
	return c.ID, c.Arguments
}

func (s *sim) resume() messages.Resume {
	c := messages.Resume{ID: s.id(), Turn: s.anyTurn(), Reason: s.one("", "continue"), LimitOverrides: s.raises(1)}
	if s.chance(3) {
		c.AgentLimits = s.raises(8)
	}
	return c
}

func (s *sim) raises(scale int) (r messages.LimitOverrides) {
	if s.chance(3) {
		r.MaxSteps = s.r.IntN(scale * 10)
	}
	if s.chance(3) {
		r.MaxTokens = s.r.IntN(scale * 400)
	}
	if s.chance(3) {
		r.MaxCost = float64(s.r.IntN(scale*1000)) / 1e6
	}
	if s.chance(3) {
		r.MaxDuration = messages.Span(time.Duration(s.r.IntN(scale*60)) * time.Second)
	}
	return r
}

// seenHash is the hash of what a person saw.
func (s *sim) seenHash(arguments string) string {
	switch s.r.IntN(4) {
	case 0:
		return messages.HashArguments(arguments)
	case 1:
		return messages.HashArguments(s.one(arguments, arguments, "{}", `{"a":9}`))
	}
	return ""
}

func (s *sim) approve() messages.Approve {
	call, arguments := s.anyCall(projections.CallWaiting)
	if below, ok := s.waitsBelow(messages.WaitApproval); ok {
		call, arguments = below, "{}"
	}
	return messages.Approve{ID: s.id(), Call: call, Turn: s.anyTurn(), ArgsHash: s.seenHash(arguments), Remember: s.chance(6)}
}

func (s *sim) deny() messages.Deny {
	call, arguments := s.anyCall(projections.CallWaiting)
	if below, ok := s.waitsBelow(messages.WaitApproval); ok {
		call, arguments = below, "{}"
	}
	c := messages.Deny{ID: s.id(), Call: call, Turn: s.anyTurn(), ArgsHash: s.seenHash(arguments), Remember: s.chance(6)}
	if text := s.one("", "not now"); s.chance(2) {
		c.Text = &text
	}
	return c
}

func (s *sim) settles() messages.Decide {
	call, _ := s.anyCall(projections.CallUnknown)
	if below, ok := s.waitsBelow(messages.WaitUnknown); ok {
		call = below
	}
	return messages.Decide{ID: s.id(), Call: call, Outcome: messages.Outcome(s.one("completed", "failed", "retry", "lost")), Result: s.one("", "so it was")}
}

func (s *sim) patch() json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"k%d":%s}`, s.r.IntN(3), s.one("null", "1", `{"a":2}`)))
}
