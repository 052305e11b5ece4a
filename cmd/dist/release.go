package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// release is a set of archives that are built from one tree.
type release struct {
	root, out, version string
	time               time.Time
}

// versionVariable is set to the version by the linker.
const versionVariable = "github.com/reprise-dev/reprise/cmd/internal/cli.version"

// build writes an archive for each target, and checksums.txt. Archives of an earlier build are removed.
func (r release) build(targets []target) error {
	shared, err := r.shared()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for _, pattern := range []string{"reprise_*.tar.gz", "reprise_*.zip"} {
		earlier, err := filepath.Glob(filepath.Join(r.out, pattern))
		if err != nil {
			return err
		}
		for _, file := range earlier {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	var sums []string
	for _, t := range targets {
		program, err := r.compile(t)
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		name, data, err := r.archive(t, program, shared)
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		if err := os.WriteFile(filepath.Join(r.out, name), data, 0o644); err != nil {
			return err
		}
		fmt.Printf("%s %d bytes\n", filepath.Join(r.out, name), len(data))
		sums = append(sums, fmt.Sprintf("%x  %s\n", sha256.Sum256(data), name))
	}
	slices.SortFunc(sums, func(a, b string) int { return cmp.Compare(a[2*sha256.Size:], b[2*sha256.Size:]) })
	return os.WriteFile(filepath.Join(r.out, "checksums.txt"), []byte(strings.Join(sums, "")), 0o644)
}

// archive returns the archive of a target with its program, and its file name. Its files are in a folder of
// that name.
func (r release) archive(t target, program []byte, shared []entry) (name string, data []byte, err error) {
	licences, err := r.licences(t)
	if err != nil {
		return "", nil, err
	}
	folder := strings.Join([]string{"reprise", r.version, t.os, t.arch}, "_")
	entries := []entry{{name: t.program(), data: program, program: true}, {name: "THIRD-PARTY-LICENCES.txt", data: licences}}
	entries = append(entries, shared...)
	for i := range entries {
		entries[i].name = folder + "/" + entries[i].name
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	if t.os == "windows" {
		data, err = zipped(entries, r.time)
		return folder + ".zip", data, err
	}
	data, err = tarGz(entries, r.time)
	return folder + ".tar.gz", data, err
}

// compile returns the program for a target.
func (r release) compile(t target) ([]byte, error) {
	dir, err := os.MkdirTemp("", "reprise-dist-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, t.program())
	if _, err := r.golang(t, "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X "+versionVariable+"="+r.version, "-o", file, "./cmd/reprise"); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// golang runs the go command for a target and returns what it prints.
func (r release) golang(t target, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	var errs bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = r.root, t.environ(), &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, &errs)
	}
	return out, nil
}
