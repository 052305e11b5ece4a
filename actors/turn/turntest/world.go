package turntest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// ownSettings are those about the agent itself.
var ownSettings = map[string]func(s *Stage, args []string){
	// crash: everything but the log is gone; another owner replays it
	"crash": func(s *Stage, _ []string) {
		s.State = &turn.State{}
		for _, f := range s.Log {
			s.State.Apply(f)
		}
		fmt.Fprintf(&s.out, "replayed %d events; %s\n", s.State.Last, s.State.Phase())
	},
	// takeover EPOCH
	"takeover": func(s *Stage, args []string) {
		first := s.State.Last + 1
		events := s.State.Activate(messages.AgentActivated{Epoch: messages.Epoch(number(args[0])), Previous: 1})
		s.append(first, messages.Cause{Type: messages.CauseTakeover}, events)
		s.Decide(turn.Recover{})
	},
	// person [NAME] sends the commands that follow.
	"person": func(s *Stage, args []string) { s.Env.Person = messages.ClaimedBy(at(args, 0)) },
	"pass": func(s *Stage, args []string) {
		d, err := time.ParseDuration(args[0])
		if err != nil {
			s.t.Fatal(err)
		}
		s.Env.Now = s.Env.Now.Add(d)
		fmt.Fprintf(&s.out, "it is %s\n", clock(s.Env.Now))
	},
	// definition [digest=D] [max_steps=N] [max_queue=N] [max_attempts=N] [parallel=N] [max_output=N] [overhead=N] [show_at_most=N]
	// [compact_at=N] [compact_keep=N] [compact_how=summary|window] [compact_model=M]
	// [without=TOOL] [tool_choice=TOOL] [fallbacks=A,B] [hooks=model,end] [at_limit=pause|fail] [max_…=…] [agent_max_…=…]
	"definition": func(s *Stage, args []string) {
		_, opts := options(args)
		d := &s.Env.Definition
		for name, limit := range map[string]*int{"max_steps": &d.MaxSteps, "max_queue": &d.MaxQueue, "max_attempts": &d.MaxAttempts,
			"parallel": &d.Parallel, "overhead": &d.Overhead,
			"compact_at": &d.Compact.AtTokens, "compact_keep": &d.Compact.Keep, "show_at_most": &d.ShowAtMost} {
			if v, ok := opts[name]; ok {
				*limit = number(v)
			}
		}
		for name, text := range map[string]*string{"digest": &d.Digest, "tool_choice": &d.ToolChoice, "compact_how": &d.Compact.How, "compact_model": &d.Compact.Model} {
			if v, ok := opts[name]; ok {
				*text = v
			}
		}
		for name, yes := range map[string]func(string){
			"at_limit":   func(v string) { d.PauseAtLimit = v == "pause" },
			"fallbacks":  func(v string) { d.Fallbacks = strings.Split(v, ",") },
			"max_output": func(v string) { d.MaxOutput = Outputs(number(v)) },
			"hooks": func(v string) {
				d.Hooks = nil
				for word, point := range map[string]turn.Point{"model": turn.BeforeModel, "end": turn.TurnEnd} {
					if strings.Contains(v, word) {
						d.Hooks = append(d.Hooks, point)
					}
				}
			},
		} {
			if v, ok := opts[name]; ok {
				yes(v)
			}
		}
		delete(opts, "max_steps") // a turn's stands by itself
		d.TurnLimits = d.TurnLimits.Override(s.raised(opts, "").Limits())
		d.AgentLimits = d.AgentLimits.Override(s.raised(opts, "agent_").Limits())
		delete(d.Tools, opts["without"])
	},
	// tool NAME [on_unknown=U] [approval=always|asked] [repeats=yes] [expiry=10m] [stop=yes]
	"tool": func(s *Stage, args []string) {
		args, opts := options(args)
		tool := s.Env.Definition.Tools[args[0]]
		if u, ok := opts["on_unknown"]; ok {
			tool.OnUnknown = messages.OnUnknown(u)
		}
		tool.Approval, tool.Repeats, tool.Stop = turn.Approval(opts["approval"]), opts["repeats"] == "yes", opts["stop"] == "yes"
		tool.Expiry, _ = time.ParseDuration(opts["expiry"])
		s.Env.Definition.Tools[args[0]] = tool
	},
	// price MODEL in=X out=Y: for a million tokens
	"price": func(s *Stage, args []string) {
		args, opts := options(args)
		if s.Env.Definition.Prices == nil {
			s.Env.Definition.Prices = make(map[string]messages.Price)
		}
		s.Env.Definition.Prices[args[0]] = messages.Price{Input: float64(number(opts["in"])), Output: float64(number(opts["out"]))}
	},
}

// ownShows are those about the agent itself.
var ownShows = map[string]func(s *Stage){
	"history": func(s *Stage) {
		for _, item := range s.State.History.View() {
			text := item.Content.Text()
			switch item.Type {
			case messages.ItemCall:
				text = fmt.Sprintf("calls %s as %s with %s", item.Name, item.CallID, item.Arguments)
			case messages.ItemCallOutput:
				text = fmt.Sprintf("%s gave %q", item.CallID, item.Output)
			default:
				text = fmt.Sprintf("%s: %s", item.Role, text)
			}
			if item.Status != "" {
				text += " [" + string(item.Status) + "]"
			}
			fmt.Fprintf(&s.out, "  | %s\n", text)
		}
	},
	"state": func(s *Stage) { fmt.Fprintf(&s.out, "  %s\n", s.State.Data.JSON()) },
	"show": func(s *Stage) {
		fmt.Fprintf(&s.out, "  %s", s.State.Phase())
		if t := s.State.Turn; t != nil {
			fmt.Fprintf(&s.out, " turn=%s steps=%d of %d", t.ID, t.Steps, t.Limits.MaxSteps)
		}
		for _, q := range s.State.Inputs.Steered {
			fmt.Fprintf(&s.out, " steered=%s", q.ID)
		}
		for _, q := range s.State.Inputs.Queued {
			fmt.Fprintf(&s.out, " waiting=%s", q.ID)
		}
		if due := s.State.Due(); !due.IsZero() {
			fmt.Fprintf(&s.out, " due=%s", clock(due))
		}
		fmt.Fprintf(&s.out, " owes=%v\n", s.State.Open())
	},
	// used: what counts against the limits of the turn and of the agent
	"used": func(s *Stage) {
		if t := s.State.Turn; t != nil {
			used := t.Used
			used.Steps = t.Steps
			fmt.Fprintf(&s.out, "  turn: %s\n", usedText(used))
		}
		fmt.Fprintf(&s.out, "  agent: %s\n", usedText(s.State.Used))
	},
	"remembered": func(s *Stage) {
		list := slices.Clone(s.State.Decisions.List)
		slices.SortFunc(list, func(a, b projections.Decision) int { return strings.Compare(a.Tool, b.Tool) })
		for _, r := range list {
			if r.Decision == "granted" {
				fmt.Fprintf(&s.out, "  %s: granted\n", r.Tool)
			} else {
				fmt.Fprintf(&s.out, "  %s: denied, %q\n", r.Tool, r.Text)
			}
		}
		if len(list) == 0 {
			s.out.WriteString("  nothing is remembered\n")
		}
	},
}

func usedText(u projections.Use) string {
	return fmt.Sprintf("steps=%d tokens=%d cost=%s ran=%s", u.Steps, u.Tokens, u.Cost, time.Duration(u.Duration)*time.Millisecond)
}

// Outputs returns how many tokens each model of the tests may answer with: the
// same for all.
func Outputs(tokens int) map[string]int {
	most := make(map[string]int)
	for _, m := range []string{"scripted/a", "scripted/b", "scripted/c", "scripted/m", "other/a", "other/b", "other/c", "other/free"} {
		most[m] = tokens
	}
	return most
}
