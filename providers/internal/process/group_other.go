//go:build !unix

package process

import "os/exec"

// Group does nothing: this system has no process groups as unix knows them.
func Group(*exec.Cmd) {}

// KillGroup kills the program alone.
func KillGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }
