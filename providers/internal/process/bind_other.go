//go:build !linux

package process

import "os/exec"

// Bind does nothing: this system has no signal for a parent that was killed. The program finds its
// standard input closed.
func Bind(*exec.Cmd) (free func()) { return func() {} }
