package turntest

import (
	"fmt"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// forkShows are those about forks.
var forkShows = map[string]func(s *Stage){
	// forks: where the agent was forked from, and its forks
	"forks": func(s *Stage) {
		if o := s.State.Forks.Origin; o != nil {
			what := "a fork of"
			if o.Imported {
				what = "imported from"
			}
			fmt.Fprintf(&s.out, "  %s %s at %d, tools=%t\n", what, o.Parent, o.At, o.Tools)
		}
		for _, f := range s.State.Forks.List {
			fmt.Fprintf(&s.out, "  %s at %d: %s\n", f.Agent, f.At, f.Status)
		}
	},
}

// forkCommands are those about forks.
var forkCommands = map[string]func(s *Stage, args []string) any{
	// fork ID AGENT [at=N] ["reason"]
	"fork": func(_ *Stage, args []string) any {
		args, opts := options(args)
		return messages.Fork{ID: args[0], Fork: args[1], At: messages.EventNumber(number(opts["at"])), Reason: at(args, 2)}
	},
	// fork_effect AGENT [n=N] [refused=CODE] [message=…]: of the fork that was requested
	"fork_effect": func(s *Stage, args []string) any {
		args, opts := options(args)
		c := messages.ForkEffect{ID: "effect-" + args[0], Begin: "none", Fork: args[0], N: messages.EventNumber(number(opts["n"])), Refused: messages.Code(opts["refused"]), Message: opts["message"]}
		for _, f := range s.State.Forks.List {
			if f.Agent.String() == args[0] {
				c.Begin = f.Begin
			}
		}
		return c
	},
	// begin_fork ID PARENT [at=N]: what has happened so far was the parent's
	"begin_fork": func(s *Stage, args []string) any {
		args, opts := options(args)
		c := messages.BeginFork{ID: args[0], Parent: args[1], At: s.State.Last}
		if n := number(opts["at"]); n != 0 {
			c.At = messages.EventNumber(n)
		}
		s.Env.Forked.Time = s.Log[len(s.Log)-1].Time
		return c
	},
	// import ID SOURCE [dry=true]: what has happened so far is in a file
	"import": func(s *Stage, args []string) any {
		args, opts := options(args)
		return messages.Import{ID: args[0], Source: args[1], Frames: messages.Blob{SHA256: "f", Size: 1}, Last: s.State.Last, Digest: "d", File: "e", Dry: opts["dry"] == "true"}
	},
	"use_tools": func(_ *Stage, args []string) any { return messages.UseTools{ID: args[0], Reason: at(args, 1)} },
	// detach ID: its events up to the fork were copied
	"detach": func(s *Stage, args []string) any {
		if o := s.State.Forks.Origin; o != nil {
			s.Env.Copied = &messages.Prefix{Frames: messages.Blob{SHA256: "f", Size: 1}, Last: o.At, Digest: "d"}
		}
		return messages.Detach{ID: args[0], Reason: at(args, 1)}
	},
	// unrecorded CALL: the fork has no recorded result for it
	"unrecorded": func(s *Stage, args []string) any {
		return turn.ToolReturned{Call: messages.CallID(args[0]), Attempt: s.attempt(args[0], nil), Unknown: "no result of it is recorded"}
	},
}
