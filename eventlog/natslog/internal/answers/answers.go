// Package answers says how long the log waits for answers, for tests to change.
package answers

import "time"

// Wait is how long an append and the like wait for their answers. It is changed by
// tests alone, before they begin.
var Wait = 2 * time.Second
