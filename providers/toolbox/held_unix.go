//go:build unix

package toolbox

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// heldReads is how often a pipe is read at most for what it holds, with room for a
// pipe's usual content each time: a process that left the group may keep writing.
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
