package turn_test

import (
	"testing"

	"github.com/reprise-dev/reprise/actors/faulttest"
)

// fault is a [faulttest.Fault] without its folder.
type fault struct{ Name, Func, Old, New string }

// faults are mistakes in the machine that the simulation must find. Those in the actor
// around the machine are in the table of package actors.
var faults = []fault{
	{"lose the queue on clear", "(*decision).drop",
		`d.emit(messages.InputDropped{Input: d.s.Inputs.Queued[0].ID, By: by, Reason: each})`, `_, d.s.Inputs.Queued = each, d.s.Inputs.Queued[1:]`},
	{"keep ids over a deletion", "(*State).evolve",
		`State{Last: s.Last`, `State{Last: s.Last, processed: s.processed`},
	{"keep decisions over a deletion", "(*State).evolve",
		`State{Last: s.Last`, `State{Last: s.Last, Decisions: s.Decisions`},
	{"write the tombstone before what runs has ended", "(*decision).delete",
		`d.drop(c.CommandType(), c.Reason)`, `d.cancelSchedules(c.CommandType(), c.Reason)`},
	{"leave children of a deleted agent running", "(*State).Ends",
		`projections.CancelChild, projections.ReportToParent`, `projections.ReportToParent`},
	{"do not report to the parent of a deleted agent", "(*State).Ends",
		`projections.CancelChild, projections.ReportToParent`, `projections.CancelChild`},
	{"number events from 1 after a tombstone", "(*State).Apply",
		`s.Last = f.First - 1`, `s.Last = 0`},
	{"run a tool before its intent", "(*State).turnEffects",
		`c.Outcome != projections.CallRunning`, `c.Outcome != projections.CallRunning && c.Outcome != projections.CallRequested`},
	{"call a model before its retry is due", "(*State).turnEffects",
		`&& m.UnderWay()`, ``},
	{"double a timer", "(*decision).setTimer",
		`d.emit(messages.TimerSet{`,
		`d.emit(messages.TimerSet{Turn: d.s.Turn.ID, Timer: id, For: what, Call: call, At: logTime(at)})
		d.emit(messages.TimerSet{`},
	{"a timer outlives its turn", "(*decision).abort",
		`d.cancelTimers()`, ``},
	{"count a retry as a step", "(*decision).requestModel",
		`step, attempt = t.Steps, t.Model.Attempt+1`, `step, attempt = t.Steps+1, t.Model.Attempt+1`},
	{"one step more than allowed", "budget.exceeded",
		`u.Steps+need.Steps > m.MaxSteps`, `u.Steps > m.MaxSteps`},
	{"start calls in a turn that a hook has paused", "pausedForCalls",
		`projections.PausedChild:`, `projections.PausedChild, projections.PausedHook:`},
	{"approve other arguments", "(*decision).undecided",
		`ev.ArgsHash != ""`, `ev.ArgsHash == "-"`},
	{"approve a call of another turn", "(*State).call",
		`(turn == "" || turn == t.ID)`, `turn != "-"`},
	{"a remembered grant covers a call that was singled out", "(*decision).requireApproval",
		`!(r.Decision == projections.Granted && singled)`, `(!singled || singled)`},
	{"use a tool where none may be used", "(*decision).review",
		`ToolChoice == "none"`, `ToolChoice == "-"`},
	{"leave siblings unsettled on abort", "(*decision).endCalls",
		`case projections.CallRequested, projections.CallWaiting:`, `case projections.CallWaiting:`},
	{"drop unseen steered inputs", "(*decision).complete",
		`d.requeue("its turn ended before a model had seen it")`, ``},
	{"take the result of an old attempt", "(*decision).outcome",
		`&& c.Attempt == o.Attempt`, ``},
	{"a snapshot forgets the outbox", "(*State).Snapshot",
		`Work: s.Work`, `Work: func(w projections.Work) projections.Work { w.Outbox.Messages = nil; return w }(s.Work)`},
	{"a snapshot forgets processed ids", "(*State).Snapshot",
		`s.processed.copy()`, `window{}`},
	{"record no id", "(*State).Record",
		`f.Cause.ID != ""`, `f.Cause.ID != "" && f == nil`},
	{"interrupt a later turn", "(*decision).stop",
		`only != ""`, `only == "-"`},
	{"run paused tools again after a crash", "(*decision).lostCall",
		`case messages.ReadOnly, messages.Rerun:`, `case messages.ReadOnly, messages.Rerun, messages.Pause:`},
	{"lose a lost call's reservation", "(*decision).restart",
		`d.settleLost(m)`, ``},
	{"continue after an outcome that is not awaited", "(*decision).outcome",
		`d.s.Last != n`, `d.s.Last >= n`},
	{"start a call in a turn that a hook holds", "(*decision).stepCalls",
		`&& t.Held == nil`, ``},
	{"leave inputs that steer to a turn of their own", "(*decision).wantsAnotherCall",
		`|| len(d.s.Inputs.Steered) > 0 && !d.endHooksWant(HookFinish)`, ``},
	{"ask hooks again without end", "(*decision).stepModel",
		`d.env.Definition.HooksAt(BeforeModel) && !asked`, `d.env.Definition.HooksAt(BeforeModel)`},
	{"ask a model in place of the answer of a hook", "(*decision).wantsAnotherCall",
		`t.HookAnswer == nil && (`, `(`},
	{"a timer outlives a clear", "(*decision).drop",
		`d.cancelSchedules(by, reason)`, ``},
	{"a cron line fires only once", "(*decision).fire",
		`!next.IsZero()`, `next.IsZero()`},
	{"a cron line catches up one by one", "(*decision).nextTime",
		`!next.IsZero() && !next.After(d.env.Now)`, `next.IsZero()`},
	{"a scheduled input loses its policy", "(*decision).fire",
		`in := *sc.Input`, `in := *sc.Input; in.Policy = ""`},
	{"a summary without reported usage is free", "(*decision).summarized",
		`ev.Unknown, ev.Tokens, ev.Cost = true, c.Tokens, c.Cost`, `ev.Unknown = true`},
	{"take a summary of another history", "(*decision).summarized",
		`DigestBefore(c.Upto) != messages.Digest(c.Digest)`, `DigestBefore(c.Upto) == "-"`},
	{"a summary outlives its turn", "(*decision).endCalls",
		`d.dropSummary(t.ID, why)`, ``},
	{"a summary is made while its turn is paused", "(*decision).pause",
		`d.dropSummary(d.s.Turn.ID, "the turn was paused")`, ``},
	{"lose a summary with its process", "(*decision).recover",
		`if summary != nil && summary.Turn == t.ID && t.Exceeded == nil { d.lostSummary() }`, ``},
	{"try a summary without end", "(*decision).retrySummary",
		`c.Attempt >= maxSummaries`, `c.Attempt >= 100*maxSummaries`},
	{"start with the newest input", "(*decision).step",
		`d.start(s.Inputs.Queued[0])`, `d.start(s.Inputs.Queued[len(s.Inputs.Queued)-1])`},
	{"leave a child running when its turn ends", "(*decision).endCalls",
		`d.stopChild(c, why)`, ``},
	{"take an older report of a child", "(*decision).report",
		`c.N <= call.Child.N`, `c.N == 1<<40`},
	{"lose a decision that is on its way", "(*State).due",
		`s.Outbox.Cancels(m.Turn, m.Call) == nil`, `false`},
	{"forward a decision to a child that is to stop", "(*State).due",
		`s.Outbox.Cancels(m.Turn, m.Call) == nil`, `true`},
	{"forget that the outcome of a forwarded decision is owed", "(*State).Open",
		`len(s.sends()) > 0`, `len(s.Ends()) > 0`},
	{"take a refused decision for an applied one", "(*decision).decisionEffect",
		`Refused: c.Refused,`, ``},
	{"start a task that was taken back", "(*decision).task",
		`task != nil`, `task != nil && task.N != 0`},
	{"give a child more than is left", "(*decision).share",
		`b.used.Add(out)`, `b.used`},
	{"one level of children more than allowed", "(*decision).share",
		`len(t.Callers) >= messages.MaxCallers`, `len(t.Callers) > messages.MaxCallers`},
	{"run a call of an answer that was cut off", "(*decision).answered",
		`messages.CutOff(finish)`, `false`},
	{"pass a decision about an own call to a child", "(*decision).forward",
		`(own.Outcome == projections.CallWaiting || own.Outcome == projections.CallUnknown)`, `own.Outcome.Final()`},
	{"continue while a child waits for a person", "(*decision).stepCalls",
		`len(t.Waiting()) > 0`, `t.Count(projections.CallWaiting)+t.Count(projections.CallUnknown) > 0`},
}

// folded are mistakes in the folds that the machine's state is made of.
var folded = []fault{
	{"hooks continue a turn without end", "(*TurnState).hookDecided",
		`ev.Note != "" && t.Again == ""`, `ev.Note != ""`},
	{"start a gated call ungranted", "(*ToolCall).ask",
		`c.leave(CallWaiting)`, `c.leave(CallRequested)`},
	{"count a reservation beside the use", "UsedBy",
		`ev.Unknown {`, `ev.Unknown || ev.Tokens > 0 {`},
	{"count a failed attempt's use twice", "useOf",
		`usage, cost, expected := UsedBy(e.Event)`, `usage, cost, expected := UsedBy(e.Event); if e.Is(messages.Failed) { usage = usage.Add(usage) }`},
	{"require a tool in every step", "(*TurnState).apply",
		`t.ToolUsed = t.ToolUsed || asksForTool(ev)`, ``},
	{"do not count what a summary used", "useOf",
		`usage, cost, expected := UsedBy(e.Event)`, `usage, cost, expected := UsedBy(e.Event); if e.Is(messages.Summarizes) { return Use{} }`},
	{"lose what a child has used", "childEndOf",
		`return childEnd{ChildFailed, ev.Message, ev.Used}`, `return childEnd{ChildFailed, ev.Message, messages.Used{}}`},
	{"a resumed turn forgets what had its effect", "(*TurnState).continues",
		`slices.Clip(e.Done)`, `nil`},
	{"forget to stop a child", "(*Outbox).apply",
		`o.add(OutboxMessage{Kind: CancelChild,`, `_ = (OutboxMessage{Kind: CancelChild,`},
	{"do not report how a task ended", "(*Outbox).end",
		`o.report(task, n)`, ``},
	{"send an old report beside the new one", "(*Outbox).add",
		`|| m.Kind == ReportToParent && old.reports(m.Input)`, ``},
	{"forget how far the removal goes", "(*Life).Apply",
		`Upto: ev.Upto`, `Upto: messages.Extent{}`},
	{"remember a denial as a grant", "decisionOf",
		`Decision: Denied`, `Decision: Granted`},
	{"a decision outlives a clear", "(*Decisions).Apply",
		`messages.ClearsAgent`, `messages.EndsAgent`},
	{"a scheduled input comes twice", "(*Timers).over",
		`sc.Cron == ""`, `sc.Cron == "-"`},
	{"wait for the latest timer first", "(*Timers).Next",
		`sc.At.Before(next.At)`, `next.At.Before(sc.At)`},
	{"requeue at the end of the queue", "(*Inputs).requeue",
		`at := 0`, `at := len(q.Queued)`},
	{"admit a steered input twice", "(*Inputs).apply",
		`e.Is(messages.AdmitsInputs | messages.EndsInput)`, `e.Is(messages.BeginsTurn | messages.EndsInput)`},
	{"part a call from its result", "(*History).cutAt",
		`&& open == 0`, ``},
	{"compact the input of the running turn", "(*History).staysIn",
		`!h.together(e.turn, turn)`, `e.turn != "-"`},
	{"compact what a resumed turn was asked", "(*History).started",
		`h.continued = append(slices.Clip(h.continued), ev.Turn)`, `h.continued = nil`},
}

// faultSteps is within how many steps a fault must be found.
const faultSteps = 400_000

// table returns all faults.
func table() []faulttest.Fault {
	return append(in("", faults), in("../../projections", folded)...)
}

// in returns faults of the package in folder dir.
func in(dir string, faults []fault) (list []faulttest.Fault) {
	for _, f := range faults {
		list = append(list, faulttest.Fault{Name: f.Name, Dir: dir, Func: f.Func, Old: f.Old, New: f.New})
	}
	return list
}

func TestFaultsFit(t *testing.T) { faulttest.FaultsFit(t, table()) }

// TestFaults needs a build for each fault: make test-faults.
func TestFaults(t *testing.T) { faulttest.Faults(t, "turn", "steps", table()) }

// TestHunt searches for the first run that breaks a rule.
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
		faulttest.Found{Seed: seed, Took: steps + err.steps, Shortest: short.left(), What: ruleOf(err)}.Print(t)
		return
	}
}
