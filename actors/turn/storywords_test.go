package turn_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// options takes the key=value words out of args.
func options(args []string) (rest []string, opts map[string]string) {
	opts = make(map[string]string)
	for _, a := range args {
		key, value, ok := strings.Cut(a, "=")
		if ok && !strings.ContainsAny(key, " {\"") {
			opts[key] = value
		} else {
			rest = append(rest, a)
		}
	}
	return rest, opts
}

func at(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// awaited is the model call under way, or the one that is named.
func (s *stage) awaited(opts map[string]string) messages.CallID {
	if call, ok := opts["call"]; ok {
		return messages.CallID(call)
	}
	if s.state.Turn == nil || s.state.Turn.Model == nil {
		s.t.Fatal("no model call is under way")
	}
	return s.state.Turn.Model.ID
}

// summary is the call of the summary under way, or the one that is named.
func (s *stage) summary(opts map[string]string) messages.CallID {
	if call, ok := opts["call"]; ok {
		return messages.CallID(call)
	}
	if s.state.Summary == nil {
		return "none"
	}
	return s.state.Summary.Call
}

// attempt is the newest attempt of the call, or the one that is named.
func (s *stage) attempt(call string, opts map[string]string) int {
	if n, ok := opts["attempt"]; ok {
		return number(n)
	}
	if s.state.Turn != nil {
		for _, c := range s.state.Turn.Calls {
			if string(c.ID) == call {
				return c.Attempt
			}
		}
	}
	return 1
}

// saw is the hash of the arguments that a person has seen.
func saw(opts map[string]string) string {
	if arguments, ok := opts["saw"]; ok {
		return messages.HashArguments(arguments)
	}
	return ""
}

// usage reads usage=IN+OUT.
func usage(opts map[string]string) messages.Usage {
	in, out, _ := strings.Cut(opts["usage"], "+")
	return messages.Usage{Input: number(in), Output: number(out)}
}

// blob is the one of blob=SIZE that holds text; nil without that.
func blob(opts map[string]string, text string) *messages.Blob {
	size, ok := opts["blob"]
	if !ok {
		return nil
	}
	return &messages.Blob{SHA256: messages.DigestOf([]byte(text)), Size: int64(number(size))}
}

// raised reads limits; prefix stands before their names.
func (s *stage) raised(opts map[string]string, prefix string) messages.Raised {
	r := messages.Raised{MaxSteps: number(opts[prefix+"max_steps"]), MaxTokens: number(opts[prefix+"max_tokens"])}
	var err error
	if v, ok := opts[prefix+"max_cost"]; ok {
		if r.MaxCost, err = strconv.ParseFloat(v, 64); err != nil {
			s.t.Fatal(err)
		}
	}
	if v, ok := opts[prefix+"max_duration"]; ok {
		d, err := time.ParseDuration(v)
		if err != nil {
			s.t.Fatal(err)
		}
		r.MaxDuration = messages.Span(d)
	}
	return r
}

// schedule reads when an input is to come.
func (s *stage) schedule(opts map[string]string) messages.Schedule {
	sc := messages.Schedule{Cron: opts["cron"], Zone: opts["tz"], Name: opts["name"]}
	if v, ok := opts["in"]; ok {
		d, err := time.ParseDuration(v)
		if err != nil {
			s.t.Fatal(err)
		}
		sc.In = messages.Span(d)
	}
	if v, ok := opts["at"]; ok {
		t, err := time.Parse(time.RFC3339, v)
		if err != nil {
			s.t.Fatal(err)
		}
		sc.At = &t
	}
	return sc
}

// hook reads what stands behind the word hook: its name, what it wants, and
// [TEXT] [because=WHY] [arguments=JSON] [point=P]. It gives the other words back.
func hook(args []string, point string) (turn.HookDecision, []string) {
	h := turn.HookDecision{Hook: at(args, 0), Do: turn.HookAction(at(args, 1)), Point: point}
	args = args[2:]
	for len(args) > 0 {
		key, value, isOption := strings.Cut(args[0], "=")
		switch {
		case args[0] == "hook", args[0] == "asks", args[0] == "free":
			return h, args
		case isOption && key == "because":
			h.Reason = value
		case isOption && key == "arguments":
			h.Arguments = value
		case isOption && key == "point":
			h.Point = value
		case isOption && !strings.Contains(key, " "):
			return h, args
		default:
			h.Text = args[0]
		}
		args = args[1:]
	}
	return h, nil
}

// hooksAfter takes the hooks about a result out of args.
func hooksAfter(args []string) (rest []string, hooks []turn.HookDecision) {
	i := slices.Index(args, "hook")
	if i < 0 {
		return args, nil
	}
	rest = slices.Clone(args[:i])
	for args = args[i:]; len(args) > 0; {
		if args[0] != "hook" {
			rest, args = append(rest, args[0]), args[1:]
			continue
		}
		var h turn.HookDecision
		h, args = hook(args[1:], "after_tool")
		hooks = append(hooks, h)
	}
	return rest, hooks
}

// commands are the words that make a command or an outcome.
var commands = map[string]func(s *stage, args []string) any{
	// input ID TEXT [policy=join] [deadline=-1s] [max_steps=N] [tool_choice=TOOL] [in=D] [at=TIME] [cron=LINE] [tz=ZONE] [name=N] [known=N]
	"input": func(s *stage, args []string) any {
		args, opts := options(args)
		in := messages.Input{ID: args[0], Content: messages.TextContent(at(args, 1)), Policy: messages.Policy(opts["policy"]),
			Options: messages.InputOptions{MaxSteps: number(opts["max_steps"]), ToolChoice: opts["tool_choice"]}}
		if d, err := time.ParseDuration(opts["deadline"]); err == nil {
			deadline := s.env.Now.Add(d)
			in.Deadline = &deadline
		}
		in.Schedule = s.schedule(opts)
		if s.env.Known = nil; opts["known"] != "" {
			known := messages.EventNumber(number(opts["known"]))
			s.env.Known = &known
		}
		return in
	},
	// interrupt ID ["reason"] [turn=T]
	"interrupt": func(_ *stage, args []string) any {
		args, opts := options(args)
		return messages.Interrupt{ID: args[0], Reason: at(args, 1), Turn: messages.TurnID(opts["turn"])}
	},
	"abort": func(_ *stage, args []string) any {
		args, opts := options(args)
		return messages.Abort{ID: args[0], Reason: at(args, 1), Turn: messages.TurnID(opts["turn"])}
	},
	// clear ID ["reason"]
	"clear": func(_ *stage, args []string) any { return messages.Clear{ID: args[0], Reason: at(args, 1)} },
	// delete ID ["reason"] [last=N]
	"delete": func(_ *stage, args []string) any {
		args, opts := options(args)
		return messages.Delete{ID: args[0], Reason: at(args, 1), Last: messages.EventNumber(number(opts["last"]))}
	},
	// buries: the frame before the tombstone is in the log; purged: nothing is left
	"buries": func(_ *stage, _ []string) any { return turn.BurialDue{} },
	"purged": func(_ *stage, _ []string) any { return turn.Purged{Holdings: messages.Holdings{Frames: 7}} },
	// withdraw ID INPUT|all ["reason"]
	"withdraw": func(_ *stage, args []string) any {
		if args[1] == "all" {
			return messages.Withdraw{ID: args[0], All: true, Reason: at(args, 2)}
		}
		return messages.Withdraw{ID: args[0], Input: args[1], Reason: at(args, 2)}
	},
	// cancel ID TIMER|all ["reason"]
	"cancel": func(_ *stage, args []string) any {
		if args[1] == "all" {
			return messages.Cancel{ID: args[0], All: true, Reason: at(args, 2)}
		}
		return messages.Cancel{ID: args[0], Timer: args[1], Reason: at(args, 2)}
	},
	// schedule_due TIMER
	"schedule_due": func(s *stage, args []string) any {
		due := turn.ScheduleDue{Timer: args[0], At: s.env.Now}
		for _, sc := range s.state.Schedules {
			if sc.Timer == args[0] {
				due.At = sc.At
			}
		}
		return due
	},
	// compact ID ["reason"] [keep=N] [how=summary|window]
	"compact": func(_ *stage, args []string) any {
		args, opts := options(args)
		return messages.Compact{ID: args[0], Keep: number(opts["keep"]), How: opts["how"], Reason: at(args, 1)}
	},
	// summary TEXT [call=S] [usage=IN+OUT]
	"summary": func(s *stage, args []string) any {
		args, opts := options(args)
		return turn.Summarized{Call: s.summary(opts), Text: args[0], Usage: usage(opts)}
	},
	// summary_errs KIND MESSAGE [temporary=yes] [unknown=yes] [call=S]
	"summary_errs": func(s *stage, args []string) any {
		args, opts := options(args)
		return turn.SummaryErred{Call: s.summary(opts), Kind: args[0], Message: at(args, 1),
			Temporary: opts["temporary"] == "yes", Unknown: opts["unknown"] == "yes"}
	},
	// approve ID CALL ["reason"] [saw=ARGUMENTS] [remember=yes]
	"approve": func(_ *stage, args []string) any {
		args, opts := options(args)
		return messages.Approve{ID: args[0], Call: messages.CallID(args[1]), Reason: at(args, 2), ArgsHash: saw(opts), Remember: opts["remember"] == "yes"}
	},
	// deny ID CALL [TEXT] [saw=ARGUMENTS] [remember=yes]
	"deny": func(_ *stage, args []string) any {
		args, opts := options(args)
		c := messages.Deny{ID: args[0], Call: messages.CallID(args[1]), ArgsHash: saw(opts), Remember: opts["remember"] == "yes"}
		if len(args) > 2 {
			c.Text = &args[2]
		}
		return c
	},
	// forget ID TOOL
	"forget": func(_ *stage, args []string) any { return messages.Forget{ID: args[0], Tool: args[1]} },
	// resume ID ["reason"] [turn=T] [max_steps=N] [max_tokens=N] [max_cost=X] [max_duration=D] [agent_max_…=…]
	"resume": func(s *stage, args []string) any {
		args, opts := options(args)
		return messages.Resume{ID: args[0], Reason: at(args, 1), Turn: messages.TurnID(opts["turn"]),
			Raised: s.raised(opts, ""), AgentLimits: s.raised(opts, "agent_")}
	},
	// decide ID CALL completed|failed|retry [RESULT]
	"decide": func(_ *stage, args []string) any {
		return messages.Decide{ID: args[0], Call: messages.CallID(args[1]), Outcome: messages.Outcome(args[2]), Result: at(args, 3)}
	},
	"set_state": func(_ *stage, args []string) any {
		return messages.SetState{ID: args[0], Patch: json.RawMessage(args[1])}
	},
	// answers [TEXT] [blob=SIZE] [finish=WHY] [refusal=TEXT] [HOOK]… [asks TOOL ID ARGUMENTS [free] [misfit=WHY] [HOOK]…]… [call=M] [usage=IN+OUT]
	//
	// A hook before the first call is asked after the model, one behind a call
	// about that call, unless it names another point.
	"answers": func(s *stage, args []string) any {
		o := turn.ModelAnswered{Judged: make(map[messages.CallID]turn.Judgement)}
		opts := make(map[string]string)
		var last messages.CallID
		for len(args) > 0 {
			word := args[0]
			args = args[1:]
			key, value, _ := strings.Cut(word, "=")
			j := o.Judged[last]
			switch {
			case word == "asks":
				last = messages.CallID(at(args, 1))
				o.Items = append(o.Items, messages.Item{Type: messages.ItemCall, Name: at(args, 0), CallID: last, Arguments: at(args, 2)})
				args = args[min(3, len(args)):]
				continue
			case word == "hook" && last == "":
				var h turn.HookDecision
				h, args = hook(args, "after_model")
				o.Hooks = append(o.Hooks, h)
			case word == "hook":
				var h turn.HookDecision
				h, args = hook(args, "before_tool")
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
				said := &o.Items[len(o.Items)-1].Content[0]
				o.Blob = blob(opts, said.Text)
				said.Text, said.Blob = "", o.Blob
			default:
				o.Items = append(o.Items, messages.Text(messages.RoleAssistant, word))
			}
			if last != "" {
				o.Judged[last] = j
			}
		}
		o.Call, o.Usage = s.awaited(opts), usage(opts)
		return o
	},
	// errs KIND MESSAGE [temporary=yes] [after=30s] [begun=yes] [shown=yes] [ours=yes] [call=M] [usage=IN+OUT]
	"errs": func(s *stage, args []string) any {
		args, opts := options(args)
		after, _ := time.ParseDuration(opts["after"])
		return turn.ModelErred{Call: s.awaited(opts), Kind: args[0], Message: at(args, 1), Temporary: opts["temporary"] == "yes", RetryAfter: after,
			Begun: opts["begun"] == "yes" || opts["shown"] == "yes", Shown: opts["shown"] == "yes", Ours: opts["ours"] == "yes", Usage: usage(opts)}
	},
	"retry_due": func(s *stage, args []string) any {
		_, opts := options(args)
		return turn.TimerDue{Timer: "retry:" + string(s.awaited(opts))}
	},
	// timer_due TIMER
	"timer_due": func(_ *stage, args []string) any { return turn.TimerDue{Timer: args[0]} },
	// hooks before_model|turn_end [HOOK]… [request=DIGEST]
	"hooks": func(s *stage, args []string) any {
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
			h, args = hook(args, string(o.Point))
			o.Decisions = append(o.Decisions, h)
		}
		return o
	},
	// returns CALL RESULT [attempt=N] [blob=SIZE] [HOOK]…
	"returns": func(s *stage, args []string) any {
		args, hooks := hooksAfter(args)
		args, opts := options(args)
		o := turn.ToolReturned{Call: messages.CallID(args[0]), Attempt: s.attempt(args[0], opts), Output: at(args, 1), Hooks: hooks}
		if o.Blob = blob(opts, o.Output); o.Blob != nil {
			o.Output = ""
		}
		return o
	},
	// breaks CALL KIND MESSAGE [attempt=N] [HOOK]…
	"breaks": func(s *stage, args []string) any {
		args, hooks := hooksAfter(args)
		args, opts := options(args)
		return turn.ToolErred{Call: messages.CallID(args[0]), Attempt: s.attempt(args[0], opts), Kind: args[1], Message: at(args, 2), Hooks: hooks}
	},
	// reconciled CALL done|notdone|unsure [RESULT]
	"reconciled": func(_ *stage, args []string) any {
		return turn.ToolReconciled{Call: messages.CallID(args[0]), Done: args[1] == "done", NotDone: args[1] == "notdone", Output: at(args, 2)}
	},
	"recover": func(*stage, []string) any { return turn.Recover{} },
}
