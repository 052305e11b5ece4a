package actors_test

import "github.com/reprise-dev/reprise/actors/faulttest"

// forkFaults are mistakes about forks, in this package and below it. The simulation of package turn makes no
// forks, so that of this package searches for those in the machine and in the folds, too.
var forkFaults = []faulttest.Fault{
	{Name: "call the tools of a dry fork", Func: "(*agent).beginTool",
		Old: `a.state.Forks.Dry()`, New: `false`},
	{Name: "delete a parent that has forks", Func: "(*agent).delete",
		Old: `err := a.refuseForks(); err != nil`, New: `err := a.refuseForks(); err != nil && c.ID == ""`},
	{Name: "begin a fork with one event less", Func: "upto",
		Old: `rec = rec.Upto(last)`, New: `rec = rec.Upto(last); if rec.Frame.Last() == last && rec.Frame.First < last { rec = rec.Upto(last-1) }`},
	{Name: "begin a fork with half of a step", Dir: "turn", Func: "(*decision).beginFork",
		Old: `c.At < in.Last`, New: `c.At > in.Last`},
	{Name: "continue a turn of the parent in its fork", Dir: "turn", Func: "(*decision).leaveTurn",
		Old: `t.Paused() == ""`, New: `t == nil`},
	{Name: "wait in a fork for what runs in its parent", Dir: "turn", Func: "(*decision).leaveTurn",
		Old: `case projections.CallRunning:`, New: `case projections.CallDenied:`},
	{Name: "take the inputs that wait in the parent", Dir: "turn", Func: "(*decision).leave",
		Old: `d.leaveInputs(l.by, l.why)`, New: ``},
	{Name: "fire the timers of the parent", Dir: "turn", Func: "(*decision).leave",
		Old: `len(d.s.Timers.Scheduled) > 0`, New: `len(d.s.Timers.Scheduled) > 1<<20`},
	{Name: "do not report that a fork has begun", Dir: "turn", Func: "forkEffect",
		Old: `err == nil`, New: `err != nil`},
	{Name: "forget a fork that is to begin", Dir: "../projections", Func: "(*Outbox).apply",
		Old: `o.add(OutboxMessage{Kind: BeginFork,`, New: `_ = (OutboxMessage{Kind: BeginFork,`},
	{Name: "clear what a fork began with", Dir: "../projections", Func: "(*History).Apply",
		Old: `h.baseline = h.without(ev.Turn)`, New: ``},
}
