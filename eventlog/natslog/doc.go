// Package natslog keeps the event log in NATS JetStream. Open it with
// connections made by [Connect], or by natslog/embedded for a server inside the
// process.
//
// # Streams
//
// ROOT is the root of the subjects in upper case, so that two installations
// can share a server.
//
//	ROOT_LOG_<n>  n = 0…15   <root>.log.<p>.>  for p = 4n … 4n+3    kept forever
//	ROOT_DEF                 <root>.def.<sha256, hex>               one message each, forever
//	ROOT_BLOB_<n> n = 0…3    <root>.blob.<p>.>  for p = 16n … 16n+15  one message each, forever
//	ROOT_SNAP                <root>.snap.>                          one message each, the newest
//	ROOT_IN                  <root>.in.> <root>.ctl.> <root>.inq.<p>.>  work queue
//	ROOT_DLQ                 <root>.dlq.>                           30 days
//	ROOT_RESTORE             <root>.restore.>                       while a backup is restored
//
// A restored ROOT_IN has metadata reprise-origins; see [Origins].
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
// time and due are nanoseconds since 1970. In Reprise-State owes is open (work), replies (the
// frame has facts for subjects that inputs named) or open+replies, and a dash stands for
// no turn, nothing owed and no timer; waiting is how many calls wait for a
// person, and a line without it (v0.1.0 wrote none) says 0. If the newest turn that ended
// has failed, failed:<reason> follows. Fields may be added at the end of a line.
// A message without Reprise-Frame is foreign: it is reported and skipped.
//
// # Blobs and snapshots
//
// Both are cut into chunks of 224 KiB, or of half of the server's max_payload if
// that is less. A chunk is one message:
//
//	<root>.blob.<p>.<tenant>.<kind>.<key>.<sha256, hex>.<chunk>
//	<root>.snap.<p>.<tenant>.<kind>.<key>.<name>.<chunk>
//
//	Nats-Expected-Stream   the stream
//	Reprise-Chunk          sha256 chunk chunks size crc32c    9f86d0… 0 47 10485760 1c291ca3
//
// sha256 and size are the whole's, crc32c is the chunk's; chunks are counted from
// 0. An empty blob or snapshot is one empty chunk.
//
// The last chunk of a blob is stored when all others are: it shows that the blob
// is there. A place that is taken refuses what comes (discard new per subject),
// so that storing a chunk again is harmless. The streams are fsynced as the log
// is.
//
// A chunk of a snapshot replaces the one before, chunk 0 last, so that a crash in
// the middle leaves a mix of two, which counts as none. With one replica the
// stream's persist_mode is async: a put waits for no disk, not even with
// sync_always, and a crash of the server may take the newest snapshots. It
// knows no such mode for more replicas; there a snapshot costs what a frame does.
// Nor does it change the mode of a stream: [Scale] creates this one again.
// In the place of a chunk that is removed stands a message without data, with the
// header Reprise-Chunk: removed.
//
// Both are read by direct get, which any replica answers. A blob is what its hash
// says, and where a replica is behind, its leader is asked. A snapshot may be an
// older one: its reader checks it against the log.
//
// # Reading on
//
// The fence in a frame's header is the sequence of the message before it on its
// subject. So [Log.Read] of what is new gets the newest message and then walks back by
// sequence, for a scan by subject looks at every block of the stream. Frames that were copied from another stream have no fence,
// and a walk would be long from far away: there a consumer scans from the known
// place on.
//
// A shard ([Log.ReadShard]) is a stream of the log.
//
// # Guarantees
//
//   - Whatever decides who owns an agent is read from the stream's leader,
//     never by direct get, which may be stale.
//   - No Nats-Msg-Id is set: the window for duplicates is per stream and
//     forgets. That a frame is stored once is the fence's doing.
//   - A foreign message moves the fence and nothing else: [Log.Head] returns the
//     newest frame with the sequence of the newest message, and Append finds
//     the new fence by itself.
//   - A purge leaves the newest message of an agent, and so the fence.
//   - Nothing waits forever: an append gives up after two seconds with its
//     outcome unknown, a reader that gets nothing ends with an error.
package natslog
