// Package encrypted encrypts the data of each agent under a key of its own. It wraps any
// [eventlog.Log]: what is written through it can be read through it, and what the wrapped log
// stores is encrypted.
//
// # What is encrypted
//
// The data of events, the texts of a frame's cause, blobs and snapshots. Subjects, headers, ids,
// numbers, times and the types of events are not, because lists and recovery read them. Nor are
// definitions, which belong to no agent, and frames whose events may all be stored in clear (an
// owner's activation, the agent's deletion). What was written before encryption was turned on
// stays readable, and stays plain.
//
// # Keys
//
// An agent's key, 32 random bytes, is made with its first encrypted frame. It is kept in a
// [Bucket], wrapped by the key that the operator holds, and nowhere else: once it is erased
// there, no copy of the agent's log can be read. Several wrapping keys may be given: the first
// wraps, all unwrap. [Open] refuses wrapping keys that are not those of the store.
//
// A bucket may be copied ([Copy]): keys stay wrapped. Before a key is put back ([PutBack]), and
// again afterwards, the caller is asked whether the agent's present life is encrypted with it, so
// that an agent that was deleted after the copy stays unreadable. A delete appends its tombstone
// before it looks for the key: either it finds the key and erases it, or the second answer is no.
// A process that is killed between the two may leave the key of a deleted agent, which doctor
// reports.
//
// # Algorithms
//
// AES-256-GCM. A frame's events and a snapshot are encrypted with a synthetic nonce, 96 bits of
// HMAC-SHA256 over the plain bytes and the context, so that the same frame encrypted again is the
// same bytes (as in SIV modes, RFC 5297). Blobs are encrypted in segments as in STREAM (Hoang,
// Reyhanitabar, Rogaway and Vizár, 2015), so that neither side holds a whole one. Keys are
// derived with HKDF-SHA256 (RFC 5869).
package encrypted
