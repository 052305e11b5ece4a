package turn_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// settings are the words that change the world around the agent.
var settings = map[string]func(s *stage, args []string){
	// crash: everything but the log is gone; another owner replays it
	"crash": func(s *stage, _ []string) {
		s.state = &turn.State{}
		for _, f := range s.log {
			s.state.Apply(f)
		}
		fmt.Fprintf(&s.out, "replayed %d events; %s\n", s.state.Last, s.state.Phase())
	},
	// takeover EPOCH
	"takeover": func(s *stage, args []string) {
		first := s.state.Last + 1
		events := s.state.Activate(messages.AgentActivated{Epoch: messages.Epoch(number(args[0])), Previous: 1})
		s.append(first, messages.Cause{Type: "takeover"}, events)
		s.decide(turn.Recover{})
	},
	// person [NAME] gives the commands that follow.
	"person": func(s *stage, args []string) { s.env.Person = messages.ClaimedBy(at(args, 0)) },
	"pass": func(s *stage, args []string) {
		d, err := time.ParseDuration(args[0])
		if err != nil {
			s.t.Fatal(err)
		}
		s.env.Now = s.env.Now.Add(d)
		fmt.Fprintf(&s.out, "it is %s\n", clock(s.env.Now))
	},
	// definition [digest=D] [max_steps=N] [max_queue=N] [max_attempts=N] [parallel=N] [max_output=N] [overhead=N] [show_at_most=N]
	// [compact_at=N] [compact_keep=N] [compact_how=summary|window] [compact_model=M]
	// [without=TOOL] [tool_choice=TOOL] [fallbacks=A,B] [hooks=model,end] [at_limit=pause|fail] [max_…=…] [agent_max_…=…]
	"definition": func(s *stage, args []string) {
		_, opts := options(args)
		d := &s.env.Definition
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
			"max_output": func(v string) { d.MaxOutput = outputs(number(v)) },
			"hooks": func(v string) {
				d.ModelHooks, d.EndHooks = strings.Contains(v, "model"), strings.Contains(v, "end")
			},
		} {
			if v, ok := opts[name]; ok {
				yes(v)
			}
		}
		delete(opts, "max_steps") // a turn's stands by itself
		d.TurnLimits = d.TurnLimits.Raise(s.raised(opts, "").Limits())
		d.AgentLimits = d.AgentLimits.Raise(s.raised(opts, "agent_").Limits())
		delete(d.Tools, opts["without"])
	},
	// tool NAME [class=C] [approval=always|asked] [repeats=yes] [expiry=10m] [stop=yes]
	"tool": func(s *stage, args []string) {
		args, opts := options(args)
		tool := s.env.Definition.Tools[args[0]]
		if class, ok := opts["class"]; ok {
			tool.Class = class
		}
		tool.Approval, tool.Repeats, tool.Stop = opts["approval"], opts["repeats"] == "yes", opts["stop"] == "yes"
		tool.Expiry, _ = time.ParseDuration(opts["expiry"])
		s.env.Definition.Tools[args[0]] = tool
	},
	// price MODEL in=X out=Y: for a million tokens
	"price": func(s *stage, args []string) {
		args, opts := options(args)
		if s.env.Definition.Prices == nil {
			s.env.Definition.Prices = make(map[string]messages.Price)
		}
		s.env.Definition.Prices[args[0]] = messages.Price{Input: float64(number(opts["in"])), Output: float64(number(opts["out"]))}
	},
}

// shows are the words that look at the agent.
var shows = map[string]func(s *stage){
	"history": func(s *stage) {
		for _, item := range s.state.History.View() {
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
	"state": func(s *stage) { fmt.Fprintf(&s.out, "  %s\n", s.state.Data.JSON()) },
	"show": func(s *stage) {
		fmt.Fprintf(&s.out, "  %s", s.state.Phase())
		if t := s.state.Turn; t != nil {
			fmt.Fprintf(&s.out, " turn=%s steps=%d of %d", t.ID, t.Steps, t.Limits.MaxSteps)
		}
		if t := s.state.Turn; t != nil {
			for _, q := range t.Unseen {
				fmt.Fprintf(&s.out, " joined=%s", q.ID)
			}
		}
		for _, q := range s.state.Queue {
			fmt.Fprintf(&s.out, " waiting=%s", q.ID)
		}
		if due := s.state.Due(); !due.IsZero() {
			fmt.Fprintf(&s.out, " due=%s", clock(due))
		}
		fmt.Fprintf(&s.out, " owes=%v\n", s.state.Open())
	},
	// used: what counts against the limits of the turn and of the agent
	"used": func(s *stage) {
		if t := s.state.Turn; t != nil {
			used := t.Used
			used.Steps = t.Steps
			fmt.Fprintf(&s.out, "  turn: %s\n", usedText(used))
		}
		fmt.Fprintf(&s.out, "  agent: %s\n", usedText(s.state.Used))
	},
	"remembered": func(s *stage) {
		for _, tool := range slices.Sorted(maps.Keys(s.state.Remembered)) {
			if r := s.state.Remembered[tool]; r.Granted {
				fmt.Fprintf(&s.out, "  %s: granted\n", tool)
			} else {
				fmt.Fprintf(&s.out, "  %s: denied, %q\n", tool, r.Text)
			}
		}
		if len(s.state.Remembered) == 0 {
			s.out.WriteString("  nothing is remembered\n")
		}
	},
}

func usedText(u turn.Used) string {
	return fmt.Sprintf("steps=%d tokens=%d cost=%s ran=%s", u.Steps, u.Tokens, u.Cost, time.Duration(u.Ran)*time.Millisecond)
}
