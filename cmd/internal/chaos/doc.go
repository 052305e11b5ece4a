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
//	make chaos ROUNDS=300
//	go test ./cmd/internal/chaos -run TestChaos -args -rounds 40 -seed 7
package chaos
