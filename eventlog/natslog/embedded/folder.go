package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// format is the newest format of the folder that this version reads.
const format = 1

// openFolder makes the folder if need be, locks it and checks its version.
func openFolder(dir string) (*flock.Flock, error) {
	if dir == "" {
		return nil, errors.New("the embedded NATS server needs a folder for its data: set --data")
	}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the data folder %s: %w", dir, err)
		}
	case err != nil:
		return nil, fmt.Errorf("data folder %s: %w", dir, err)
	case !info.IsDir():
		return nil, fmt.Errorf("data folder %s: it is a file, not a folder", dir)
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	if err := checkVersion(dir); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return lock, nil
}

// openFile is in a folder while a server runs on it, and after one that was killed. It holds
// what distinguishes this start of the machine from others, if the system says so.
const openFile = "OPEN"

// bootFile holds an id of the running system, on Linux.
const bootFile = "/proc/sys/kernel/random/boot_id"

// opened notes that a server runs on the folder.
func opened(dir string) error {
	boot, _ := os.ReadFile(bootFile)
	if err := os.WriteFile(filepath.Join(dir, openFile), boot, 0o600); err != nil {
		return fmt.Errorf("data folder %s: %w", dir, err)
	}
	return nil
}

// closed notes that the server on the folder was stopped in order.
func closed(dir string) error {
	if err := os.Remove(filepath.Join(dir, openFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("data folder %s: %w", dir, err)
	}
	return nil
}

// wasOpen reports whether the last server on the folder was not stopped in order, and
// whether the machine has certainly not lost its power since it was started.
func wasOpen(dir string) (open, powered bool) {
	then, err := os.ReadFile(filepath.Join(dir, openFile))
	boot, _ := os.ReadFile(bootFile)
	return err == nil, err == nil && len(boot) > 0 && bytes.Equal(then, boot)
}

// release is how long a process that was killed may take to let go of its
// folder: the system does so when its last write has ended.
const release = 3 * time.Second

// Used reports whether a process uses the folder, or may: it does not know of one
// that it cannot lock.
func Used(dir string) bool {
	path := filepath.Join(dir, lockFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false
	}
	lock := flock.New(path)
	free, err := lock.TryRLock()
	if free {
		err = lock.Unlock()
	}
	return !free || err != nil
}

// lockFile is locked by the process that uses a folder, and holds its id.
const lockFile = "LOCK"

// lockFolder locks the folder for this process and leaves its id for one who
// is refused.
func lockFolder(dir string) (*flock.Flock, error) {
	path := filepath.Join(dir, lockFile)
	lock := flock.New(path)
	ctx, cancel := context.WithTimeout(context.Background(), release)
	defer cancel()
	ok, err := lock.TryLockContext(ctx, release/50)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("data folder %s: this user may not write there: %w", dir, err)
	case err != nil:
		return nil, fmt.Errorf("lock the data folder %s: %w", dir, err)
	case !ok:
		return nil, fmt.Errorf("data folder %s is in use by %s: stop it, or choose another folder", dir, holder(path))
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the data folder %s: %w", dir, err), lock.Unlock())
	}
	return lock, nil
}

// lockNow locks a folder, unless a process uses it. It leaves no id.
func lockNow(dir string) (*flock.Flock, error) {
	path := filepath.Join(dir, "LOCK")
	lock := flock.New(path)
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the data folder %s: %w", dir, err)
	}
	if !ok {
		return nil, fmt.Errorf("data folder %s is in use by %s: %w", dir, holder(path), ErrRunning)
	}
	return lock, nil
}

func holder(path string) string {
	b, err := os.ReadFile(path)
	if pid := strings.TrimSpace(string(b)); err == nil && pid != "" {
		return "process " + pid
	}
	return "another process"
}

// checkVersion refuses a newer folder and marks a new one.
func checkVersion(dir string) error {
	path := filepath.Join(dir, "VERSION")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return writeVersion(dir, path)
	}
	if err != nil {
		return fmt.Errorf("data folder %s: %w", dir, err)
	}
	number, writer, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	switch n, err := strconv.Atoi(number); {
	case err != nil || n < 1:
		return fmt.Errorf("data folder %s: VERSION holds %q, not the number of a format: this is no folder of reprise, or it is damaged", dir, b)
	case n > format:
		return fmt.Errorf("data folder %s has format %d, written by %q; this is %q and reads up to format %d: run the version that wrote it, or a later one",
			dir, n, writer, version(), format)
	}
	return nil
}

// writeVersion puts the file in place whole, so that a crash leaves none.
func writeVersion(dir, path string) error {
	temp := path + ".new"
	err := os.WriteFile(temp, []byte(strconv.Itoa(format)+" "+version()+"\n"), 0o600)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return fmt.Errorf("data folder %s: %w", dir, err)
	}
	return nil
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return "reprise " + info.Main.Version
	}
	return "reprise (unknown version)"
}
