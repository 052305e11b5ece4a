//go:build unix

package process

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Group gives the program a process group of its own, to be killed as one.
func Group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// KillGroup kills the program and all that it started and that stayed in its
// group.
func KillGroup(cmd *exec.Cmd) error {
	err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
