// Package blocks reads the message blocks of a NATS server's streams while no server has
// them open. [Verify] says which records cannot be read, [Quarantine] takes them out, [Copy]
// writes the good ones to another folder.
//
// When nats-server opens a stream whose index.db is missing or out of date, as after a
// kill, it reads every block, cuts each at the first bad record, and says so in its log
// alone: all that was acknowledged behind it is gone, and the file is cut as well. So the
// blocks are verified before a server opens them.
//
// # Format
//
// It is that of nats-server v2.15.2, read from server/filestore.go; the tests hold it
// against the server in go.mod. A block N.blk is a sequence of records, little endian:
//
//	length   4  of the whole record; the highest bit: there is a header
//	sequence 8  the highest bit: erased or skipped; the one below: a tombstone
//	time     8  nanoseconds since 1970; 0 in what was erased
//	n        2  length of the subject
//	subject  n
//	h        4  length of the header  } only if there is one
//	header   h                        }
//	body        the rest; of an erased record, noise
//	checksum 8  HighwayHash-64 of sequence, time, subject, header and body
//
// The key of the checksum is the SHA-256 of "stream-N". It does not cover the lengths: one
// that is wrong makes it fail, but for two. The length of the header moves the border
// between header and body; as a header ends at its first empty line, this is seen. The
// length of the subject does the same if there is no header: it is seen only if the
// subject becomes impossible, or by [Options.Check].
//
// Within a block sequences rise. A tombstone names a message that was deleted, in any
// block before. Compressed blocks, encrypted streams and files of more than 64 MiB are
// reported as unverified. Files of other names are passed over, as the server does.
//
// # Torn or damaged
//
// Bad bytes are torn, the rest of an unacknowledged write that a crash cut short, if
//
//   - they lie in the newest block,
//   - no good record is found behind them, and
//   - the stream reaches what is known to have been stored without them: [Options.Mark],
//     and the last sequence in index.db, and
//   - they are not one record of full length, unless the machine may have lost power: see
//     [Options.Killed].
//
// All else is damage, and so are a stream that ends below what is known to have been
// stored (but for one that has never stored a message: a server whose disk is full keeps
// sequence 1 of the first, which it refused, beside an empty block 1), an older block that
// is empty where sequences are missing that no tombstone names, a missing block that index.db names as the newest,
// and a meta.inf without its checksum. Other missing blocks are a [Gap]: a purge may have
// removed them.
package blocks
