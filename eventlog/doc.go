// Package eventlog keeps what happened to each agent, in order. It is the only
// place that says what happened; everything else is folded from it.
//
// # Guarantees
//
//   - The events of one frame are seen together or not at all.
//   - Within an agent, event numbers are 1, 2, 3 … without gaps.
//   - Of two appends that expect the same position, at most one succeeds; the other
//     gets a [ConflictError]. This fence, not any lease, is what decides who
//     can write.
//   - Appending the identical frame again, while it is the newest, succeeds and
//     stores nothing: an append whose outcome is unknown may be repeated until
//     it is resolved, and nothing else may be tried before.
//   - A damaged stream is refused with its place ([DamageError]) and left
//     untouched; a foreign message on an agent's subject is reported and
//     skipped, never folded.
//   - Readers may see a frame before the Append that wrote it returns.
//   - A purge takes history away and nothing else: it leaves the newest frame,
//     and with it the fence. The first frame of an agent is event 1, or a
//     tombstone ([Deleted]) behind which numbering continues.
//   - Blobs are kept like frames, without a time limit and per agent; snapshots
//     are a cache, of which all may be gone at any time.
//
// memlog keeps it in memory, natslog in JetStream; logtest is the suite that
// both pass.
package eventlog
