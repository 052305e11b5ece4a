package actors_test

import "github.com/reprise-dev/reprise/actors/faulttest"

// forkFaults are mistakes about forks, in this package and below it. The simulation of package turn makes no
// forks, so that of this package searches for those in the machine and in the folds, too.
var forkFaults = []faulttest.Fault{
	{Name: "call the tools of a dry fork", Func: "(*agent).beginTool",
		Old: `a.state.Forks.Dry()`, New: `false`},
	{Name: "begin a fork with half of a step", Dir: "turn", Func: "(*decision).beginFork",
		Old: `c.At < in.Last`, New: `c.At > in.Last`},
	{Name: "wait in a fork for what runs in its parent", Dir: "turn", Func: "(*decision).leaveTurn",
		Old: `case projections.CallRunning:`, New: `case projections.CallDenied:`},
	{Name: "clear what a fork began with", Dir: "../projections", Func: "(*History).Apply",
		Old: `h.baseline = h.without(ev.Turn)`, New: ``},
}
