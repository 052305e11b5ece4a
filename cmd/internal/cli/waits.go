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
	switch {
	case w.Tool == "":
		return "call " + string(w.Call)
	case w.Kind != projections.WaitsForApproval:
		return fmt.Sprintf("call %s of %s: %s", w.Call, w.Tool, w.Reason)
	}
	text := fmt.Sprintf("call %s, %s", w.Call, callText(w.Tool, w.Arguments))
	if w.Flagged != "" {
		text += fmt.Sprintf(", as call %s did before", w.Flagged)
	}
	return text
}

// settle is how a person settles a call that waits.
func (a *app) settle(agent string, w projections.Waiting) string {
	call := quoted(string(w.Call))
	if w.Kind == projections.WaitsForApproval {
		return fmt.Sprintf("`%s approve %s %s` lets it run, `%s deny %s %s` does not", a.started, agent, call, a.started, agent, call)
	}
	return fmt.Sprintf("find out what became of it, then `%s decide %s %s completed --result …` (or failed, or retry)", a.started, agent, call)
}

// standing is what a paused agent waits for and how to go on.
func (a *app) standing(agent string, s projections.AgentStatus, l limit) (what, do string) {
	if len(s.Waiting) == 0 {
		return s.Message, a.goOn(agent, s.Paused, l)
	}
	var texts []string
	for _, w := range s.Waiting {
		texts = append(texts, waitText(w))
	}
	return strings.Join(texts, ";\n"), a.settle(agent, s.Waiting[0])
}

// limit is a limit that a turn has reached, or may.
type limit struct {
	// scope is turn or agent.
	scope  string
	limits messages.Limits
}

// raise is the flag of resume that doubles a limit, with a blank before it;
// empty if the reason of a pause or failure is none.
func (l limit) raise(reason string) string {
	limits, flag, value := l.limits, "max-", ""
	if l.scope == "agent" { // its limits are in its definition
		limits, flag = messages.Limits{}, "agent-max-"
	}
	switch reason {
	case "max_steps":
		flag, value = flag+"steps", twice(limits.MaxSteps, strconv.Itoa(max(2*limits.MaxSteps, limits.MaxSteps+10)))
	case "max_tokens":
		flag, value = flag+"tokens", twice(limits.MaxTokens, strconv.Itoa(2*limits.MaxTokens))
	case "max_cost":
		flag, value = flag+"cost", twice(limits.MaxCost, (2*limits.MaxCost).String())
	case "max_duration":
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

// goOn is how to go on with a turn that is paused for a reason that is no call.
func (a *app) goOn(agent, reason string, l limit) string {
	return fmt.Sprintf("`%s resume %s%s` goes on, `%s abort %s` ends it", a.started, agent, l.raise(reason), a.started, agent)
}

// limitOf is what an agent's status knows of the limit that its turn is paused
// at: the turn's own if there is one that may be it.
func limitOf(s projections.AgentStatus) limit {
	l := limit{scope: "agent"}
	if s.Budget == nil || s.Budget.Turn == nil {
		return l
	}
	turn, left := s.Budget.Turn, false
	switch s.Paused {
	case "max_steps":
		left = turn.Used.Steps < turn.Limits.MaxSteps
	case "max_duration":
		left = turn.Used.Duration < turn.Limits.MaxDuration
	case "max_tokens": // what the next call needs is not known here
		left = turn.Limits.MaxTokens == 0
	case "max_cost":
		left = turn.Limits.MaxCost == 0
	}
	if !left {
		l = limit{limits: turn.Limits}
	}
	return l
}
