// Package clustertest makes clusters of real processes and breaks them: nodes and
// NATS servers that run this very test program, with a wire of its own between
// each node and each server.
//
//	func TestMain(m *testing.M) { clustertest.Main(m) }
//
//	func TestKilled(t *testing.T) {
//		w := clustertest.New(t, clustertest.Nodes(3))
//		load := w.Load(clustertest.Publishers(8), clustertest.Agents(20))
//		load.Acked(100)
//		w.Node(0).Kill()
//		load.Acked(100)
//		load.Settle()
//		w.Prove()
//	}
//
// A node may be killed, frozen, stopped in order, cut off, and each of these
// undone; a server may be killed, frozen, and started again. The model that agents
// ask, the shop that their tools pay at and the publishers live in the test, outside
// of every node; so does the book that [World.Prove] holds against the log: it reads
// the streams as they are stored, and asks no node.
//
// # Guarantees
//
//   - Every process ends with the test, also one that is frozen, and also if the
//     test program itself is killed.
//   - Only loopback addresses are listened on.
//   - Nothing waits for a time: each method returns when what it names has come
//     about, and fails the test when the world's time is over.
//
// It runs where there are signals: on Unix.
package clustertest
