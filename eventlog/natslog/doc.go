// Package natslog keeps the event log in NATS JetStream. Open it with
// connections made by [Connect], or by natslog/embedded for a server inside the
// process.
//
// # Streams
//
// ROOT is the root of the subjects in upper case, so that two installations
// can share a server.
//
//	ROOT_LOG_<n>  n = 0…15   <root>.log.<p>.>  for p = 4n … 4n+3    kept for ever
//	ROOT_DEF                 <root>.def.<sha256, hex>               one message each, for ever
//	ROOT_IN                  <root>.in.> <root>.ctl.> <root>.inq.>  work queue
//	ROOT_DLQ                 <root>.dlq.>                           30 days
//
// ROOT_IN stores <root>.<in|ctl>.<tenant>.<kind>.<key> as
// <root>.inq.<p>.<in|ctl>.<tenant>.<kind>.<key>.
//
// # A frame
//
// One message on <root>.log.<p>.<tenant>.<kind>.<key>. Its body is the frame as
// messages.EncodeFrame wrote it, byte for byte. Its headers, each value one
// line of fields with one blank between:
//
//	Nats-Expected-Stream                 ROOT_LOG_<n>
//	Nats-Expected-Last-Subject-Sequence  sequence of the newest message on the subject, 0 for none: the fence
//	Reprise-Frame    format id epoch first last time    1 01JZX4… 3 17 19 1767225600000000000
//	Reprise-Events   event types, eventlog.Entry.Types  model.completed tool.requested tool.started
//	Reprise-State    phase turn owes due waiting        paused t5 - 1767225700000000000 2
//
// format is the frame's format version; epoch, first and last are decimal;
// time and due are nanoseconds since 1970. In Reprise-State a dash stands for
// no turn, nothing owed and no timer; waiting is how many calls wait for a
// person, and a line without it (v0.1.0 wrote none) says 0. Fields may be added
// at the end of a line.
// A message without Reprise-Frame is foreign: it is reported and skipped.
//
// # Guarantees
//
//   - Whatever decides who owns an agent is read from the stream's leader,
//     never by direct get, which may be stale.
//   - No Nats-Msg-Id is set: the window for duplicates is per stream and
//     forgets. That a frame is stored once is the fence's doing.
//   - A foreign message moves the fence and nothing else: [Log.Tail] gives the
//     newest frame with the sequence of the newest message, and Append finds
//     the new fence by itself.
//   - Nothing waits for ever: an append gives up after two seconds with its
//     outcome unknown, a reader that gets nothing ends with an error.
package natslog
