//go:build !unix

package toolbox

import (
	"io"
	"os"
	"os/exec"
)

// own does nothing: this system has no process groups as unix knows them.
func own(*exec.Cmd) {}

// killGroup kills the program alone.
func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

// held takes nothing: pipes of os.Pipe have no deadline here, and are read to their end.
func held(io.Writer, *os.File) {}
