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
// args holds the arguments; numbers are float64. Only fields that the tool's parameters
// declare can be named, unless their schema leaves room for others. A person is also asked
// where the expression cannot decide:
//
//   - a field that it names is not there. Whether one is there can be asked with
//     args.dry ?? false, args.address?.country, args.dry != nil or "dry" in args:
//     then what is missing is nil;
//   - it compares with < or > what is no number, or gives neither true nor false;
//   - two fields of the same object, or a field and a name in the expression, are
//     the same but for upper and lower case: programs differ in which they read;
//   - the arguments have more than 64 KiB or 2,048 values, or a number of 2^53 or
//     more.
//
// An expression is held against the tool's parameters. A literal that is none of the values
// that enum or const list, a comparison of unlike types and a field that does not exist
// are mistakes: such an expression gives the same answer for every call. That counts
// behind $ref, allOf, anyOf and oneOf, too. Only what is certain is a mistake:
//
//   - a field that nothing declares may be asked for with ?? or in;
//   - a mapping of which no field is declared, or which has patternProperties, if or
//     additionalProperties, may have any field, and it may hold anything;
//   - a value that may have several types is only held against literals;
//   - what not, if, minimum, pattern and the like rule out is not considered, nor is an
//     enum of more than 1,000 values, nor what functions make of a value.
//
// Where the parameters leave it open, a value of another type than the one it is compared
// with is simply not equal to it: args.code == 5 lets "5" pass. Arguments that do not fit
// the parameters are refused before.
//
// # Parameters
//
// A schema with an unknown type, an enum that does not fit its type, a $ref that leads back to
// itself, or a required property that does not exist, is a mistake. A property that a part of
// a schema requires, such as one of anyOf, may be declared elsewhere. Unknown words are
// annotations.
package config
