package turn_test

import (
	"encoding/json"
	"fmt"
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

// commands are the words that make a command or an outcome.
var commands = map[string]func(s *stage, args []string) any{
	// input ID TEXT [policy=reject] [deadline=-1s] [max_steps=N]
	"input": func(s *stage, args []string) any {
		args, opts := options(args)
		in := messages.Input{ID: args[0], Content: messages.TextContent(at(args, 1)), Policy: messages.Policy(opts["policy"]),
			Options: messages.InputOptions{MaxSteps: number(opts["max_steps"])}}
		if d, err := time.ParseDuration(opts["deadline"]); err == nil {
			deadline := s.env.Now.Add(d)
			in.Deadline = &deadline
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
	// resume ID [max_steps=N] [turn=T]
	"resume": func(_ *stage, args []string) any {
		args, opts := options(args)
		return messages.Resume{ID: args[0], Raised: messages.Raised{MaxSteps: number(opts["max_steps"])}, Turn: messages.TurnID(opts["turn"])}
	},
	// decide ID CALL completed|failed|retry [RESULT]
	"decide": func(_ *stage, args []string) any {
		return messages.Decide{ID: args[0], Call: messages.CallID(args[1]), Outcome: messages.Outcome(args[2]), Result: at(args, 3)}
	},
	"set_state": func(_ *stage, args []string) any {
		return messages.SetState{ID: args[0], Patch: json.RawMessage(args[1])}
	},
	// answers [TEXT] [asks TOOL ID ARGUMENTS]… [call=M]
	"answers": func(s *stage, args []string) any {
		args, opts := options(args)
		o := turn.ModelAnswered{Call: s.awaited(opts), Usage: messages.Usage{Input: 10, Output: 2}}
		for i := 0; i < len(args); i++ {
			if args[i] == "asks" {
				o.Items = append(o.Items, messages.Item{Type: messages.ItemCall, Name: at(args, i+1), CallID: messages.CallID(at(args, i+2)), Arguments: at(args, i+3)})
				i += 3
			} else {
				o.Items = append(o.Items, messages.Text(messages.RoleAssistant, args[i]))
			}
		}
		return o
	},
	// errs KIND MESSAGE [temporary=yes] [after=30s] [call=M]
	"errs": func(s *stage, args []string) any {
		args, opts := options(args)
		after, _ := time.ParseDuration(opts["after"])
		return turn.ModelErred{Call: s.awaited(opts), Kind: args[0], Message: at(args, 1), Temporary: opts["temporary"] == "yes", RetryAfter: after}
	},
	"retry_due": func(s *stage, args []string) any {
		_, opts := options(args)
		return turn.RetryDue{Call: s.awaited(opts)}
	},
	// returns CALL RESULT [attempt=N]
	"returns": func(s *stage, args []string) any {
		args, opts := options(args)
		return turn.ToolReturned{Call: messages.CallID(args[0]), Attempt: s.attempt(args[0], opts), Output: at(args, 1)}
	},
	// breaks CALL KIND MESSAGE [attempt=N]
	"breaks": func(s *stage, args []string) any {
		args, opts := options(args)
		return turn.ToolErred{Call: messages.CallID(args[0]), Attempt: s.attempt(args[0], opts), Kind: args[1], Message: at(args, 2)}
	},
	// reconciled CALL done|notdone|unsure [RESULT]
	"reconciled": func(_ *stage, args []string) any {
		return turn.ToolReconciled{Call: messages.CallID(args[0]), Done: args[1] == "done", NotDone: args[1] == "notdone", Output: at(args, 2)}
	},
	"recover": func(*stage, []string) any { return turn.Recover{} },
}

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
	"pass": func(s *stage, args []string) {
		d, err := time.ParseDuration(args[0])
		if err != nil {
			s.t.Fatal(err)
		}
		s.env.Now = s.env.Now.Add(d)
		fmt.Fprintf(&s.out, "it is %s\n", clock(s.env.Now))
	},
	// definition [digest=D] [max_steps=N] [max_queue=N] [max_attempts=N] [parallel=N] [without=TOOL]
	"definition": func(s *stage, args []string) {
		_, opts := options(args)
		d := &s.env.Definition
		for name, limit := range map[string]*int{"max_steps": &d.MaxSteps, "max_queue": &d.MaxQueue, "max_attempts": &d.MaxAttempts, "parallel": &d.Parallel} {
			if v, ok := opts[name]; ok {
				*limit = number(v)
			}
		}
		if digest, ok := opts["digest"]; ok {
			d.Digest = digest
		}
		delete(d.Classes, opts["without"])
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
			fmt.Fprintf(&s.out, " turn=%s steps=%d of %d", t.ID, t.Steps, t.MaxSteps)
		}
		for _, q := range s.state.Queue {
			fmt.Fprintf(&s.out, " waiting=%s", q.ID)
		}
		if due := s.state.Due(); !due.IsZero() {
			fmt.Fprintf(&s.out, " due=%s", clock(due))
		}
		fmt.Fprintf(&s.out, " owes=%v\n", s.state.Open())
	},
}
