// Package chaos kills the real binary again and again while it works, and
// proves from outside that nothing it acknowledged was lost or doubled.
//
// It has no code of its own; the tests are the program. A node runs on one data
// folder, publishers load it through its endpoints, tools write down what they do
// in a file of their own, a person decides what only a person can, and a
// bookkeeper keeps every acknowledgement and every event that a reader was
// shown. A round ends with SIGKILL at an event that the seed chose: the nth
// acknowledgement, model call, tool before or after its effect, or fact. When
// all rounds are over, the books are held against the agents' logs.
//
// Agents ask others, two levels deep, whose gated calls the person decides at the root; some
// results are larger than a frame, some inputs come later, one kind is compacted, and all pass
// out of memory within a second. Children are deleted while their parents wait for them. Two
// agents are deleted again and again, and begin again under the same address with the same ids:
// nothing of an earlier life may be read, be stored or come again. The store is encrypted if the
// seed is even.
//
// Agents are forked at events that the seed chose, inside of turns and forks of forks too, and exports of
// them are imported under other addresses. Some of these use their tools, some are deleted with the forks
// below them, and some once their forks have copied their events: these read as before, and work on. Each must
// begin once, with the events and the history of its source; no dry call may reach a tool; and what it does
// later may be in no log but its own. In the end reprise verify must find every agent equal.
//
// TestCluster puts the same load, book and proof on a cluster of real processes, nodes
// and NATS servers of package clustertest, and harms it: nodes are killed, frozen past
// their membership, cut off, muted, stalled and stopped, others join and leave,
// servers are killed and frozen, and NATS is away for all. Half of the faults come with
// an event that the seed chose, and sometimes a tool that met it is held until the
// fault is over. Beyond the book, every agent's stored frames must follow one another
// under epochs that do not fall, no epoch may have been two nodes', and what clients
// appended to lists and read of them through any node must be linearizable; in the end
// partitions are even, and every node lists the living nodes alone. The servers force
// each message to disk. A run in which no partition moved has failed, and one of ten
// minutes in which the log refused no write of a node that was no owner any more, or no fork was detached.
//
// Pauses have upper bounds, by the times in the log: ten times the second in which agents
// continue elsewhere, for an agent that has work and waits for no one outside, and for all agents
// together. The time is added in which the test itself kept the servers away, held a tool
// or, in TestChaos, had no node, and once, where a pause meets such a fault, the largest of
// these: ten times the second in which agents continue after the servers are back, with three
// servers also ten times an election, or ten times the three seconds after which a node that
// hangs is given up. A run in which the test's own process stood still for a second is not
// judged by this.
//
//	make chaos ROUNDS=300
//	make chaos-cluster DURATION=1h SERVERS=3
//	go test ./cmd/internal/chaos -run TestChaos -args -rounds 40 -seed 7
package chaos
