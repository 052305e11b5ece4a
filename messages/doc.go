// Package messages holds what the other packages agree on: the address of an agent, its
// commands, its events, the frame that events are stored in, the subjects of messages and
// the errors that users see.
//
// # Guarantees
//
//   - Nothing in it acts: no clock, no goroutine, no network, no file.
//   - A decoder never panics and never recurses without a bound, whatever the
//     bytes: for bad input it returns an error that names what was refused and where.
//   - What was encoded decodes to the same value. A frame of every released format can
//     always be decoded (upcasters convert old schema versions).
//   - A frame with a flipped bit, a newer format or an unknown event is refused
//     as a whole, with the number of the event.
//
// # Stability
//
// Subjects, bodies, the frame and the JSON names of events are promises to
// users; Go names may change until v1.
package messages
