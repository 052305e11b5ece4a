// Package sealed encrypts what a log keeps of each agent, under a key of its
// own. It stands around any [eventlog.Log]: whoever reads through it sees what
// was written through it, and nothing beyond it is ever plain.
//
// # What is sealed
//
// The data of events, the words of a frame's cause, blobs and snapshots.
// Subjects, headers, ids, numbers, times and the types of events are not: lists
// and recovery live on them. Nor are definitions, which belong to no agent, and
// frames that tell of nothing but an owner or the agent's end. What was written
// before sealing was turned on stays readable, and stays plain.
//
// # Keys
//
// An agent's key is made with the first frame that is sealed, of 32 random bytes.
// It is kept in a [Bucket], wrapped by the key that the operator holds, and
// nowhere else: once it is erased there, no copy of the agent's log can be read
// any more. Several wrapping keys may be given: the first one wraps, all unwrap.
// [Open] refuses wrapping keys that are not those of the store.
//
// A bucket may be copied ([Copy]): keys stay wrapped. What puts one back ([PutBack])
// must know that the agent's present life is sealed with it, so that an agent that
// was deleted after the copy stays unreadable. It is asked before the key is put
// back and after: a delete puts its tombstone into the log before it looks for the
// key, so that either it finds the key and erases it, or the second answer is no. A
// process that is killed in between may leave the key of a deleted agent, which
// doctor tells.
//
// # Algorithms
//
// AES-256-GCM. A frame's events and a snapshot are sealed with a synthetic nonce,
// 96 bits of HMAC-SHA256 over what is sealed and what it is bound to, so that the
// same frame sealed again is the same bytes (as SIV modes do, RFC 5297). Blobs
// are sealed in segments as STREAM does (Hoang, Reyhanitabar, Rogaway and Vizár,
// 2015), so that neither side holds a whole one. Keys are derived with HKDF-SHA256
// (RFC 5869).
package sealed
