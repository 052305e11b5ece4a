// Package embedded runs a NATS server with JetStream inside the process, for
// one node that needs nothing else. [Start] it on a folder, [Server.Connect] to
// it, and hand the connections to natslog.Open. [Examine] and [Salvage] read a folder on
// which no server runs.
//
// # Folder
//
//	VERSION    format of the folder, then who wrote it:  1 reprise v0.1.0
//	LOCK       held by the one process that uses the folder; holds its process id
//	PROBE      there for a moment while [Server.Room] looks whether there is room
//	OPEN       there while a server runs, and after one that was killed
//	damaged/   streams of the log that are not opened, see [Server.Damaged]
//	quarantine/ what [Quarantine] took out: files as they were, and a report
//	jetstream/ the server's own
//
// # Guarantees
//
//   - Two processes never share a folder.
//   - A folder of a newer format is refused and left untouched.
//   - With [SyncAlways], the default, what was acknowledged survives power loss.
//   - What a killed server left is verified before a server opens it: no start drops
//     what was acknowledged and cannot be read.
//   - It handles no signals and never exits the process.
package embedded
