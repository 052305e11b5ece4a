package turn_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/actors/turn/turntest"
	"github.com/reprise-dev/reprise/messages"
)

// feature is a part of definitions that a life can do without.
type feature int

const (
	withHooks feature = 1 << iota
	withApprovals
	withExpiry
	withRepeats
	withStops
	withFallbacks
	withLimits
	withAgentLimits
	withDurations
	withToolChoice
	withChildren
	withSchedules
	withCompaction
	withChange // of the definition in mid-life
	allFeatures
)

// has reports, once in so many times, that the definition has the feature. The dice
// fall either way, so that a feature taken away does not change the rest.
func (s *sim) has(f feature, in int) bool { return s.chance(in) && s.plain&f == 0 }

// define makes a definition; tools come and go, and so do limits.
func (s *sim) define() {
	def := turn.Definition{
		Digest: fmt.Sprint("d", s.r.IntN(1000)), Instructions: "i1", MaxSteps: 1 + s.r.IntN(5), MaxQueue: 1 + s.r.IntN(4),
		MaxAttempts: 1 + s.r.IntN(3), Parallel: 1 + s.r.IntN(3), Tools: s.tools(),
		Prices:    map[string]messages.Price{"scripted/a": {Input: 1, Output: 4}, "scripted/b": {Input: 2, Output: 2}},
		MaxOutput: turntest.Outputs(s.r.IntN(20)), Overhead: s.r.IntN(40), PauseAtLimit: s.chance(2),
	}
	s.models(&def)
	def.TurnLimits, def.AgentLimits = s.limits(withLimits, 1), s.limits(withAgentLimits, 8)
	if def.AgentLimits != (messages.Limits{}) && s.chance(2) {
		def.AgentLimits.MaxSteps = 5 + s.r.IntN(40)
	}
	if s.has(withToolChoice, 5) {
		def.ToolChoice = s.one("required", "none", "add", "mail", "gone")
	}
	if s.has(withHooks, 3) {
		if !s.chance(4) {
			def.Hooks = append(def.Hooks, turn.BeforeModel)
		}
		if len(def.Hooks) == 0 || s.chance(2) {
			def.Hooks = append(def.Hooks, turn.TurnEnd)
		}
		if s.eager = s.chance(2); s.eager {
			def.Hooks = []turn.Point{turn.BeforeModel, turn.TurnEnd}
		}
	}
	def.Compact = s.compactions()
	s.env.Definition = def
	s.note("    definition %+v", def)
}

func (s *sim) models(def *turn.Definition) {
	names := []string{"scripted/a", "scripted/b", "scripted/c"}
	s.r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	def.Model = names[0]
	if n := s.r.IntN(3); s.has(withFallbacks, 2) {
		def.Fallbacks = names[1 : 1+n]
	}
}

func (s *sim) tools() map[string]turn.Tool {
	tools := map[string]turn.Tool{}
	for _, t := range [...]struct {
		name      string
		onUnknown messages.OnUnknown
	}{{"add", messages.ReadOnly}, {"pay", messages.Rerun}, {"ship", messages.Reconcile}, {"mail", messages.Pause}} {
		tool := turn.Tool{OnUnknown: t.onUnknown}
		if approval := turn.Approval(s.one("always", "asked")); s.has(withApprovals, 3) {
			tool.Approval = approval
		}
		tool.Repeats = s.has(withRepeats, 4)
		if expiry := time.Duration(1+s.r.IntN(20)) * time.Second; s.has(withExpiry, 2) {
			tool.Expiry = expiry
		}
		tool.Stop = s.has(withStops, 8)
		if !s.chance(12) {
			tools[t.name] = tool
		}
	}
	for _, name := range [...]string{"ask", "tell"} {
		tool := turn.Tool{Child: "helper", Detached: name == "tell", MaxChildren: s.r.IntN(4)}
		if s.has(withApprovals, 5) {
			tool.Approval = turn.ApproveAlways
		}
		if tool.Stop = s.has(withStops, 8); s.has(withChildren, 2) {
			tools[name] = tool
		}
	}
	return tools
}

func (s *sim) limits(f feature, scale int) (l messages.Limits) {
	tokens, cost, ran := scale*(20+s.r.IntN(150)), messages.Cost(scale*(20_000+s.r.IntN(300_000))), int64(scale*(1+s.r.IntN(30_000)))
	if s.has(f, 6) {
		l.MaxTokens = tokens
	}
	if s.has(f, 6) {
		l.MaxCost = cost
	}
	if s.has(f, 5) && s.plain&withDurations == 0 {
		l.MaxDuration = ran
	}
	return l
}

// comes is what comes of an effect, this time.
func (s *sim) comes(e turn.Effect) any {
	switch e.Do {
	case turn.CallModel:
		return s.modelComes(e)
	case turn.Wait:
		return e.Due()
	case turn.AskHooks:
		return s.hooksCome(e)
	case turn.Begin:
		return turn.Continue{}
	case turn.Summarize:
		return s.summaryComes(e)
	case turn.Reconcile:
		return turn.ToolReconciled{Call: e.Call, Outcome: messages.Outcome(s.one("", "completed", "retry")), Output: "found"}
	}
	if sends(e) {
		return s.posted(e)
	}
	hooks := s.hooks("after_tool", 8)
	if s.chance(4) {
		return turn.ToolReturned{Call: e.Call, Attempt: e.Attempt, Failed: messages.ToolFailure(s.one("error", "panic", "timeout")), Output: "no", Hooks: hooks}
	}
	return turn.ToolReturned{Call: e.Call, Attempt: e.Attempt, Output: s.one("", "yes"), Hooks: hooks}
}

func (s *sim) modelComes(e turn.Effect) any {
	usage := messages.Usage{Input: s.r.IntN(30), Output: s.r.IntN(12)}
	if !s.tame && s.chance(5) {
		m := turn.ModelErred{
			Call: e.Call, Kind: [...]messages.ModelFailure{"network", "network", "network", "context_length", "bad_request"}[usage.Input%5], Message: "gone", Temporary: s.r.IntN(3) > 0,
			RetryAfter: time.Duration(s.r.IntN(60)) * time.Second, Shown: s.chance(2), Usage: usage,
		}
		m.Unknown = m.Shown || usage.Output%2 == 1
		return m
	}
	o := turn.ModelAnswered{Call: e.Call, Items: s.items(), Usage: usage, Hooks: s.hooks(s.one("after_model", "before_tools"), 10)}
	if usage.Output == 1 { // one of twelve
		o.Finish = messages.FinishLength
	}
	if t := s.live.Turn; t != nil {
		o.Reviewed = map[messages.CallID]turn.Review{}
		for _, item := range turn.UniqueCalls(o.Items, t.CallIDs) {
			if item.Type == messages.ItemCall && !s.chance(4) {
				o.Reviewed[item.CallID] = s.reviews()
			}
		}
	}
	return o
}

func (s *sim) reviews() turn.Review {
	j := turn.Review{Free: s.chance(2), Hooks: s.hooks("before_tool", 6)}
	if s.chance(10) {
		j.Misfit = "a number is missing"
	}
	return j
}

// items are an answer: text, and up to four calls whose ids, names and
// arguments are what models make of them.
func (s *sim) items() (items []messages.Item) {
	if s.r.IntN(2) == 0 {
		items = append(items, messages.Text(messages.RoleAssistant, s.one("well", "so")))
	}
	calls := max(0, s.r.IntN(7)-2)
	if s.tame {
		return items
	}
	for range calls {
		items = append(items, messages.Item{
			Type: messages.ItemCall, CallID: messages.CallID(s.one("c1", "c2", "call_1", "c1_1", "", "")),
			Name:      s.one("add", "pay", "pay", "ship", "mail", "mail", "ask", "ask", "tell", "nosuch", ""),
			Arguments: s.one("{}", "{}", `{"a":1,"b":2}`, `{"b":2, "a":1}`, "{oops", ""),
		})
	}
	return items
}

// hooks are what hooks at a point decide, once in so many times.
func (s *sim) hooks(point string, in int) (list []turn.HookDecision) {
	def := s.env.Definition
	if len(def.Hooks) == 0 || s.tame {
		return nil
	}
	if s.eager {
		in = 2
	}
	for s.chance(in) && len(list) < 3 {
		h := turn.HookDecision{
			Hook: s.one("h1", "h2"), Point: turn.Point(point),
			Do:     turn.HookAction(s.one("", "continue", "rewrite", "skip", "pause", "finish", "failed")),
			Reason: s.one("", "why"), Text: s.one("", "said"), Arguments: s.one("", `{"a":9}`, "{oops"),
		}
		if s.eager && !s.chance(3) { // some answer in the model's place, others are never content
			h.Do, h.Text = turn.HookAction(s.one("skip", "continue")), "said"
		}
		t := s.live.Turn
		if t == nil || h.Do != turn.HookPause || !slices.Contains(t.Hooked, point+"/"+h.Hook) {
			list = append(list, h)
		}
	}
	return list
}

// hooksCome is what the hooks decide that the turn waits for.
func (s *sim) hooksCome(e turn.Effect) turn.HooksAsked {
	o := turn.HooksAsked{Point: e.Point}
	if e.Point == turn.TurnEnd {
		o.Decisions = s.hooks("turn_end", 2)
		return o
	}
	t := s.live.Turn
	if t == nil {
		return o // too late
	}
	if !t.Asked() {
		o.Decisions = s.hooks("turn_start", 6)
	}
	o.Decisions = append(o.Decisions, s.hooks("before_model", 3)...)
	if s.chance(4) {
		o.Request = "rewritten"
	}
	for i := range s.live.Inputs.Steered { // those that were there when the hooks were asked
		if s.chance(4) {
			break
		}
		o.Seen = append(o.Seen, s.live.Inputs.Steered[i].ID)
	}
	return o
}
