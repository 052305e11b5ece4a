// Package messages holds the words that every other room agrees on: the
// address of an agent, the commands it may be given, the events that happened
// to it, the frame they are stored in, the subjects they travel on and the
// errors a person may meet.
//
// # Guarantees
//
//   - Nothing here acts: no clock, no goroutine, no network, no file.
//   - A decoder never panics and never recurses without a bound, whatever the
//     bytes: bad input is an error that says what was refused and where.
//   - What was encoded decodes to the same value; a frame of every released
//     format decodes for ever (upcasters lift old schema versions).
//   - A frame with a flipped bit, a newer format or an unknown event is refused
//     with its place and never read in part.
//
// # Stability
//
// Subjects, bodies, the frame and the JSON names of events are promises to
// users; Go names may change until v1.
package messages
