package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardTyped forgets what was typed at a terminal and not read yet.
func discardTyped(f *os.File) {
	_ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) // a file that is no terminal has nothing to forget
}

// quiet has a terminal keep what is typed, as it is, for the next line that is edited, and not
// show it meanwhile. Ctrl-C is a signal all the same.
func quiet(f *os.File) {
	mode, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return
	}
	mode.Iflag &^= unix.ICRNL
	mode.Lflag &^= unix.ICANON | unix.ECHO
	_ = unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, mode) // as it was, it serves as well
}
