// Package actors runs agents: it replays an agent's events, asks actors/turn what
// follows from a command, appends that, and only then acts.
//
// A program that starts nodes with package cluster needs [Definition], [Hook], [Compaction] and
// [AsTool] from here. Package cluster uses the rest.
//
// # Guarantees
//
//   - No model and no tool is called before the frame that intends the call is
//     acknowledged by the log.
//   - A command is answered after its events are in the log, and never when
//     they are not.
//   - An agent loads and appends on its mailbox's own goroutine. Models, tools and hooks run
//     beside it and report back by message, so that an interrupt takes effect while a model
//     call runs.
//   - A partition waits for no agent. It admits to each a bounded number of commands and
//     bytes, and refuses the others at once as unavailable.
//   - A bounded number of agents is activated at the same time, on a node and in a partition.
//     Agents that are active do not wait for that.
//   - Agents in memory are bounded by number, bytes and idle time: the least recently used
//     leave first, and none that is at work.
//   - An agent that loses its fence stops at once and cancels what it began;
//     nothing it does afterwards reaches the log.
//   - An agent whose log is damaged answers with the damage and is left
//     untouched; its neighbours continue.
//   - No message is lost to passivation: a partition keeps those that arrive
//     while an agent leaves memory and hands them to the next activation.
//   - Every command is answered: also by an agent that stops, that fails to be
//     loaded or written to, or that panics. An agent that failed and may owe work
//     is activated again by itself, after pauses that grow to half a minute.
//   - A panic in a tool, a provider or an observer stays there.
//
// The wiring is narrow on purpose: protoactor provides mailboxes, supervision and
// identities; everything durable is in eventlog.
package actors
