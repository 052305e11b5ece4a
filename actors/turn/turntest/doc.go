// Package turntest plays stories: texts that drive the turn machine line by
// line, for tests of the machine and of what is built from its frames.
//
// A story is made of blocks: lines of commands, a line of four dashes, and the
// answer up to an empty line: the events, then what must now be done in the
// world. Lines that begin with # are comments. The clock, the frame ids and the
// jitter are fixed, so the same story always produces the same frames.
package turntest
