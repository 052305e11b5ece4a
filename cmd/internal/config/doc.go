// Package config reads reprise.yaml and says everything that is wrong with it
// at once.
//
// # Guarantees
//
//   - Every mistake is a [Problem] with its place: file:line:col: what; what to do.
//   - No problem shows the value of a key, of a tool's environment or of any
//     expanded variable, not even when it is wrong.
//   - Nothing is ignored: an unknown field, a field of a later version and a key
//     written twice are problems.
//   - Reading ends soon whatever the file holds: size, nesting, aliases and the
//     number of words are bounded.
//   - An approval expression ends soon whatever the arguments hold.
//
// # Variables
//
// In every text but a tool's parameters, ${NAME} is the environment variable
// NAME and ${NAME:-text} is text where NAME is unset or empty; $${ is a plain
// ${. The replacement is never read as YAML. A provider that no agent uses may
// name variables that are not set.
//
// # Approvals
//
// A tool's approval is never, always, or an expression of the language at
// expr-lang.org that is true of the arguments whose call a person must approve:
//
//	approval: args.cents > 5000
//	approval: args.country not in ["DE", "FR"] or any(args.lines, .cents > 900)
//
// args holds the arguments; those that are missing are nil, numbers are float64.
// Only what the tool's parameters declare can be named, unless their schema is
// open. Where the expression cannot tell, a person is asked: it compares what is
// missing, gives neither true nor false, or the arguments have more than 64 KiB
// or 2,048 values, a number of 2^53 or more, or a field twice.
package config
