package embeddedtest

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// FullDisk makes everything that this process writes to the file, which it holds
// open, fail as on a full disk, until it opens the file again.
func FullDisk(t testing.TB, file string) {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = full.Close() }()
	held, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	replaced := 0
	for _, entry := range held {
		if name, err := os.Readlink(filepath.Join("/proc/self/fd", entry.Name())); err != nil || name != file {
			continue
		}
		fd, err := strconv.Atoi(entry.Name())
		if err == nil {
			err = syscall.Dup3(int(full.Fd()), fd, syscall.O_CLOEXEC)
		}
		if err != nil {
			t.Fatal(err)
		}
		replaced++
	}
	if replaced == 0 {
		t.Fatalf("%s is not open", file)
	}
}
