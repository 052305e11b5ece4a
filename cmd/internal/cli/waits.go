package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// waitText is a call that waits for a person, for a person.
func waitText(w projections.Waiting) string {
	if agent := w.Agent; agent != "" {
		w.Agent = ""
		if w.Kind == messages.WaitPaused {
			return fmt.Sprintf("%s, which is paused: %s", short(agent), w.Reason)
		}
		return short(agent) + ", " + waitText(w)
	}
	switch {
	case w.Tool == "":
		return "call " + string(w.Call)
	case w.Kind != messages.WaitApproval:
		return fmt.Sprintf("call %s of %s: %s", w.Call, w.Tool, w.Reason)
	}
	text := fmt.Sprintf("call %s, %s", w.Call, callText(w.Tool, w.Arguments))
	if w.Flagged != "" {
		text += fmt.Sprintf(", as call %s did before", w.Flagged)
	}
	return text
}

// settle is how a person settles a call that an agent with this status waits for.
func (a *app) settle(agent string, s projections.AgentStatus, w projections.Waiting) string {
	if w.Kind == messages.WaitPaused {
		return a.goOn(short(w.Agent), "", limit{})
	}
	call, turn := quoted(string(w.Call)), ""
	if w.Turn != "" {
		turn = " --turn " + quoted(string(w.Turn))
	}
	if w.Kind == messages.WaitApproval {
		call += turn
		return fmt.Sprintf("`%s approve %s %s` lets it run, `%s deny %s %s` does not", a.started, agent, call, a.started, agent, call)
	}
	if s.Fork != nil && !s.Fork.Tools {
		return fmt.Sprintf("`%s decide %s %s completed%s --result …` (or failed) gives it a result; to run it, `%s use-tools %s`, then `%s decide %s %s retry%s`", a.started, agent, call, turn, a.started, agent, a.started, agent, call, turn)
	}
	return fmt.Sprintf("find out what became of it, then `%s decide %s %s completed%s --result …` (or failed, or retry)", a.started, agent, call, turn)
}

// besides reports whether a paused turn waits for something that is no call: a
// limit that must be raised, or a hook.
func besides(s projections.AgentStatus) bool {
	return s.Limit != nil || s.Paused != "" && s.Paused != projections.PausedApproval && s.Paused != projections.PausedUnknown && s.Paused != projections.PausedChild
}

// short is an address as a person writes it.
func short(agent string) string {
	if id, err := messages.ParseAgentID(agent); err == nil {
		return id.String()
	}
	return agent
}

// standing is what a paused agent waits for and how to continue: calls, and what
// else there is. l is what is known of the turn's limits where the status is not.
func (a *app) standing(agent string, s projections.AgentStatus, l limit) (what, do string) {
	texts, ways := each(s.Waiting, waitText), []string(nil)
	if len(s.Waiting) > 0 {
		ways = append(ways, a.settle(agent, s, s.Waiting[0]))
	}
	if besides(s) || len(s.Waiting) == 0 {
		_, text, way := a.besidesText(agent, s, l)
		if text != "" {
			texts = append(texts, text)
		}
		ways = append(ways, way)
	}
	return strings.Join(texts, ";\n"), strings.Join(ways, "; ")
}

// besidesText is why a turn is paused besides calls, in a word and in more, and
// how to continue.
func (a *app) besidesText(agent string, s projections.AgentStatus, l limit) (reason, what, do string) {
	reason, what = s.Paused, s.Message
	if s.Limit != nil {
		l, reason = limitOf(s), string(s.Limit.Limit)
		if reason != s.Paused { // the message is about something else
			what = s.Limit.Message
		}
	}
	return reason, what, a.goOn(agent, reason, l)
}

// limit is a limit that a turn has reached, or may.
type limit struct {
	scope messages.Scope
	// limits are those of the scope. What is in the agent's definition alone is not
	// known here, and zero.
	limits messages.Limits
}

// raise is the flag of resume that doubles a limit, with a blank before it;
// empty if the reason of a pause or failure is none.
func (l limit) raise(reason string) string {
	limits, flag, value := l.limits, "max-", ""
	if l.scope == messages.ScopeAgent {
		flag = "agent-max-"
	}
	switch messages.Limit(reason) {
	case messages.LimitSteps:
		flag, value = flag+"steps", twice(limits.MaxSteps, strconv.Itoa(max(2*limits.MaxSteps, limits.MaxSteps+10)))
	case messages.LimitTokens:
		flag, value = flag+"tokens", twice(limits.MaxTokens, strconv.Itoa(2*limits.MaxTokens))
	case messages.LimitCost:
		flag, value = flag+"cost", twice(limits.MaxCost, (2*limits.MaxCost).String())
	case messages.LimitDuration:
		d := time.Duration(limits.MaxDuration) * time.Millisecond
		flag, value = flag+"duration", twice(d, (2*d).String())
	default:
		return ""
	}
	return " --" + flag + " " + value
}

// twice is the doubled limit, or a blank to fill in where it is not known.
func twice[N comparable](known N, doubled string) string {
	if none := *new(N); known == none {
		return "…"
	}
	return doubled
}

// goOn is how to continue with a turn that is paused for a reason that is no call.
func (a *app) goOn(agent, reason string, l limit) string {
	return fmt.Sprintf("`%s resume %s%s` continues it, `%s abort %s` ends it", a.started, agent, l.raise(reason), a.started, agent)
}

// limitOf is the limit that an agent's turn has reached.
func limitOf(s projections.AgentStatus) limit {
	l := limit{scope: s.Limit.Scope}
	switch {
	case s.Budget == nil:
	case l.scope == messages.ScopeAgent:
		l.limits = atLeast(s.Budget.Agent.Limits, s.Budget.Agent.Used)
	case s.Budget.Turn != nil:
		l.limits = atLeast(s.Budget.Turn.Limits, s.Budget.Turn.Used)
	}
	return l
}

// atLeast is the limits that are known, and what was used where that is more:
// one answer may go far beyond its limit.
func atLeast(l messages.Limits, u projections.Use) messages.Limits {
	if l.MaxSteps != 0 {
		l.MaxSteps = max(l.MaxSteps, u.Steps)
	}
	if l.MaxTokens != 0 {
		l.MaxTokens = max(l.MaxTokens, u.Tokens)
	}
	if l.MaxCost != 0 {
		l.MaxCost = max(l.MaxCost, u.Cost)
	}
	if l.MaxDuration != 0 {
		l.MaxDuration = max(l.MaxDuration, u.Duration)
	}
	return l
}
