package turntest

import (
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// The words of a story by what they do: commands make a command or an outcome,
// settings change the world around the agent, shows print the agent.
var (
	commands = joined(ownCommands, childCommands, forkCommands)
	settings = joined(ownSettings, childSettings)
	shows    = joined(ownShows, childShows, forkShows)
)

func joined[V any](first map[string]V, others ...map[string]V) map[string]V {
	all := maps.Clone(first)
	for _, other := range others {
		maps.Copy(all, other)
	}
	return all
}

// ownCommands are those about the agent itself.
var ownCommands = map[string]func(s *Stage, args []string) any{
	// input ID TEXT [policy=steer] [deadline=-1s] [max_steps=N] [tool_choice=TOOL] [in=D] [at=TIME] [cron=LINE] [tz=ZONE] [name=N]
	"input": func(s *Stage, args []string) any {
		args, opts := options(args)
		in := messages.Input{ID: args[0], Content: messages.TextContent(at(args, 1)), Policy: messages.Policy(opts["policy"]),
			Options: messages.InputOptions{MaxSteps: number(opts["max_steps"]), ToolChoice: opts["tool_choice"]}}
		if d, err := time.ParseDuration(opts["deadline"]); err == nil {
			deadline := s.Env.Now.Add(d)
			in.Deadline = &deadline
		}
		in.Schedule = s.schedule(opts)
		return in
	},
	// interrupt ID ["reason"] [turn=T]
	"interrupt": func(_ *Stage, args []string) any {
		args, opts := options(args)
		return messages.Interrupt{ID: args[0], Reason: at(args, 1), Turn: messages.TurnID(opts["turn"])}
	},
	"abort": func(_ *Stage, args []string) any {
		args, opts := options(args)
		return messages.Abort{ID: args[0], Reason: at(args, 1), Turn: messages.TurnID(opts["turn"])}
	},
	// clear ID ["reason"]
	"clear": func(_ *Stage, args []string) any { return messages.Clear{ID: args[0], Reason: at(args, 1)} },
	// delete ID ["reason"] [last=N] [ends=yes]: with ends only what runs and waits is ended
	"delete": func(s *Stage, args []string) any {
		args, opts := options(args)
		if s.Env.Upto = &(messages.Extent{Blobs: 7}); opts["ends"] == "yes" {
			s.Env.Upto = nil
		}
		return messages.Delete{ID: args[0], Reason: at(args, 1), Last: messages.EventNumber(number(opts["last"]))}
	},
	// cancel ID all|input INPUT|timer TIMER ["reason"]
	"cancel": func(_ *Stage, args []string) any {
		switch args[1] {
		case "all":
			return messages.Cancel{ID: args[0], All: true, Reason: at(args, 2)}
		case "timer":
			return messages.Cancel{ID: args[0], Timer: args[2], Reason: at(args, 3)}
		}
		return messages.Cancel{ID: args[0], Input: args[2], Reason: at(args, 3)}
	},
	// schedule_due TIMER
	"schedule_due": func(s *Stage, args []string) any {
		due := turn.TimerDue{Timer: args[0], At: s.Env.Now}
		for _, sc := range s.State.Timers.Scheduled {
			if sc.Timer == args[0] {
				due.At = sc.At
			}
		}
		return due
	},
	// compact ID ["reason"] [keep=N] [how=summary|window]
	"compact": func(_ *Stage, args []string) any {
		args, opts := options(args)
		return messages.Compact{ID: args[0], Keep: number(opts["keep"]), How: opts["how"], Reason: at(args, 1)}
	},
	// summary TEXT [call=S] [usage=IN+OUT]
	"summary": func(s *Stage, args []string) any {
		args, opts := options(args)
		return turn.Summarized{Call: s.summary(opts), Text: args[0], Usage: usage(opts)}
	},
	// summary_errs KIND MESSAGE [temporary=yes] [unknown=yes] [call=S]
	"summary_errs": func(s *Stage, args []string) any {
		args, opts := options(args)
		return turn.ModelErred{Call: s.summary(opts), Kind: messages.ModelFailure(args[0]), Message: at(args, 1),
			Temporary: opts["temporary"] == "yes", Unknown: opts["unknown"] == "yes"}
	},
	// approve ID CALL ["reason"] [saw=ARGUMENTS] [remember=yes]
	"approve": func(_ *Stage, args []string) any {
		args, opts := options(args)
		return messages.Approve{ID: args[0], Call: messages.CallID(args[1]), Reason: at(args, 2), ArgsHash: saw(opts), Remember: opts["remember"] == "yes"}
	},
	// deny ID CALL [TEXT] [saw=ARGUMENTS] [remember=yes]
	"deny": func(_ *Stage, args []string) any {
		args, opts := options(args)
		c := messages.Deny{ID: args[0], Call: messages.CallID(args[1]), ArgsHash: saw(opts), Remember: opts["remember"] == "yes"}
		if len(args) > 2 {
			c.Text = &args[2]
		}
		return c
	},
	// forget ID TOOL
	"forget": func(_ *Stage, args []string) any { return messages.Forget{ID: args[0], Tool: args[1]} },
	// resume ID ["reason"] [turn=T] [max_steps=N] [max_tokens=N] [max_cost=X] [max_duration=D] [agent_max_…=…]
	"resume": func(s *Stage, args []string) any {
		args, opts := options(args)
		return messages.Resume{ID: args[0], Reason: at(args, 1), Turn: messages.TurnID(opts["turn"]),
			LimitOverrides: s.raised(opts, ""), AgentLimits: s.raised(opts, "agent_")}
	},
	// decide ID CALL completed|failed|retry [RESULT]
	"decide": func(_ *Stage, args []string) any {
		return messages.Decide{ID: args[0], Call: messages.CallID(args[1]), Outcome: messages.Outcome(args[2]), Result: at(args, 3)}
	},
	"set_state": func(_ *Stage, args []string) any {
		return messages.SetState{ID: args[0], Patch: json.RawMessage(args[1])}
	},
	// answers [TEXT] [blob=SIZE] [finish=WHY] [refusal=TEXT] [HOOK]… [asks TOOL ID ARGUMENTS [free] [misfit=WHY] [HOOK]…]… [call=M] [usage=IN+OUT]
	//
	// A hook before the first call is asked after the model, one behind a call
	// about that call, unless it names another point.
	"answers": func(s *Stage, args []string) any {
		o := turn.ModelAnswered{Reviewed: make(map[messages.CallID]turn.Review)}
		opts := make(map[string]string)
		var last messages.CallID
		for len(args) > 0 {
			word := args[0]
			args = args[1:]
			key, value, _ := strings.Cut(word, "=")
			j := o.Reviewed[last]
			switch {
			case word == "asks":
				last = messages.CallID(at(args, 1))
				o.Items = append(o.Items, messages.Item{Type: messages.ItemCall, Name: at(args, 0), CallID: last, Arguments: at(args, 2)})
				args = args[min(3, len(args)):]
				continue
			case word == "hook" && last == "":
				var h turn.HookDecision
				h, args = hook(args, messages.PointAfterModel)
				o.Hooks = append(o.Hooks, h)
			case word == "hook":
				var h turn.HookDecision
				h, args = hook(args, messages.PointBeforeTool)
				j.Hooks = append(j.Hooks, h)
			case word == "free":
				j.Free = true
			case key == "misfit":
				j.Misfit = value
			case key == "call" || key == "usage":
				opts[key] = value
			case key == "finish":
				o.Finish = value
			case key == "refusal":
				o.Items = append(o.Items, messages.Item{Type: messages.ItemRefusal, Content: messages.TextContent(value)})
			case key == "blob":
				opts[key] = value
				answer := &o.Items[len(o.Items)-1].Content[0]
				o.Blob = blob(opts, answer.Text)
				answer.Text, answer.Blob = "", o.Blob
			default:
				o.Items = append(o.Items, messages.Text(messages.RoleAssistant, word))
			}
			if last != "" {
				o.Reviewed[last] = j
			}
		}
		o.Call, o.Usage = s.awaited(opts), usage(opts)
		return o
	},
	// errs KIND MESSAGE [temporary=yes] [after=30s] [begun=yes] [shown=yes] [ours=yes] [call=M] [usage=IN+OUT]
	"errs": func(s *Stage, args []string) any {
		args, opts := options(args)
		after, _ := time.ParseDuration(opts["after"])
		return turn.ModelErred{Call: s.awaited(opts), Kind: messages.ModelFailure(args[0]), Message: at(args, 1), Temporary: opts["temporary"] == "yes", RetryAfter: after,
			Unknown: opts["begun"] == "yes" || opts["shown"] == "yes", Shown: opts["shown"] == "yes", Ours: opts["ours"] == "yes", Usage: usage(opts)}
	},
	"retry_due": func(s *Stage, args []string) any {
		_, opts := options(args)
		return s.timerDue("retry:" + string(s.awaited(opts)))
	},
	// timer_due TIMER
	"timer_due": func(s *Stage, args []string) any { return s.timerDue(args[0]) },
	// hooks before_model|turn_end [HOOK]… [request=DIGEST]
	"hooks": func(s *Stage, args []string) any {
		o := turn.HooksAsked{Point: turn.Point(args[0])}
		for args = args[1:]; len(args) > 0; {
			word := args[0]
			args = args[1:]
			if request, ok := strings.CutPrefix(word, "request="); ok {
				o.Request = request
				continue
			}
			if word != "hook" {
				s.t.Fatalf("hooks: %q is no hook", word)
			}
			var h turn.HookDecision
			h, args = hook(args, o.Point)
			o.Decisions = append(o.Decisions, h)
		}
		return o
	},
	// returns CALL RESULT [attempt=N] [blob=SIZE] [HOOK]…
	"returns": func(s *Stage, args []string) any {
		args, hooks := hooksAfter(args)
		args, opts := options(args)
		o := turn.ToolReturned{Call: messages.CallID(args[0]), Attempt: s.attempt(args[0], opts), Output: at(args, 1), Hooks: hooks}
		if o.Blob = blob(opts, o.Output); o.Blob != nil {
			o.Output = ""
		}
		return o
	},
	// breaks CALL KIND MESSAGE [attempt=N] [HOOK]…
	"breaks": func(s *Stage, args []string) any {
		args, hooks := hooksAfter(args)
		args, opts := options(args)
		return turn.ToolReturned{Call: messages.CallID(args[0]), Attempt: s.attempt(args[0], opts), Failed: messages.ToolFailure(args[1]), Output: at(args, 2), Hooks: hooks}
	},
	// reconciled CALL done|notdone|unsure [RESULT]
	"reconciled": func(_ *Stage, args []string) any {
		found := map[string]messages.Outcome{"done": messages.OutcomeCompleted, "notdone": messages.OutcomeRetry}
		return turn.ToolReconciled{Call: messages.CallID(args[0]), Outcome: found[args[1]], Output: at(args, 2)}
	},
	"recover": func(*Stage, []string) any { return turn.Recover{} },
}
