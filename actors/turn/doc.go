// Package turn is the machine inside every agent: what it decides when an
// input arrives, a model answers, a tool fails, a person interrupts, a process
// comes back.
//
// It has no clock, no context, no goroutine and no door. [State.Decide] turns a
// command or an outcome into events; [State.Apply] folds events that were read
// from the log; [State.Effects] lists what must now be done in the world.
//
//	        input                 no more calls
//	idle ──────────▶ running ───────────────────▶ completed
//	 ▲                │ ▲ │  model or limit
//	 │                │ │ ├──────────────────────▶ failed ── resume ─▶ a new turn
//	 │ next in queue  │ │ │  interrupt, abort
//	 └────────────────│─│─┴──────────────────────▶ aborted
//	                  ▼ │ decide
//	                paused  (a call's outcome is unknown)
//
// # Guarantees
//
//   - The same state, environment and command always give the same events.
//   - A refusal changes nothing.
//   - One turn at a time; every accepted input ends with exactly one terminal
//     event that lists it.
//   - No effect is listed before the event that intends it exists, and no
//     finished call is listed again.
//   - Folding the events of a stream gives the state that lived through them,
//     but for what the state's comments call volatile.
//   - Results of calls that are no longer awaited change nothing.
package turn
