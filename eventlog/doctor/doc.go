// Package doctor reads a whole event log through and says what is wrong with it,
// and where.
//
// # What is checked
//
//   - log: of every frame numbering, chain, epoch, checksum, format, and headers
//     against the frame. An agent is followed up to its first damage.
//   - foreign: messages on agents' subjects that are no frames.
//   - blob: that each payload that a frame names is stored with its size and, if it is
//     to look deep, its hash; and that each stored one is named, if it is to look
//     deep also those of agents that have no log.
//   - key: that an agent whose frames are encrypted has their key, that a wrapping key
//     opens it, and that no key is left of an agent that was deleted or never was.
//   - what [Config.Checks] adds, such as snapshots against replay.
//
// # Guarantees
//
//   - It changes nothing, unless asked to repair; then it removes what can be made
//     again or is named by nothing, and never a frame.
//   - Each shard is read once, in order, at a bounded rate, and never more than one
//     frame of it is held; what is kept is a tail and the names of payloads for
//     each agent of one shard.
//   - An agent that changes while it is examined is not called ill for that.
//   - What was lost at the end of an agent's log cannot be seen in the log alone.
package doctor
