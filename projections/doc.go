// Package projections folds an agent's events into views: what a model would see, the state,
// the turns, the list of agents, what each event of a log changed. Delete any, replay, and the
// same answer returns.
//
// Each fact has one fold, and no other package interprets events for it: others ask for traits
// and fields of events, or for what this package reads from them. Exceptions are tests that judge
// a log, and commands that show single events; the architecture test lists them. The state of the
// turn machine is composed of [Work], [Life], [Decisions], [History] and [State]; show,
// approvals and timers are renderings of the same types. The lists of all turns ([Turns]) and
// tool calls ([Effects]) apply the events of one turn or call with the same code as the
// running turn does ([Turn], [ToolCall]), and add the times and persons that only views show.
// What several folds read of an event, such as the outcome of a call or what a child waits
// for, one function reads from it; what all events of some types mean to a fold is a trait of
// theirs in package messages.
//
// # Guarantees
//
//   - A fold is pure: the same events yield the same view, on any machine, at
//     any time, and folding up to event n yields the view as it was when n was
//     the newest event.
//   - Folds never read a definition or a clock, and do no I/O.
//   - A fold never fails and never panics: what makes no sense changes nothing.
//   - Views are not safe for concurrent use and not to be copied once something
//     was applied; values they return belong to the caller, unless a
//     method says otherwise.
package projections
