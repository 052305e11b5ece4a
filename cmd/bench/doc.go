// Package bench measures a node beside the JetStream it stands on. `reprise
// bench` prints what [Run] finds.
//
// # What is compared
//
//   - The ceiling is raw appends: the four frames of an ordinary turn, as read
//     from the log, with their headers, stream and expected sequence, to the
//     subjects of the same agents in the same streams, one outstanding per
//     agent. It uses connections of its own and the fastest client tried here:
//     one reply subscription a connection and a channel per agent. That is as
//     fast as publishing from the reply's callback, and up to twice as fast as
//     jetstream.PublishMsg with 64 agents or more.
//   - The runtime is turns of two model calls and one tool call, asked through
//     the prompt door, one outstanding per agent; model and tool take no time,
//     so that all of a turn's latency is added. A worker takes a new agent
//     after [turnsEach] turns: what is measured is the runtime, not the
//     copying of ever longer histories.
//   - Raw windows lie before and after the runtime's, on streams that were
//     emptied before each, and without the node, whose followers and doors are
//     the runtime's cost. Their mean is what ratios are to.
//   - CPU, allocations and goroutine runs are the whole process's: the embedded
//     server, the node and its clients. Nothing is subtracted. The CPU of raw
//     appends is that of the server and the publishers. Goroutine runs are
//     estimated: the scheduler measures one in eight.
//
// Nodes without snapshots, with them, and with the index beside them
// take turns, and none is always the first; each ratio is the median of those of
// the rounds. Windows are longer there, since the index is written every few seconds.
//
// The index is measured on a file of its own, from frames that are
// decoded as those of a log; writing those frames is not counted. Of pages the
// slowest of five is told, as its rows would be sent.
//
// The figure growth lets 8 agents work up to a length, and then divides the CPU time and
// the bytes that the process allocates by the turns around that length: 8 to 12 for turn
// 10, 950 to 1,050 for turn 1,000. These nodes keep no index.
//
// The figure waiting holds agents in model calls that do not return, and subtracts what
// the node takes without them. The askers are in the process: of the memory and the
// goroutines of an agent that is asked, theirs are a part. Messages are those that a
// subscriber of every subject receives, and are counted while CPU is not.
//
// The agents of activation that have processed many ids have a short history and so many
// commands that changed nothing.
//
// # A bare loop, and a node as users run it
//
// The figures http and serve compare turns with a loop that calls the same model
// server and appends each message to a file, with an fsync before the next step.
//
//   - The loop and the model server are child processes, with Go's defaults and the
//     user's environment: what this process sets up for its node, such as GOMAXPROCS,
//     changes neither. CPU of the loop is that of its process.
//   - http runs the node and its client in this process, with answers streamed and
//     whole; its CPU is that of both.
//   - serve runs the program itself: reprise serve with a reprise.yaml and an embedded
//     server, and a client in a third process that uses nats.go and the prompt protocol
//     over TCP. Model answers are streamed. Its CPU is that of reprise serve alone,
//     as Linux counts it, in steps of 10 ms; elsewhere the row is left out.
//   - Loop and node do the same plan: rounds of new agents with a few turns each, so
//     many at once, after a round to warm up.
//
// # Two builds
//
// [Against] measures a figure with two programs in turn, one directly after the other,
// and which of them is first changes with each pair. It prints the median of each and
// the median of the ratios of the pairs, in which the speed of the machine at that
// time cancels out. A ratio within a run, such as frames / raw appends, is compared
// as a row of its own.
//
// # A cluster
//
// The figure cluster runs each node in a process of its own, and one NATS server or
// three in this one; all share the machine's cores and its disk.
//
//   - The server chooses the door that an ask goes through; nodes count the prompts
//     at theirs, which tells an ask of an agent at the door's node from one of an
//     agent at another. Beside each of them stands the least that it takes: a request
//     to a node's process and the four appends of a turn, one after the other.
//   - A load asks one agent of each partition every 50 ms. A pause is told as the
//     longest ask: it holds what the ask takes anyway and what its client waits
//     before it asks again. An ask that found no answer within 10 s has failed.
//   - A kill is SIGKILL, while models of the node's agents do not answer. The times
//     are those at which the server stored each agent's next frame.
//   - A share that stays uneven, and agents that do not come back, are told, not hidden.
//
// # Guarantees
//
//   - Every ratio is to something measured in the same run, on the same store,
//     with as many agents.
//   - Nothing is left behind: folders, processes and connections end with Run,
//     also when it fails or its context does.
package bench
