// Package rerun passes the recorded inputs of an agent to a model of today, or its recorded calls to the
// tools of today, and compares what comes of it with the record. It answers what another model or
// another prompt would have done, where package verify answers whether the same would be decided.
//
// # Guarantees
//
//   - Nothing is appended to a log and no other agent is asked: the agent that runs again lives in
//     memory, under the address of the recorded one, and ends with the run.
//   - A tool has the result that is on record for the same call, by the rule of dry forks: the n-th
//     call of a tool with equal arguments has the result of the n-th recorded one. It runs only if
//     [Options.Tools] allows it, and then under an idempotency key that no call had before.
//   - What is not on record is never made up. The model reads that there is no result, or that the
//     call is denied, and the call is listed in [Result.Unrecorded].
package rerun
