// Package process holds what all programs share that tools start: how they are found, what
// they inherit of the environment, what is kept of their words, and how they end with all
// that they started.
package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
)

// Find returns the path of a program whose relative name starts at dir.
func Find(dir, name string) (string, error) {
	at := name
	if filepath.Base(name) != name {
		if !filepath.IsAbs(name) {
			at = filepath.Join(dir, name)
		}
		var err error
		if at, err = filepath.Abs(at); err != nil {
			return "", fmt.Errorf("program %s: %w", name, err)
		}
	}
	path, err := exec.LookPath(at)
	var cause *exec.Error
	var stat *fs.PathError
	if errors.As(err, &cause) && errors.As(cause.Err, &stat) {
		cause.Err = stat.Err // the message would name the path twice
	}
	switch {
	case err == nil:
		return path, nil
	case cause != nil && at == name && !filepath.IsAbs(at):
		return "", fmt.Errorf("program %s: %w; for a file beside the others, write ./%s", name, cause.Err, name)
	case cause != nil:
		return "", fmt.Errorf("program %s cannot be run as %s: %w", name, at, cause.Err)
	}
	return "", fmt.Errorf("program %s: %w", name, err)
}
