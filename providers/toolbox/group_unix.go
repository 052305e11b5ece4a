//go:build unix

package toolbox

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// own gives the program a process group of its own, to be killed as one.
//
// Pdeathsig is left out on purpose. It is tied to the operating system thread
// that started the program, not to the process, and Go may end that thread at
// any time, which would kill a tool in the middle of its work; and it reaches
// only the first process of the group. A program that outlives a killed node
// finds its standard output closed and ends by itself; its call is settled by
// its class, as after any crash.
func own(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the program and all that it started and that stayed in its
// group.
func killGroup(cmd *exec.Cmd) error {
	err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
