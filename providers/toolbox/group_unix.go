//go:build unix

package toolbox

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
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

// heldReads is how often a pipe is read at most for what it holds, with room for a
// pipe's usual content each time: whoever left the group may go on writing.
const heldReads = 16

// held takes what a pipe holds whose deadline is past, and waits for nothing more.
func held(w io.Writer, pipe *os.File) {
	raw, err := pipe.SyscallConn()
	if err != nil || pipe.SetReadDeadline(time.Time{}) != nil { // with the deadline there is no read at all
		return
	}
	chunk := make([]byte, 64<<10)
	_ = raw.Read(func(fd uintptr) bool {
		for range heldReads {
			n, err := syscall.Read(int(fd), chunk) // an empty pipe fails: it does not block
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if n <= 0 {
				break
			}
			_, _ = w.Write(chunk[:n]) // never fails
		}
		return true
	})
}
