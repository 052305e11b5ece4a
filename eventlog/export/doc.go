// Package export writes agents as a portable file, and reads it: what happened to each, the
// definitions that it followed and its large payloads, in clear.
//
// A file holds one agent or several, one after another. It is lines of JSON, usually
// compressed by gzip. The first name of a line's object names what the line is:
//
//	reprise     Head: whose events follow. It begins an agent.
//	definition  Definition: stands before the first frame that names it.
//	blob        Piece: a part of a payload, before the first frame that refers to it.
//	id          a frame, with its events for readers of JSON and its bytes for this program.
//	frames      End: counts, and the SHA-256 of the agent's lines before it.
//
// docs/reference/export.md describes each line field by field.
//
// # Guarantees
//
//   - What was written and is read again yields equal frames, in order.
//   - A reader yields nothing of a line that is damaged, and ends with an error that names the
//     line. That nothing is missing is certain only once the End of an agent has come.
//   - A file of a newer format, and a frame or event of a newer version, is refused with
//     messages.ErrNewer.
//   - The frames of a file are chained by digest as in a log. Digests differ from
//     those of the log where the agent is encrypted there, or something was redacted.
//   - Neither reading nor writing holds more than a line in memory, but for [Agents].
package export
