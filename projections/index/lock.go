package index

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// ErrHeld is wrapped by the errors for a file that another Store has open.
var ErrHeld = errors.New("another process has it open: give each node a folder of its own")

// lockSuffix follows the name of a file in that of its lock.
const lockSuffix = ".lock"

// hold locks an index file, which need not exist yet.
func hold(path string) (*flock.Flock, error) {
	lock := flock.New(path + lockSuffix)
	for range 10 { // one that was removed meanwhile locks nothing
		ok, err := lock.TryLock()
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !ok {
			return nil, fmt.Errorf("%s: %w", path, ErrHeld)
		}
		if current(lock) {
			return lock, nil
		}
		if err := lock.Unlock(); err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
	return nil, fmt.Errorf("%s: %w", path, ErrHeld)
}

// current reports whether the locked file is the one that others find.
func current(lock *flock.Flock) bool {
	mine, err := lock.Stat()
	if err != nil {
		return false
	}
	found, err := os.Stat(lock.Path())
	return err == nil && os.SameFile(mine, found)
}

// Remove deletes a file, unless a Store has it open: that error wraps ErrHeld.
// Without a path, or a folder, there is nothing to do.
func Remove(path string) error {
	if path == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := hold(path)
	if err != nil {
		return err
	}
	err = remove(path)
	if err == nil {
		err = os.Remove(lock.Path())
	}
	return errors.Join(err, lock.Unlock())
}

// remove deletes a file whose lock is held.
func remove(path string) error {
	if path == "" {
		return nil
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Sweep removes the folders that a pattern matches and that hold an index file with this
// name which no Store has open: those of processes that were killed. It returns how
// many. One that cannot be removed is left.
func Sweep(pattern, name string) (removed int) {
	folders, _ := filepath.Glob(pattern) // a pattern of our own is well formed
	for _, dir := range folders {
		if sweep(dir, filepath.Join(dir, name)) {
			removed++
		}
	}
	return removed
}

func sweep(dir, path string) bool {
	folder, err := os.Lstat(dir)
	if err != nil || !folder.IsDir() {
		return false
	}
	if _, err := os.Lstat(path + lockSuffix); err != nil { // it is not known whether another process has it
		return false
	}
	lock, err := hold(path)
	if err != nil {
		return false
	}
	defer func() { _ = lock.Unlock() }() // it is removed, or another process has it
	return os.RemoveAll(dir) == nil
}
