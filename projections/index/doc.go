// Package index folds the logs of all agents into one SQLite file: which calls wait for
// a person, what tools did, what models used, and which events hold a word or an id, with
// filters.
//
// # Guarantees
//
//   - The file is a cache of the log. Delete it, or let it be damaged: it is
//     built again from the log and returns the same answers.
//   - A batch, the positions of the shards and the state of the projections are
//     committed in one transaction: after a process is killed at any moment, the
//     next one continues at the positions in the file and counts nothing twice.
//   - A file of another version of the projections, a damaged one, and a shard whose
//     log is not the one it was read from are dropped and built again. Damage to a
//     file that is open is found by the first read or write that meets it, a query
//     too ([Store.Broken]), and of a call's line by its checksum; another wrong row that
//     reads well is found only by a replay.
//   - A file has one Store at a time, of all processes: another one is refused.
//   - Nothing of a deleted agent stays, neither in the file nor in what SQLite keeps
//     beside it, once the batch with the deletion is committed.
//   - A frame that can never be read is counted and reported, and the rest is read.
//     A frame that cannot be read now stops its shard ([ErrLater]).
//   - No text of an encrypted frame is searched for words, or stored for that; what effects lists of
//     its calls is. At most projections.MaxSaid bytes of an event's
//     text are, and none that is kept as a blob.
//   - What an imported agent did before it was imported is found and listed as its own, and
//     deleted with it. So is what a fork has copied of its parent, marked as from before the fork.
//     What model calls used then is not counted.
//   - Rows come in an order that does not change while pages are read, and that is
//     the same on every node.
//
// The projections are [projections.Effects], [projections.Usage] and [projections.SaidBy].
package index
