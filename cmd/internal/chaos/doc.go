// Package chaos kills the real binary again and again while it works, and
// proves from outside that nothing it acknowledged was lost or doubled.
//
// It has no code of its own; the tests are the program. A node runs on one data
// folder, publishers load it through its doors, tools write down what they do
// in a file of their own, a person decides what only a person can, and a
// bookkeeper keeps every acknowledgement and every event that a reader was
// shown. A round ends with SIGKILL at an event that the seed chose: the nth
// acknowledgement, model call, tool before or after its effect, or fact. When
// all rounds are over, the books are held against the agents' logs.
//
// Agents ask others, two levels deep, whose gated calls the person decides at the
// root; some results are larger than a frame, some inputs come later, one kind is
// compacted, and all pass out of memory within a second. Children are deleted
// while somebody waits for them. Two agents are deleted again and again, and begin
// anew under the same address with the same ids: nothing of an earlier life may be
// read, be stored or come again. The store is encrypted if the seed is even.
//
//	make chaos ROUNDS=300
//	go test ./cmd/internal/chaos -run TestChaos -args -rounds 40 -seed 7
package chaos
