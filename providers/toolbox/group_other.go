//go:build !unix

package toolbox

import "os/exec"

// own does nothing: this system has no process groups as unix knows them.
func own(*exec.Cmd) {}

// killGroup kills the program alone.
func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }
