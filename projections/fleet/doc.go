// Package fleet folds the logs of all agents together into an SQLite file: which
// calls wait for a person, what tools did, and what models used, across the
// fleet, with filters.
//
// # Guarantees
//
//   - The file is a cache of the log. Delete it, or let it be damaged: it is
//     built again from the log and gives the same answers.
//   - A batch, the shards' positions and what the folds must remember are
//     committed in one transaction: a process that is killed at any moment goes
//     on where the file says, and counts nothing twice.
//   - A file of another version of the folds, a damaged one, and a shard whose log
//     is not the one it was read from are thrown away and built again. What harms a
//     file that is open is noticed by whoever meets it, a query too ([Store.Broken]);
//     what still reads as if a fold had written it, only a replay finds.
//   - A file has one Store at a time, of all processes: another one is refused.
//   - Of a deleted agent nothing stays, neither in the file nor in what SQLite has
//     beside it, once the batch that tells of the deletion is committed.
//   - A frame that can never be read is counted and reported; everything else goes
//     on. One that cannot be read now is not passed over ([ErrLater]).
//   - What is asked comes in an order that does not change while pages are read,
//     and that is the same on every node.
//
// The folds are those of package projections: [projections.Effects] and
// [projections.Usage].
package fleet
