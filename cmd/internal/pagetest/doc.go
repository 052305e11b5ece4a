// Package pagetest holds README.md, CONTRIBUTING.md, SECURITY.md and the pages of docs to what they
// promise: links lead somewhere, blocks of code are what they seem, and commands print what a page shows. Command lines
// that are not run, also those in hints of the program, name commands, flags and targets of make that there are.
//
// It has tests and no code. The static ones need nothing but the files; TestPages runs each page in a
// bash of its own, in an empty folder, with the program of this tree. With -update it writes what the
// commands print into the pages, with -keep=DIR it leaves the folders of the pages in DIR.
//
// # Blocks
//
// The language of a block is what the test does with it:
//
//   - console: a transcript. A line that begins with "$ " is a command, which "> " continues; what follows is
//     what it prints. Times, sizes, ids, hashes, process ids, ports that the system has chosen and widths of
//     columns are not compared. A duration that the page shows as 0s or finer than a second was measured and
//     stands for any other; whole seconds are compared. A line that is only "…" stands for any number of
//     lines. Each command ends with 0, unless the next one is "echo $?".
//   - sh: commands to copy. Each ends with 0.
//   - yaml: with agents at its top level it is a configuration without mistakes.
//   - go: a whole file, which is built, or a part of a file of this tree.
//   - json: one document, or one on each line.
//   - text and mermaid: layouts and drawings.
//   - Others, such as python, are written to a file, are a part of one, or are not run.
//
// # Nodes
//
// A line that begins with reprise dev or reprise serve starts a node, and the next command waits until it
// is ready. It stops the node of an earlier such line, which a reader has in another terminal, by SIGTERM. Nodes of lines
// that end with & or with "& node=$!" live until the page ends them, so that a page can have several.
//
// A page can run nats-server, which is built from the version that the module requires, and name it in --nats,
// --context or NATS_URL.
//
// The ports of a page are its own: 127.0.0.1:4222, localhost:8080 and all others of this machine that a
// command or a file names are replaced by free ones, and what commands print is translated back.
//
// # Directives
//
// A directive is a comment on a line of its own. Those of a block are on the lines above it:
//
//	<!-- file: NAME -->          writes the block to a file, executable if it begins with #!
//	<!-- from: PATH -->          the block is a part of that file of the tree, whatever its indentation
//	<!-- not run: REASON -->     why it cannot be run
//	<!-- run: COMMAND -->        anywhere: a command that the reader does not see
//	<!-- model: say "TEXT" -->   anywhere: the page has a model server, and this is its next answer
//	<!-- model: call TOOL {…} --> the same, a call of a tool
package pagetest
