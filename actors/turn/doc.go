// Package turn is the machine inside every agent: what it decides when an
// input arrives, a model answers, a tool fails, a person interrupts, a process
// comes back.
//
// It has no clock, no context, no goroutine and no door. [State.Decide] turns a
// command or an outcome into events; [State.Apply] folds events that were read
// from the log; [State.Effects] lists what must now be done in the world.
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
// A delete ends what runs and waits, in a frame that has no command as its cause, then
// the agent itself (agent.deleted, alone in its frame). In between the caller stores what
// the agent owes to others ([State.Ends]); after it the caller removes everything
// stored before. From there on the agent is one that was never sent anything, but for its
// numbers.
//
// # Guarantees
//
//   - The same state, environment and command always give the same events.
//   - A refusal changes nothing.
//   - One turn at a time; every accepted input ends with exactly one terminal
//     event that lists it.
//   - No effect is listed before the event that intends it exists, and no
//     finished call is listed again.
//   - A gated call never runs before it was approved, and no model is called
//     before every call of the step has its outcome.
//   - No model call exceeds a limit by more than the error of its reservation; at
//     most max_steps are made, however often a hook asks to go on.
//   - Every timer that is set fires or is cancelled. One of a turn does not outlive
//     it, one that brings an input does not outlive a clear.
//   - Folding the events of a stream gives the state that lived through them,
//     but for what the state's comments call volatile.
//   - Results of calls that are no longer awaited change nothing.
package turn
