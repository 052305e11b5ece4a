// Package verify decides recorded streams again: it feeds the turn machine of this version, with
// the definition of today, the commands, model answers and tool results that an agent's log
// records, and compares the events that come of them with the recorded ones.
//
// Nothing is run and nothing is written: no model is asked, no hook is, and tools are asked only which
// calls require approval, which has no effect.
//
// # Guarantees
//
//   - A stream is compared up to its first difference and no further: what follows from a
//     difference is none of its own.
//   - What cannot be decided again from the log alone is counted in [Result.Unchecked] and is
//     never taken for equal without a note.
//   - A damaged stream yields a [Result], never a panic.
package verify
