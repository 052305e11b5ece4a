package turntest

import (
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
func (s *Stage) awaited(opts map[string]string) messages.CallID {
	if call, ok := opts["call"]; ok {
		return messages.CallID(call)
	}
	if s.State.Turn == nil || s.State.Turn.Model == nil {
		s.t.Fatal("no model call is under way")
	}
	return s.State.Turn.Model.ID
}

// timerDue reports that a timer of the turn is due, or was of the one before.
func (s *Stage) timerDue(timer string) turn.TimerDue {
	due := turn.TimerDue{Turn: "none", Timer: timer}
	if t := s.State.Turn; t != nil {
		due.Turn = t.ID
	}
	return due
}

// summary is the call of the summary under way, or the one that is named.
func (s *Stage) summary(opts map[string]string) messages.CallID {
	if call, ok := opts["call"]; ok {
		return messages.CallID(call)
	}
	if s.State.Summary == nil {
		return "none"
	}
	return s.State.Summary.Call
}

// attempt is the newest attempt of the call, or the one that is named.
func (s *Stage) attempt(call string, opts map[string]string) int {
	if n, ok := opts["attempt"]; ok {
		return number(n)
	}
	if s.State.Turn != nil {
		for _, c := range s.State.Turn.Calls {
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
func (s *Stage) raised(opts map[string]string, prefix string) messages.LimitOverrides {
	r := messages.LimitOverrides{MaxSteps: number(opts[prefix+"max_steps"]), MaxTokens: number(opts[prefix+"max_tokens"])}
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
func (s *Stage) schedule(opts map[string]string) messages.Schedule {
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
// [TEXT] [because=WHY] [arguments=JSON] [point=P]. It returns the other words.
func hook(args []string, point turn.Point) (turn.HookDecision, []string) {
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
			h.Point = turn.Point(value)
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
		h, args = hook(args[1:], messages.PointAfterTool)
		hooks = append(hooks, h)
	}
	return rest, hooks
}
