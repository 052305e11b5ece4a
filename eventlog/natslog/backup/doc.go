// Package backup writes the streams of an installation to one file while it
// runs, and makes an installation of such a file.
//
// # File
//
// A tar archive. What the server sends of a stream is compressed (S2) already,
// so the archive is not.
//
//	reprise.json          format, who wrote it, root, when it was begun
//	<stream>/<n>          the server's snapshot of the stream, in parts, n = 000001 …
//	manifest.json         reprise.json's fields again, when it was ended, and of each stream its
//	                      configuration, counts, parts, size and SHA-256
//	manifest.sha256       SHA-256 of manifest.json, hex
//
// A file without its end is refused, and so is one whose parts do not match.
//
// # What is in it, and in which order
//
// The work queue comes first, then dead letters, then the logs, then definitions
// and payloads. An input leaves the queue after its frame or its dead letter is
// stored, so that what has left it before its snapshot is in a later one;
// what is in both has one effect, by its id. A definition or payload is stored
// before the frame that names it, so that the later snapshot has it.
//
// Snapshots of folds are left out, as a cache, and so are leases and members,
// which speak of nodes that are not there, and marks, which Restore begins again with
// what it put back. The bucket of keys (KV_<root>_keys) is
// left out on purpose: a backup must not come with the keys to it. Keep
// it apart, or what was encrypted cannot be read again.
//
// # Keys
//
// A copy of the keys is a file of its own, of lines of JSON:
//
//	{"file":"reprise keys", …}   format, root, the store's name, what identifies its wrapping keys
//	{"agent":"t/kind/key", …}    a key, wrapped, one line each
//	{"keys":n,"left_out":n}      how many
//	{"sha256":"…"}               of all lines before it, hex
//
// Take it after a backup: an agent that began between them is in one of them alone,
// and one that was deleted between them must be in none that can be read. Only the
// newest copy may be kept, for older ones have the keys of agents that were deleted
// since.
//
// A key is put back only into the store that it was copied from, or one restored
// from its backup; only for an agent whose present life is encrypted with that very
// key; and never over another one, unless that is damaged.
//
// # Guarantees
//
//   - Every input and frame that was acknowledged before Write was called is in
//     the file.
//   - Each stream is as it was at one moment, not all at the same one: a restored
//     agent continues from its newest frame in the file as after a crash then.
//   - An agent that is deleted while Write runs is not restored: some of it would be
//     in the file and some not. Of one whose deletion ends then only its tombstone is.
//   - Numbers stay: a message has the sequence that it had, and the ids that inputs
//     without one get are the same (natslog.Origins).
//   - Restore writes nothing unless the whole file has been checked.
//   - No node starts on an installation that is not restored whole.
//   - Memory does not grow with the store.
package backup
