// Package turn decides what an agent does: when an input arrives, a model
// answers, a tool fails, a person interrupts, or a process starts again.
//
// It has no clock, no context, no goroutine and no I/O. [State.Decide] turns a
// command or an outcome into events; [State.Apply] folds events that were read
// from the log; [State.Effects] lists the effects that must be under way.
//
// # What the caller does, in this order
//
//  1. Load: [State.Apply] every frame of the agent's log, or those after a snapshot
//     ([Snapshot.State]). No effect of the loaded state is under way.
//  2. After a takeover, append what [State.Activate] returns, and in the same frame
//     what [State.Decide] returns for [Recover]: calls that were cut off run again or are
//     unknown. Under the same epoch decide Recover alone.
//  3. Decide a command or an outcome. An error is a refusal, and changes nothing.
//  4. Append the events as one frame, then [State.Record] that frame. If the append fails, or
//     its outcome is not known, drop the state, which is ahead of the log, and load it again.
//  5. Compare [State.Effects] with the effects under way: begin those that are new, cancel
//     those that are not listed any more.
//  6. Decide the outcome of each effect, as in 3. Outcomes that arrive together may share a
//     frame.
//
// A delete ends what runs and waits, in a frame that has no command as its cause, then
// the agent itself (agent.deleted, alone in its frame). In between the caller stores the
// messages that must not be lost with it ([State.Ends]); after it the caller removes everything
// stored before. After that the agent is as if nothing was ever sent to it, but for the numbers
// of its events.
//
// # The states of a turn
//
//	        input                 no more calls, a stop tool, a hook
//	idle ──────────▶ running ───────────────────▶ completed
//	 ▲                │ ▲ │  model, limit or hook
//	 │                │ │ ├──────────────────────▶ failed ── resume ─▶ a new turn
//	 │ next in queue  │ │ │  interrupt, abort, clear
//	 └────────────────│─│─┴──────────────────────▶ aborted
//	                  ▼ │ approve, deny, decide, resume, or an expiry
//	                paused  (approval, unknown outcome, hook, limit, a child that waits)
//
// Within a step of a running turn:
//
//	  ┌────────────────────────────────────────────────────────────────────────────────┐
//	  ▼                                                                                │
//	(summary) ─▶ (hooks before the model) ─▶ model ─▶ calls, up to Parallel at once ───┤
//	                                           ▲ │                                     │
//	                                           └─┘ retry, fallback     no more calls   ▼
//	                                                      completed ◀─ (hooks at the end)
//
// # What comes next
//
// A command or an outcome records its own events alone. Then Decide takes one step after
// the other, the first of this table that applies, until the agent waits:
//
//	if                                               then
//	the definition is unknown                        wait
//	no turn runs, and none is queued, or as many
//	began by this command as may (three)             wait
//	no turn runs                                     start the turn of the first input
//	the turn is paused for calls that can continue   resume it
//	the turn is paused                               wait
//	a limit is reached, and the definition fails it  fail the turn
//	a model or hooks are asked                       wait
//	a summary is being made                          wait, or pause if a limit is reached
//	a hook has ended the turn                        skip the calls that have not begun
//	a call may start                                 start it
//	a call runs                                      wait
//	a hook wants a person                            pause
//	a limit is reached, and calls have not begun     pause
//	calls are left to the agent's next owner         wait
//	calls wait for a person, here or below           pause
//	the turn has its answer, and no other model
//	call is requested, or allowed by its limits      ask the hooks at its end, then complete it
//	the next request is too large                    compact the history
//	a limit is reached                               record that; then fail or pause
//	hooks must see the request                       ask them
//	else                                             request the model call
//
// # Guarantees
//
//   - The same state, environment and command always produce the same events.
//   - A refusal changes nothing.
//   - One turn at a time; every accepted input ends with exactly one terminal
//     event that lists it.
//   - No effect is listed before the event that requests it, and no finished
//     call is listed again.
//   - A call that requires approval never runs before it was approved, and no
//     model is called before every call of the step has its outcome.
//   - No model call exceeds a limit by more than the error of its reservation; at
//     most max_steps are made, however often a hook asks for another one.
//   - Every timer that is set fires or is cancelled. One of a turn ends with the
//     turn, one of a scheduled input with a clear.
//   - Folding the events of a log yields the state that decided them, but for the
//     fields that are called volatile.
//   - Results of calls that are not awaited any more change nothing.
package turn
