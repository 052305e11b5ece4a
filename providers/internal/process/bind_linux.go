package process

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Bind has the system kill the program when this process ends, however it ends. It is for a
// goroutine that then starts the program, waits for its end and calls free: the signal is sent
// when the thread ends that started the program, so the goroutine keeps that for itself. What the
// program started itself is not killed, and finds its standard input closed.
func Bind(cmd *exec.Cmd) (free func()) {
	runtime.LockOSThread()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return runtime.UnlockOSThread
}
