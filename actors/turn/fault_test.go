package turn_test

import (
	"testing"

	"github.com/reprise-dev/reprise/actors/faulttest"
)

// fault is a mistake that somebody could make in the machine, as a change of
// one place of its source.
type fault struct {
	Name, File string
	Old, New   string
}

// faults are what the simulation must be able to find. Those that break the
// actor around the machine have a table of their own, beside the actor.
var faults = []fault{
	{"lose the queue on clear", "stop.go",
		`d.emit(messages.InputDropped{Input: d.s.Queue[0].ID, By: by, Reason: reason})`, `_, d.s.Queue = reason, d.s.Queue[1:]`},
	{"keep ids over a deletion", "delete.go",
		`*s = State{Last: s.Last, `, `*s = State{Last: s.Last, spent: s.spent, `},
	{"keep the history over a deletion", "delete.go",
		`*s = State{Last: s.Last, `, `*s = State{Last: s.Last, Ended: s.Ended, `},
	{"a tombstone with the rest", "delete.go",
		`d.emit(messages.AgentClosed{Command: c.ID, Reason: c.Reason, Person: d.env.Person})`, `d.emit(messages.AgentDeleted{Reason: c.Reason})`},
	{"forget that a purge is owed", "effects.go",
		`|| s.Deleted != nil && !s.Deleted.Purged`, ``},
	{"take inputs while it is being deleted", "delete.go",
		`case !del.Purged:`, `case !del.Purged && !makes(c):`},
	{"the delete's own id is free", "delete.go",
		`ID: d.Command, Door: "ctl"`, `ID: d.Command, Door: ""`},
	{"number a new life from the start", "evolve.go",
		`s.Last = f.First - 1`, `s.Last = 0`},
	{"run a tool before its intent", "effects.go",
		`if c.Status != Executing {`, `if c.Status != Executing && c.Status != Requested {`},
	{"call a model while it waits to", "effects.go",
		`m != nil && m.underWay() {`, `m != nil {`},
	{"double a timer", "timers.go",
		`	d.emit(messages.TimerSet{`, "	d.emit(messages.TimerSet{Turn: d.s.Turn.ID, Timer: id, For: what, Call: call, At: stored(at)})\n	d.emit(messages.TimerSet{"},
	{"a timer outlives its turn", "stop.go",
		"	d.cancelTimers()\n", ""},
	{"count a retry as a step", "decide.go",
		`step, attempt = t.Steps, t.Model.Attempt+1`, `step, attempt = t.Steps+1, t.Model.Attempt+1`},
	{"one step more than allowed", "budget.go",
		`u.Steps+1 > m.MaxSteps`, `u.Steps > m.MaxSteps`},
	{"start a gated call ungranted", "evolve.go",
		`s.settle(ev.Call, Gated)`, `s.settle(ev.Call, Requested)`},
	{"start calls while paused", "outcomes.go",
		"	if t.Paused != \"\" {\n		return\n	}\n	if t.finish", "	if t.finish"},
	{"approve other arguments", "approve.go",
		`case hash != "" && hash !=`, `case hash == "-" && hash !=`},
	{"approve a call of another turn", "approve.go",
		`(turn == "" || turn == t.ID)`, `turn != "-"`},
	{"single nothing out that is remembered", "approve.go",
		`ok && !(r.Granted && singled)`, `ok && (!singled || singled)`},
	{"use a tool where none may be used", "outcomes.go",
		`case d.s.Turn.toolChoice == "none":`, `case d.s.Turn.toolChoice == "-":`},
	{"remember a denial as a grant", "evolve.go",
		`Remembered{Text: ev.Text}`, `Remembered{Granted: true}`},
	{"a decision outlives a clear", "evolve.go",
		`s.Remembered, s.Ended, s.done = nil, nil, nil`, `s.Ended, s.done = nil, nil`},
	{"leave siblings unsettled on abort", "stop.go",
		`case Requested, Gated:`, `case Gated:`},
	{"drop unseen joined inputs", "decide.go",
		"	d.requeue(\"its turn ended before a model had seen it\")\n", ""},
	{"requeue at the end of the queue", "evolve.go",
		"	at := 0\n", "	at := len(s.Queue)\n"},
	{"admit a joined input twice", "evolve.go",
		`without(t.Unseen, ev.Inputs...), nil, nil`, `t.Unseen, nil, nil`},
	{"take the result of an old attempt", "outcomes.go",
		` || c.Attempt != attempt || d.s.lost[call]`, ` || d.s.lost[call]`},
	{"a snapshot forgets what is reserved", "snapshot.go",
		"		m.reserved = r.Model.Reserved\n", ""},
	{"a snapshot forgets what had its effect", "snapshot.go",
		`range r.Done {`, `range r.Done[:0] {`},
	{"a snapshot forgets spent ids", "snapshot.go",
		`Spent: s.spent, `, `Spent: s.spent[len(s.spent)/2:], `},
	{"spend no id", "evolve.go",
		`if id, ok := SpentBy(f); ok {`, `if id, ok := SpentBy(f); ok && f == nil {`},
	{"interrupt a later turn", "stop.go",
		`case only != "" && only != t.ID:`, `case only == "-" && only != t.ID:`},
	{"run once-tools again after a crash", "outcomes.go",
		`case "pure", "keyed":`, `case "pure", "keyed", "once":`},
	{"lose a lost call's reservation", "outcomes.go",
		"	d.settleUnknown(m)\n	if t.Model.Restarts", "	if t.Model.Restarts"},
	{"count a reservation beside the use", "evolve.go",
		`if ev.Unknown {`, `if ev.Unknown || ev.Tokens > 0 {`},
	{"count a failed attempt's use twice", "evolve.go",
		"		t.modelFailed(ev)\n", "		s.count(Used{Tokens: ev.Usage.Tokens()})\n		t.modelFailed(ev)\n"},
	{"force a tool for ever", "evolve.go",
		"		t.toolUsed = t.toolUsed || asksForTool(ev)\n", ""},
	{"ask hooks again without end", "hooks.go",
		`d.requestModel(o.Request, o.Seen)`, `d.request()`},
	{"hooks send each other in circles", "hooks.go",
		` && !asked`, ` && (asked || !asked)`},
	{"forget what a hook decided in a crash", "outcomes.go",
		"		case m.Due:\n			d.advance()", "		case m.Due:\n			d.request()"},
	{"a timer outlives a clear", "stop.go",
		"	d.cancelSchedules(by, why)\n", ""},
	{"a scheduled input comes twice", "schedule.go",
		`sc != nil && sc.Cron == "" {`, `sc != nil && sc.Cron == "-" {`},
	{"a cron line comes but once", "schedule.go",
		`case !next.IsZero():`, `case next.IsZero():`},
	{"a cron line catches up one by one", "schedule.go",
		`!next.IsZero() && !next.After(d.env.Now)`, `next.IsZero()`},
	{"wait for the last timer", "schedule.go",
		`sc.At.Before(next.At)`, `next.At.Before(sc.At)`},
	{"a scheduled input loses its policy", "schedule.go",
		`Policy: sc.Input.Policy,`, ``},
	{"part a call from its result", "../../projections/compact.go",
		`i > first && open == 0 && `, `i > first && `},
	{"compact the input of the turn at hand", "../../projections/compact.go",
		"	if !h.together(e.turn, turn) {\n		return false\n	}\n", "	if e.turn != \"-\" {\n		return false\n	}\n"},
	{"compact what a resumed turn was asked", "../../projections/history.go",
		`h.continued = append(slices.Clip(h.continued), ev.Turn)`, `h.continued = nil`},
	{"a summary that its server does not tell of is free", "compact.go",
		"		ev.Unknown, ev.Tokens, ev.Cost = true, c.Tokens, c.Cost\n	}\n	d.emit(ev)\n	d.afterSummary(c)", "		ev.Unknown = true\n	}\n	d.emit(ev)\n	d.afterSummary(c)"},
	{"take a summary of another history", "compact.go",
		`DigestBefore(c.Upto) != c.Digest`, `DigestBefore(c.Upto) == "-"`},
	{"a summary outlives its turn", "stop.go",
		"	d.dropSummary(t.ID, why)\n", ""},
	{"a summary is made while its turn is paused", "decide.go",
		"	d.dropSummary(d.s.Turn.ID, \"the turn was paused\")\n", ""},
	{"lose a summary with its process", "outcomes.go",
		"		d.lostSummary()\n		return\n", "		return\n"},
	{"what a summary used counts for nobody", "compact.go",
		"	s.Used = s.Used.add(used)\n", ""},
	{"try a summary for ever", "compact.go",
		`case c.Attempt >= maxSummaries:`, `case c.Attempt >= 100*maxSummaries:`},
	{"start with the newest input", "decide.go",
		`d.start(d.s.Queue[0])`, `d.start(d.s.Queue[len(d.s.Queue)-1])`},
	{"leave a child running when its turn ends", "stop.go",
		"			d.stopChild(c, why)\n", ""},
	{"forget a child that is to stop", "children.go",
		`list = append(list, Effect{Do: TakeTask, Turn: st.Turn, Call: st.Call})`, `_ = st`},
	{"take an older report of a child", "children.go",
		`case c.N <= call.Child.N && c.What`, `case c.N == 1<<40 && c.What`},
	{"lose what a child has used", "children.go",
		"	case messages.ChildFailed:\n		s.usedBelow(ev.Spent)\n", "	case messages.ChildFailed:\n"},
	{"lose a decision that is on its way", "children.go",
		`Effect{Do: PassDecision, Turn: ev.Turn, Call: ev.Call, ID: ev.ID})`, `nil...)`},
	{"forget what is to be known of a decision", "children.go",
		`len(s.Stopping)+len(s.Passed) > 0`, `len(s.Stopping) > 0`},
	{"take a refused decision for one that had its effect", "children.go",
		`N: c.N, Refused: c.Refused, `, `N: c.N, `},
	{"tell nobody how a task has ended", "tasks.go",
		`return !task.Parent.Detached && task.changed > task.told`, `return !task.Parent.Detached && task.changed > task.told && task.end == nil`},
	{"begin a task that was taken back", "tasks.go",
		`if slices.Contains(d.s.recalled, c.ID) {`, `if len(c.ID) > 1<<20 {`},
	{"give a child more than is left", "children.go",
		`{{t.Limits, t.Used.add(out)}`, `{{t.Limits, t.Used}`},
	{"one level of children more than allowed", "children.go",
		`len(t.callers) >= messages.MaxCallers`, `len(t.callers) > messages.MaxCallers`},
	{"run a call of an answer that was cut off", "outcomes.go",
		"case messages.CutOff(finish):", "case false:"},
	{"decide below what waits above", "children.go",
		`(own.Status == Gated || own.Status == Unknown)`, `own.Status == Settled`},
	{"go on before a child has ended", "outcomes.go",
		"	case t.waitingBelow() > 0:\n		d.pause(pausedChild, \"a person must settle what its children wait for\", t.waiting())\n", ""},
}

// faultSteps is within how many steps a fault must be found.
const faultSteps = 400_000

// table is the faults as faulttest plants them.
func table() (list []faulttest.Fault) {
	for _, f := range faults {
		list = append(list, faulttest.Fault(f))
	}
	return list
}

func TestFaultsFit(t *testing.T) { faulttest.FaultsFit(t, table()) }

// TestFaults needs a build for each fault: make test-faults.
func TestFaults(t *testing.T) { faulttest.Faults(t, "turn", "steps", table()) }

// TestHunt looks for the first life that breaks a promise.
func TestHunt(t *testing.T) {
	faulttest.Hunting(t)
	guard(t)
	for seed, steps := uint64(0), 0; steps < faultSteps; seed++ {
		l := life{seed: seed}
		s, err := l.play()
		if err == nil {
			steps += s.steps
			continue
		}
		short, _ := shrink(l, err)
		faulttest.Found{Seed: seed, Took: steps + err.steps, Suffice: short.left(), What: ruleOf(err)}.Tell(t)
		return
	}
}
