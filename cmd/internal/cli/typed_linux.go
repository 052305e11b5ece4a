//go:build linux && (386 || amd64 || arm || arm64 || loong64 || riscv64 || s390x)

package cli

import (
	"os"
	"syscall"
)

// tcflsh is TCFLSH of these processors, which syscall does not name for all.
const tcflsh = 0x540b

// discardTyped forgets what was typed at a terminal and not read yet.
func discardTyped(f *os.File) {
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) { // a file that is no terminal has nothing to forget
		_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, fd, tcflsh, syscall.TCIFLUSH)
	})
}
