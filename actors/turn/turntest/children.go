package turntest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// childSettings are those about children.
var childSettings = map[string]func(s *Stage, args []string){
	// team TOOL of=KIND [detached=yes] [children=N]: the tool is an agent
	"team": func(s *Stage, args []string) {
		args, opts := options(args)
		s.Env.Definition.Tools[args[0]] = turn.Tool{
			Child: opts["of"], Detached: opts["detached"] == "yes", MaxChildren: number(opts["children"]),
		}
	},
}

// childShows are those about children.
var childShows = map[string]func(s *Stage){
	// outbox: what is sent to other agents now
	"outbox": func(s *Stage) {
		for _, e := range s.State.Effects() {
			if m, ok := s.State.Message(s.Env.Agent, e); ok {
				fmt.Fprintf(&s.out, "  to %s: %s\n", shortKey(m.To.String()), messageText(m.Command))
			}
		}
	},
}

// childCommands are those about children.
var childCommands = map[string]func(s *Stage, args []string) any{
	// task ID "text" [call=C] [callers=N] [detached=yes] [max_tokens=N]: from agent boss/bea
	"task": func(s *Stage, args []string) any {
		args, opts := options(args)
		return messages.Task{ID: args[0], Content: messages.TextContent(at(args, 1)), Parent: parentOf(s, opts)}
	},
	"cancel_child": func(s *Stage, args []string) any {
		args, opts := options(args)
		return messages.CancelChild{ID: at(args, 1) + "cancel-" + args[0], Input: args[0], Parent: parentOf(s, opts), Reason: opts["reason"]}
	},
	// report ID CALL WHAT [n=N] [turn=T] ["output"] [usage=IN+OUT] [cost=N] [message=…] [waits=AGENT:TURN:CALL:KIND]
	"report": func(s *Stage, args []string) any {
		args, opts := options(args)
		r := messages.Report{
			ID: args[0], Call: messages.CallID(args[1]), What: messages.ReportWhat(args[2]), N: messages.EventNumber(number(opts["n"])),
			Output: at(args, 3), Message: opts["message"], Reason: opts["why"], Busy: opts["busy"] == "yes",
		}
		r.Usage, r.Cost = usage(opts), messages.Cost(number(opts["cost"]))
		r.Tokens = r.Usage.Tokens()
		r.Turn, r.Child = s.childOf(r.Call, messages.TurnID(opts["turn"]))
		if opts["child"] != "" {
			r.Child = opts["child"]
		}
		for _, w := range strings.Split(opts["waits"], ",") {
			if p := strings.Split(w, ":"); len(p) == 4 {
				wait := messages.Wait{Agent: "default/" + p[0], Turn: messages.TurnID(p[1]), Call: messages.CallID(p[2]), Kind: messages.WaitKind(p[3])}
				if wait.Kind == messages.WaitApproval {
					wait.Tool, wait.Arguments, wait.ArgsHash = "refund", "{}", messages.HashArguments("{}")
				}
				r.Waiting = append(r.Waiting, wait)
			}
		}
		return r
	},
	// decision_effect ID CALL [refused=CODE] [n=N] [message=…]: of the newest decision about CALL that was forwarded
	"decision_effect": func(s *Stage, args []string) any {
		args, opts := options(args)
		return messages.DecisionEffect{
			ID: args[0], Decision: s.decisionOn(messages.CallID(args[1])), N: messages.EventNumber(number(opts["n"])),
			Refused: messages.Code(opts["refused"]), Message: opts["message"],
		}
	},
	// sent [INPUT]: the report about INPUT is stored for the parent, or the first message whose
	// storing is awaited
	"sent": func(s *Stage, args []string) any {
		for _, e := range s.State.Effects() {
			m, ok := s.State.Message(s.Env.Agent, e)
			if ok && !m.Resend && (len(args) == 0 || s.State.Outbox.Message(e.ID).Input == args[0]) {
				return turn.MessageStored{ID: e.ID}
			}
		}
		return turn.MessageStored{}
	},
}

func parentOf(s *Stage, opts map[string]string) messages.Parent {
	p := messages.Parent{
		Caller: messages.Caller{Agent: "default/boss/bea", Turn: "t3", Call: "b1", Detached: opts["detached"] == "yes"},
		Limits: s.raised(opts, "").Limits(),
	}
	if call, ok := opts["call"]; ok {
		p.Call = messages.CallID(call)
	}
	for i := range number(opts["callers"]) {
		p.Above = append(p.Above, messages.Caller{Agent: fmt.Sprint("default/boss/", i), Turn: "t3", Call: "b1"})
	}
	return p
}

// childOf is the turn and the child that a call had, also one that has ended.
func (s *Stage) childOf(call messages.CallID, turn messages.TurnID) (messages.TurnID, string) {
	for i := len(s.Log) - 1; i >= 0; i-- {
		for _, ev := range s.Log[i].Events {
			if ev, ok := ev.(messages.ChildSpawned); ok && ev.Call == call && (turn == "" || ev.Turn == turn) {
				return ev.Turn, ev.Child
			}
		}
	}
	return turn, "default/nobody/x"
}

// decisionOn is the id of the newest decision about a call below.
func (s *Stage) decisionOn(call messages.CallID) (id string) {
	for _, f := range s.Log {
		for _, ev := range f.Events {
			if ev, ok := ev.(messages.ChildDecided); ok && ev.Waits == call {
				id = ev.ID
			}
		}
	}
	return id
}

// shortKey leaves most of a child's key out.
func shortKey(agent string) string {
	if i := strings.Index(agent, "/sub-"); i >= 0 {
		return agent[:i+8] + "…"
	}
	return agent
}

func messageText(c messages.Command) string {
	switch c := c.(type) {
	case messages.Task:
		var above []string
		for _, caller := range c.Parent.Chain() {
			above = append(above, fmt.Sprintf("%s %s %s", caller.Agent, caller.Turn, caller.Call))
		}
		text := fmt.Sprintf("task %q for %s", c.Content.Text(), strings.Join(above, ", "))
		if c.Parent.Limits != (messages.Limits{}) {
			text += fmt.Sprintf(", max_tokens %d", c.Parent.Limits.MaxTokens)
		}
		return text
	case messages.CancelChild:
		return "cancel, " + c.Reason
	case messages.Report:
		text := fmt.Sprintf("report %s as of %d on %s %s", c.What, c.N, c.Turn, c.Call)
		if c.Busy {
			text += ", busy,"
		}
		for _, w := range c.Waiting {
			text += fmt.Sprintf(" [%s %s %s %s %s%s]", w.Agent, w.Turn, w.Kind, w.Call, w.Tool, w.Reason)
		}
		if c.Output+c.Message != "" {
			text += fmt.Sprintf(" %q", c.Output+c.Message)
		}
		if c.Tokens > 0 {
			text += fmt.Sprintf(" used %d tokens, %d nanos", c.Tokens, c.Cost)
		}
		return text
	case messages.BeginFork:
		return fmt.Sprintf("begin as a fork of %s at %d", c.Parent, c.At)
	case messages.Approve:
		return fmt.Sprintf("approve %s %s", c.Turn, c.Call)
	case messages.Deny:
		return fmt.Sprintf("deny %s %s", c.Turn, c.Call)
	case messages.Decide:
		return fmt.Sprintf("decide %s %s %s", c.Turn, c.Call, c.Outcome)
	}
	return c.CommandType()
}

func shortParent(v json.RawMessage) (string, json.RawMessage) {
	var p messages.Parent
	if json.Unmarshal(v, &p) != nil { // of agent.created
		return "parent", v
	}
	return "parent", quoted(fmt.Sprintf("%s:%s:%s", p.Agent, p.Turn, p.Call))
}

func shortWaiting(v json.RawMessage) (string, json.RawMessage) {
	var list []messages.Wait
	_ = json.Unmarshal(v, &list)
	var texts []string
	for _, w := range list {
		texts = append(texts, fmt.Sprintf("%s:%s:%s:%s", w.Agent, w.Turn, w.Call, w.Kind))
	}
	return "waiting", quoted(strings.Join(texts, ","))
}
