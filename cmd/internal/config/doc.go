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
//
// # Variables
//
// In every text but a tool's parameters, ${NAME} is the environment variable
// NAME and ${NAME:-text} is text where NAME is unset or empty; $${ is a plain
// ${. The replacement is never read as YAML. A provider that no agent uses may
// name variables that are not set.
package config
